"""Functions that are called for the changes that event handlers put into the caches.

All have the same form: they get the object before and after the change, and None for an object that did not exist
before, or does not exist any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import Struct

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
        before, after = (each.status.condition(SCHEDULED_CONDITION) or {} for each in (old, new))
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
