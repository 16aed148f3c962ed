"""Edits of what asks for a decision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta

from karmada_scheduler.whynot.edits import Action, Edit, Side
from karmada_scheduler.whynot.vocabulary.context import Context

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for a binding that is not scheduled."""
    match context.blocker.code:
        case "NothingAsks":
            yield from reschedule(context)
        case "Suspended":
            yield context.make(
                Side.TRIGGER, "resume", context.objects.ref, Action.SET, ("spec", "suspension", "scheduling"),
                value=False, text="resume scheduling (suspension.scheduling: false)",
            )  # fmt: skip
        case "OtherScheduler":
            yield context.make(
                Side.POLICY, "setSchedulerName", context.objects.ref, Action.SET, ("spec", "schedulerName"),
                value="default-scheduler", text="schedulerName default-scheduler (needs a new policy)", extra=1.0,
            )  # fmt: skip


def reschedule(context: Context) -> Iterator[Edit]:
    """Yield what a new WorkloadRebalancer writes; it has no effect before the first scheduling."""
    last = context.binding.status.last_scheduled_time
    if last is None or context.objects.as_new or context.binding.reschedule_triggered:
        return
    when = max(context.objects.now, last + timedelta(seconds=1)).astimezone(UTC)
    yield context.make(
        Side.TRIGGER,
        "reschedule",
        context.objects.ref,
        Action.SET,
        ("spec", "rescheduleTriggeredAt"),
        value=when.strftime(_TIME),
        text="a WorkloadRebalancer",
    )
