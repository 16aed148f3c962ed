"""The kinds that the model serves, and how each one treats writes.

The table is the place to add a kind. Kinds differ as the strategies of their API servers do: custom resources
(apiextensions-apiserver), Karmada's Clusters (its aggregated API server), and Kubernetes' own.

Source: ``AllowUnconditionalUpdate``, ``AllowCreateOnUpdate``, ``PrepareForUpdate`` and ``PrepareForCreate`` of the
strategies in Kubernetes 1.35.3 and Karmada 1.18.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal
from urllib.parse import unquote

Object = dict[str, Any]
"""A decoded JSON object."""

Key = tuple[str, str]
"""Namespace and name; the namespace is "" for cluster-scoped objects."""

_VERBS: Final = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """A kind and its resource. Compared by identity: there is one instance for each.

    Attributes:
        api_version: Group and version: ``apps/v1``, ``v1``.
        name: For example ``Deployment``.
        plural: The name in paths.
        namespaced: Whether its objects have namespaces.
        has_status: Whether it has a ``status`` subresource; then writes of the object itself do not change the status.
        generation: What counts as a change for ``metadata.generation``: the ``spec``, the spec and the ``annotations``,
            the ``content`` (all but ``metadata`` and the status), or ``none``: a server does not set a generation.
        status_writes: What a write of the status can change: the ``status`` only, also ``annotations`` and finalizers
            but not labels, or ``everything``.
        is_custom: Whether a CustomResourceDefinition defines it: items of lists have ``apiVersion`` and ``kind``, and
            there is no strategic merge patch.
        unconditional: Whether a PUT without resourceVersion replaces whatever is stored.
        creates_on_update: Whether a PUT creates the object if there is none.
        returns_deleted: Whether the response to a DELETE is the object, not a Status.
    """

    api_version: str
    name: str
    plural: str
    namespaced: bool = True
    has_status: bool = False
    generation: Literal["spec", "annotations", "content", "none"] = "none"
    status_writes: Literal["status", "metadata", "everything"] = "metadata"
    is_custom: bool = False
    unconditional: bool = True
    creates_on_update: bool = False
    returns_deleted: bool = False

    @property
    def group(self) -> str:
        """The group, "" for core."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    @property
    def resource(self) -> str:
        """The resource as messages name it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """The path of the collection, all namespaces."""
        return f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}/{self.plural}"

    def key(self, namespace: str, name: str) -> Key:
        """Return the key of an object; the namespace is ignored for cluster-scoped kinds."""
        return (namespace if self.namespaced else "", name)

    def path_of(self, key: Key) -> str:
        """Return the path of an object."""
        if not self.namespaced:
            return f"{self.path}/{key[1]}"
        group = self.path.rpartition("/")[0]
        return f"{group}/namespaces/{key[0]}/{self.plural}/{key[1]}"


def _custom(
    api_version: str, name: str, plural: str, *, namespaced: bool = True, status: bool = True
) -> Kind:
    return Kind(
        api_version=api_version,
        name=name,
        plural=plural,
        namespaced=namespaced,
        has_status=status,
        generation="content",
        status_writes="status",
        is_custom=True,
        unconditional=False,
    )


def _workload(api_version: str, name: str, plural: str) -> Kind:
    return Kind(api_version=api_version, name=name, plural=plural, has_status=True, generation="spec")


KINDS: Final = (
    _custom("work.karmada.io/v1alpha2", "ResourceBinding", "resourcebindings"),
    _custom(
        "work.karmada.io/v1alpha2", "ClusterResourceBinding", "clusterresourcebindings", namespaced=False
    ),
    _custom("policy.karmada.io/v1alpha1", "PropagationPolicy", "propagationpolicies", status=False),
    _custom(
        "policy.karmada.io/v1alpha1",
        "ClusterPropagationPolicy",
        "clusterpropagationpolicies",
        namespaced=False,
        status=False,
    ),
    _custom("policy.karmada.io/v1alpha1", "FederatedResourceQuota", "federatedresourcequotas"),
    Kind(
        api_version="cluster.karmada.io/v1alpha1",
        name="Cluster",
        plural="clusters",
        namespaced=False,
        has_status=True,
        generation="spec",
        status_writes="everything",
    ),
    Kind(
        api_version="coordination.k8s.io/v1",
        name="Lease",
        plural="leases",
        unconditional=False,
        creates_on_update=True,
    ),
    Kind(api_version="v1", name="Event", plural="events", creates_on_update=True),
    Kind(
        api_version="v1",
        name="Service",
        plural="services",
        creates_on_update=True,
        returns_deleted=True,
    ),
    Kind(api_version="v1", name="Namespace", plural="namespaces", namespaced=False, has_status=True),
    Kind(api_version="v1", name="ConfigMap", plural="configmaps"),
    Kind(api_version="v1", name="Secret", plural="secrets"),
    Kind(
        api_version="apiextensions.k8s.io/v1",
        name="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        has_status=True,
        generation="spec",
    ),
    Kind(
        api_version="apps/v1",
        name="Deployment",
        plural="deployments",
        has_status=True,
        generation="annotations",
    ),
    _workload("apps/v1", "StatefulSet", "statefulsets"),
    _workload("apps/v1", "DaemonSet", "daemonsets"),
    _workload("batch/v1", "Job", "jobs"),
)

BY_NAME: Final = {kind.name: kind for kind in KINDS}
_BY_RESOURCE: Final = {(kind.api_version, kind.plural): kind for kind in KINDS}


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What a path names: a collection if ``name`` is "", else an object or a subresource of it."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The key of the object."""
        return (self.namespace, self.name)


@lru_cache(maxsize=1 << 16)
def target_of(path: str) -> Target | None:
    """Return what a path names, None for one that no kind of the table has."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        api_version, rest = parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        api_version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and (api_version, rest[2]) in _BY_RESOURCE:
        namespace, rest = rest[1], rest[2:]
    kind = _BY_RESOURCE.get((api_version, rest[0]))
    if kind is None or len(rest) > 3 or not all(rest) or (namespace and not kind.namespaced):
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and kind.namespaced and not namespace:
        return None
    return Target(kind, namespace, name, subresource)


def is_in_builtin_group(path: str) -> bool:
    """Return whether a path begins with a group whose resources no CustomResourceDefinition defines."""
    parts = path.strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1] if len(parts) > 1 else "?"
    return any(kind.group == group and not kind.is_custom for kind in KINDS)


def discovery(path: str, kinds: Iterable[Kind] = KINDS) -> Object | None:
    """Return the response to a discovery request; None for another path."""
    parts = path.strip("/").split("/")
    versions = list(dict.fromkeys(kind.api_version for kind in kinds))
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ["apis"]:
        entries = []
        for api_version in versions:
            group, slash, version = api_version.partition("/")
            if slash:
                served = {"groupVersion": api_version, "version": version}
                entries.append({"name": group, "versions": [served], "preferredVersion": served})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries}
    asked = "/".join(parts[1:])
    if parts[0] != ("apis" if "/" in asked else "api") or asked not in versions:
        return None
    resources = []
    for kind in kinds:
        if kind.api_version != asked:
            continue
        entry = {"singularName": kind.name.lower(), "namespaced": kind.namespaced, "kind": kind.name}
        resources.append({"name": kind.plural, **entry, "verbs": list(_VERBS)})
        if kind.has_status:
            status = {"name": f"{kind.plural}/status", **entry, "singularName": ""}
            resources.append({**status, "verbs": ["get", "patch", "update"]})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": asked, "resources": resources}
