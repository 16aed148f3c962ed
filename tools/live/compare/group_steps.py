"""Changes of workload groups, for runs with the gate WorkloadAffinity.

The clusters that a member of a group may have depend on those of the others, and a change of a cluster enqueues bindings in
a random order upstream. So of all members one at a time is scheduled, the others are suspended; they
count as placed all the same. While controllers move bindings off a cluster, none is scheduled: it would depend
on which of them they have moved already.
"""

from __future__ import annotations

from typing import Final

from tools.controlplane import Object

from . import fleet
from .binding_steps import patch
from .fleet import Key
from .model import Draw, Model, Step, evictions_are_done, is_grouped, is_suspended
from .plane import Plane


def turn(model: Model) -> Step | None:
    """Suspend the member that is scheduled and resume another one.

    One that an attempt failed for keeps its turn: upstream tries it again, suspended or not.
    """
    now = on_turn(model)
    others = [key for key in _members(model) if key not in model.failed]
    if now is None or not others:
        return None
    key = model.choices.pick(others)

    def act(plane: Plane) -> None:
        suspend(plane, now)
        plane.patch(key, {"spec": {"suspension": {"scheduling": False}}})

    return Step("turn in a group", str(key), [str(one) for one in now], act, taken=evictions_are_done)


def regroup(model: Model) -> Step | None:
    """Give a member other groups; it may be placed, suspended or about to be scheduled."""

    def body(_: Object) -> Object:
        none = {"affinityGroup": None, "antiAffinityGroup": None}
        return {"spec": {"workloadAffinityGroups": {**none, **fleet.groups(model.choices)}}}

    return patch(model, "groups", _members(model), body)


def on_turn(model: Model) -> list[Key] | None:
    """Return the members that are scheduled, None if one of them cannot be suspended now."""
    now = [key for key in _members(model) if not is_suspended(model.bindings[key])]
    return None if model.failed & set(now) else now


def suspend(plane: Plane, keys: list[Key]) -> None:
    """Suspend members, and wait until the scheduler has taken that in."""
    for key in keys:
        plane.patch(key, {"spec": {"suspension": {"scheduling": True}}})
    if keys:
        plane.rest()


def _members(model: Model) -> list[Key]:
    return model.made(lambda _, item: is_grouped(item))


STEPS: Final[tuple[tuple[int, Draw], ...]] = ((14, turn), (4, regroup))
