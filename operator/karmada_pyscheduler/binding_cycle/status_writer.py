"""The second patch of a binding: its status reports how scheduling ended.

A status has low priority. It waits until the watch has delivered the result (``own_writes``), and lets results of other
bindings go first (docs/decisions/0015-results-before-statuses.md). A status that a new leader could not reconstruct
has the priority of a result.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (patchBindingStatusCondition, patchBindingStatus), helper.go and event.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from karmada_pyscheduler.binding_cycle.writer import BindingWriter, OwnWrites
from karmada_scheduler import logs
from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, Binding, BindingKey, TargetCluster
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome, NotLeadingError
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.report import Report, status_fields
from karmada_scheduler.core.unreported import is_unreported
from karmada_scheduler.framework.diagnosis import FitError, SchedulingError
from karmada_scheduler.structs import replace


def ending(decision: Decision, refusal: ApiError | None) -> tuple[Exception | None, outcome.ConditionSpec]:
    """Return the error that an attempt ended with, None for a success, and its condition.

    Upstream joins the two errors of an attempt, and checks whether one of them is a quota error.
    """
    error = decision.error
    if refusal is None:
        return error, outcome.condition_of(decision)
    if error is not None and str(error) != str(refusal):
        joined = SchedulingError(f"[{error}, {refusal}]")
        reason = outcome.NO_CLUSTER_FIT if isinstance(error, FitError) else outcome.SCHEDULER_ERROR
        return joined, outcome.ConditionSpec("False", reason, str(joined))
    quota = refusal.code == 403 and refusal.reason == outcome.QUOTA_EXCEEDED
    reason = outcome.QUOTA_EXCEEDED if quota else outcome.SCHEDULER_ERROR
    return refusal, outcome.ConditionSpec("False", reason, str(refusal))


def success(binding: Binding, decision: Decision | None, at: str) -> Report:
    """Return the report of a success at the time ``at``; without a decision the affinity term stays as it is."""
    name = decision.affinity_name if decision is not None else None
    condition = outcome.condition_for(None) if decision is None else outcome.condition_of(decision)
    return Report(condition, binding.generation, at, name, placed=True)


def targets_text(decision: Decision) -> str:
    """Return ``name:replicas`` of every target, in upstream's format."""
    return ", ".join(f"{target.name}:{target.replicas}" for target in decision.targets or ())


def success_text(binding: Binding, decision: Decision) -> str:
    """Return upstream's message, which has a colon after Result for a ResourceBinding only, and which clusters are left gracefully."""
    colon = "" if binding.key.kind == CLUSTER_RESOURCE_BINDING else ":"
    text = f"Binding has been scheduled successfully. Result{colon} {{{targets_text(decision)}}}"
    left = ", ".join(task.from_cluster for task in decision.guarded.tasks) if decision.guarded else ""
    return f"{text}; leaves {left} gracefully" if left else text


def is_reconstructible(stored: Binding, report: Report) -> bool:
    """Return whether a new leader writes the same status if this process ends before.

    A new leader reports placements, decides again about the others, and updates observed generations
    (``core.unreported``). It cannot be certain about the affinity term where several select the clusters.
    """
    return report.affinity_name in {None, stored.status.scheduler_observing_affinity_name}


log = logging.getLogger(__name__)

