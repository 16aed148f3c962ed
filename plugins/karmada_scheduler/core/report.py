"""What the scheduler writes about the end of an attempt: targets, the condition, and the other fields of the status.

Source: karmada v1.18.2 pkg/scheduler helper.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.binding_spec import TargetComponents
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.structs import Struct

_MESSAGE_LIMIT: Final = 32768
"""The longest message of a condition, in characters; the API's limit."""


class Report(Struct, frozen=True):
    """How scheduling of a binding ended, as its status reports it.

    Attributes:
        condition: The Scheduled condition.
        generation: The generation that was scheduled; the binding may have a newer one when the status is written.
        at: The time at which scheduling ended, in the API's format. It precedes the time of the write, so that a
            reschedule requested in between does not count as done.
        affinity_name: The affinity term in use; None leaves the field as it is.
        placed: Whether clusters were found and written. The condition may report a later failure.
        observes: Whether the generation counts as observed; a Guard plugin may delay that.
    """

    condition: outcome.ConditionSpec
    generation: int
    at: str
    affinity_name: str | None = None
    placed: bool = False
    observes: bool = True

    @property
    def is_success(self) -> bool:
        """Whether the condition reports a success."""
        return self.condition.status == "True"


def status_fields(base: Binding, report: Report, *, keep_unchanged_time: bool) -> dict[str, Any]:
    """Return the status fields in which a report differs from the status of a binding.

    Args:
        base: The binding as stored.
        report: The new content.
        keep_unchanged_time: Whether ``lastScheduledTime`` stays as it is if all other fields do.
    """
    status = base.status
    fields: dict[str, Any] = {}
    conditions = with_condition(status.conditions, report.condition, report.at)
    if conditions is not None:
        fields["conditions"] = conditions
    if not report.placed:
        return fields
    if report.is_success and report.observes and report.generation != status.scheduler_observed_generation:
        fields["schedulerObservedGeneration"] = report.generation
    if report.affinity_name not in {None, status.scheduler_observing_affinity_name}:
        fields["schedulerObservingAffinityName"] = report.affinity_name
    if fields or not keep_unchanged_time:
        fields["lastScheduledTime"] = report.at
    return fields


def target_manifests(
    targets: Sequence[TargetCluster],
    unknown: Mapping[TargetCluster, Manifest] | None = None,
    components: TargetComponents | None = None,
) -> list[dict[str, Any]]:
    """Return targets as JSON of the API; a replica count of 0 is omitted.

    Args:
        targets: The clusters with their replicas.
        unknown: ``BindingSpec.unknown_target_fields`` of the stored binding. A target that is in it with the same
            replicas keeps its unknown fields.
        components: Those of every target; None keeps them as unknown fields.
    """
    manifests: list[dict[str, Any]] = [
        {"name": target.name, "replicas": target.replicas} if target.replicas else {"name": target.name}
        for target in targets
    ]
    if unknown:
        for target, manifest in zip(targets, manifests, strict=True):
            manifest.update(unknown.get(target, {}))
    if components is not None:
        for manifest in manifests:
            manifest.pop("components", None)
            if components:
                manifest["components"] = [{"name": name, "replicas": count} for name, count in components]
    return manifests


def with_condition(
    conditions: Sequence[Mapping[str, Any]], wanted: outcome.ConditionSpec, now: str
) -> list[Mapping[str, Any]] | None:
    """Return the conditions with the Scheduled one replaced by ``wanted``, None if nothing changes.

    Other conditions keep all their fields. Unknown fields of the Scheduled condition are dropped, because they describe
    the condition as it was. ``lastTransitionTime`` changes only with the condition's status.
    """
    new: dict[str, Any] = {
        "type": SCHEDULED_CONDITION,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message[:_MESSAGE_LIMIT],
        "lastTransitionTime": now,
    }
    result: list[Mapping[str, Any]] = []
    is_replaced = False
    for condition in conditions:
        if condition.get("type") != SCHEDULED_CONDITION:
            result.append(condition)
            continue
        if condition.get("status") == wanted.status:
            new["lastTransitionTime"] = condition.get("lastTransitionTime") or now
        if all(condition.get(field) == new[field] for field in ("status", "reason", "message")):
            return None
        result.append(new)
        is_replaced = True
    return result if is_replaced else [*result, new]
