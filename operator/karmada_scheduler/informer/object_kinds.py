"""The watched kinds: caches, parsers and change handlers of their objects, and the keys of objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from karmada_scheduler.api.binding import KINDS as BINDING_KINDS
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import ID_LABELS as POLICY_KINDS
from karmada_scheduler.api.policy import PROPAGATION_POLICY, Policy, PolicyKey
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.cache.store import Change, Store
from karmada_scheduler.structs import Struct

CLUSTER: Final = "Cluster"


class ObjectKind(Struct):
    """One watched kind.

    Attributes:
        store: The cache of its objects; both kinds of bindings share one, as both kinds of policies do.
        parse: Makes an object of a manifest; ValueError if the manifest is not valid.
        on_change: Called after each change of the store by a watch or a list.
    """

    store: Store[Any, Any]
    parse: Callable[[Manifest], Any]
    on_change: Callable[[Change[Any]], None]


def object_kinds(
    bindings: BindingCache,
    clusters: ClusterCache,
    *,
    on_binding: Callable[[Change[Binding]], None],
    on_cluster: Callable[[Change[Cluster]], None],
    on_policy: Callable[[Change[Policy]], None],
) -> dict[str, ObjectKind]:
    """Return all watched kinds by name, with these caches and a new one for policies."""
    kinds = {CLUSTER: ObjectKind(clusters, Cluster.from_manifest, on_cluster)}
    for kind in BINDING_KINDS:
        kinds[kind] = ObjectKind(bindings, Binding.from_manifest, on_binding)
    policies = Store[PolicyKey, Policy](lambda policy: policy.key)
    for kind in POLICY_KINDS:
        kinds[kind] = ObjectKind(policies, Policy.from_manifest, on_policy)
    return kinds


def object_key(kind: str, manifest: Manifest) -> Any:
    """Return the key of an object, also of one that cannot be parsed: the name of a Cluster, else a key with its kind."""
    namespace, name = namespace_and_name(manifest)
    if kind in BINDING_KINDS:
        return BindingKey(kind, namespace if kind == RESOURCE_BINDING else "", name)
    if kind == CLUSTER:
        return name
    return PolicyKey(kind, namespace if kind == PROPAGATION_POLICY else "", name)


def key_kind(key: str | BindingKey | PolicyKey) -> str:
    """Return the kind of the object that a key names."""
    return CLUSTER if isinstance(key, str) else key.kind


def namespace_and_name(manifest: Manifest) -> tuple[str, str]:
    """Return the namespace and the name of an object, "" for one that is missing."""
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def version_of(manifest: Manifest) -> int:
    """Return the resourceVersion, or ``sys.maxsize`` when it is missing, so that the object always counts as new."""
    text = (manifest.get("metadata") or {}).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isdecimal() else sys.maxsize
