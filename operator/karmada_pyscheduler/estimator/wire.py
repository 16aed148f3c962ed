"""Requests and responses as bytes.

Most of a request is the same for every cluster, so it is encoded once per binding. The request to a cluster is a few
bytes of its own, followed by that body. Protobuf allows it: concatenated encodings are the union of their fields.

Source: karmada v1.18.2 pkg/estimator/client/accurate.go, pkg/estimator/pb.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.estimator.pb import DecodeError, ParseDict, ParseError
from karmada_pyscheduler.estimator.pb import estimator_pb2 as pb
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.manifest import read_optional_mapping
from karmada_scheduler.api.quantity import BINARY_SI, DECIMAL_EXPONENT, Quantity

SERVICE: Final = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
MAX_AVAILABLE_REPLICAS: Final = "MaxAvailableReplicas"
MAX_AVAILABLE_COMPONENT_SETS: Final = "MaxAvailableComponentSets"

_REQUESTS: Final = {
    MAX_AVAILABLE_REPLICAS: pb.MaxAvailableReplicasRequest,
    MAX_AVAILABLE_COMPONENT_SETS: pb.MaxAvailableComponentSetsRequest,
}
_RESPONSES: Final[Mapping[str, tuple[Any, str]]] = {
    MAX_AVAILABLE_REPLICAS: (pb.MaxAvailableReplicasResponse, "max_replicas"),
    MAX_AVAILABLE_COMPONENT_SETS: (pb.MaxAvailableComponentSetsResponse, "max_sets"),
}
_NO_OPINION: Final = -1

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {
    -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E",
}  # fmt: skip


class EstimatorRequest(NamedTuple):
    """A request without the cluster.

    Attributes:
        method: ``MAX_AVAILABLE_REPLICAS`` or ``MAX_AVAILABLE_COMPONENT_SETS``.
        body: The part of the request that is the same for every cluster, encoded.
    """

    method: str
    body: bytes

    def encode(self, cluster: str, assumed: Sequence[AssumedWorkload]) -> bytes:
        """Return the whole request for one cluster, with the workloads that are assumed there."""
        request = _REQUESTS[self.method](cluster=cluster)
        parts = [request.SerializeToString(), *(_assumed(self.method, each) for each in assumed), self.body]
        return b"".join(parts)

    def decode(self, payload: bytes) -> int:
        """Return the number in a response, -1 for no opinion; ValueError if it cannot be read."""
        try:
            response, field = _RESPONSES[self.method]
            fits = int(getattr(response.FromString(payload), field))
        except DecodeError as error:
            raise ValueError(f"the answer cannot be read: {error}") from error
        if fits < _NO_OPINION:
            # It would reduce the sum of the available replicas of all clusters.
            raise ValueError(f"it answered {fits}, which is no number of replicas")
        return fits


def replicas_request(requirements: ReplicaRequirements | None) -> EstimatorRequest:
    """Return the request for the number of replicas that fit.

    Raises:
        ValueError: The requirements cannot be encoded.
    """
    request = pb.MaxAvailableReplicasRequest()
    if requirements is not None:
        request.replica_requirements.CopyFrom(
            pb.ReplicaRequirements(namespace=requirements.namespace, **_requirements(requirements))
        )
    return EstimatorRequest(MAX_AVAILABLE_REPLICAS, request.SerializeToString(deterministic=True))


def sets_request(components: Sequence[Component], namespace: str) -> EstimatorRequest:
    """Return the request for the number of sets of all components that fit.

    Raises:
        ValueError: The requirements of a component cannot be encoded.
    """
    request = pb.MaxAvailableComponentSetsRequest(namespace=namespace, components=_components(components))
    return EstimatorRequest(MAX_AVAILABLE_COMPONENT_SETS, request.SerializeToString(deterministic=True))


_encoded: dict[tuple[str, int], tuple[AssumedWorkload, bytes]] = {}
"""Key: method and id of the workload. The cache refers to the workload, so that its id stays unique."""

_ENCODED: Final = 65536


def _assumed(method: str, workload: AssumedWorkload) -> bytes:
    """Return the field of a request with one assumed workload, cached: a request may have hundreds."""
    key = (method, id(workload))
    known = _encoded.get(key)
    if known is not None:
        return known[1]
    made = [pb.AssumedWorkload(namespace=workload.namespace, components=_components(workload.components))]
    request = _REQUESTS[method](assumed_workloads=made)
    if len(_encoded) >= _ENCODED:
        _encoded.clear()
    _encoded[key] = (workload, request.SerializeToString(deterministic=True))
    return _encoded[key][1]


def _components(components: Sequence[Component]) -> list[pb.Component]:
    return [
        pb.Component(
            name=component.name,
            replicas=component.replicas,
            replica_requirements=None
            if component.replica_requirements is None
            else pb.ComponentReplicaRequirements(**_requirements(component.replica_requirements)),
        )
        for component in components
    ]


def _requirements(requirements: ReplicaRequirements) -> dict[str, Any]:
    """Return the fields that both kinds of requirements have."""
    amounts = {
        name: pb.Quantity(string=written(amount)) for name, amount in requirements.resource_request.items()
    }
    fields: dict[str, Any] = {
        "priority_class_name": requirements.priority_class_name,
        "resource_request": amounts,
        "resource_request_bytes": {name: amount.SerializeToString() for name, amount in amounts.items()},
    }
    if requirements.node_claim is not None:
        try:
            fields["node_claim"] = _node_claim(requirements.node_claim)
        except ParseError as error:
            raise ValueError(f"nodeClaim: {error}") from error
    return fields


def _node_claim(claim: Mapping[str, Any]) -> pb.NodeClaim:
    fields = {name: claim.get(name) for name in ("nodeSelector", "tolerations")}
    fields["nodeAffinity"] = read_optional_mapping(claim, "hardNodeAffinity", "nodeClaim")
    found: pb.NodeClaim = ParseDict(fields, pb.NodeClaim(), ignore_unknown_fields=True)
    if found.HasField("node_affinity"):
        found.node_affinity_bytes = found.node_affinity.SerializeToString()
    found.tolerations_bytes.extend(toleration.SerializeToString() for toleration in found.tolerations)
    return found


def written(amount: Quantity) -> str:
    """Write a quantity in Kubernetes' canonical form: no fraction, the largest suffix that fits.

    Source: k8s.io/apimachinery v0.35.3 pkg/api/resource quantity.go CanonicalizeBytes.
    """
    if amount.unscaled == 0:
        return "0"
    mantissa, exponent = amount.unscaled, amount.exponent
    if amount.format == BINARY_SI:
        whole, rest = divmod(mantissa * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))
        if rest == 0 and abs(whole) >= 1024:
            return _with_binary_suffix(whole)
    mantissa, exponent = _without_zeros(mantissa, exponent)
    largest = exponent if amount.format == DECIMAL_EXPONENT else 18
    reached = min(exponent - exponent % 3, largest)
    mantissa *= 10 ** (exponent - reached)
    if amount.format == DECIMAL_EXPONENT:
        return f"{mantissa}e{reached}" if reached else str(mantissa)
    return f"{mantissa}{_DECIMAL[reached]}"


def _without_zeros(mantissa: int, exponent: int) -> tuple[int, int]:
    """Remove trailing decimal zeros from a number; from a very long one thousands at a time."""
    if mantissa.bit_length() > 256:
        for step in (8192, 4096, 2048, 1024, 512, 256, 128, 64, 32):
            shorter, rest = divmod(mantissa, 10**step)
            if rest == 0:
                mantissa, exponent = shorter, exponent + step
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    return mantissa, exponent


def _with_binary_suffix(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY) - 1:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY[power]}"
