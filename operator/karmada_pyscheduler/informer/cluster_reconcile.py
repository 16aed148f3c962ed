"""Which bindings a changed object adds to the queue; those that clusters concern, in one scan for many changes.

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
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from karmada_pyscheduler.cache.bindings import BindingCache, RefusedBindings
from karmada_pyscheduler.cache.store import Change
from karmada_pyscheduler.informer.cluster_lists import ClusterLists
from karmada_pyscheduler.informer.requeue import Listeners, Requeuer
from karmada_pyscheduler.metrics.work_queues import QueueMetrics
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import Policy
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.cluster_changes import ClusterChanges
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

ENOUGH_DUE: Final = 100
"""How many keys may be due before a scan waits, which is also how many a new key waits behind."""

_SLICE_SECONDS: Final = 0.005
_NAMED: Final = 5
"""Number of clusters that the log line of a scan names."""


class ClusterReconciler(Struct):
    """Collects changes of clusters and enqueues the bindings that they concern.

    Attributes:
        requeuer: Adds the affected bindings to the queue.
        bindings: All bindings.
        queue: The scheduling queue; a scan waits while it has many keys.
        metrics: Gets a work item per version of a cluster, as upstream's worker queue does.
        clock: In seconds.
        refused: The bindings that wait for changes which plugins declare.
    """

    requeuer: Requeuer
    bindings: BindingCache
    queue: SchedulingQueue[BindingKey]
    metrics: QueueMetrics
    clock: Callable[[], float]
    refused: RefusedBindings
    _pending: ClusterChanges = field(default_factory=ClusterChanges)
    _added: list[float] = field(default_factory=list)
    _scan: _BindingScan | None = None
    _has_work: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.metrics.expose(depth=lambda: len(self._added), unfinished=self._unfinished)

    def on_change(self, old: Cluster | None, new: Cluster | None) -> None:
        """Add a change of a cluster; None for a cluster that did not exist before or was deleted."""
        for _ in range(self._pending.add(old, new)):
            self.metrics.added()
            self._added.append(self.clock())
        self.on_declared_change(old, new)

    def on_declared_change(self, old: Binding | Cluster | None, new: Binding | Cluster | None) -> None:
        """Add a change of a binding or a cluster, if a plugin declares it for which a binding waits."""
        changed = new or old
        for event in self.refused.events:
            if changed is not None and requeue_rules.is_declared(event, old, new):
                self._pending.add_declared(event, changed)
        self._notify()

    def on_unreadable_gone(self, name: str) -> None:
        """Enqueue the bindings on an unreadable cluster that was deleted."""
        self._pending.add_bindings_on(name)
        self._notify()

    def recheck_unplaced(self) -> None:
        """Enqueue every unplaced binding."""
        self._pending.add_all_unplaced()
        self._notify()

    async def run(self) -> None:
        """Scan whenever a cluster has changed, until cancelled."""
        while True:
            await self._has_work.wait()
            await self.queue.wait_shorter_than(ENOUGH_DUE)
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
        until = self.clock() + _SLICE_SECONDS
        for key in scan.keys:
            try:
                is_concerned = self._test(scan, key)
            except Exception:
                # An error with one binding must end neither this scan nor the process.
                log.exception("Cannot determine whether changed clusters concern %s", key.display)
                is_concerned = True
                self.requeuer.add_key(key)
            scan.enqueued += is_concerned
            if self.clock() > until or (is_concerned and not self.queue.is_shorter_than(ENOUGH_DUE)):
                return True
        self._finish_scan(scan)
        return True

    def _test(self, scan: _BindingScan, key: BindingKey) -> bool:
        """Enqueue a binding if the changes concern it; return whether they do."""
        binding = self.bindings.get(key)
        if binding is None or not self.requeuer.is_assigned(binding):
            return False
        if scan.changes.concerns(binding):
            event = requeue_rules.CLUSTER_CHANGED
        elif scan.changes.end_refusal(binding, self.refused.waiting.get(key, ())):
            event = requeue_rules.PLUGIN_EVENT
        else:
            return False
        log.log(logs.V4, "Requeue %s due to event(%s).", key.display, event)
        self.requeuer.enqueue(binding, event)
        return True

    def _start_scan(self) -> _BindingScan:
        now = self.clock()
        for added in self._added:
            self.metrics.taken(now - added)
        # Statuses of clusters change all the time, so a scan for plugins tests those only that wait.
        keys = self.bindings.keys() if self._pending.concern_all else list(self.refused.waiting)
        scan = _BindingScan(self._pending, iter(keys), now, len(self._added))
        self._pending, self._added = ClusterChanges(), []
        return scan

    def _finish_scan(self, scan: _BindingScan) -> None:
        self._scan = None
        seconds = self.clock() - scan.started
        for _ in range(scan.versions):
            self.metrics.finished(seconds / scan.versions)
        if scan.enqueued and scan.changes.names:
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

    def _unfinished(self) -> list[float]:
        scan = self._scan
        return [] if scan is None else [self.clock() - scan.started] * min(scan.versions, 1)


class _BindingScan(Struct):
    """One scan of all bindings."""

    changes: ClusterChanges
    keys: Iterator[BindingKey]
    started: float
    versions: int
    enqueued: int = 0


class ChangeHandlers(Struct, frozen=True, kw_only=True):
    """The handlers of objects that have changed in a cache.

    Attributes:
        requeuer: Adds bindings to the queue.
        reconciler: Finds the bindings that a changed cluster concerns.
        cluster_lists: Gets the addition of clusters, and the clusters of bindings.
        scheduler_names: The schedulers of this process, by the names that bindings have for them.
        listeners: Called before bindings are added to the queue.
    """

    requeuer: Requeuer
    reconciler: ClusterReconciler
    cluster_lists: ClusterLists
    scheduler_names: Collection[str]
    listeners: Listeners

    def binding_changed(self, change: Change[Binding]) -> None:
        """Enqueue a binding whose change requires a decision."""
        old, new = change
        for listener in self.listeners.bindings:
            listener(old, new)
        if new is None:
            self.requeuer.on_deleted()
        else:
            self._check_targets(old, new)
        self.reconciler.on_declared_change(old, new)
        event = requeue_rules.on_binding(old, new, self.scheduler_names)
        if event is not None and new is not None:
            self.requeuer.enqueue(new, event)
        elif (
            new is not None
            and old is not None
            and log.isEnabledFor(logs.V4)
            and requeue_rules.is_claimed_and_assigned(new, self.scheduler_names)
        ):
            kind = new.key.kind[0].lower() + new.key.kind[1:]
            log.log(logs.V4, "Ignore update event of %s %s as specification no change", kind, new.key)

    def _check_targets(self, old: Binding | None, new: Binding) -> None:
        """Read the clusters that a binding of ours has got and that are not known.

        Another scheduler may place a binding on a new cluster before the event of the cluster arrives here, or hand a
        binding over. The initial list reads unknown clusters at its end.
        """
        if self.requeuer.is_deferring or not self.requeuer.is_assigned(new):
            return
        before = old.spec.clusters if old is not None and self.requeuer.is_assigned(old) else ()
        if new.spec.clusters != before:
            self.cluster_lists.check_targets(new.spec.clusters, before)

    def cluster_changed(self, change: Change[Cluster]) -> None:
        """Enqueue the bindings that the change of a cluster concerns; the reconciler does that in slices."""
        old, new = change
        verb = "Add" if old is None else "Delete" if new is None else "Update"
        log.log(logs.V3, "%s event for cluster %s", verb, key_of(change))
        for listener in self.listeners.clusters:
            listener(old, new)
        if old is None:
            self.cluster_lists.added()
            if self.requeuer.is_deferring:
                return  # bindings are listed after clusters, and each is enqueued
        self.reconciler.on_change(old, new)

    def policy_changed(self, change: Change[Policy]) -> None:
        """Enqueue the bindings that a changed policy claims."""
        policy_id = requeue_rules.on_policy(change.old, change.new)
        if policy_id is not None:
            self.requeuer.on_policy_changed(policy_id)


def key_of(change: Change[Any]) -> object:
    """Return the key or the name of a changed object."""
    found = change.new or change.old
    return getattr(found, "key", None) or getattr(found, "name", None)
