"""The collected changes of clusters, and which bindings they concern; pure, and as ``requeue_rules`` says for one change.

The changes that plugins declare are collected as well, those of bindings included.

Source: karmada v1.18.2 pkg/scheduler/event_handler.go reconcileCluster.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from itertools import chain

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.evidence import EventKind, RequeueEvent


class ClusterChanges:
    """Collected changes of clusters, and which bindings they concern.

    Versions of a cluster that no affinity can distinguish are stored once, so a flapping cluster takes no more memory.
    """

    def __init__(self) -> None:
        """Start with no change."""
        self.names: set[str] = set()
        self._versions: dict[str, list[Cluster]] = {}
        self._openings: dict[str, Cluster] = {}
        self._openings_by_api: dict[tuple[str, str], dict[str, Cluster]] = {}
        self._with_bindings: set[str] = set()
        self._declared: dict[RequeueEvent, dict[object, Cluster | None]] = {}
        self._all_unplaced = False
        self._affected_cache: dict[tuple[int, str], bool] = {}
        self._may_take_cache: dict[tuple[int, Hashable], bool] = {}
        self._placements: dict[int, Placement] = {}

    def add(self, old: Cluster | None, new: Cluster | None) -> int:
        """Add a change of a cluster; return the number of versions for which upstream would scan."""
        if new is None:
            if old is not None:
                self.add_bindings_on(old.name)
                if not old.deleting:  # the start of the deletion was not seen
                    self._add_version(old)
            return 0
        if old is None:
            self.add_bindings_on(new.name)
            if not new.deleting:
                self._add_version(new)
                self._openings[new.name] = new
            return 0
        if new.deleting and not old.deleting:
            self.add_bindings_on(new.name)
        versions = requeue_rules.on_cluster(old, new)
        for version in versions:
            self._add_version(version)
        if versions and not new.deleting:
            self._openings[new.name] = new
        for api in requeue_rules.gained_apis(old, new):
            self.names.add(new.name)
            self._openings_by_api.setdefault(api, {})[new.name] = new
        return len(versions)

    def add_bindings_on(self, name: str) -> None:
        """Note that all bindings on a cluster are concerned: it is known again, or gone."""
        self.names.add(name)
        self._with_bindings.add(name)

    def add_all_unplaced(self) -> None:
        """Note that every unplaced binding is concerned."""
        self._all_unplaced = True

    def add_declared(self, event: RequeueEvent, changed: Binding | Cluster) -> None:
        """Add a change that plugins declare."""
        key, cluster = (changed.key, None) if isinstance(changed, Binding) else (changed.name, changed)
        self._declared.setdefault(event, {})[key] = cluster

    @property
    def concern_all(self) -> bool:
        """Whether a binding may be concerned that no plugin has refused."""
        return bool(self.names) or self._all_unplaced

    def __bool__(self) -> bool:
        return self.concern_all or bool(self._declared)

    def concerns(self, binding: Binding) -> bool:
        """Return whether a binding is to be added to the queue."""
        placement = binding.spec.placement
        if placement is None:
            return False
        if self._versions and self._is_affected(binding, placement):
            return True
        if self._with_bindings and any(each.name in self._with_bindings for each in binding.spec.clusters):
            return True
        if not (self._all_unplaced or self._openings or self._openings_by_api):
            return False
        if not requeue_rules.is_unplaced(binding) or not requeue_rules.is_claimed(binding):
            return False
        return self._all_unplaced or self._may_be_taken(binding, placement)

    def end_refusal(self, binding: Binding, events: Collection[RequeueEvent]) -> bool:
        """Return whether one of the events for which a binding waits has happened, and it is to be added to the queue."""
        placement = binding.spec.placement
        if not events or placement is None or not requeue_rules.is_claimed(binding):
            return False
        return any(self._ends(event, binding, placement) for event in events)

    def _ends(self, event: RequeueEvent, binding: Binding, placement: Placement) -> bool:
        changed = self._declared.get(event, {})
        if event.kind is EventKind.BINDING:
            return any(key != binding.key for key in changed)
        return self._any_may_be_taken(event, placement, filter(None, changed.values()))

    def _add_version(self, version: Cluster) -> None:
        self.names.add(version.name)
        versions = self._versions.setdefault(version.name, [])
        if not any(_is_indistinguishable(version, other) for other in versions):
            versions.append(version)

    def _is_affected(self, binding: Binding, placement: Placement) -> bool:
        """Return ``requeue_rules.is_affected`` for any version, computed once for bindings with the same result."""
        status = binding.status
        if placement.cluster_affinities and status.scheduler_observed_generation != binding.generation:
            return True
        key = (id(placement), status.scheduler_observing_affinity_name)
        cached = self._affected_cache.get(key)
        if cached is None:
            self._placements[id(placement)] = placement  # while it is referenced, no other object gets its id
            cached = self._affected_cache[key] = any(
                requeue_rules.is_affected(binding, version)
                for versions in self._versions.values()
                for version in versions
            )
        return cached

    def _may_be_taken(self, binding: Binding, placement: Placement) -> bool:
        resource = binding.spec.resource
        api = (resource.api_version.removeprefix("/"), resource.kind)
        openings = chain(self._openings.values(), self._openings_by_api.get(api, {}).values())
        return self._any_may_be_taken(api, placement, openings)

    def _any_may_be_taken(self, cause: Hashable, placement: Placement, clusters: Iterable[Cluster]) -> bool:
        """Return ``requeue_rules.may_take`` for any cluster, computed once for bindings with the same placement and cause."""
        key = (id(placement), cause)
        cached = self._may_take_cache.get(key)
        if cached is None:
            self._placements[id(placement)] = placement
            cached = self._may_take_cache[key] = any(
                requeue_rules.may_take(cluster, placement) for cluster in clusters
            )
        return cached


def _is_indistinguishable(one: Cluster, other: Cluster) -> bool:
    """Return whether every affinity matches both versions of a cluster or neither."""
    return (one.labels, one.provider, one.region, one.zones) == (
        other.labels, other.provider, other.region, other.zones,
    )  # fmt: skip
