"""The binding cycle: a decision becomes one patch of the spec, one of the status, and two Events.

The first is refused when anybody changed the binding since the decision, which is then taken again
(``binding_writes``); the second is built anew until it fits (``status_writer``).

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (patchScheduleResultForResourceBinding,
recordScheduleResultEventForResourceBinding) and event.go.
Differs: docs/differences-from-upstream.md, "Writes".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.binding_cycle.conditions import (
    Report,
    ending,
    status_fields,
    success,
    success_text,
    target_manifests,
    targets_text,
)
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.status_writer import StatusWriter
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import DONE, BindingWriter, NotLeadingError, Outcome
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient
from karmada_scheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework.diagnosis import FitError, PluginError, SchedulingError
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.binding_points import BindingPoints, WaitFor
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.metrics.metrics import Metrics

log = logging.getLogger(__name__)

SUCCEEDED: Final = "ScheduleBindingSucceed"
FAILED: Final = "ScheduleBindingFailed"
WAITING: Final = "ScheduleBindingWaiting"
"""Ours: upstream has no Permit."""


class BindingCycle:
    """Writes decisions."""

    def __init__(
        self,
        client: KarmadaClient,
        recorder: EventRecorder,
        bindings: BindingCache,
        *,
        echoes: OwnWrites,
        seen: Callable[[str, str, Mapping[str, Any]], None],
        may_write: Callable[[], bool],
        pace: WriteLimiter,
        now: Callable[[], datetime],
        metrics: Metrics,
        went_back: Callable[[], None] = lambda: None,
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
            went_back: Called when a binding that is read again is older than it was known.
        """
        self._recorder = recorder
        self._may_write = may_write
        self._bindings = bindings
        self._stored: set[BindingKey] = set()
        """Bindings of which the cycle under way has stored a result."""
        self._echoes = echoes
        self._writes = BindingWriter(
            client,
            bindings,
            seen=seen,
            may_write=may_write,
            pace=pace,
            metrics=metrics,
            went_back=went_back,
        )
        self._statuses = StatusWriter(self._writes, echoes=echoes, now=now)

    def has_work(self, binding: Binding, decision: Decision) -> bool:
        """Tell whether a decision changes anything that people or controllers can see.

        A binding that was decided again and came out as it is costs nothing: no write, no Event.
        """
        if decision.error is not None or decision.failed_terms or binding.reschedule_triggered:
            return True
        return self.changes_result(binding, decision) or bool(
            status_fields(
                binding, success(binding, decision, self._statuses.time()), keep_time_if_settled=True
            )
        )

    def changes_result(self, binding: Binding, decision: Decision) -> bool:
        """Tell whether a decision changes where a binding is, or the placement that it is there for."""
        return self._result(binding, decision) != ({}, None)

    def passage(
        self, binding: Binding, decision: Decision, points: BindingPoints, wait: WaitFor
    ) -> BindingTransaction | None:
        """Return the way of a decision through the plugins, None if it passes them by."""
        if isinstance(decision.error, FitError) or decision.targets is None or decision.cycle is None:
            return None
        if not self.changes_result(binding, decision):
            return None
        return BindingTransaction(
            points,
            binding,
            decision.targets,
            decision.cycle,
            write=partial(self._write_result, binding, decision),
            wait=wait,
            ensure_leading=self._ensure_leading,
        )

    def _ensure_leading(self) -> None:
        if not self._may_write():
            raise NotLeadingError("not leading any more, nothing is written")

    async def bind(
        self,
        binding: Binding,
        decision: Decision,
        passage: BindingTransaction | None = None,
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
            if binding.key in self._stored:
                stored()
            return await self._report(binding, written, decision, patch_error)
        except AbandonedError as stale:
            log.log(logs.V3, "%s is not bound: %s", binding.key.display, stale)
            return Outcome(again=stale.again)
        except NotLeadingError as error:
            # Where this process leads after all, nobody else would write it.
            return Outcome(error, retry=True)
        finally:
            self._echoes.forget(binding.key)
            self._stored.discard(binding.key)

    async def _written_by_others(
        self, binding: Binding, decision: Decision, passage: BindingTransaction
    ) -> Binding:
        """Read what a plugin has written in a way of its own; PluginError if that is not what was decided."""
        fresh = await self._writes.fresh(binding.key)
        if set(fresh.spec.clusters) == set(decision.targets or ()) and (
            fresh.applied_placement_json == decision.applied_placement
        ):
            self._stored.add(binding.key)
            return fresh
        passage.give_back()
        raise PluginError(
            f"{passage.binder} says that it wrote spec.clusters and the annotation, and did not"
        )

    def is_observed(self, binding: Binding) -> bool:
        """Tell whether a binding that needs nothing has even been told so."""
        return self._statuses.is_observed(binding)

    async def observe(self, binding: Binding) -> Outcome:
        """Note that a binding needs nothing. Never raises."""
        return await self._statuses.observe(binding)

    def forget(self, key: BindingKey) -> None:
        """Remember nothing of a binding that is gone."""
        self._statuses.forget(key)

    def tell_waiting(self, binding: Binding, waits: Mapping[str, Result]) -> None:
        """Record that a binding waits at Permit: for which plugins, how long at most, and why."""
        plugins = [
            f"{plugin} (at most {result.timeout:g}s)" + (f": {result.message}" if result.message else "")
            for plugin, result in waits.items()
        ]
        text = f"waits at Permit for {'; '.join(plugins)}"
        log.info("%s %s", binding.key.display, text, extra={"binding": str(binding.key)})
        self._recorder.record(binding, NORMAL, WAITING, text)

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
                clusters = target_manifests(decision.targets, binding.spec.unknown_target_fields)
        return annotations, clusters

    async def _write_result(self, binding: Binding, decision: Decision) -> Binding:
        binding = self._rebased(binding)
        annotations, clusters = self._result(binding, decision)
        if not annotations and clusters is None:
            return binding
        self._echoes.expect(binding.key)
        answer = await self._writes.result(binding, annotations, clusters)
        self._stored.add(binding.key)
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
        if error.says_gone(binding.key.name):
            return DONE
        if error.may_pass or error.is_not_found or "NamespaceTerminating" in error.causes:
            log.warning("Failed to patch schedule to %s: %s", binding.key.display, error)
            return Outcome(error, retry=True, pause=error.retry_after or 0.0)
        log.error("Failed to patch schedule to %s: %s", binding.key.display, error)
        return None

    async def _reread(self, binding: Binding) -> Outcome:
        try:
            await self._writes.read(binding.key)
        except ApiError as error:
            return DONE if error.says_gone(binding.key.name) else Outcome(error, retry=True)
        return Outcome(again=True)

    async def _report(
        self, binding: Binding, written: Binding, decision: Decision, patch_error: ApiError | None
    ) -> Outcome:
        """Tell people and controllers how it went: Events, then the status. NotLeadingError if another may by now."""
        error, condition = ending(decision.error, patch_error)
        placed = patch_error is None and (error is None or decision.was_placed)
        name = decision.affinity_name if placed else None
        report = Report(condition, written.generation, self._statuses.time(), name, placed=placed)
        if not self._may_write():
            self._statuses.owe(written, report)
        self._ensure_leading()
        if error is None:
            self._recorder.record(binding, NORMAL, SUCCEEDED, success_text(binding, decision))
            if log.isEnabledFor(logs.V4):  # thousands of targets take a while to write down
                log.log(logs.V4, "%s scheduled to clusters %s", binding.key.display, targets_text(decision))
        elif not decision.failed_terms or isinstance(decision.error, FitError) or decision.error is None:
            log.error("Failed scheduling %s: %s", binding.key.display, error)
            self._recorder.record(binding, WARNING, FAILED, str(error))
        result = await self._statuses.tell(written, report)
        if result.error is not None:
            return replace(result, error=error or result.error)
        pause = getattr(error, "retry_after", 0.0) or decision.retry_after
        retry = outcome.retryable(error) or decision.may_work_next_time or pause > 0
        return Outcome(error, retry=retry, pause=pause)


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
