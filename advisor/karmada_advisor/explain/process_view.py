"""What a running scheduler says about a binding: its last record, and where it is in the queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from karmada_advisor.explain.model import RecordedDecision, Target
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.core.condition import condition_for


@dataclass(frozen=True, slots=True)
class ProcessView:
    """The answer of a process that records decisions.

    Attributes:
        record: The last record of the binding, None without one.
        queue_state: ``active``, ``backoff``, ``unschedulable``, ``processing``, ``gated``, ``waiting``, or "" if it is in
            no queue.
        due_in: Seconds until the next decision, None if none is due by timer.
        before: How many bindings come first if it is active; None if that is not known.
        waited: For how many seconds it has been active; None if it is not.
        priority: Its priority; None in a queue without.
        proposal: The last refused proposal of a Reconsider plugin: ``plugin``, ``reason``, and ``dueInSeconds`` until it
            is accepted if nothing changes; None without one.
        process: The name of the process.
        problem: Why there is no record; "" if there is one.
    """

    record: Mapping[str, Any] | None = None
    queue_state: str = ""
    due_in: float | None = None
    before: int | None = None
    waited: float | None = None
    priority: int | None = None
    proposal: Mapping[str, Any] | None = None
    process: str = ""
    problem: str = ""


def recorded_decision(
    view: ProcessView,
    placement: Mapping[str, int],
    failure: BaseException | None,
    now: datetime | None,
    *,
    compares: bool = True,
) -> RecordedDecision | None:
    """Return the record as an explanation shows it; None without one.

    Args:
        view: The answer of the process.
        placement: The result of deciding again, to compare with.
        failure: Its error, None for a success.
        now: For the age.
        compares: Whether the result is compared.
    """
    record = view.record
    if record is None:
        return None
    targets = record.get("targets")
    trigger = record.get("trigger") or {}
    error = record.get("error") or {}
    at = str(record.get("at") or "")
    found = (
        None if targets is None else tuple(Target(str(name), int(count)) for name, count in targets.items())
    )
    return RecordedDecision(
        at=at,
        age_seconds=_age(at, now),
        process=str(record.get("process") or view.process),
        schedule_class=str(trigger.get("class") or ""),
        event=str(trigger.get("event") or ""),
        generation=int(record.get("generation") or 0),
        stages=_stages(record),
        placement=found,
        error=str(error.get("message") or ""),
        ending=str(record.get("ending") or ""),
        agrees=None
        if not compares
        else _errors_agree(error, failure)
        if error or failure is not None
        else targets is not None and _agrees(targets, record.get("targetCount"), placement),
    )


def _agrees(targets: Mapping[str, int], count: int | None, placement: Mapping[str, int]) -> bool:
    """Return whether a placement is the recorded one; ``count`` is the number of targets if the record is cut."""
    if count is None:
        return dict(targets) == dict(placement)
    return count == len(placement) and targets.items() <= placement.items()


def _errors_agree(recorded: Mapping[str, Any], failure: BaseException | None) -> bool:
    """Return whether two decisions have failed for the same reason; the recorded message may be cut."""
    expected = condition_for(failure)
    same = recorded.get("reason") == expected.reason
    return bool(recorded) and same and expected.message.startswith(str(recorded.get("message") or ""))


def _stages(record: Mapping[str, Any]) -> dict[str, int]:
    attempts = record.get("attempts") or ()
    stages = attempts[-1].get("stages") if attempts else None
    return {str(name): int(count) for name, count in (stages or {}).items()}


def _age(at: str, now: datetime | None) -> float | None:
    if now is None:
        return None
    try:
        return max(0.0, (now - parse_time(str(at))).total_seconds())
    except ValueError:
        return None
