"""What Guard plugins add to the patch of a decision, and whether its generation may count as observed."""

from __future__ import annotations

import logging
from typing import Any

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.decision import Guarded
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.guard_point import EvictionTask
from karmada_scheduler.framework.runtime.framework import Framework

log = logging.getLogger(__name__)


def may_observe(framework: Framework, binding: Binding) -> bool:
    """Return whether the generation of a binding may count as observed.

    Guard plugins may delay that for a binding that leaves clusters gracefully by a decision of this scheduler.
    """
    if not framework.guard.observes:
        return True
    name = binding.spec.responsible_scheduler
    if all(task.producer != name for task in binding.spec.graceful_eviction_tasks):
        return True
    try:
        return framework.guard.may_observe(binding).is_success
    except PluginError as error:
        log.error("The generation of %s is not observed: %s", binding.key.display, error)  # noqa: TRY400
        return False


def changed_annotations(binding: Binding, guarded: Guarded) -> dict[str, str | None]:
    """Return the annotations that a binding does not have as they are wanted."""
    return {name: text for name, text in guarded.annotations.items() if binding.annotations.get(name) != text}


def task_manifests(binding: Binding, guarded: Guarded) -> list[dict[str, Any]] | None:
    """Return the complete list of eviction tasks of a binding as JSON, None if it does not change.

    New tasks go before those that are stored, which stay as they are and in their order: Karmada reads the preserved
    state of a failover from the last task only. A cluster that has a task gets no second one, so that a second move does
    not extend its time.

    Source: karmada v1.18.2 pkg/controllers/binding/common.go (injectReservedLabelState) and
    pkg/apis/work/v1alpha2/binding_types_helper.go (GracefulEvictCluster).
    """
    name = binding.spec.responsible_scheduler
    stored = [
        task
        for task in binding.spec.graceful_eviction_tasks
        if task.producer != name or task.from_cluster not in guarded.cancelled
    ]
    evicted = {task.from_cluster for task in stored}
    added = [_manifest(task, name) for task in guarded.tasks if task.from_cluster not in evicted]
    if not added and len(stored) == len(binding.spec.graceful_eviction_tasks):
        return None
    return [*added, *(dict(task.manifest) for task in stored)]


def _manifest(task: EvictionTask, producer: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fromCluster": task.from_cluster,
        "purgeMode": task.purge_mode,
        "reason": task.reason,
        "producer": producer,
        "gracePeriodSeconds": task.grace_period_seconds,
    }
    if task.message:
        found["message"] = task.message
    if task.replicas:
        found["replicas"] = task.replicas
    return found
