"""Which bindings and workloads a name means that a person gives."""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, BindingKey

_SHORT_NAMES: Final = {
    "rb": RESOURCE_BINDING,
    "crb": CLUSTER_RESOURCE_BINDING,
    **{
        name: kind
        for kind in (RESOURCE_BINDING, CLUSTER_RESOURCE_BINDING)
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
