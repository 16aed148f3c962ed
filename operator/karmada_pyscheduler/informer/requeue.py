"""Adds bindings to the scheduling queue for changes of other objects than themselves, and who else gets changes.

Listeners have one form: they get the object before and after the change, and None for an object that did not exist before,
or does not exist any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.informer.object_kinds import CLUSTER
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import Struct

_KEPT_DELETED: Final = 16
"""Keys of deleted bindings that may stay in the queue of a standby, besides one for each binding."""


class Requeuer(Struct, kw_only=True):
    """Adds bindings to the scheduling queue and counts the events that caused it.

    Attributes:
        bindings: All bindings.
        queue: The scheduling queue.
        scheduler_names: The schedulers of this process, by the names that bindings have for them.
        metrics: Counts the bindings that are added, by the name of the event.
        listeners: Get the key of the binding, and the name of the event.
    """

    bindings: BindingCache
    queue: SchedulingQueue[BindingKey]
    scheduler_names: Collection[str]
    metrics: Metrics
    listeners: Sequence[Callable[[BindingKey, str], None]] = ()
    _deferred: list[BindingKey] | None = None
    _deleted: int = 0

    def is_assigned(self, binding: Binding) -> bool:
        """Return whether a binding is assigned to one of our schedulers."""
        return requeue_rules.is_assigned_to(binding, self.scheduler_names)

    @property
    def is_deferring(self) -> bool:
        """Whether placed bindings are being deferred, as during the initial list."""
        return self._deferred is not None

    @contextmanager
    def deferring_placed(self) -> Iterator[None]:
        """Add placed bindings to the queue when the block ends, after those without clusters.

        After a start, or when the cache was replaced, every binding is scheduled again. Most need nothing, and those
        that wait for their first clusters should not wait for these.
        """
        deferred = self._deferred = []
        try:
            yield
        finally:
            self._deferred = None
            for key in deferred:
                self.add_key(key)

    def enqueue(self, binding: Binding, event: str) -> None:
        """Add a binding because of an event."""
        self.metrics.scheduling.queue_incoming.labels(event).inc()
        for listener in self.listeners:
            listener(binding.key, event)
        if self._deferred is not None and binding.spec.clusters:
            self._deferred.append(binding.key)
        else:
            self.queue.add(binding.key, binding.spec.priority)

    def add_key(self, key: BindingKey) -> None:
        """Add a binding without an event; a key that is not in the cache is ignored."""
        binding = self.bindings.get(key)
        if binding is not None:
            self.queue.add(key, binding.spec.priority)

    def on_deleted(self) -> None:
        """Note that a binding was deleted. Nobody takes its key from the queue of a standby, so it is dropped there."""
        self._deleted += 1
        if self._deleted > len(self.bindings) + _KEPT_DELETED:
            self._deleted = 0
            self.queue.retain(lambda key: self.bindings.get(key) is not None)

    def on_policy_changed(self, policy_id: str) -> None:
        """Add the bindings that a policy claims; ``policy_id`` is its permanent id."""
        for key in self.bindings.claimed_by(policy_id):
            self._enqueue_key(key, requeue_rules.POLICY_CHANGED)

    def on_plugins_changed(self) -> None:
        """Add the unplaced bindings: other plugins may find a cluster for them."""
        for binding in self.bindings:
            if requeue_rules.is_unplaced(binding):
                self._enqueue_assigned(binding, requeue_rules.PLUGINS_CHANGED)

    def on_workload_changed(self, key: BindingKey) -> None:
        """Add a binding whose workload has other metadata; classification decides whether it is scheduled."""
        self._enqueue_key(key, requeue_rules.WORKLOAD_CHANGED)

    def on_version_rollback(self, kind: str) -> None:
        """Add the bindings that objects of a kind concern: the same generation may mean another spec now."""
        with self.deferring_placed():
            for binding in self.bindings:
                if kind in (CLUSTER, binding.key.kind):
                    self._enqueue_assigned(binding, requeue_rules.VERSION_ROLLBACK)

    def _enqueue_key(self, key: BindingKey, event: str) -> None:
        binding = self.bindings.get(key)
        if binding is not None:
            self._enqueue_assigned(binding, event)

    def _enqueue_assigned(self, binding: Binding, event: str) -> None:
        if requeue_rules.is_claimed_and_assigned(binding, self.scheduler_names):
            self.enqueue(binding, event)


BindingListener = Callable[[Binding | None, Binding | None], None]
ClusterListener = Callable[[Cluster | None, Cluster | None], None]


class Listeners(Struct, frozen=True, kw_only=True):
    """The listeners of one process; those of a kind are called in their order.

    Attributes:
        bindings: Called with a binding before and after a change.
        clusters: Called with a cluster before and after a change.
        versions: Called with the key and the resourceVersion of each changed binding that the watch delivers,
            whether the cache has that version or not.
        enqueued: Called with the key of a binding and the event by which it is added to the queue.
    """

    bindings: Sequence[BindingListener] = ()
    clusters: Sequence[ClusterListener] = ()
    versions: Sequence[Callable[[BindingKey, int], None]] = ()
    enqueued: Sequence[Callable[[BindingKey, str], None]] = ()


class PermitListener:
    """Ends the wait at Permit of a binding that has changed, or whose target cluster is being deleted."""

    def __init__(self, waiting: WaitingBindings, scheduler_names: Collection[str]) -> None:
        """End waits of these bindings; they may belong to schedulers of these names."""
        self._waiting = waiting
        self._scheduler_names = frozenset(scheduler_names)

    def binding_changed(self, old: Binding | None, new: Binding | None) -> None:
        """End the wait of a binding whose decision is out of date."""
        present = new or old
        if self._waiting and present is not None:
            is_assigned = new is not None and requeue_rules.is_assigned_to(new, self._scheduler_names)
            self._waiting.abandon_outdated(present.key, new, is_assigned=is_assigned)

    def cluster_changed(self, old: Cluster | None, new: Cluster | None) -> None:
        """End the waits for a cluster that is being deleted or was deleted."""
        present = new or old
        if self._waiting and present is not None and (new is None or new.deleting):
            self._waiting.abandon_for_cluster(present.name)


def on_failure_of_another(
    enqueue: Callable[[BindingKey, int], None], is_own: Callable[[Binding], bool]
) -> BindingListener:
    """Return a listener that enqueues a binding when its condition reports a failure that this process has not written.

    A former leader may report one after it has ended, and the binding may be placed by now.

    Args:
        enqueue: Gets the key of the binding and its priority.
        is_own: Returns whether this process is writing the conditions that a binding has.
    """

    def listen(old: Binding | None, new: Binding | None) -> None:
        if old is None or new is None or old.uid != new.uid:
            return
        before, after = (version.status.condition(SCHEDULED_CONDITION) or {} for version in (old, new))
        if after.get("status") == "False" and before != after and not is_own(new):
            enqueue(new.key, new.spec.priority)

    return listen


def only_assigned(listener: BindingListener, scheduler_names: Collection[str]) -> BindingListener:
    """Return a listener for which bindings that are not claimed, or assigned to other schedulers, do not exist."""
    names = frozenset(scheduler_names)

    def listen(old: Binding | None, new: Binding | None) -> None:
        is_assigned = new is not None and requeue_rules.is_claimed_and_assigned(new, names)
        listener(old, new if is_assigned else None)

    return listen
