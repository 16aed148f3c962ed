"""A new decision about a binding that would be placed now, and that nothing enqueues."""

from __future__ import annotations

from datetime import datetime

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.explain.model import Target
from karmada_scheduler.whynot.edits import Action, ObjectRef, Side, edit, patched
from karmada_scheduler.whynot.model import EditShown, ObjectPatch, ObjectShown, Remedy, Touched, Verified


def rescheduled(
    binding: Binding, manifest: Manifest, result: tuple[Target, ...], now: datetime
) -> Remedy | None:
    """Return what a new WorkloadRebalancer writes into a binding; None if it cannot be written.

    Any change of the spec enqueues the binding. The decision is the one that was made for ``result``.

    Args:
        binding: A binding without clusters.
        manifest: The same as it was read.
        result: What a decision now gives.
        now: The present.
    """
    ref = ObjectRef(*binding.key)
    change = edit(
        Side.TRIGGER, "reschedule", ref, Action.SET, ("spec", "rescheduleTriggeredAt"), value=format_time(now),
        text="a WorkloadRebalancer: nothing else enqueues it",
    )  # fmt: skip
    changed = patched([change], {ref: manifest})
    if changed is None:
        return None
    shown = ObjectShown(*ref)
    return Remedy(
        edits=(EditShown(change.side, change.op, shown, change.text),),
        apply=tuple(ObjectPatch(shown, (operation,)) for _, operation in changed.operations),
        result=result,
        moves=0,
        touches=Touched(1, checked=True),
        uses_cluster=False,
        verified=Verified(1, 1),
    )
