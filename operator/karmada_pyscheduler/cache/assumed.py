"""Placements that members do not report yet (gate SchedulingOvercommitProtection).

A placement counts as taken capacity until the member reports that it runs, until it is moved or deleted, or until it
expires. It is assumed when it is decided, before it is written, so that the next decision takes it into account. If the
write fails, the previous assumption applies again.

Source: karmada v1.18.2 pkg/scheduler/cache assumption cache, pkg/scheduler/event_handler.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from karmada_scheduler.api.binding import (
    HEALTHY,
    RESOURCE_BINDING,
    AssumedWorkload,
    Binding,
    BindingKey,
    TargetCluster,
    footprint,
)
from karmada_scheduler.structs import Struct


class _Assumption(Struct):
    """The assumed placement of one binding.

    Attributes:
        workloads: The assumed workloads by cluster.
        expires: In seconds of the clock.
        is_pending: Whether the decision is not yet written or abandoned.
        leaving: Clusters that the binding leaves when the decision is written.
        before: The previous assumption; it counts as well while the decision is pending.
    """

    workloads: dict[str, AssumedWorkload]
    expires: float
    is_pending: bool = True
    leaving: frozenset[str] = frozenset()
    before: _Assumption | None = None


class AssumedPlacements:
    """Capacity that counts as taken in addition to what clusters report."""

    def __init__(self, *, clock: Callable[[], float], ttl: float) -> None:
        """Start empty; ``ttl`` is in seconds of ``clock``, and counts from the last placement of a binding."""
        self._clock = clock
        self._ttl = ttl
        self._entries: dict[BindingKey, _Assumption] = {}
        self._by_cluster: dict[str, list[AssumedWorkload]] = {}
        self._expiries: list[tuple[float, int, BindingKey]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def pending(self) -> int:
        """The number of assumed placements that are neither written nor abandoned."""
        return sum(entry.is_pending for entry in self._entries.values())

    def by_cluster(self) -> Mapping[str, Sequence[AssumedWorkload]]:
        """Return the assumed workloads of each cluster that has any; not to be changed."""
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            _, _, key = heapq.heappop(self._expiries)
            entry = self._entries.get(key)
            if entry is not None and entry.expires <= now:
                self._replace(key, None)
        return dict(self._by_cluster)

    def counts(self) -> Mapping[str, int]:
        """Return by cluster the number of bindings with an assumed placement; may be called from any thread."""
        return {name: len(workloads) for name, workloads in self._by_cluster.copy().items()}

    def assume(self, binding: Binding, targets: Sequence[TargetCluster]) -> None:
        """Count a decision as placed, until ``confirm`` or ``forget`` is called.

        Only workloads in a namespace take capacity. Clusters that the binding leaves are free after the write.
        """
        if binding.key.kind != RESOURCE_BINDING or not binding.spec.is_workload:
            return
        key, before = binding.key, self._entries.get(binding.key)
        kept = dict(before.workloads) if before is not None else {}
        workloads = kept | {target.name: footprint(binding, target) for target in targets}
        leaving = binding.spec.target_names - {target.name for target in targets}
        self._replace(key, _Assumption(workloads, self._clock() + self._ttl, leaving=leaving, before=before))

    def confirm(self, key: BindingKey) -> None:
        """Note that the last assumed placement was written."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.is_pending, entry.before = False, None
            for cluster in entry.leaving:
                self._release(key, entry, cluster)
            if not entry.workloads:
                self._entries.pop(key, None)

    def forget(self, key: BindingKey) -> None:
        """Restore the previous assumption, because the last one was not written."""
        entry = self._entries.get(key)
        if entry is not None and entry.is_pending:
            before = entry.before
            self._replace(key, before if before is not None and before.workloads else None)

    def on_binding_change(self, old: Binding | None, new: Binding | None) -> None:
        """Release the workloads that a changed binding reports as healthy.

        ``new`` is None for a binding that was deleted or is assigned to another scheduler.
        """
        present = old or new
        entry = None if present is None else self._entries.get(present.key)
        if present is None or entry is None:
            return
        key = present.key
        if new is None or (old is not None and old.uid != new.uid):
            self._replace(key, None)
            return
        for cluster in _healthy(new) - _healthy(old):
            self._release(key, entry, cluster)

    def _release(self, key: BindingKey, entry: _Assumption, cluster: str) -> None:
        if entry.before is not None:
            entry.before.workloads.pop(cluster, None)
        if entry.workloads.pop(cluster, None) is not None:
            self._regroup(key, [cluster])
        if not entry.workloads:  # then the previous assumption, which is a part of it, has none either
            self._entries.pop(key, None)

    def _replace(self, key: BindingKey, new: _Assumption | None) -> None:
        old = self._entries.pop(key, None)
        touched = set(old.workloads) if old is not None else set()
        if new is not None:
            self._entries[key] = new
            heapq.heappush(self._expiries, (new.expires, next(self._numbers), key))
            touched |= set(new.workloads)
        self._regroup(key, touched)

    def _regroup(self, key: BindingKey, clusters: Iterable[str]) -> None:
        """Update the workloads of clusters for one binding; its newest placement comes last."""
        entry = self._entries.get(key)
        for cluster in clusters:
            # A new list each time: callers of ``by_cluster`` keep references to the old one.
            others = [workload for workload in self._by_cluster.get(cluster, ()) if workload.binding != key]
            if entry is not None and cluster in entry.workloads:
                others.append(entry.workloads[cluster])
            if others:
                self._by_cluster[cluster] = others
            else:
                self._by_cluster.pop(cluster, None)


def _healthy(binding: Binding | None) -> frozenset[str]:
    if binding is None or not binding.spec.is_workload:
        return frozenset()
    return frozenset(
        report.cluster_name for report in binding.status.aggregated_status if report.health == HEALTHY
    )
