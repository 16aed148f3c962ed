"""Edits of what asks for a decision."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.propagation import manager_of
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.manifest import format_time, second_after
from karmada_scheduler.api.names import nearest
from karmada_scheduler.framework.edits import Edit, Harm, Side


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for a binding that is not scheduled."""
    match context.blocker.code:
        case "NothingAsks":
            yield from reschedule(context)
        case "Suspended":
            yield _resume(context)
        case "OtherScheduler" | "NobodyDecides":
            yield from _scheduler_names(context)


def _resume(context: Context) -> Edit:
    """Return the end of the suspension, in the binding: policies of Karmada 1.18 have no such field."""
    path = ("spec", "suspension", "scheduling")
    manager, at = manager_of(context.objects.manifests[context.objects.ref], *path)
    by = f"{manager} has set it at {at}" if manager else "policies have no such field"
    return context.on(Side.TRIGGER, context.objects.ref).set(
        "resume", path, False, f"resume scheduling: spec.suspension.scheduling false in the binding ({by})"
    )


def _scheduler_names(context: Context) -> Iterator[Edit]:
    """Yield the names of schedulers that exist, the most similar first."""
    written, schedulers = context.binding.spec.responsible_scheduler, context.objects.schedulers
    known = {**schedulers.seen, **schedulers.by_name}
    names = {name for name, each in known.items() if each.decides} or {DEFAULT_SCHEDULER_NAME}
    names.discard(written)
    near = nearest(written, names)
    is_down = schedulers.of(written).status is SchedulerStatus.DOWN
    for number, name in enumerate(sorted(names, key=lambda each: (each != near, each))[:2]):
        yield context.on(Side.POLICY, context.objects.ref).set(
            "setSchedulerName", ("spec", "schedulerName"), name, f"schedulerName {name} instead of {written}",
            extra=1.0 + 0.1 * number,
            instead=f"A policy keeps its schedulerName: delete the policy, and create it with schedulerName {name}.",
            harm=Harm.WIDENS if is_down else Harm.NONE,
            caution=f"{written} decides when it runs again; {name} may decide by other rules." if is_down else "",
        )  # fmt: skip


def reschedule(context: Context) -> Iterator[Edit]:
    """Yield what a new WorkloadRebalancer writes; it has no effect before the first scheduling."""
    last = context.binding.status.last_scheduled_time
    if last is None or context.objects.as_new or context.binding.reschedule_triggered:
        return
    when = max(context.objects.now, second_after(last))
    yield context.on(Side.TRIGGER, context.objects.ref).set(
        "reschedule", ("spec", "rescheduleTriggeredAt"), format_time(when), "a WorkloadRebalancer"
    )
