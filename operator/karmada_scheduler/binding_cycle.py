"""The binding cycle: a decision becomes one patch of the spec, one of the status, and two Events.

Where many bindings wait, statuses let results go first, and are built on what the watch has brought meanwhile.

Every patch names the resourceVersion that it was computed from. The first is refused when anybody changed
the binding since the decision, which is then taken again; the second is built anew on a fresh read until
it fits. So an answer never holds anything but what was known before plus our own change, and can enter the
cache without waking the binding.

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (patchScheduleResultForResourceBinding,
patchBindingStatusCondition, recordScheduleResultEventForResourceBinding) and event.go.
Differs: docs/differences-from-upstream.md, "Writes".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from karmada_scheduler import logs
from karmada_scheduler.api import meta
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.meta import APPLIED_PLACEMENT_ANNOTATION, Manifest
from karmada_scheduler.binding_report import (
    SCHEDULED,
    Report,
    ending,
    may_be_late,
    status_fields,
    success,
    success_text,
    target_manifests,
    targets_text,
)
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient
from karmada_scheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler.core import outcome
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.echoes import Echoes
from karmada_scheduler.framework.binding_runtime import BindingPoints, WaitFor
from karmada_scheduler.framework.diagnosis import FitError, PluginError, SchedulingError
from karmada_scheduler.framework.waiting import AbandonedError
from karmada_scheduler.metrics import Metrics
from karmada_scheduler.passage import Passage
from karmada_scheduler.write_pace import WritePace

log = logging.getLogger(__name__)

SUCCEEDED: Final = "ScheduleBindingSucceed"
FAILED: Final = "ScheduleBindingFailed"

_STATUS_TRIES: Final = 8
_STATUS_PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class NotLeadingError(Exception):
    """A write was not begun because this process may not be the leader any more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a binding, and so of its key.

    Attributes:
        error: What went wrong, None when nothing did.
        retry: Whether to try again after a pause.
        again: Whether to decide again at once, because the binding changed under the decision.
        pause: The seconds to wait before a retry, when the API server or a plugin asked for it.
        later: After how many seconds to ask again whether the binding may be decided; 0 for not at all.
    """

    error: Exception | None = None
    retry: bool = False
    again: bool = False
    pause: float = 0.0
    later: float = 0.0


DONE: Final = Outcome()


class BindingCycle:
    """Writes decisions."""

    def __init__(
        self,
        client: KarmadaClient,
        recorder: EventRecorder,
        bindings: BindingCache,
        *,
        echoes: Echoes,
        seen: Callable[[str, str, Mapping[str, Any]], None],
        may_write: Callable[[], bool],
        pace: WritePace,
        now: Callable[[], datetime],
        metrics: Metrics,
    ) -> None:
        """Take what writing needs.

        Args:
            client: Where to write.
            recorder: Where Events go.
            bindings: Gets the answers, so that the next decision knows them.
            echoes: Tells when the watch has brought a result, so that the API server knows it, too.
            seen: Takes a manifest that was read because ours was outdated: kind, ``MODIFIED``, manifest.
            may_write: Asked before every write; False once the lease may have run out.
            pace: Lets writes begin.
            now: The time of day.
            metrics: Counts writes.
        """
        self._client = client
        self._recorder = recorder
        self._bindings = bindings
        self._echoes = echoes
        self._seen = seen
        self._may_write = may_write
        self._pace = pace
        self._now = now
        self._metrics = metrics
        self._owed: dict[BindingKey, Report] = {}
        """What statuses should say of results that were written, where the status could not be."""

    def has_work(self, binding: Binding, decision: Decision) -> bool:
        """Tell whether a decision changes anything that people or controllers can see.

        A binding that was decided again and came out as it is costs nothing: no write, no Event.
        """
        if decision.error is not None or decision.failed_terms or binding.reschedule_triggered:
            return True
        return self.changes_result(binding, decision) or bool(
            status_fields(binding, success(binding, decision, self._time()), keep_time_if_settled=True)
        )

    def changes_result(self, binding: Binding, decision: Decision) -> bool:
        """Tell whether a decision changes where a binding is, or the placement that it is there for."""
        return self._result(binding, decision) != ({}, None)

    def passage(
        self, binding: Binding, decision: Decision, points: BindingPoints, wait: WaitFor
    ) -> Passage | None:
        """Return the way of a decision through the plugins, None if it passes them by."""
        if isinstance(decision.error, FitError) or decision.targets is None or decision.cycle is None:
            return None
        if not self.changes_result(binding, decision):
            return None
        return Passage(
            points,
            binding,
            decision.targets,
            decision.cycle,
            write=partial(self._write_result, binding, decision),
            wait=wait,
        )

    async def bind(
        self,
        binding: Binding,
        decision: Decision,
        passage: Passage | None = None,
        *,
        stored: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Write a decision, through the plugins if it goes that way. Never raises but on cancellation.

        Args:
            binding: What was decided about.
            decision: What is to be written.
            passage: Its way through the plugins, None if it passes them by.
            stored: Called when the result is stored, and only the status is still to be written.
        """
        for term in decision.failed_terms:
            text = f"failed to schedule {binding.key.display} with clusterAffiliates index({term.index}): {term.error}"
            log.error("%s", text)
            self._recorder.record(binding, WARNING, FAILED, text)
        try:
            patch_error: ApiError | None = None
            try:
                if passage is None:
                    written = await self._write_result(binding, decision)
                else:
                    await passage.go()
                    written = passage.written or await self._written_by_others(binding, decision, passage)
                    await passage.arrived()
            except ApiError as error:
                if (verdict := await self._verdict(binding, error)) is not None:
                    return verdict
                patch_error, written = error, binding
            except SchedulingError as refusal:
                decision, written = refused(decision, refusal), binding
            if written is not binding:
                stored()
            return await self._report(binding, written, decision, patch_error)
        except AbandonedError as stale:
            log.log(logs.V3, "%s is not bound: %s", binding.key.display, stale)
            return Outcome(again=stale.again)
        except NotLeadingError as error:
            return Outcome(error)
        finally:
            self._echoes.forget(binding.key)

    async def _written_by_others(self, binding: Binding, decision: Decision, passage: Passage) -> Binding:
        """Read what a plugin has written in a way of its own; PluginError if that is not what was decided."""
        fresh = await self._fresh(binding)
        if set(fresh.spec.clusters) == set(decision.targets or ()) and (
            fresh.applied_placement_json == decision.applied_placement
        ):
            return fresh
        passage.give_back()
        raise PluginError(
            f"{passage.binder} says that it wrote spec.clusters and the annotation, and did not"
        )

    def is_observed(self, binding: Binding) -> bool:
        """Tell whether a binding that needs nothing has even been told so."""
        return (
            binding.generation == binding.status.scheduler_observed_generation
            and binding.key not in self._owed
            and not _is_untold(binding)
        )

    async def observe(self, binding: Binding) -> Outcome:
        """Note that a binding needs nothing: bring its observed generation up to date. Never raises."""

        def fields(base: Binding) -> dict[str, Any]:
            owed = success(binding, None, self._time()) if _is_untold(base) else self._owed.get(base.key)
            if owed is not None:
                owed = replace(owed, generation=binding.generation)
                return status_fields(base, owed, keep_time_if_settled=False)
            if binding.generation == base.status.scheduler_observed_generation:
                return {}
            return {"schedulerObservedGeneration": binding.generation}

        try:
            result = await self._write_status(binding, fields)
        except NotLeadingError as error:
            return Outcome(error)
        if result.error is None:
            self._owed.pop(binding.key, None)
        return result

    def warn_deleting(self, binding: Binding) -> None:
        """Record that a binding is being deleted and is therefore left alone."""
        kind = binding.key.kind
        text = f"skip schedule deleting {kind[0].lower()}{kind[1:]}: {binding.key}"
        self._recorder.record(binding, WARNING, FAILED, text)

    def _result(
        self, binding: Binding, decision: Decision
    ) -> tuple[dict[str, str], list[dict[str, Any]] | None]:
        """Return what of a decision differs from the binding: annotations and clusters, None if they do not."""
        annotations: dict[str, str] = {}
        clusters = None
        if decision.targets is not None:
            if decision.applied_placement != binding.applied_placement_json:
                annotations[APPLIED_PLACEMENT_ANNOTATION] = decision.applied_placement or ""
            if decision.targets != binding.spec.clusters:
                clusters = target_manifests(decision.targets)
        return annotations, clusters

    async def _write_result(self, binding: Binding, decision: Decision) -> Binding:
        binding = self._rebased(binding)
        annotations, clusters = self._result(binding, decision)
        if not annotations and clusters is None:
            return binding
        self._echoes.expect(binding.key)

        async def patch() -> Binding:
            request = self._client.patch_result(
                binding.key,
                resource_version=binding.resource_version,
                annotations=annotations,
                clusters=clusters,
            )
            return Binding.from_manifest(await self._counted("spec", request))

        answer = await self._written(patch)
        log.log(logs.V4, "Patch schedule to %s succeed", binding.key.display)
        return answer

    def _rebased(self, binding: Binding) -> Binding:
        """Return the newest version that is known, if nothing has changed that a decision goes by.

        Statuses change all the time, and a binding may have waited for minutes.
        """
        newest = self._bindings.get(binding.key)
        if newest is None or newest is binding:
            return binding
        return newest if _basis(newest) == _basis(binding) else binding

    async def _verdict(self, binding: Binding, error: ApiError) -> Outcome | None:
        """Say what follows from a refused result patch, None if the binding's status should tell of it."""
        if error.is_conflict:
            return await self._reread(binding)
        if error.is_not_found or "NamespaceTerminating" in error.causes:
            return DONE
        if error.may_pass:
            log.warning("Failed to patch schedule to %s: %s", binding.key.display, error)
            return Outcome(error, retry=True, pause=error.retry_after or 0.0)
        log.error("Failed to patch schedule to %s: %s", binding.key.display, error)
        return None

    async def _reread(self, binding: Binding) -> Outcome:
        try:
            manifest = await self._client.get_binding(binding.key)
        except ApiError as error:
            return DONE if error.is_not_found else Outcome(error, retry=True)
        self._seen(binding.key.kind, "MODIFIED", manifest)
        return Outcome(again=True)

    async def _report(
        self, binding: Binding, written: Binding, decision: Decision, patch_error: ApiError | None
    ) -> Outcome:
        """Tell people and controllers how it went: Events, then the status."""
        error, condition = ending(decision.error, patch_error)
        if error is None:
            self._recorder.record(binding, NORMAL, SUCCEEDED, success_text(binding, decision))
            log.log(logs.V4, "%s scheduled to clusters %s", binding.key.display, targets_text(decision))
        elif not decision.failed_terms or isinstance(decision.error, FitError) or decision.error is None:
            log.error("Failed scheduling %s: %s", binding.key.display, error)
            self._recorder.record(binding, WARNING, FAILED, str(error))
        placed = patch_error is None and (error is None or decision.was_placed)
        name = decision.affinity_name if placed else None
        report = Report(condition, written.generation, self._time(), name, placed=placed)
        result = await self._write_status(
            written,
            lambda base: status_fields(base, report, keep_time_if_settled=False),
            patient=may_be_late(written, report),
        )
        if result.error is not None:
            if error is None:
                self._owed[binding.key] = report
            return replace(result, error=error or result.error)
        self._owed.pop(binding.key, None)
        pause = getattr(error, "retry_after", 0.0) or decision.retry_after
        retry = outcome.retryable(error) or decision.may_work_next_time or pause > 0
        return Outcome(error, retry=retry, pause=pause)

    def _time(self) -> str:
        return meta.format_time(self._now())

    async def _write_status(
        self, binding: Binding, fields_for: Callable[[Binding], dict[str, Any]], *, patient: bool = True
    ) -> Outcome:
        """Patch the status with what ``fields_for`` makes of the newest version; retry what may pass."""
        base = binding

        async def patch() -> Binding:
            nonlocal base
            base = self._newest(base)
            fields = fields_for(base)
            if not fields:
                return base
            request = self._client.patch_status(
                base.key, resource_version=base.resource_version, status=fields
            )
            return base.with_status(await self._counted("status", request))

        failure: ApiError | None = None
        await self._echoes.arrival(base.key, int(base.resource_version))
        for attempt in range(_STATUS_TRIES):
            await asyncio.sleep(_STATUS_PAUSES[attempt])
            try:
                if failure is not None:
                    base = await self._fresh(base)
                if base.uid != binding.uid:
                    return DONE
                await self._written(patch, patient=patient)
            except ApiError as error:
                if error.is_not_found:
                    return DONE
                failure = error
                if not error.may_pass and error.code != 409:
                    break
            else:
                log.log(logs.V4, "Patch schedule status to %s succeed", binding.key.display)
                return DONE
        log.error("Failed to patch schedule status %s: %s", binding.key.display, failure)
        return Outcome(failure, retry=True)

    def _newest(self, base: Binding) -> Binding:
        """Return the newest version that is known; others write statuses, too, while ours waits for its turn."""
        newest = self._bindings.get(base.key)
        if (
            newest is None
            or newest.uid != base.uid
            or int(newest.resource_version) < int(base.resource_version)
        ):
            return base
        return newest

    async def _fresh(self, binding: Binding) -> Binding:
        """Read a binding again; whatever somebody else changed wakes it as any event would."""
        manifest = await self._client.get_binding(binding.key)
        self._seen(binding.key.kind, "MODIFIED", manifest)
        return Binding.from_manifest(manifest)

    async def _written(self, write: Callable[[], Awaitable[Binding]], *, patient: bool = False) -> Binding:
        async with self._pace.turn(patient=patient):
            if not self._may_write():
                raise NotLeadingError("not leading any more, nothing is written")
            answer = await write()
        self._bindings.put_written(answer)
        return answer

    async def _counted(self, target: str, request: Awaitable[Manifest]) -> Manifest:
        try:
            manifest = await request
        except ApiError as error:
            self._metrics.api_writes.labels(target, str(error.code or "no answer")).inc()
            raise
        self._metrics.api_writes.labels(target, "200").inc()
        return manifest


def refused(decision: Decision, error: SchedulingError) -> Decision:
    """Return a decision that a plugin did not let through: nothing is written of it but why."""
    return replace(
        decision,
        targets=None,
        applied_placement=None,
        affinity_name=None,
        failed_terms=(),
        error=error,
        attempts=(),
    )


def _basis(binding: Binding) -> tuple[object, ...]:
    """Return what a decision goes by."""
    status = binding.status
    return (
        binding.uid,
        binding.generation,
        binding.deleting,
        binding.labels,
        binding.annotations,
        status.scheduler_observing_affinity_name,
        status.last_scheduled_time,
    )


def _is_untold(binding: Binding) -> bool:
    """Tell whether a binding has a place of which its status was never told: whoever wrote it died in between."""
    status = binding.status
    return (
        bool(binding.spec.clusters) and not status.last_scheduled_time and status.condition(SCHEDULED) is None
    )
