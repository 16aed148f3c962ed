"""Decides for each changed object which bindings are added to the queue, and calls the listeners."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from karmada_pyscheduler.cache.store import Change
from karmada_pyscheduler.informer.cluster_lists import ClusterLists
from karmada_pyscheduler.informer.cluster_reconcile import ClusterReconciler
from karmada_pyscheduler.informer.listeners import Listeners
from karmada_pyscheduler.informer.requeue import Requeuer
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import Policy
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.structs import Struct

log = logging.getLogger(__name__)


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
