"""How a transaction and an attempt end, and the error of a write without leadership."""

from __future__ import annotations

from enum import Enum
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.framework.diagnosis import SchedulingError
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


class AttemptOutcome(Struct, frozen=True):
    """How an attempt to schedule a binding ended.

    Attributes:
        action: What the queue does with the key.
        error: The error that the status reports, or that kept the status from being written; None for a success.
        delay: Seconds, for CHECK_LATER and RETRY: what a plugin or the API server requested. A RETRY with 0 gets its
            backoff.
    """

    action: Action = Action.FORGET
    error: Exception | None = None
    delay: float = 0.0


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
