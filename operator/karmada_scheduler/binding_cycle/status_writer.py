"""The second patch of a binding: its status says how it went.

A status is in no hurry: it waits until the watch has brought the result (``echoes``), and lets the results of other
bindings go first (docs/decisions/0015-results-before-statuses.md), unless a successor could not make up for it.

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
from karmada_scheduler.binding_cycle.conditions import SCHEDULED, Report, may_be_late, status_fields, success
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.writer import DONE, BindingWriter, NotLeadingError, Outcome
from karmada_scheduler.client.connection import ApiError

log = logging.getLogger(__name__)

_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class StatusWriter:
    """Writes statuses, and remembers those that could not be written."""

    def __init__(self, writes: BindingWriter, *, echoes: OwnWrites, now: Callable[[], datetime]) -> None:
        """``now`` is the time of day."""
        self._writes = writes
        self._echoes = echoes
        self._now = now
        self._owed: dict[BindingKey, tuple[str, Report]] = {}
        """What statuses should say of results that were written, where the status could not be, with the uid."""

    def time(self) -> str:
        """Return the time of day as the API has it."""
        return format_time(self._now())

    async def tell(self, stored: Binding, report: Report) -> Outcome:
        """Write a report on a binding as it is stored. Never raises."""

        def fields(base: Binding) -> dict[str, Any]:
            return status_fields(base, report, keep_time_if_settled=False)

        result = await self._write(stored, fields, patient=may_be_late(stored, report))
        if result.error is None:
            self.forget(stored.key)
        else:
            self.owe(stored, report)
        return result

    def owe(self, stored: Binding, report: Report) -> None:
        """Remember a report that could not be written, if it is of a success: any other is made again."""
        if report.is_success:
            self._owed[stored.key] = stored.uid, report

    def forget(self, key: BindingKey) -> None:
        """Owe nothing to a binding any more: it is told, or gone."""
        self._owed.pop(key, None)

    def _owed_to(self, binding: Binding) -> Report | None:
        """Return what is still to be told of a binding; nothing that was of another one by its name."""
        uid, report = self._owed.get(binding.key, ("", None))
        return report if uid == binding.uid else None

    def is_observed(self, binding: Binding) -> bool:
        """Tell whether a binding that needs nothing has even been told so."""
        return (
            binding.generation == binding.status.scheduler_observed_generation
            and self._owed_to(binding) is None
            and not _is_untold(binding)
        )

    async def observe(self, binding: Binding) -> Outcome:
        """Note that a binding needs nothing: bring its observed generation up to date. Never raises."""

        def fields(base: Binding) -> dict[str, Any]:
            owed = success(binding, None, self.time()) if _is_untold(base) else self._owed_to(base)
            if owed is not None:
                owed = replace(owed, generation=binding.generation)
                return status_fields(base, owed, keep_time_if_settled=False)
            if binding.generation == base.status.scheduler_observed_generation:
                return {}
            return {"schedulerObservedGeneration": binding.generation}

        result = await self._write(binding, fields, patient=True)
        if result.error is None:
            self.forget(binding.key)
        return result

    async def _write(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, patient: bool
    ) -> Outcome:
        """Patch the status; retry what may pass. Never raises."""
        base = binding
        failure: ApiError | None = None
        await self._echoes.arrival(base.key, int(base.resource_version))
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            try:
                if failure is not None:
                    base = await self._writes.fresh(base.key)
                if base.uid != binding.uid:
                    return DONE
                await self._writes.status(base, fields_for, patient=patient)
            except NotLeadingError as error:
                return Outcome(error, retry=True)
            except ApiError as error:
                if error.says_gone(base.key.name):
                    return DONE
                failure = error
                if not error.may_pass and error.code not in (404, 409):
                    break
            else:
                log.log(logs.V4, "Patch schedule status to %s succeed", binding.key.display)
                return DONE
        log.error("Failed to patch schedule status %s: %s", binding.key.display, failure)
        return Outcome(failure, retry=True)


def _is_untold(binding: Binding) -> bool:
    """Tell whether a binding has a place of which its status was never told: whoever wrote it died in between."""
    status = binding.status
    return (
        bool(binding.spec.clusters) and not status.last_scheduled_time and status.condition(SCHEDULED) is None
    )
