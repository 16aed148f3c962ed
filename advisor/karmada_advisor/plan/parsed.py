"""The objects of both sides of a change as values; those that do not change are the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from karmada_advisor.plan.change import ChangeError
from karmada_advisor.plan.objects import Manifest, PlanObjects, part
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError

Key = TypeVar("Key")
Value = TypeVar("Value")

ClusterChange = tuple[Cluster | None, Cluster | None]
"""A cluster before and after."""


@dataclass(frozen=True)
class Parsed:
    """Clusters and bindings before and after a change."""

    clusters_before: Mapping[str, Cluster]
    clusters_after: Mapping[str, Cluster]
    bindings_before: Mapping[BindingKey, Binding]
    bindings_after: Mapping[BindingKey, Binding]

    @property
    def changed_clusters(self) -> dict[str, ClusterChange]:
        """The clusters that differ, by name."""
        before, after = self.clusters_before, self.clusters_after
        names = sorted({*before, *after})
        return {
            name: (before.get(name), after.get(name))
            for name in names
            if before.get(name) is not after.get(name)
        }


@dataclass(frozen=True)
class Known:
    """The objects before the change as values, if they were read already."""

    clusters: Mapping[str, Cluster]
    bindings: Mapping[BindingKey, Binding]


def parse(before: PlanObjects, after: PlanObjects, known: Known | None = None) -> Parsed:
    """Read the manifests of both sides.

    Raises:
        ChangeError: One cannot be read.
    """
    if known is None:
        clusters = {name: _read(Cluster.from_manifest, each) for name, each in before.clusters.items()}
        bindings = {key: _read(Binding.from_manifest, each) for key, each in before.bindings.items()}
        known = Known(clusters, bindings)
    return Parsed(
        known.clusters,
        _changed(known.clusters, before.clusters, after.clusters, Cluster.from_manifest),
        known.bindings,
        _changed(known.bindings, before.bindings, after.bindings, Binding.from_manifest),
    )


def known_after(known: Known, before: PlanObjects, after: PlanObjects) -> Known:
    """Return other objects as values; those that are equal to objects that were read are not read again.

    Raises:
        ChangeError: One cannot be read.
    """
    return Known(
        _changed(known.clusters, before.clusters, after.clusters, Cluster.from_manifest),
        _changed(known.bindings, before.bindings, after.bindings, Binding.from_manifest),
    )


def _changed(
    known: Mapping[Key, Value],
    before: Mapping[Key, Manifest],
    after: Mapping[Key, Manifest],
    parse_one: Callable[[Manifest], Value],
) -> dict[Key, Value]:
    return {
        key: known[key] if before.get(key) is each else _read(parse_one, each) for key, each in after.items()
    }


def _read(parse_one: Callable[[Manifest], Value], manifest: Manifest) -> Value:
    try:
        return parse_one(manifest)
    except ManifestError as problem:
        name = part(manifest, "metadata").get("name")
        raise ChangeError(f"{manifest.get('kind')} {name}: {problem}") from problem
