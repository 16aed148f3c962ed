"""Bugs of StartedCapacity; see ``planted_bugs``."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from karmada_scheduler.framework import SUCCESS
from karmada_scheduler.structs import replace
from karmada_scheduler_plugins import _start_evidence, started_capacity
from karmada_scheduler_plugins._start_evidence import StartEvidence
from karmada_scheduler_plugins.started_capacity import StartedCapacity
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

STARTED_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, STARTED_BUGS)


@_bug("what runs moves with what waits", "keeps what runs", found_by=("1", "started"))
def _all_moves() -> Patches:
    propose = StartedCapacity.propose

    def all_of_it(self: Any, binding: Any) -> Any:
        found = propose(self, binding)
        return found and replace(found, kept={})

    yield StartedCapacity, "propose", all_of_it


@_bug("a move begins no cool-down", "no to and fro", found_by=("1", "started"))
def _no_cool_down() -> Patches:
    reserve = StartedCapacity.reserve

    def reserved(self: Any, context: Any) -> Any:
        result = reserve(self, context)
        self._moves.pop(context.binding.key, None)
        return result

    yield StartedCapacity, "reserve", reserved


@_bug("each trial comes after the same pause", "no to and fro", found_by=("1", "started"))
def _equal_pauses() -> Patches:
    yield _start_evidence, "LONGEST_PAUSE", 120.0


@_bug("evidence ends by no start and no change of nodes", "started", found_by=("1", "started"))
def _evidence_stays() -> Patches:
    yield StartEvidence, "started", lambda *_: False
    yield _start_evidence._Evidence, "pauses", lambda *_: 0.0
    yield started_capacity, "_has_more", lambda *_: False


@_bug("any move is better", "no to and fro", "keeps what runs", found_by=("4", "started"))
def _nothing_is_declined() -> Patches:
    yield StartedCapacity, "reconsider", lambda *_: SUCCESS
