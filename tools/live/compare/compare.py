"""Comparison of the two schedulers' bindings: which differences count, and which are allowed.

Two differences are allowed because upstream decides by chance: the order of the clusters of a division that
is or was Aggregated, and the plugin under which a cluster that does not fit is counted (see state). Three
differences are deliberate (docs/differences-from-upstream.md, "Writes and the loop"): a binding that is decided
again and comes out as it is gets no new lastScheduledTime; and the observed generation is that after our own
patch, where upstream brings it up to date when its patch comes back, which for a binding that no policy claims
it does not notice; and a failure that needs no decision any more is reported as the success that the clusters are.
Everything else is a difference.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .fleet import Key
from .state import State

ORDER = "another order of the clusters of an Aggregated division"
SETTLED = "no new lastScheduledTime where nothing changed"
OBSERVED = "an unclaimed binding's observed generation up to date"
REORDERED = "no new lastScheduledTime where nothing but an order of upstream's own changed"
ON_THE_WAY = "no new lastScheduledTime where nothing changed at first and then nothing fitted"
OVER = "a failure that is over is reported as a success"
FIELDS = ("inputs", "clusters", "applied", "condition", "observed", "term")


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one binding that differs."""

    key: Key
    field: str
    upstream: object
    ours: object


@dataclass
class Comparison:
    """The state of a comparison over a run: bindings with a free order, and how often each allowed difference was met."""

    allowed_differences: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)
    aggregated: set[Key] = field(default_factory=set)

    def of(
        self,
        began: dt.datetime,
        before: tuple[Mapping[Key, State], Mapping[Key, State]],
        after: tuple[Mapping[Key, State], Mapping[Key, State]],
        *,
        in_phases: bool = False,
    ) -> list[Difference]:
        """Compare all bindings after a step.

        Args:
            began: When the step began.
            before: The states of upstream and ours at rest before the step.
            after: The same after it.
            in_phases: Whether the step enqueued bindings more than once: itself, and by what controllers did.
        """
        upstream, ours = after
        found = []
        for key in sorted({*upstream, *ours}):
            theirs, mine = upstream.get(key), ours.get(key)
            if theirs is None or mine is None:
                self.aggregated.discard(key)
                found.append(Difference(key, "existence", theirs is not None, mine is not None))
                continue
            if "Aggregated" in mine.inputs:
                self.aggregated.add(key)
            found += self._fields(key, theirs, mine)
            found += self._time(
                key, began, (before[0].get(key), theirs), (before[1].get(key), mine), in_phases=in_phases
            )
        for key in {*before[0], *before[1]} - {*upstream, *ours}:
            self.aggregated.discard(key)
        return found

    def _fields(self, key: Key, theirs: State, mine: State) -> list[Difference]:
        found = []
        for name in FIELDS:
            one, other = getattr(theirs, name), getattr(mine, name)
            if one == other:
                continue
            if name == "clusters" and key in self.aggregated and sorted(one) == sorted(other):
                self.allowed_differences[ORDER] += 1
                continue
            if name == "observed" and (one, other) == ("older", "current") and not mine.is_claimed:
                self.allowed_differences[OBSERVED] += 1
                continue
            if name == "condition" and _is_over(theirs, mine):
                self.allowed_differences[OVER] += 1
                continue
            if name == "inputs":
                one, other = json.loads(one), json.loads(other)
            found.append(Difference(key, name, one, other))
        return found

    def _time(
        self,
        key: Key,
        began: dt.datetime,
        upstream: tuple[State | None, State],
        ours: tuple[State | None, State],
        *,
        in_phases: bool,
    ) -> list[Difference]:
        """Compare whether lastScheduledTime moved; it has whole seconds, so a move within one second does not show."""
        theirs, mine = moved(began, *upstream), moved(began, *ours)
        if _is_over(upstream[1], ours[1]):
            return []
        self.moved[f"{theirs}/{mine}"] += 1
        if (upstream[1].time is None) != (ours[1].time is None):
            return [Difference(key, "lastScheduledTime", upstream[1].time, ours[1].time)]
        if None in (theirs, mine) or theirs == mine:
            return []
        if theirs and is_as_it_was(*ours) and as_it_was_upstream(*upstream):
            self.allowed_differences[SETTLED] += 1
            return []
        if theirs and is_as_it_was(*ours) and key in self.aggregated and _only_reordered(*upstream):
            self.allowed_differences[REORDERED] += 1
            return []
        if (
            theirs
            and in_phases
            and _is_always_decided(upstream[1])
            and not (upstream[1].fits or ours[1].fits)
        ):
            self.allowed_differences[ON_THE_WAY] += 1
            return []
        return [Difference(key, "lastScheduledTime moved", theirs, mine)]


def _is_over(upstream: State, ours: State) -> bool:
    """Return whether upstream has found nothing to decide about a binding, and keeps the failure of its last decision.

    It observes the generation of a binding with clusters by a success, or if nothing asks for a decision.
    """
    failed = upstream.condition is not None and not upstream.fits and upstream.observed == "current"
    return failed and bool(upstream.clusters) and ours.fits and ours.clusters == upstream.clusters


def moved(began: dt.datetime, before: State | None, after: State) -> bool | None:
    """Return whether lastScheduledTime moved in a step, None if the whole seconds of the times cannot show it."""
    old = before.time if before is not None else None
    if after.time != old:
        return True
    if old is not None and dt.datetime.fromisoformat(old) >= began.replace(microsecond=0):
        return None
    return False


def is_as_it_was(before: State | None, after: State) -> bool:
    """Return whether ours left a scheduled binding as it was: not one write, as the generation shows too."""
    return _same(before, after, "time") and after.fits


def as_it_was_upstream(before: State | None, after: State) -> bool:
    """Return whether upstream left everything but the time as it was, and had a type to decide again.

    The observed generation of a binding that no policy claimed may catch up on that occasion.
    """
    if before is None or not _is_always_decided(after):
        return False
    caught_up = (before.observed, after.observed) == ("older", "current") and not before.is_claimed
    return _same(replace(before, observed="current") if caught_up else before, after)


def _only_reordered(before: State | None, after: State) -> bool:
    """Return whether the clusters of a binding are the same ones as before, in another order."""
    return (
        before is not None
        and before.clusters != after.clusters
        and sorted(before.clusters) == sorted(after.clusters)
    )


def _same(before: State | None, after: State, *more: str) -> bool:
    """Compare all but the inputs: the generation stands for the spec, and a new claim is not compared."""
    names = ("clusters", "applied", "condition", "observed", "term", "generation", *more)
    return before is not None and all(getattr(before, name) == getattr(after, name) for name in names)


def _is_always_decided(state: State) -> bool:
    """Return whether upstream decides a binding at every event: Duplicated, by default too, or not a workload."""
    spec = json.loads(state.inputs)["spec"]
    strategy = (spec.get("placement") or {}).get("replicaScheduling") or {}
    workload = spec.get("replicas", 0) > 0 or "replicaRequirements" in spec or "components" in spec
    return strategy.get("replicaSchedulingType", "Duplicated") == "Duplicated" or not workload
