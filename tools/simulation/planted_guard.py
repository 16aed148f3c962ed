"""Bugs in PlacementGuard, FailBack and what wakes them; see ``planted_bugs``."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework import SUCCESS, BindContext, GuardContext, ReconsiderContext
from karmada_scheduler.informer.reflector import Reflector
from karmada_scheduler.scheduler.reconsideration import Reconsiderations
from karmada_scheduler.structs import replace
from karmada_scheduler_plugins import fail_back, placement_guard
from karmada_scheduler_plugins._guard_budget import MoveBooks
from karmada_scheduler_plugins._moves_under_way import MovesUnderWay
from karmada_scheduler_plugins.fail_back import FailBack
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tools.simulation.generate import PROFILES
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

GUARD_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, GUARD_BUGS)


@_bug("moves under way do not count", "within budget", found_by=("1", "guard"))
def _moves_under_way_do_not_count() -> Patches:
    yield MovesUnderWay, "begin", lambda *_: None


@_bug("a move whose answer was lost does not count", "within budget", found_by=("8", "guard"))
def _lost_moves_do_not_count() -> Patches:
    original = MovesUnderWay.end_failed

    def end_failed(self: MovesUnderWay, context: BindContext) -> None:
        original(self, replace(context, may_be_stored=False))

    yield MovesUnderWay, "end_failed", end_failed


@_bug("moves are not recorded", "within budget", found_by=("1", "guard"))
def _moves_are_not_recorded() -> Patches:
    yield PlacementGuard, "_record", lambda *_: None


@_bug("a window is half as long", "within budget", found_by=("1", "guard"))
def _window_is_half() -> Patches:
    original = MoveBooks._recent

    def recent(self: MoveBooks, key: Any, text: str, moves: Any, now: float) -> Any:
        return [
            each for each in original(self, key, text, moves, now) if each.at > now - self._kept_seconds / 2
        ]

    yield MoveBooks, "_recent", recent


@_bug("atOnce counts stored tasks only", "within budget", found_by=("6", "guard"))
def _at_once_counts_stored_tasks_only() -> Patches:
    def leaves(self: MoveBooks, key: Any) -> bool:
        binding = self._handle.binding(key)
        return binding is not None and bool(self._own_tasks(binding))

    yield MoveBooks, "_leaves", leaves


@_bug("percent is ignored", "within budget", found_by=("1", "guard"))
def _percent_is_ignored() -> Patches:
    yield MoveBooks, "_most_replicas", lambda _self, budget, _scope: budget.replicas


@_bug("a new leader does not look for moves", "within budget", found_by=("3", "guard"))
def _budget_of_others_is_not_seen_after_a_start() -> Patches:
    def scan(self: MoveBooks, now: float) -> None:
        self._scanned = now

    yield MoveBooks, "_scan_if_due", scan


@_bug("what fits nowhere is emptied", "kept", found_by=("4", "guard"))
def _empties_what_fits_nowhere() -> Patches:
    yield PlacementGuard, "_nothing_fits", lambda *_: SUCCESS


@_bug("a graceful move has no tasks", "graceful", found_by=("6", "guard"))
def _leaves_without_tasks() -> Patches:
    yield PlacementGuard, "_tasks", lambda *_: []


@_bug("the last healthy copy is not seen", "last copy", found_by=("3", "guard"))
def _last_copy_is_not_seen() -> Patches:
    yield placement_guard, "leaves_last_healthy_copy", lambda _: False


@_bug("a held move begins to wait again", "converged", found_by=("5", "guard"))
def _held_begins_again() -> Patches:
    yield placement_guard, "held_in", lambda _: None


@_bug("a generation is observed before it is ready", "ready first", found_by=("6", "guard"))
def _observed_before_it_is_ready() -> Patches:
    yield PlacementGuard, "guard_observation", lambda *_: SUCCESS


@_bug("the wait goes on after a miss", "no early return", found_by=("1", "fail_back"))
def _wait_goes_on_after_a_miss() -> Patches:
    original = FailBack.reconsider

    def reconsider(self: FailBack, context: ReconsiderContext) -> Any:
        clock = self._clocks.get(context.binding.key)
        result = original(self, context)
        if clock is not None and context.binding.key not in self._clocks:
            self._clocks[context.binding.key] = clock
        return result

    yield FailBack, "reconsider", reconsider


@_bug(
    "a taint that is tolerated for a while is no miss",
    "no early return",
    "no flapping",
    found_by=("1", "fail_back"),
)
def _short_toleration_is_no_miss() -> Patches:
    yield fail_back, "evicted_again", lambda *_: ""


@_bug("an exclusive move is graceful", "graceful", found_by=("1", "fail_back"))
def _exclusive_move_is_graceful() -> Patches:
    yield placement_guard, "_is_exclusive", lambda _: False


@_bug("the wait is not doubled", "no flapping", found_by=("1", "fail_back"))
def _wait_is_not_doubled() -> Patches:
    yield FailBack, "_number", lambda *_: 0


@_bug("a return has no wait", "no early return", found_by=("1", "fail_back"))
def _returns_without_a_wait() -> Patches:
    yield FailBack, "_wait_of", lambda *_: 0


@_bug("any number returns at once", "returns at once", found_by=("1", "fail_back"))
def _any_number_returns_at_once() -> Patches:
    yield FailBack, "_count_under_way", lambda *_: 0


@_bug("nothing is reconsidered", "converged", found_by=("1", "fail_back"))
def _nothing_is_reconsidered_at_intervals() -> Patches:
    async def look(_: Reconsiderations) -> None:
        return

    yield Reconsiderations, "look", look


@_bug("taints wake nobody", "converged", "no lost key", found_by=("1", "churn"), profiles=PROFILES)
def _taints_wake_nobody() -> Patches:
    def on_cluster(old: Any, new: Any) -> Any:
        if old is None or new is None:
            return ()
        return (old, new) if old.labels != new.labels or old.uid != new.uid else ()

    yield requeue_rules, "on_cluster", on_cluster


@_bug("deletions are known already", "cached", "converged", found_by=("3", "churn"))
def _deletions_are_known_already() -> Patches:
    original = Reflector._is_known

    def is_known(self: Reflector, event: Any) -> bool:
        return event["type"] == "DELETED" or original(self, event)

    yield Reflector, "_is_known", is_known


@_bug(
    "the first event of a connection is lost",
    "cached",
    "converged",
    found_by=("3", "churn"),
    profiles=("calm", "churn"),
)
def _first_event_of_a_connection_is_lost() -> Patches:
    original = Reflector._connection

    async def connection(self: Reflector, version: str) -> Any:
        is_first = True
        async with aclosing(original(self, version)) as events:
            async for event in events:
                if not is_first:
                    yield event
                is_first = False

    yield Reflector, "_connection", connection


@_bug("earlier moves of a binding are forgotten", "within budget", found_by=("2", "guard"))
def _earlier_moves_are_forgotten() -> Patches:
    original = PlacementGuard._record

    def record(self: PlacementGuard, context: GuardContext, move: Any, now: float) -> str:
        with patch.object(MoveBooks, "recent", lambda *_: ()):
            return original(self, context, move, now)

    yield PlacementGuard, "_record", record
