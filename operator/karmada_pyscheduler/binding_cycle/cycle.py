"""The binding cycle: from a decision to one patch of the spec, one of the status, and two Events.

``begin`` returns the transaction that writes the result (``transaction``, ``spec_writer``). After it has run,
``report`` records the Events and writes the status (``status_writer``).

Source: karmada v1.18.2 pkg/scheduler/scheduler.go (recordScheduleResultEventForResourceBinding) and event.go.
Differs: docs/differences-from-upstream.md, "Writes".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from karmada_pyscheduler.binding_cycle.served_components import ServedComponents
from karmada_pyscheduler.binding_cycle.spec_writer import SpecWriter
from karmada_pyscheduler.binding_cycle.status_writer import (
    StatusWriter,
    ending,
    success,
    success_text,
    targets_text,
)
from karmada_pyscheduler.binding_cycle.writer import BindingWriter, OwnWrites
from karmada_pyscheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import (
    DONE,
    Action,
    AttemptOutcome,
    AttemptStatus,
    NotLeadingError,
    TransactionResult,
)
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.core.condition import retryable
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.guard_additions import may_observe
from karmada_scheduler.core.report import Report, status_fields
from karmada_scheduler.framework.diagnosis import FitError, HeldError, KeptError, SchedulingError
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.structs import IdentityStruct, field, replace

log = logging.getLogger(__name__)

SUCCEEDED: Final = "ScheduleBindingSucceed"
FAILED: Final = "ScheduleBindingFailed"
KEPT: Final = "PlacementKept"
HELD: Final = "PlacementHeld"
CANCELLED: Final = "MoveCancelled"
WARNED: Final = "GuardWarning"
"""The reasons of the Events about Guard plugins: nothing fits, a decision is refused, eviction tasks are removed again, and
a decision is let through with a warning."""
RESYNCED: Final = "BindingResynced"
"""The reason of the Event for a binding that Karmada is to apply once more."""
WAITING: Final = "ScheduleBindingWaiting"
"""The reason of the Event for a binding that waits at Permit; upstream has no Permit."""


class BindingCycle(IdentityStruct):
    """Writes decisions, and reports them as Events and statuses.

    Attributes:
        writer: Sends the writes, and has the newest bindings.
        recorder: Records the Events.
        own_writes: Tells which writes the watch has delivered.
        now: Returns the time of day.
        needs_none: Returns whether a binding is ours, and needs no scheduling.
        components: Knows whether targets may have components.
    """

    writer: BindingWriter
    recorder: EventRecorder
    own_writes: OwnWrites
    now: Callable[[], datetime]
    needs_none: Callable[[Binding], bool]
    components: ServedComponents = field(default_factory=ServedComponents)

    def __post_init__(self) -> None:
        self._specs = SpecWriter(self.writer, own_writes=self.own_writes, components=self.components)
        self._statuses = StatusWriter(self.writer, own_writes=self.own_writes, now=self.now)

    def begin(self, binding: Binding, decision: Decision, framework: Framework) -> BindingTransaction | None:
        """Return the transaction that writes a decision; None if no user and no controller would see a change.

        A binding that is scheduled again with the same result costs neither a write nor an Event.

        Args:
            binding: As it was decided.
            decision: The decision.
            framework: The plugins of its profile.
        """
        changes_result = self._specs.changes(binding, decision)
        if not changes_result and not self._changes_status(binding, decision, framework):
            self._statuses.forget(binding.key)
            return None
        return BindingTransaction(
            binding,
            decision,
            plugins=framework.binding,
            writer=self._specs,
            changes_result=changes_result,
        )

    def _changes_status(self, binding: Binding, decision: Decision, framework: Framework) -> bool:
        if decision.error is not None or decision.failed_terms or binding.reschedule_triggered:
            return True
        report = success(binding, decision, self._statuses.time())
        if report.generation != binding.status.scheduler_observed_generation:
            report = replace(report, observes=may_observe(framework, binding))
        return bool(status_fields(binding, report, keep_unchanged_time=True))

    async def report(
        self, transaction: BindingTransaction, result: TransactionResult, framework: Framework
    ) -> AttemptOutcome:
        """Record the Events of a finished transaction, and write the status.

        It raises nothing, except that it can be cancelled.
        """
        outcome = await self._report(transaction, result, framework)
        if outcome.status is AttemptStatus.NO_FIT and outcome.action is Action.FORGET:
            return await self._observe_cleared(transaction.binding, outcome)
        return outcome

    async def _report(
        self, transaction: BindingTransaction, result: TransactionResult, framework: Framework
    ) -> AttemptOutcome:
        binding, decision = transaction.binding, transaction.decision
        try:
            match result.error:
                case None:
                    observes = may_observe(framework, result.stored)
                    return await self._report_end(binding, decision, result.stored, None, observes=observes)
                case AbandonedError() as error:
                    log.log(logs.V3, "%s is not bound: %s", binding.key.display, error)
                    return AttemptOutcome(Action.DECIDE_AGAIN) if error.reschedule else DONE
                case SchedulingError() as error:
                    return await self._report_end(binding, refused(decision, error), result.stored, None)
                case ApiError() as error:
                    outcome = await self._specs.after_refusal(binding, error)
                    if outcome is None:
                        return await self._report_end(binding, decision, result.stored, error)
                    if outcome.action is Action.RETRY and not error.is_conflict:
                        # The result may be stored nevertheless, and then need no decision any more.
                        report = self._new_report(binding, decision, None)
                        self._statuses.keep_pending(binding, report, decision, is_stored=False)
                    return outcome
                case error:
                    raise error
        except NotLeadingError as error:
            # If this process still is the leader, no other one writes the status.
            return AttemptOutcome(Action.RETRY, error)
        finally:
            self.own_writes.forget(binding.key)

    async def _observe_cleared(self, before: Binding, outcome: AttemptOutcome) -> AttemptOutcome:
        """After the clusters of a binding were cleared, record its new generation if nothing is left to schedule.

        The status of a success records it. Upstream's own write comes back as a change; for a binding without replicas,
        whose replicas are then correct, upstream finds nothing to schedule and records the generation.
        """
        after = self.writer.bindings.get(before.key)
        if after is None or after.generation == before.generation or not self.needs_none(after):
            return outcome
        observed = await self._statuses.observe(after)
        return replace(outcome, action=observed.action)

    def record_failed_terms(self, binding: Binding, decision: Decision) -> None:
        """Record an Event for each affinity term that failed before the last one."""
        for term in decision.failed_terms:
            text = f"failed to schedule {binding.key.display} with clusterAffiliates index({term.index}): {term.error}"
            log.error("%s", text)
            self.recorder.record(binding, WARNING, FAILED, text)

    def record_waiting(self, binding: Binding, waits: Mapping[str, Result]) -> None:
        """Record that a binding waits at Permit: for which plugins, how long at most, and why."""
        plugins = [
            f"{plugin} (at most {result.timeout:g}s)" + (f": {result.message}" if result.message else "")
            for plugin, result in waits.items()
        ]
        text = f"waits at Permit for {'; '.join(plugins)}"
        log.info("%s %s", binding.key.display, text, extra={"binding": str(binding.key)})
        self.recorder.record(binding, NORMAL, WAITING, text)

    def record_deleting(self, binding: Binding) -> None:
        """Record that a binding is not scheduled because it is being deleted."""
        kind = binding.key.kind
        text = f"skip schedule deleting {kind[0].lower()}{kind[1:]}: {binding.key}"
        self.recorder.record(binding, WARNING, FAILED, text)

    def is_observed(self, binding: Binding, *, observes: bool = True) -> bool:
        """Return whether the status reports that no scheduling is needed, as ``StatusWriter.is_observed``."""
        return self._statuses.is_observed(binding, observes=observes)

    async def observe(self, binding: Binding, *, term: str = "", observes: bool = True) -> AttemptOutcome:
        """Write into the status that no scheduling is needed, as ``StatusWriter.observe``."""
        return await self._statuses.observe(binding, term=term, observes=observes)

    async def resync(self, binding: Binding, clusters: Sequence[str], framework: Framework) -> AttemptOutcome:
        """Let Karmada apply a binding once more, and record that in an Event; it raises nothing, except if cancelled.

        Args:
            binding: The binding.
            clusters: The clusters that report another number of replicas than theirs, or have no Work.
            framework: The plugins of its profile.
        """
        try:
            stored = await self.writer.resync(binding)
        except (ApiError, NotLeadingError) as error:
            log.warning("Cannot let Karmada apply %s once more: %s", binding.key.display, error)
            return AttemptOutcome(Action.RETRY, error) if isinstance(error, NotLeadingError) else DONE
        shares = {target.name: target.replicas for target in stored.spec.clusters}
        reports = stored.status.reported_by_cluster()
        text = "Karmada is to apply it once more, as " + ", ".join(
            f"{name} reports {reports[name].total} of {shares[name]} replicas"
            if name in reports
            else f"{name} has no Work"
            for name in clusters
            if name in shares
        )
        log.info("%s: %s", binding.key.display, text, extra={"binding": str(binding.key)})
        self.recorder.record(stored, NORMAL, RESYNCED, text)
        return await self.observe(stored, observes=may_observe(framework, stored))

    def forget(self, key: BindingKey) -> None:
        """Drop the state of a binding that was deleted."""
        self._statuses.forget(key)
        self.own_writes.forget(key)

    async def _report_end(
        self,
        binding: Binding,
        decision: Decision,
        stored: Binding,
        patch_error: ApiError | None,
        *,
        observes: bool = True,
    ) -> AttemptOutcome:
        """Record the Events and write the status.

        Raises:
            NotLeadingError: Another process may be the leader, and may have scheduled the binding by now.
        """
        error, _ = ending(decision, patch_error)
        report = self._new_report(stored, decision, patch_error, observes=observes)
        written_decision = decision if patch_error is None else None
        if not self.writer.is_leading():
            self._statuses.keep_pending(stored, report, written_decision)
        self.writer.ensure_leading()
        if error is None and decision.is_refused:
            self.recorder.record(binding, NORMAL, KEPT, report.condition.message)
        elif error is None:
            self.recorder.record(binding, NORMAL, SUCCEEDED, success_text(binding, decision))
            if log.isEnabledFor(logs.V4):  # the text of thousands of targets takes a while
                log.log(logs.V4, "%s scheduled to clusters %s", binding.key.display, targets_text(decision))
        elif not decision.failed_terms or isinstance(decision.error, FitError) or decision.error is None:
            log.error("Failed scheduling %s: %s", binding.key.display, error)
            self.recorder.record(binding, WARNING, FAILED, str(error))
        self._record_guard(binding, decision, error)
        written = await self._statuses.report(stored, report, written_decision)
        if written.error is not None:
            return replace(written, error=error or written.error)
        retry_after = getattr(error, "retry_after", 0.0) or decision.retry_after
        retry = retryable(error) or decision.may_work_next_time or retry_after > 0
        return AttemptOutcome(Action.RETRY if retry else Action.FORGET, error, retry_after)

    def _new_report(
        self, stored: Binding, decision: Decision, patch_error: ApiError | None, *, observes: bool = True
    ) -> Report:
        """Return what the status of a binding has to report about a decision."""
        error, condition = ending(decision, patch_error)
        placed = patch_error is None and (error is None or decision.was_placed)
        name = decision.affinity_name if placed else None
        at = self._statuses.time()
        return Report(condition, stored.generation, at, name, placed=placed, observes=observes)

    def _record_guard(self, binding: Binding, decision: Decision, error: Exception | None) -> None:
        """Record that a Guard plugin keeps the placement, cancels a move, or warns."""
        guarded = decision.guarded
        if guarded is None:
            return
        if isinstance(error, KeptError):
            self.recorder.record(binding, WARNING, KEPT, str(error))
        elif isinstance(error, HeldError):
            self.recorder.record(binding, WARNING, HELD, str(error))
        elif error is None and guarded.cancelled:
            text = f"returns to {', '.join(sorted(guarded.cancelled))}, because no other cluster fits"
            self.recorder.record(binding, NORMAL, CANCELLED, text)
        elif error is None and guarded.warning:
            self.recorder.record(binding, WARNING, WARNED, guarded.warning)


def refused(decision: Decision, error: SchedulingError) -> Decision:
    """Return a decision that a plugin has refused: nothing of it is written except the error."""
    return replace(
        decision,
        targets=None,
        applied_placement=None,
        affinity_name=None,
        failed_terms=(),
        error=error,
        attempts=(),
    )
