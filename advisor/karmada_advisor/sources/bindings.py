"""Finds one binding on a live control plane by the name that a person gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey
from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import (
    CLUSTER_RESOURCE_BINDINGS,
    RESOURCE_BINDINGS,
    KarmadaClient,
    Resource,
)
from karmada_scheduler.client.lists import list_pages
from karmada_scheduler.client.metadata import METADATA_LIST

_RESOURCES: Final = {RESOURCE_BINDING: RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDING: CLUSTER_RESOURCE_BINDINGS}
_SHORT_NAMES: Final = {
    "rb": RESOURCE_BINDING,
    "crb": CLUSTER_RESOURCE_BINDING,
    **{
        name: kind
        for kind in _RESOURCES
        for name in (kind.lower(), f"{kind.lower()}s", f"{kind.lower()}s.work.karmada.io")
    },
}
_WORKLOADS: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "po": "pod",
    "cm": "configmap",
    "svc": "service",
    "cj": "cronjob",
}
"""kubectl's short names."""

_API_VERSIONS: Final = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), "apps/v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch/v1"),
    **dict.fromkeys(
        ("Pod", "ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"), "v1"
    ),
    "Ingress": "networking.k8s.io/v1",
}
"""The kinds of workloads that are read to explain why they have no binding."""

_PLURALS: Final = frozenset(f"{kind}s" for kind in (*_WORKLOADS.values(), "job", "secret"))
_SHOWN: Final = 3


class NoSuchBindingError(Exception):
    """There is no such binding; the text names the nearest ones."""


def possible_keys(name: str, namespace: str) -> list[BindingKey]:
    """Return the keys that a name may mean, the most probable first.

    Args:
        name: ``NAME`` of a binding, ``rb/NAME``, ``crb/NAME`` (also with the long names), or ``KIND/NAME`` of a
            workload, whose binding Karmada names ``NAME-kind``.
        namespace: For a ResourceBinding.

    Source: karmada v1.18.2 pkg/util/names/names.go GenerateBindingName.
    """
    kind, _, rest = name.rpartition("/")
    if not kind:
        return [BindingKey(RESOURCE_BINDING, namespace, rest), BindingKey(CLUSTER_RESOURCE_BINDING, "", rest)]
    known = _SHORT_NAMES.get(kind.lower())
    if known == RESOURCE_BINDING:
        return [BindingKey(RESOURCE_BINDING, namespace, rest)]
    if known == CLUSTER_RESOURCE_BINDING:
        return [BindingKey(CLUSTER_RESOURCE_BINDING, "", rest)]
    bound = f"{rest.replace(':', '.')}-{singular(kind)}".lower()
    return [BindingKey(RESOURCE_BINDING, namespace, bound), BindingKey(CLUSTER_RESOURCE_BINDING, "", bound)]


def singular(kind: str) -> str:
    """Return a kind in the form of a binding's name, from what kubectl accepts: ``deploy``, ``deployments.apps``."""
    name = kind.lower().partition(".")[0]
    return _WORKLOADS.get(name, name.removesuffix("s") if name in _PLURALS else name)


class WorkloadName(NamedTuple):
    """A workload that a person names.

    Attributes:
        api_version: Group and version.
        kind: For example ``Deployment``.
    """

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def plural(self) -> str:
        """The resource of the kind."""
        return "ingresses" if self.kind == "Ingress" else f"{self.kind.lower()}s"


def workload_of(name: str, namespace: str) -> WorkloadName | None:
    """Return the workload of ``KIND/NAME``; None if the name is that of a binding, or the kind is not known."""
    written, _, rest = name.rpartition("/")
    if not written:
        return None
    wanted = singular(written)
    kind = next((each for each in _API_VERSIONS if each.lower() == wanted), "")
    return WorkloadName(_API_VERSIONS[kind], kind, namespace, rest) if kind else None


async def find_binding(connection: Connection, keys: Sequence[BindingKey]) -> dict[str, Any]:
    """Read the binding under the first key that exists.

    Raises:
        NoSuchBindingError: There is none.
        ApiError: It cannot be read.
    """
    client = KarmadaClient(connection)
    for key in keys:
        try:
            found = await client.get_binding(key)
        except ApiError as error:
            # A role for one namespace may not read the cluster-scoped kind, which a name can also mean.
            is_forbidden_other = error.code == 403 and key != keys[0]
            if not is_forbidden_other and not error.is_object_not_found(key.name):
                raise
        else:
            resource = _RESOURCES[key.kind]
            return {**found, "apiVersion": f"{resource.group}/{resource.version}", "kind": key.kind}
    raise NoSuchBindingError(await _advice(connection, keys))


async def _advice(connection: Connection, keys: Sequence[BindingKey]) -> str:
    """Return that a binding does not exist, where one of its name is, and which names are like it."""
    wanted = keys[0]
    text = f"{wanted.display} does not exist"
    try:
        names = [name for key in keys for name in await _names(connection, _RESOURCES[key.kind])]
    except ApiError:
        return text  # listing all may be forbidden; it only serves the advice
    elsewhere = sorted({namespace for namespace, name in names if name == wanted.name and namespace})
    if elsewhere:
        return f"{text}. There is one in namespace {_joined(elsewhere)}"
    candidates = sorted({name for namespace, name in names if namespace in (wanted.namespace, "")})
    # The name of a workload is the beginning of its binding's.
    longer = [name for name in candidates if name.startswith(f"{wanted.name}-")]
    near = longer[:_SHOWN] or get_close_matches(wanted.name, candidates, n=_SHOWN)
    return f"{text}. Nearest: {_joined(near)}" if near else text


async def _names(connection: Connection, resource: Resource) -> list[tuple[str, str]]:
    """Return namespace and name of every binding of a kind."""
    return [
        (item["metadata"].get("namespace") or "", item["metadata"]["name"])
        async for page, _ in list_pages(connection, resource.path, accept=METADATA_LIST)
        for item in page
        if json_body.unreadable(item) is None
    ]


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)