_RETRY_DELAYS: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each attempt to write a status."""


class _Result(NamedTuple):
    """What a decision writes into the spec of a binding."""

    targets: tuple[TargetCluster, ...]
    applied_placement: str | None


class _PendingReport(NamedTuple):
    """A report that is not written yet.

    Attributes:
        uid: The uid of the binding.
        report: The report.
        result: What the binding has to have for the report to apply; None if that is known.
    """

    uid: str
    report: Report
    result: _Result | None

    def applies_to(self, binding: Binding) -> bool:
        """Return whether the report is about a binding as it is now."""
        found = _Result(binding.spec.clusters, binding.applied_placement_json)
        return self.uid == binding.uid and (self.result is None or self.result == found)


class StatusWriter:
    """Writes statuses, and keeps reports on results whose status could not be written."""

    def __init__(self, writer: BindingWriter, *, own_writes: OwnWrites, now: Callable[[], datetime]) -> None:
        """Write through ``writer``; ``now`` returns the time of day."""
        self._writer = writer
        self._own_writes = own_writes
        self._now = now
        self._pending: dict[BindingKey, _PendingReport] = {}
        """Reports on results whose status is not written yet."""

    def time(self) -> str:
        """Return the time of day in the API's format."""
        return format_time(self._now())

    async def report(self, stored: Binding, report: Report, decision: Decision | None) -> AttemptOutcome:
        """Write a report on a binding as it is stored. It raises nothing, except that it can be cancelled.

        Args:
            stored: The binding.
            report: The report.
            decision: The decision whose result the binding has; None if it was not written.
        """

        def fields(base: Binding) -> dict[str, Any]:
            if _is_outdated(report.generation, base):
                return {}
            return status_fields(base, report, keep_unchanged_time=False)

        result = await self._write(stored, fields, low_priority=is_reconstructible(stored, report))
        if result.error is None:
            self.forget(stored.key)
        else:
            self.keep_pending(stored, report, decision)
        return result

    def keep_pending(
        self, binding: Binding, report: Report, decision: Decision | None, *, is_stored: bool = True
    ) -> None:
        """Keep a report for the next status of a binding, because there may be nothing left to decide.

        A failure without a result is not kept, because the next attempt reports it again. So is the refusal of a Guard
        plugin.

        Args:
            binding: The binding.
            report: The report.
            decision: The decision; None if its result was not written.
            is_stored: Whether its result is known to be stored. Without a usable response it is not, and the report
                applies only if the binding turns out to have the result.
        """
        if report.is_success and is_stored:
            self._pending[binding.key] = _PendingReport(binding.uid, report, None)
        elif decision is not None and decision.targets is not None and not decision.is_refused:
            result = _Result(decision.targets, decision.applied_placement)
            self._pending[binding.key] = _PendingReport(binding.uid, report, result)

    def forget(self, key: BindingKey) -> None:
        """Drop the pending report of a binding."""
        self._pending.pop(key, None)

    def _pending_report(self, binding: Binding) -> Report | None:
        """Return the pending report on a binding; None if it does not apply to the binding as it is now."""
        pending = self._pending.get(binding.key)
        return pending.report if pending is not None and pending.applies_to(binding) else None

    def is_observed(self, binding: Binding, *, observes: bool = True) -> bool:
        """Return whether the status reports that no scheduling is needed; ``observes`` is as for ``observe``."""
        is_due = observes and binding.generation != binding.status.scheduler_observed_generation
        return not is_due and self._pending_report(binding) is None and not is_unreported(binding)

    async def observe(self, binding: Binding, *, term: str = "", observes: bool = True) -> AttemptOutcome:
        """Write the observed generation of a binding that needs no scheduling, and what is not reported.

        It raises nothing, except that it can be cancelled.

        Args:
            binding: The binding.
            term: Its affinity term, if the status has another one (``core.unreported``).
            observes: Whether the generation counts as observed; a Guard plugin may delay that.
        """

        def fields(base: Binding) -> dict[str, Any]:
            if _is_outdated(binding.generation, base):
                return {}
            pending = self._pending_report(base)
            if pending is None and (term or is_unreported(base)):
                pending = replace(success(binding, None, self.time()), affinity_name=term or None)
            found: dict[str, Any] = {}
            if pending is not None:
                report = replace(pending, generation=binding.generation, observes=observes)
                found = status_fields(base, report, keep_unchanged_time=False)
                if report.is_success:
                    return found
            if observes and binding.generation != base.status.scheduler_observed_generation:
                found["schedulerObservedGeneration"] = binding.generation
            return found

        result = await self._write(binding, fields, low_priority=True)
        if result.error is None:
            self.forget(binding.key)
        return result

    async def _write(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, low_priority: bool
    ) -> AttemptOutcome:
        """Patch the status; retry on conflicts and temporary errors."""

        def fields(base: Binding) -> dict[str, Any]:
            found = fields_for(base)
            self._own_writes.begin_status(base.key, found.get("conditions", ()))
            return found

        await self._own_writes.wait_observed(binding.key, int(binding.resource_version))
        try:
            return await self._patch(binding, fields, low_priority=low_priority)
        finally:
            self._own_writes.end_status(binding.key)

    async def _patch(
        self, binding: Binding, fields: Callable[[Binding], dict[str, Any]], *, low_priority: bool
    ) -> AttemptOutcome:
        base = binding
        failure: ApiError | None = None
        for delay in _RETRY_DELAYS:
            await asyncio.sleep(delay)
            try:
                if failure is not None:
                    base = await self._writer.read(base.key)
                if base.uid != binding.uid:
                    return DONE
                await self._writer.patch_status(base, fields, low_priority=low_priority)
            except NotLeadingError as error:
                return AttemptOutcome(Action.RETRY, error)
            except ApiError as error:
                if error.is_object_not_found(base.key.name):
                    return DONE
                failure = error
                if not error.is_transient and error.code not in (404, 409):
                    break
            else:
                log.log(logs.V4, "Patch schedule status to %s succeed", binding.key.display)
                return DONE
        log.error("Failed to patch schedule status %s: %s", binding.key.display, failure)
        return AttemptOutcome(Action.RETRY, failure)


def _is_outdated(generation: int, base: Binding) -> bool:
    """Return whether another leader has reported a later generation.

    It would not learn that its report was overwritten, because a status adds no binding to the queue.
    """
    return generation < base.status.scheduler_observed_generation <= base.generation
