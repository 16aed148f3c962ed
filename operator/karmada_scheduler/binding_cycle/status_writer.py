"""The second patch of a binding: its status reports how scheduling ended.

A status has low priority. It waits until the watch has delivered the result (``own_writes``), and lets results of other
bindings go first (docs/decisions/0015-results-before-statuses.md). A status that a new leader could not reconstruct
has the priority of a result.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (patchBindingStatusCondition, patchBindingStatus).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.binding_cycle.conditions import (
    Report,
    is_reconstructible,
    status_fields,
    success,
    was_kept_by_guard,
)
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.result import DONE, CycleResult, NotLeadingError
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.client.api_error import ApiError

log = logging.getLogger(__name__)

_RETRY_DELAYS: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each attempt to write a status."""


class StatusWriter:
    """Writes statuses, and keeps reports of successes that could not be written."""

    def __init__(self, writer: BindingWriter, *, own_writes: OwnWrites, now: Callable[[], datetime]) -> None:
        """Write through ``writer``; ``now`` returns the time of day."""
        self._writer = writer
        self._own_writes = own_writes
        self._now = now
        self._pending: dict[BindingKey, tuple[str, Report]] = {}
        """Reports on stored results whose status is not written yet, with the uid of the binding."""

    def time(self) -> str:
        """Return the time of day in the API's format."""
        return format_time(self._now())

    async def report(self, stored: Binding, report: Report) -> CycleResult:
        """Write a report on a binding as it is stored. It raises nothing, except that it can be cancelled."""

        def fields(base: Binding) -> dict[str, Any]:
            return status_fields(base, report, keep_unchanged_time=False)

        result = await self._write(stored, fields, low_priority=is_reconstructible(stored, report))
        if result.error is None:
            self.forget(stored.key)
        else:
            self.keep_pending(stored, report)
        return result

    def keep_pending(self, stored: Binding, report: Report) -> None:
        """Keep the report of a success for the next status of the binding.

        A failure is not kept, because the next attempt reports it again.
        """
        if report.is_success:
            self._pending[stored.key] = stored.uid, report

    def forget(self, key: BindingKey) -> None:
        """Drop the pending report of a binding."""
        self._pending.pop(key, None)

    def _pending_report(self, binding: Binding) -> Report | None:
        """Return the pending report of a binding, unless it is about another binding of the same name."""
        uid, report = self._pending.get(binding.key, ("", None))
        return report if uid == binding.uid else None

    def is_observed(self, binding: Binding) -> bool:
        """Return whether the status already reports that no scheduling is needed."""
        return (
            binding.generation == binding.status.scheduler_observed_generation
            and self._pending_report(binding) is None
            and not _is_unreported(binding)
        )

    async def observe(self, binding: Binding) -> CycleResult:
        """Write the observed generation of a binding that needs no scheduling, and its pending report.

        It raises nothing, except that it can be cancelled.
        """

        def fields(base: Binding) -> dict[str, Any]:
            pending = (
                success(binding, None, self.time()) if _is_unreported(base) else self._pending_report(base)
            )
            if pending is not None:
                report = replace(pending, generation=binding.generation)
                return status_fields(base, report, keep_unchanged_time=False)
            if binding.generation == base.status.scheduler_observed_generation:
                return {}
            return {"schedulerObservedGeneration": binding.generation}

        result = await self._write(binding, fields, low_priority=True)
        if result.error is None:
            self.forget(binding.key)
        return result

    async def _write(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, low_priority: bool
    ) -> CycleResult:
        """Patch the status; retry on conflicts and temporary errors."""
        base = binding
        failure: ApiError | None = None
        await self._own_writes.wait_observed(base.key, int(base.resource_version))
        for delay in _RETRY_DELAYS:
            await asyncio.sleep(delay)
            try:
                if failure is not None:
                    base = await self._writer.read(base.key)
                if base.uid != binding.uid:
                    return DONE
                await self._writer.patch_status(base, fields_for, low_priority=low_priority)
            except NotLeadingError as error:
                return CycleResult(error, retry=True)
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
        return CycleResult(failure, retry=True)


def _is_unreported(binding: Binding) -> bool:
    """Return whether the status of a binding with clusters that needs no scheduling is still to be written.

    It has none because a scheduler ended between the two patches, or a Guard plugin refused a decision that is not
    needed any more.
    """
    status = binding.status
    if not binding.spec.clusters:
        return False
    if was_kept_by_guard(binding):
        return True
    return not status.last_scheduled_time and status.condition(SCHEDULED_CONDITION) is None
