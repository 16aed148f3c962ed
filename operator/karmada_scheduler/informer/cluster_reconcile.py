"""Finds the bindings that changed clusters concern: one scan for many changes, in slices of CPU time.

Upstream queues each version of a changed cluster for a worker, which scans all bindings. Here the
changes are collected, and one scan tests each binding against all of them. A scan yields to the event loop every few
milliseconds, and adds no more keys while many are due in the scheduling queue: a zone outage concerns most bindings, and
a new binding must not wait behind all of them.

A binding that changes during a scan is tested in its newest version; its own change adds it, too. Changes of clusters
that arrive during a scan are handled by the next scan.

Source: karmada v1.18.2 pkg/scheduler/event_handler.go reconcileCluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.informer import requeue_rules
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue

log = logging.getLogger(__name__)

ENOUGH_DUE: Final = 100
"""How many keys may be due before a scan waits, which is also how many a new key waits behind."""

_SLICE_SECONDS: Final = 0.005
_NAMED: Final = 5
"""Number of clusters that the log line of a scan names."""


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
        self._awaited: set[str] = set()
        self._all_unplaced = False
        self._affected_cache: dict[tuple[int, str], bool] = {}
        self._may_take_cache: dict[tuple[int, tuple[str, str]], bool] = {}
        self._placements: dict[int, Placement] = {}

    def add(self, old: Cluster | None, new: Cluster | None) -> int:
        """Add a change of a cluster; return the number of versions for which upstream would scan."""
        if new is None:
            if old is not None and not old.deleting:
                # The start of the deletion was not seen. A binding may have been placed there meanwhile.
                self._add_version(old)
            return 0
        if old is None:
            self.add_awaited(new.name)
            if not new.deleting:
                self._add_version(new)
                self._openings[new.name] = new
            return 0
        versions = requeue_rules.on_cluster(old, new)
        for version in versions:
            self._add_version(version)
        if versions and not new.deleting:
            self._openings[new.name] = new
        for api in requeue_rules.gained_apis(old, new):
            self.names.add(new.name)
            self._openings_by_api.setdefault(api, {})[new.name] = new
        return len(versions)

    def add_awaited(self, name: str) -> None:
        """Note that bindings on a cluster no longer wait for it to be readable."""
        self.names.add(name)
        self._awaited.add(name)

    def add_all_unplaced(self) -> None:
        """Note that every unplaced binding is concerned."""
        self._all_unplaced = True

    def __bool__(self) -> bool:
        return bool(self.names) or self._all_unplaced

    def concerns(self, binding: Binding) -> bool:
        """Return whether a binding is to be added to the queue."""
        placement = binding.spec.placement
        if placement is None:
            return False
        if self._versions and self._is_affected(binding, placement):
            return True
        if self._awaited and any(target.name in self._awaited for target in binding.spec.clusters):
            return True
        if not (self._all_unplaced or self._openings or self._openings_by_api):
            return False
        if not requeue_rules.is_unplaced(binding) or not requeue_rules.is_claimed(binding):
            return False
        return self._all_unplaced or self._may_be_taken(binding, placement)

    def _add_version(self, version: Cluster) -> None:
        self.names.add(version.name)
        versions = self._versions.setdefault(version.name, [])
        if not any(_is_indistinguishable(version, each) for each in versions):
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
        key = (id(placement), api)
        cached = self._may_take_cache.get(key)
        if cached is None:
            self._placements[id(placement)] = placement
            openings = (*self._openings.values(), *self._openings_by_api.get(api, {}).values())
            cached = self._may_take_cache[key] = any(
                requeue_rules.may_take(cluster, placement) for cluster in openings
            )
        return cached


def _is_indistinguishable(one: Cluster, other: Cluster) -> bool:
    """Return whether every affinity matches both versions of a cluster or neither."""
    return (one.labels, one.provider, one.region, one.zones) == (
        other.labels, other.provider, other.region, other.zones,
    )  # fmt: skip


class ClusterReconciler:
    """Collects changes of clusters and enqueues the bindings that they concern."""

    def __init__(
        self,
        *,
        bindings: BindingCache,
        queue: AsyncQueue[BindingKey],
        is_assigned: Callable[[Binding], bool],
        enqueue: Callable[[Binding, str], None],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Start without a change.

        Args:
            bindings: All bindings.
            queue: The scheduling queue; a scan waits while it has many keys.
            is_assigned: Returns whether a binding is assigned to one of our schedulers.
            enqueue: Called with each affected binding, and with the name of the event.
            metrics: Gets a work item per version of a cluster, as upstream's worker queue does.
            clock: In seconds.
        """
        self._bindings = bindings
        self._queue = queue
        self._is_assigned = is_assigned
        self._enqueue = enqueue
        self._clock = clock
        self._metrics = metrics.workqueues.of("ClusterReconcileWorker")
        self._metrics.expose(depth=self._depth, unfinished=self._unfinished)
        self._pending = ClusterChanges()
        self._added: list[float] = []
        self._scan: _Scan | None = None
        self._has_work = asyncio.Event()

    def on_change(self, old: Cluster | None, new: Cluster | None) -> None:
        """Add a change of a cluster; None for a cluster that did not exist before or was deleted."""
        for _ in range(self._pending.add(old, new)):
            self._metrics.added()
            self._added.append(self._clock())
        self._notify()

    def on_unreadable_gone(self, name: str) -> None:
        """Enqueue the bindings on an unreadable cluster that was deleted."""
        self._pending.add_awaited(name)
        self._notify()

    def recheck_unplaced(self) -> None:
        """Enqueue every unplaced binding."""
        self._pending.add_all_unplaced()
        self._notify()

    async def run(self) -> None:
        """Scan whenever a cluster has changed, until cancelled."""
        while True:
            await self._has_work.wait()
            await self._queue.wait_shorter_than(ENOUGH_DUE)
            self.step()
            await asyncio.sleep(0)

    def step(self) -> bool:
        """Scan for some milliseconds, or until many keys are due; return whether there is more to scan."""
        scan = self._scan
        if scan is None:
            if not self._pending:
                self._has_work.clear()
                return False
            scan = self._scan = self._start_scan()
        until = self._clock() + _SLICE_SECONDS
        for key in scan.keys:
            try:
                is_concerned = self._test(scan, key)
            except Exception:
                # An error with one binding must end neither this scan nor the process.
                log.exception("Cannot determine whether changed clusters concern %s", key.display)
                is_concerned = True
                self._queue.add(key)
            scan.enqueued += is_concerned
            if self._clock() > until or (is_concerned and not self._queue.is_shorter_than(ENOUGH_DUE)):
                return True
        self._finish_scan(scan)
        return True

    def _test(self, scan: _Scan, key: BindingKey) -> bool:
        """Enqueue a binding if the changes concern it; return whether they do."""
        binding = self._bindings.get(key)
        if binding is None or not self._is_assigned(binding) or not scan.changes.concerns(binding):
            return False
        log.log(logs.V4, "Requeue %s due to event(%s).", key.display, requeue_rules.CLUSTER_CHANGED)
        self._enqueue(binding, requeue_rules.CLUSTER_CHANGED)
        return True

    def _start_scan(self) -> _Scan:
        now = self._clock()
        for added in self._added:
            self._metrics.taken(now - added)
        scan = _Scan(self._pending, self._bindings.keys(), now, len(self._added))
        self._pending, self._added = ClusterChanges(), []
        return scan

    def _finish_scan(self, scan: _Scan) -> None:
        self._scan = None
        seconds = self._clock() - scan.started
        for _ in range(scan.versions):
            self._metrics.finished(seconds / scan.versions)
        if scan.enqueued:
            names = sorted(scan.changes.names)
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            log.info(
                "Requeued bindings due to event(%s).",
                requeue_rules.CLUSTER_CHANGED,
                extra={
                    "count": scan.enqueued,
                    "clusters": ", ".join(names[:_NAMED]) + more,
                    "seconds": round(seconds, 3),
                },
            )

    def _notify(self) -> None:
        if self._pending:
            self._has_work.set()

    def _depth(self) -> int:
        return len(self._added)

    def _unfinished(self) -> list[float]:
        scan = self._scan
        return [] if scan is None else [self._clock() - scan.started] * min(scan.versions, 1)


class _Scan:
    """One scan of all bindings."""

    def __init__(
        self, changes: ClusterChanges, keys: list[BindingKey], started: float, versions: int
    ) -> None:
        self.changes = changes
        self.keys: Iterator[BindingKey] = iter(keys)
        self.started = started
        self.versions = versions
        self.enqueued = 0
