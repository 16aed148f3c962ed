"""How a transaction and an attempt end, and the error of a write without leadership."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from types import NoneType
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.framework.diagnosis import (
    FitError,
    HeldError,
    KeptError,
    OverBudgetError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError
from karmada_scheduler.structs import Struct


class NotLeadingError(Exception):
    """A write was not sent because another process may be the leader."""


class TransactionResult(Struct, frozen=True):
    """How a transaction ended.

    Attributes:
        stored: The newest known version of the binding: as written, or as it was if nothing was written.
        was_written: Whether the transaction changed the stored binding, with its own patch or through a plugin.
        error: The error that ended the transaction; None if the decision is stored, also if it was before.
    """

    stored: Binding
    was_written: bool = False
    error: Exception | None = None


class Action(Enum):
    """What the queue does with a key when its attempt has ended."""

    FORGET = "forget"
    """Nothing; its backoff is reset."""
    CHECK_LATER = "check later"
    """As FORGET, and the key is added after a delay: its binding cannot be scheduled yet."""
    DECIDE_AGAIN = "decide again"
    """The binding changed after the decision: the key is added at once, after further conflicts with a backoff."""
    RETRY = "retry"
    """The key is added after its backoff, or after the delay that was requested."""


class AttemptStatus(Enum):
    """What an attempt ended with; a value is the class of the errors, and the first that fits an error counts."""

    SCHEDULED = NoneType
    KEPT = KeptError
    NO_FIT = FitError
    HELD = HeldError
    UNSCHEDULABLE = UnschedulableError
    OVER_BUDGET = OverBudgetError
    PLUGIN_FAILED = PluginError
    FAILED = Exception


class AttemptOutcome(Struct, frozen=True):
    """How an attempt to schedule a binding ended; ``scheduler.failure_handler`` applies it to the queue.

    Attributes:
        action: What the queue does with the key.
        error: The error that the status reports, or that kept the status from being written; None for a success.
        delay: Seconds, for CHECK_LATER and RETRY: what a plugin or the API server requested. A RETRY with 0 gets its
            backoff.
    """

    action: Action = Action.FORGET
    error: Exception | None = None
    delay: float = 0.0

    @property
    def status(self) -> AttemptStatus:
        """What it ended with."""
        return next(status for status in AttemptStatus if isinstance(self.error, status.value))

    @property
    def line(self) -> Hashable | None:
        """The line in which a decision that is held waits; None without one."""
        return self.error.line if isinstance(self.error, HeldError) else None


DONE: Final = AttemptOutcome()


def ending_of(error: Exception) -> str:
    """Return the name of the way in which a transaction failed, for records."""
    match error:
        case AbandonedError():
            return "abandoned"
        case NotLeadingError():
            return "not leading"
        case SchedulingError():
            return "refused"
        case ApiError():
            return "conflict" if error.is_conflict else "not written"
        case _:
            return "failed"
