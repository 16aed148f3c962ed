"""Whether a scheduler has lost a key: a binding in its cache needs scheduling, and its queue does not hold the key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.app.application import Application
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from karmada_scheduler.scheduler.state import SchedulerState
from tools.simulation.setup import Setup

CHECK_SECONDS: Final = 2.0
"""Seconds between two checks. A key is lost if two in succession miss it for the same version of its binding."""

Missed = dict[BindingKey, str]
"""Keys that are not held, with the resourceVersions of their bindings."""


def missed_keys(application: Application, setup: Setup, is_left: Callable[[Binding], bool]) -> Missed:
    """Return the keys of a process that its queue should hold and does not.

    ``is_left`` returns whether a former leader has left the condition of a binding.
    """
    if not application.is_filled:
        return {}
    state = application.state
    return {
        each.key: each.resource_version
        for each in _not_held(state, setup)
        if _needs(each, state, setup, is_left)
    }


def is_left_on_deleted(binding: Binding, clusters: Iterable[Cluster]) -> bool:
    """Return whether a binding is on clusters that are being deleted, none of which its affinity selects.

    Such a cluster had other labels or fields when it was chosen. Its deletion enqueues the bindings that select it, as with
    karmada-scheduler, so this one stays until it changes.
    """
    left = [each for each in clusters if each.deleting and each.name in binding.spec.target_names]
    return bool(left) and not any(requeue_rules.is_affected(binding, each) for each in left)


def _not_held(state: SchedulerState, setup: Setup) -> Iterator[Binding]:
    for binding in state.bindings:
        if (
            not state.queue.holds(binding.key)
            and not binding.deleting
            and binding.spec.placement is not None
            and requeue_rules.is_claimed_and_assigned(binding, setup.names)
        ):
            yield binding


def _needs(binding: Binding, state: SchedulerState, setup: Setup, is_left: Callable[[Binding], bool]) -> bool:
    condition = binding.status.condition(SCHEDULED_CONDITION) or {}
    # The generation of a graceful move is observed when the workload is ready.
    leaves = any(each.producer in setup.names for each in binding.spec.graceful_eviction_tasks)
    is_observed = leaves or binding.status.scheduler_observed_generation == binding.generation
    found = classify(binding, terminating=state.clusters.terminating, gates=setup.gates)
    if condition.get("reason") == NO_CLUSTER_FIT:  # it waits for an event, outside the queue
        return False
    if found.type is ScheduleType.AVOID:
        # A leader that ended between its two patches leaves the condition of an earlier failure
        # (docs/decisions/0015-results-before-statuses.md).
        return not is_observed
    if not is_observed:
        return not is_left(binding)
    if not found.is_routine:
        return not is_left_on_deleted(binding, state.clusters)
    return condition.get("status") != "True" and not is_left(binding)
