"""Whether a scheduler has lost a key: a binding in its cache needs scheduling, and its queue does not hold the key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_pyscheduler.app.application import Application
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.classify import ScheduleType, classify
from karmada_scheduler.core.condition import NO_CLUSTER_FIT
from tools.simulation.setup import Setup

CHECK_SECONDS: Final = 2.0
"""Seconds between two checks. A key is lost if two in succession miss it for the same version of its binding."""

Missed = dict[BindingKey, str]
"""Keys that are not held, with the resourceVersions of their bindings."""


def missed_keys(application: Application, setup: Setup) -> Missed:
    """Return the keys of a process that its queue should hold and does not."""
    if not application.is_filled:
        return {}
    state = application.state
    return {each.key: each.resource_version for each in _not_held(state, setup) if _needs(each, state, setup)}


def _not_held(state: SchedulerState, setup: Setup) -> Iterator[Binding]:
    for binding in state.bindings:
        if (
            not state.queue.holds(binding.key)
            and not binding.deleting
            and binding.spec.placement is not None
            and requeue_rules.is_claimed_and_assigned(binding, setup.names)
        ):
            yield binding


def _needs(binding: Binding, state: SchedulerState, setup: Setup) -> bool:
    condition = binding.status.condition(SCHEDULED_CONDITION) or {}
    # The generation of a graceful move is observed when the workload is ready.
    leaves = any(each.producer in setup.names for each in binding.spec.graceful_eviction_tasks)
    is_observed = leaves or binding.status.scheduler_observed_generation == binding.generation
    found = classify(binding, is_gone=state.clusters.is_gone, gates=setup.gates)
    if found.type is ScheduleType.AVOID and binding.spec.clusters and condition.get("status") != "True":
        return True
    if condition.get("reason") == NO_CLUSTER_FIT:  # it waits for an event, outside the queue
        return False
    if not is_observed:
        return True
    if found.type is ScheduleType.AVOID:
        return False
    return not found.is_routine or condition.get("status") != "True"
