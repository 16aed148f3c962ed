"""Records the decisions of attempts, where decisions are recorded."""

from __future__ import annotations

from collections.abc import Callable

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.result import TransactionResult, ending_of
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.records.record import UNCHANGED, WRITTEN
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.scheduler.attempt import Attempt
from karmada_scheduler.scheduler.request import Request


class Recording:
    """Passes decisions, and the ends of their attempts, to the recorder; does nothing without one."""

    def __init__(self, recorder: Recorder | None, *, clock: Callable[[], float]) -> None:
        """Use a recorder, None without records; ``clock`` is that of the attempts."""
        self._recorder = recorder
        self._clock = clock

    def take_event(self, key: BindingKey) -> str:
        """Return the event by which a binding was enqueued, and forget it."""
        return "" if self._recorder is None else self._recorder.take_event(key)

    def requeued(self, key: BindingKey, event: str) -> None:
        """Note why a binding is enqueued again."""
        if self._recorder is not None:
            self._recorder.requeued(key, event)

    def decided(self, attempt: Attempt, request: Request, decision: Decision) -> None:
        """Record a decision."""
        if self._recorder is not None:
            attempt.decided = self._recorder.decided(
                request.binding,
                decision,
                schedule_class=request.classification.type.value,
                event=request.event,
                seconds=self._clock() - attempt.started,
            )

    def ended(self, attempt: Attempt, result: TransactionResult | None) -> None:
        """Record how an attempt ended; ``result`` is None if nothing had to be written."""
        if self._recorder is None or attempt.decided is None:
            return
        if result is not None and result.error is not None:
            self._recorder.ended(attempt.decided, ending_of(result.error), str(result.error))
        else:
            is_written = result is not None and result.was_written
            self._recorder.ended(attempt.decided, WRITTEN if is_written else UNCHANGED)
