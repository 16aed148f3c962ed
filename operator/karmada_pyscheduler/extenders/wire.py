"""The messages between the scheduler and an extender: kube-scheduler's, with clusters in place of nodes.

The types have no JSON tags upstream, so keys are written as the capitalised Go names and read in any case, as Go's decoder
does. A missing key and an explicit null are the zero value, unknown keys are ignored. Names of clusters (the keys of
``FailedClusters``) keep their case.

A response to filter without either list is an error, unless all clusters failed: Go writes an empty list as null. An
explicit empty list means that no cluster passes.

=================  ==================================================================================
filter request     ``{"Binding":{},"AffinityName":"","Clusters":{ClusterList}|null,"ClusterNames":[]|null}``
filter response    ``{"Clusters":{}|null,"ClusterNames":[]|null,"FailedClusters":{},
                   "FailedAndUnresolvableClusters":{},"Error":""}``
prioritize request as filter
prioritize answer  ``[{"Host":"m1","Score":7}]``; ``Cluster`` is accepted for ``Host``
bind request       ``{"BindingKind":"","BindingNamespace":"","BindingName":"","BindingUID":"",
                   "BindingResourceVersion":"","Clusters":[{"name":"m1","replicas":3}]}``
bind answer        ``{"Error":""}``
=================  ==================================================================================

Source: k8s.io/kube-scheduler v0.35.3 extender/v1/types.go, kubernetes pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from karmada_scheduler import json_body
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import API_VERSION as CLUSTER_API_VERSION
from karmada_scheduler.api.manifest import (
    Manifest,
    ManifestError,
    read_integer,
    read_mapping,
    read_mappings,
    read_required_text,
    read_text,
    read_text_map,
    read_texts,
)
from karmada_scheduler.structs import Struct, field

MAX_EXTENDER_SCORE: Final = 10
_KEYS_SHOWN: Final = 10


class ResponseError(ValueError):
    """A response that cannot be used; the text has the field and its value."""


class FilterResponse(Struct, frozen=True):
    """The response to filter, before it is compared with the request.

    Attributes:
        names: The clusters that pass, by ``ClusterNames``; None without that field.
        objects: The clusters that pass, by ``Clusters``; None without that field.
        failed, unresolvable: The reasons for which others do not pass, by name.
        error: The error of the extender, "" without one.
        keys: The keys of the response as they are written, for error texts.
    """

    names: Sequence[str] | None = None
    objects: Sequence[str] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    keys: Sequence[str] = ()

    def missing_results(self, clusters: Iterable[str]) -> ResponseError | None:
        """Return the error of a response without a result for each of the clusters, None if each has one."""
        if self.names is not None or self.objects is not None:
            return None
        if all(name in self.failed or name in self.unresolvable for name in clusters):
            return None
        keys = f"its keys are {', '.join(self.keys)}" if self.keys else "it has no keys"
        return ResponseError(f"expected a list in ClusterNames, or Clusters with items; {keys}")


def request_with_objects(binding: bytes, affinity_name: str, clusters: Iterable[bytes]) -> bytes:
    """Return the body of a filter or prioritize request with whole objects, given as JSON."""
    items = [orjson.Fragment(cluster) for cluster in clusters]
    listed = {"kind": "ClusterList", "apiVersion": CLUSTER_API_VERSION, "metadata": {}, "items": items}
    return _request(binding, affinity_name, listed, None)


def request_with_names(binding: bytes, affinity_name: str, names: Sequence[str]) -> bytes:
    """Return the body of a filter or prioritize request with the names of clusters."""
    return _request(binding, affinity_name, None, names)


def _request(
    binding: bytes, affinity_name: str, clusters: Mapping[str, Any] | None, names: Sequence[str] | None
) -> bytes:
    return orjson.dumps({
        "Binding": orjson.Fragment(binding),
        "AffinityName": affinity_name,
        "Clusters": clusters,
        "ClusterNames": names,
    })  # fmt: skip


def bind_request(binding: Binding, targets: Iterable[TargetCluster]) -> bytes:
    """Return the body of a bind request; ``BindingResourceVersion`` is the version on which the decision is based."""
    return orjson.dumps({
        "BindingKind": binding.key.kind,
        "BindingNamespace": binding.key.namespace,
        "BindingName": binding.key.name,
        "BindingUID": binding.uid,
        "BindingResourceVersion": binding.resource_version,
        "Clusters": [{"name": target.name, "replicas": target.replicas} for target in targets],
    })  # fmt: skip


def read_filter_response(body: bytes) -> FilterResponse:
    """Return the response to filter.

    Raises:
        ResponseError: It is not a JSON object, or a field has the wrong type.
    """
    found = _object(body)
    answer = _fields(found, "ClusterNames", "Clusters", "FailedClusters",
                     "FailedAndUnresolvableClusters", "Error")  # fmt: skip
    try:
        return FilterResponse(
            names=None if answer.get("ClusterNames") is None else read_texts(answer, "ClusterNames", ""),
            objects=None if answer.get("Clusters") is None else _names_of_objects(answer),
            failed=read_text_map(answer, "FailedClusters", ""),
            unresolvable=read_text_map(answer, "FailedAndUnresolvableClusters", ""),
            error=read_text(answer, "Error", ""),
            keys=[excerpt(key.encode(), limit=40) for key in list(found)[:_KEYS_SHOWN]],
        )
    except ManifestError as error:
        raise ResponseError(str(error)) from None


def _names_of_objects(answer: Manifest) -> list[str]:
    listed = _fields(read_mapping(answer, "Clusters", ""), "items")
    names = []
    for index, entry in enumerate(read_mappings(listed, "items", "Clusters")):
        path = f"Clusters.items[{index}]"
        metadata = _fields(read_mapping(_fields(entry, "metadata"), "metadata", path), "name")
        names.append(read_required_text(metadata, "name", f"{path}.metadata"))
    return names


def read_prioritize_response(body: bytes) -> dict[str, int]:
    """Return the scores of a response to prioritize, 0 to 10 by cluster name.

    Raises:
        ResponseError: It is not JSON, a field has the wrong type, a score is out of range, or a cluster has two
            scores.
    """
    answer = _json(body)
    if answer is None:  # an empty list in Go
        return {}
    if not isinstance(answer, list):
        raise ResponseError(f"expected a list, got {_shown(answer)}")
    scores: dict[str, int] = {}
    try:
        for index, each in enumerate(read_mappings({"": answer}, "", "")):
            path = f"[{index}]"
            entry = _fields(each, "Host", "Cluster", "Score")
            name = read_text(entry, "Host", path) or read_required_text(entry, "Cluster", path)
            score = read_integer(entry, "Score", path)
            if not 0 <= score <= MAX_EXTENDER_SCORE:
                raise ResponseError(
                    f"{path}.Score: {score} for {name} is not within 0 to {MAX_EXTENDER_SCORE}"
                )
            if name in scores:
                raise ResponseError(f"{path}: {name} has been scored before")
            scores[name] = score
    except ManifestError as error:
        raise ResponseError(str(error)) from None
    return scores


def read_bind_response(body: bytes) -> str:
    """Return the error of a response to bind, "" without one.

    The binding is read afterwards, so an empty response is accepted.

    Raises:
        ResponseError: It is not JSON, or a field has the wrong type.
    """
    try:
        return read_text(_fields(_object(body, null_is_empty=True), "Error"), "Error", "")
    except ManifestError as error:
        raise ResponseError(str(error)) from None


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ResponseError(f"not JSON: {error}, got {excerpt(body)!r}") from None


def _object(body: bytes, *, null_is_empty: bool = False) -> Manifest:
    answer = _json(body)
    if answer is None and null_is_empty:
        return {}
    if not isinstance(answer, dict):
        raise ResponseError(f"expected an object, got {_shown(answer)}")
    return answer


def _fields(found: Manifest, *names: str) -> dict[str, Any]:
    """Return the fields of a message by their names, whatever the case of its keys."""
    proper = {name.lower(): name for name in names}
    return {proper[key.lower()]: value for key, value in found.items() if key.lower() in proper}


def _shown(value: object) -> str:
    if value is None:
        return "null"
    # orjson reads 1,024 levels and writes 254.
    return f"{type(value).__name__} {excerpt(orjson.dumps(json_body.shallow(value, 3)))}"


def excerpt(body: bytes, *, limit: int = 200) -> str:
    """Return the beginning of a response as one line, for an error text."""
    text = " ".join(body[: 4 * limit].decode(errors="replace").split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
