"""Writes of bindings, and what their manifests say about placements and moves; for ``guard_laws``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from karmada_scheduler.api.own_annotations import LAST_MOVE
from tools.simulation.environment import START

Object = Mapping[str, Any]
Id = tuple[str, str, str]
"""Kind, namespace and name."""

LATE_SECONDS: Final = 31.0
"""How late a watch is at most."""


@dataclass(frozen=True, slots=True)
class Written:
    """A write of a binding.

    Attributes:
        at: When it was accepted, in seconds of virtual time.
        id: The binding.
        before, after: Its manifest; None if there is none.
        sent: When a scheduler sent it; None if somebody else wrote it.
        identity: The scheduler.
    """

    at: float
    id: Id
    before: Object | None
    after: Object | None
    sent: float | None = None
    identity: str = ""


def healthy_in(found: Object) -> frozenset[str]:
    """Return the clusters that report the workload healthy."""
    items: Iterable[Object] = (found.get("status") or {}).get("aggregatedStatus") or ()
    return frozenset(each["clusterName"] for each in items if each.get("health") == "Healthy")


def ready_in(found: Object) -> dict[str, int]:
    """Return the ready replicas by healthy cluster."""
    items: Iterable[Object] = (found.get("status") or {}).get("aggregatedStatus") or ()
    return {
        each["clusterName"]: (each.get("status") or {}).get("readyReplicas", 0)
        for each in items
        if each.get("health") == "Healthy"
    }


def terms_in(found: Object) -> list[str]:
    """Return the names of the affinity terms."""
    affinities = found["spec"]["placement"].get("clusterAffinities") or ()
    return [each["affinityName"] for each in affinities]


def is_exclusive(found: Object) -> bool:
    """Return whether two copies must not run at the same time."""
    cluster = (found["spec"].get("failover") or {}).get("cluster") or {}
    return cluster.get("purgeMode") == "Directly"


def tolerates_for_ever(found: Object) -> bool:
    """Return whether a taint never closes a cluster for a binding."""
    return any(
        "tolerationSeconds" not in each for each in found["spec"]["placement"].get("clusterTolerations") or ()
    )


def moved_by(
    before: Object, old: Mapping[str, int], new: Mapping[str, int], deleted: AbstractSet[str]
) -> tuple[int, bool]:
    """Return how many replicas a write certainly moves off clusters that were never deleted, and whether that is a move.

    A scheduler may not know yet that a cluster was deleted. What it takes for a scale-down is no move then.
    """
    leaving = old.keys() - new.keys() - deleted
    scheduling = before["spec"]["placement"].get("replicaScheduling") or {}
    if not before["spec"].get("replicas"):
        return 0, bool(leaving)
    if scheduling.get("replicaSchedulingType") == "Duplicated":
        return sum(old[name] for name in leaving), bool(leaving)
    there = {name: count for name, count in old.items() if name not in deleted}
    moved = min(_moved(there, new), _moved(old, new))
    return moved, moved > 0


def _moved(old: Mapping[str, int], new: Mapping[str, int]) -> int:
    """Return the replicas that go to other clusters; those that only end are none."""
    less = sum(max(0, count - new.get(name, 0)) for name, count in old.items())
    return max(0, less - max(0, sum(old.values()) - sum(new.values())))


def is_recorded(write: Written) -> bool:
    """Return whether a move was written with a record of its own: the scheduler counts it."""
    texts = [
        ((each or {}).get("metadata", {}).get("annotations") or {}).get(LAST_MOVE)
        for each in (write.before, write.after)
    ]
    return texts[1] is not None and texts[0] != texts[1]


def decided_at(write: Written, annotation: str, time_in: Callable[[Any], str]) -> float:
    """Return when a move was decided: as it says itself, if it was written with it and can be true."""
    assert write.before is not None
    assert write.after is not None
    assert write.sent is not None
    texts = [
        (each["metadata"].get("annotations") or {}).get(annotation) for each in (write.before, write.after)
    ]
    if texts[1] is None or texts[0] == texts[1]:
        return write.sent
    decided = seconds_of(time_in(json.loads(texts[1])))
    return decided if write.sent - 2 * LATE_SECONDS <= decided <= write.sent + 0.001 else write.sent


def seconds_of(text: str) -> float:
    """Return a time of day in seconds of virtual time."""
    return datetime.fromisoformat(text).timestamp() - START.timestamp()
