"""How a transaction and a binding cycle end, and the error of a write without leadership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.framework.runtime.waiting_bindings import AbandonedError


class NotLeadingError(Exception):
    """A write was not sent because another process may be the leader."""


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """How a transaction ended.

    Attributes:
        stored: The newest known version of the binding: as written, or as it was if nothing was written.
        was_written: Whether the transaction changed the stored binding, with its own patch or through a plugin.
        error: The error that ended the transaction; None if the decision is stored, also if it was before.
    """

    stored: Binding
    was_written: bool = False
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class CycleResult:
    """How a binding cycle ended.

    Attributes:
        error: The error that the status reports, or that kept the status from being written; None for a success.
        retry: Whether the binding has to be scheduled again after a pause.
        is_outdated: Whether the binding changed after the decision, so that another decision is needed.
        retry_after: The pause in seconds that the API server or a plugin requested; 0 leaves it to the queue.
    """

    error: Exception | None = None
    retry: bool = False
    is_outdated: bool = False
    retry_after: float = 0.0


DONE: Final = CycleResult()


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
