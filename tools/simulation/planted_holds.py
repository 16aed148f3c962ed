"""Bugs in StrictPriority; see ``planted_bugs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler_plugins import _held_capacity as held_capacity
from karmada_scheduler_plugins import strict_priority
from karmada_scheduler_plugins._capacity_ledger import CapacityLedger
from karmada_scheduler_plugins._held_capacity import EqualReplicas, Rank, Request, Shared, Waiting, fit, take
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

HOLD_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, HOLD_BUGS)


@_bug("holds are forgotten", "no inversion", found_by=("1", "contended"))
def _holds_are_forgotten() -> Patches:
    yield Shared, "less", lambda *_: 0


@_bug("the rank is that of arrival", "no inversion", "honest", found_by=("1", "contended"))
def _rank_by_arrival() -> Patches:

    def rank_of(binding: Binding) -> Rank:
        return (0.0, *held_capacity.rank_of(binding)[1:])

    yield strict_priority, "rank_of", rank_of


@_bug("a hold moves to where there is most capacity", "no inversion", found_by=("3", "contended"))
def _hold_moves() -> Patches:
    def counts(self: Waiting, name: str) -> bool:
        most = max(self.found, key=lambda each: self.found[each], default=name)
        return self.chosen is None or name == most

    yield Waiting, "counts", counts


@_bug("less is rounded down", "no inversion", found_by=("1", "contended"))
def _less_is_rounded_down() -> Patches:
    def less(
        self: Shared, holds: Sequence[tuple[Waiting, int]], left: Mapping[str, int], request: Request
    ) -> int:
        del left
        free = dict(self.seen)
        for part in self.unseen:
            take(free, part)
        taken: dict[str, int] = {}
        for each, count in holds:
            take(taken, EqualReplicas(each.request, count))
        held = max((-taken.get(name, 0) // amount for name, amount in request), default=0)
        return fit(self.seen, request) - fit(free, request) + held

    yield Shared, "_less", less


@_bug("nobody is enqueued with capacity", "progress", found_by=("1", "contended"))
def _nobody_is_enqueued() -> Patches:
    yield CapacityLedger, "_wake_fitting", lambda *_: None


@_bug("a hold has no end", "bounded hold", found_by=("16", "contended"))
def _hold_has_no_end() -> Patches:
    yield CapacityLedger, "_end_of", lambda *_: float("inf")
