"""What is written of a decision into metadata and spec, with what Guard plugins add, and whether its generation is observed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from karmada_scheduler.api.binding import Binding, BindingSpec
from karmada_scheduler.api.binding_manifest import read_unknown_fields
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.core.decision import Decision, Guarded
from karmada_scheduler.core.report import target_manifests
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.diagnosis import FitError, PluginError
from karmada_scheduler.framework.guard_point import EvictionTask
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.structs import Struct, replace

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


class ResultPatch(Struct, frozen=True):
    """The differences between a decision and a binding; ``clusters`` is None if they are the same.

    There are ``tasks`` only with clusters.
    """

    annotations: dict[str, str | None]
    clusters: list[dict[str, Any]] | None
    tasks: list[dict[str, Any]] | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written."""
        return not self.annotations and self.clusters is None


def result_patch(binding: Binding, decision: Decision) -> ResultPatch:
    """Return what is written of a decision into the metadata and the spec of a binding."""
    annotations: dict[str, str | None] = {}
    clusters = tasks = None
    if decision.targets is not None:
        if decision.applied_placement != binding.applied_placement_json:
            annotations[APPLIED_PLACEMENT_ANNOTATION] = decision.applied_placement
        if decision.changes_clusters(binding):
            unknown = binding.spec.unknown_target_fields
            clusters = target_manifests(decision.targets, unknown, decision.components)
    if decision.guarded is not None:
        annotations |= changed_annotations(binding, decision.guarded)
        if clusters is not None:
            tasks = task_manifests(binding, decision.guarded)
    return ResultPatch(annotations, clusters, tasks)


def with_targets(spec: BindingSpec, decision: Decision) -> BindingSpec:
    """Return a spec with the targets of a decision, and their components."""
    targets = decision.targets or ()
    if decision.components is None:
        return replace(spec, clusters=targets)
    listed = target_manifests(targets, spec.unknown_target_fields, decision.components)
    return replace(spec, clusters=targets, unknown_target_fields=read_unknown_fields(targets, listed))


def bind_context(
    binding: Binding, decision: Decision, patch: Callable[[], Awaitable[Binding]]
) -> BindContext | None:
    """Return the context of Reserve to PostBind for a decision that changes the result, None if no plugins run for it."""
    if isinstance(decision.error, FitError) or decision.is_refused:
        return None
    if decision.targets is None or decision.cycle is None:
        return None
    guarded = decision.guarded or Guarded()
    return BindContext(
        binding, decision.targets, decision.cycle, patch, guarded.tasks, annotations=guarded.annotations
    )


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
