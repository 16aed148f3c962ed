"""What the scheduler writes of a decision: clusters, applied placement, condition, affinity term, and time of scheduling.

Where Guard plugins add annotations and eviction tasks, these are written, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.binding_manifest import read_status, read_tasks
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.core.condition import condition_of
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import result_patch, with_targets
from karmada_scheduler.core.report import Report, status_fields, target_manifests
from karmada_scheduler.structs import replace


def as_written(binding: Binding, decision: Decision, at: datetime) -> Binding:
    """Return a binding as the scheduler stores it.

    Args:
        binding: As it was decided about.
        decision: Without targets, the clusters stay.
        at: The time of the decision.
    """
    patch, spec = result_patch(binding, decision), binding.spec
    if patch.clusters is not None:
        spec = with_targets(spec, decision)
    if patch.tasks is not None:
        spec = replace(spec, graceful_eviction_tasks=read_tasks(patch.tasks))
    annotations = {**binding.annotations, **patch.annotations}
    kept = {name: text for name, text in annotations.items() if text is not None}
    # A changed spec has a higher generation, and the scheduler reports about that one.
    generation = binding.generation + (spec is not binding.spec)
    stored = replace(binding, annotations=kept, spec=spec, generation=generation)
    return replace(stored, status=replace(stored.status, **_status(stored, decision, at)))


def _status(stored: Binding, decision: Decision, at: datetime) -> dict[str, Any]:
    placed = decision.error is None or decision.was_placed
    name = decision.affinity_name if placed else None
    report = Report(condition_of(decision), stored.generation, format_time(at), name, placed=placed)
    fields = status_fields(stored, report, keep_unchanged_time=False)
    read = read_status(fields)
    return {name: getattr(read, name) for name in read.__struct_fields__ if camel(name) in fields}


def manifest_as_written(manifest: Manifest, stored: Binding) -> Manifest:
    """Return the manifest of a binding with what ``as_written`` has stored.

    Args:
        manifest: Before the decision.
        stored: The same binding after it.
    """
    metadata: Mapping[str, Any] = manifest.get("metadata") or {}
    clusters = target_manifests(stored.spec.clusters, stored.spec.unknown_target_fields)
    spec = {**(manifest.get("spec") or {}), "clusters": clusters}
    if tasks := stored.spec.graceful_eviction_tasks:
        spec["gracefulEvictionTasks"] = [
            dict(each.manifest) or {"fromCluster": each.from_cluster} for each in tasks
        ]
    else:
        spec.pop("gracefulEvictionTasks", None)
    found = stored.status
    status: dict[str, Any] = {
        **(manifest.get("status") or {}),
        "conditions": [dict(each) for each in found.conditions],
    }
    if found.scheduler_observed_generation:
        status["schedulerObservedGeneration"] = found.scheduler_observed_generation
    if found.scheduler_observing_affinity_name:
        status["schedulerObservingAffinityName"] = found.scheduler_observing_affinity_name
    if found.last_scheduled_time is not None:
        status["lastScheduledTime"] = format_time(found.last_scheduled_time)
    metadata = {**metadata, "annotations": dict(stored.annotations), "generation": stored.generation}
    return {**manifest, "metadata": metadata, "spec": spec, "status": status}
