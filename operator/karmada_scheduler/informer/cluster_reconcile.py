"""Looks for the bindings that changed clusters concern: one scan for many changes, in slices.

Upstream hands each version of a changed cluster to a worker of its own queue, which scans all bindings. Here the
changes are collected, and one scan tests each binding against all of them. It gives the event loop a turn every
few milliseconds, and it adds no more keys while the scheduling queue has enough: a zone that goes away concerns
most bindings, and a new one must not wait behind them all.

A binding that changes while a scan is under way is tested as it is when its turn comes; its own change wakes it,
too. Changes of clusters that arrive meanwhile are for the next scan.

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
from karmada_scheduler.scheduling_queue.work_queue import WaitingQueue

log = logging.getLogger(__name__)

ENOUGH_DUE: Final = 100
"""How many keys may be due before a scan waits; a key that comes now waits behind so many."""

_SLICE_SECONDS: Final = 0.005
_NAMED: Final = 5
"""How many clusters are named in the log line of a scan."""


class ClusterChanges:
    """What changed of clusters, and which bindings that concerns.

    Versions of a cluster that no affinity can tell apart are one, so a cluster that flaps takes no more memory.
    """

    def __init__(self) -> None:
        """Start with no change."""
        self.names: set[str] = set()
        self._versions: dict[str, list[Cluster]] = {}
        self._openings: dict[str, Cluster] = {}
        self._openings_by_api: dict[tuple[str, str], dict[str, Cluster]] = {}
        self._awaited: set[str] = set()
        self._all_unplaced = False
        self._affected: dict[tuple[int, str], bool] = {}
        self._takeable: dict[tuple[int, tuple[str, str]], bool] = {}
        self._placements: dict[int, Placement] = {}

    def add(self, old: Cluster | None, new: Cluster | None) -> int:
        """Note a change of a cluster; return how many versions of it upstream would scan for."""
        if new is None:
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
        """Note that bindings on a cluster need not wait for it any more."""
        self.names.add(name)
        self._awaited.add(name)

    def add_all_unplaced(self) -> None:
        """Note that every binding without a place is concerned."""
        self._all_unplaced = True

    def __bool__(self) -> bool:
        return bool(self.names) or self._all_unplaced

    def concern(self, binding: Binding) -> bool:
        """Tell whether a binding has to be looked at again."""
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
        if not any(_selected_alike(version, each) for each in versions):
            versions.append(version)

    def _is_affected(self, binding: Binding, placement: Placement) -> bool:
        """Ask ``triggers.is_affected`` about every version, once for all bindings of which it says the same."""
        status = binding.status
        if placement.cluster_affinities and status.scheduler_observed_generation != binding.generation:
            return True
        key = (id(placement), status.scheduler_observing_affinity_name)
        known = self._affected.get(key)
        if known is None:
            self._placements[id(placement)] = placement  # as long as it is kept, its id is its own
            known = self._affected[key] = any(
                requeue_rules.is_affected(binding, version)
                for versions in self._versions.values()
                for version in versions
            )
        return known

    def _may_be_taken(self, binding: Binding, placement: Placement) -> bool:
        resource = binding.spec.resource
        api = (resource.api_version.removeprefix("/"), resource.kind)
        key = (id(placement), api)
        known = self._takeable.get(key)
        if known is None:
            self._placements[id(placement)] = placement
            openings = (*self._openings.values(), *self._openings_by_api.get(api, {}).values())
            known = self._takeable[key] = any(
                requeue_rules.may_take(cluster, placement) for cluster in openings
            )
        return known


def _selected_alike(one: Cluster, other: Cluster) -> bool:
    """Tell whether every affinity means both versions of a cluster or neither."""
    return (one.labels, one.provider, one.region, one.zones) == (
        other.labels, other.provider, other.region, other.zones,
    )  # fmt: skip


class ClusterReconciler:
    """Collects changes of clusters and wakes the bindings that they concern."""

    def __init__(
        self,
        *,
        bindings: BindingCache,
        queue: WaitingQueue[BindingKey],
        is_ours: Callable[[Binding], bool],
        wake: Callable[[Binding, str], None],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Take what is scanned and who is told.

        Args:
            bindings: All bindings.
            queue: Where woken bindings go; asked how many keys are due.
            is_ours: Whether one of our schedulers has a binding.
            wake: Called for each binding that is concerned, with the name of the event.
            metrics: Gets a work item per version of a cluster, as upstream's worker queue has it.
            clock: In seconds.
        """
        self._bindings = bindings
        self._queue = queue
        self._is_ours = is_ours
        self._wake = wake
        self._clock = clock
        self._metrics = metrics.workqueues.of("ClusterReconcileWorker")
        self._metrics.watch(depth=self._depth, unfinished=self._unfinished)
        self._pending = ClusterChanges()
        self._added: list[float] = []
        self._scan: _Scan | None = None
        self._has_work = asyncio.Event()

    def changed(self, old: Cluster | None, new: Cluster | None) -> None:
        """Note a change of a cluster; None for what was not known before, or is gone."""
        for _ in range(self._pending.add(old, new)):
            self._metrics.added()
            self._added.append(self._clock())
        self._wake_up()

    def stops_waiting_for(self, name: str) -> None:
        """Wake the bindings on a cluster that could not be read and is gone."""
        self._pending.add_awaited(name)
        self._wake_up()

    def recheck_unplaced(self) -> None:
        """Wake every binding whose last attempt did not succeed."""
        self._pending.add_all_unplaced()
        self._wake_up()

    async def run(self) -> None:
        """Scan whenever something has changed, until cancelled."""
        while True:
            await self._has_work.wait()
            await self._queue.room(ENOUGH_DUE)
            self.step()
            await asyncio.sleep(0)

    def step(self) -> bool:
        """Scan for some milliseconds, or until enough keys are due; return whether there is more to scan."""
        scan = self._scan
        if scan is None:
            if not self._pending:
                self._has_work.clear()
                return False
            scan = self._scan = self._begin()
        until = self._clock() + _SLICE_SECONDS
        for key in scan.keys:
            try:
                woken = self._look_at(scan, key)
            except Exception:
                # Neither this scan nor the process may end of what is wrong with one binding.
                log.exception("Cannot tell whether changed clusters concern %s", key.display)
                woken = True
                self._queue.add(key)
            scan.woken += woken
            if self._clock() > until or (woken and not self._queue.has_room(ENOUGH_DUE)):
                return True
        self._end(scan)
        return True

    def _look_at(self, scan: _Scan, key: BindingKey) -> bool:
        """Wake a binding if it is concerned; return whether it was."""
        binding = self._bindings.get(key)
        if binding is None or not self._is_ours(binding) or not scan.changes.concern(binding):
            return False
        log.log(logs.V4, "Requeue %s due to event(%s).", key.display, requeue_rules.CLUSTER_CHANGED)
        self._wake(binding, requeue_rules.CLUSTER_CHANGED)
        return True

    def _begin(self) -> _Scan:
        now = self._clock()
        for added in self._added:
            self._metrics.taken(now - added)
        scan = _Scan(self._pending, self._bindings.keys(), now, len(self._added))
        self._pending, self._added = ClusterChanges(), []
        return scan

    def _end(self, scan: _Scan) -> None:
        self._scan = None
        seconds = self._clock() - scan.began
        for _ in range(scan.versions):
            self._metrics.finished(seconds / scan.versions)
        if scan.woken:
            names = sorted(scan.changes.names)
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            log.info(
                "Requeued bindings due to event(%s).",
                requeue_rules.CLUSTER_CHANGED,
                extra={
                    "count": scan.woken,
                    "clusters": ", ".join(names[:_NAMED]) + more,
                    "seconds": round(seconds, 3),
                },
            )

    def _wake_up(self) -> None:
        if self._pending:
            self._has_work.set()

    def _depth(self) -> int:
        return len(self._added)

    def _unfinished(self) -> list[float]:
        scan = self._scan
        return [] if scan is None else [self._clock() - scan.began] * min(scan.versions, 1)


class _Scan:
    """One way through all bindings."""

    def __init__(self, changes: ClusterChanges, keys: list[BindingKey], began: float, versions: int) -> None:
        self.changes = changes
        self.keys: Iterator[BindingKey] = iter(keys)
        self.began = began
        self.versions = versions
        self.woken = 0
