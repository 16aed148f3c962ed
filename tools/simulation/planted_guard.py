"""Bugs in PlacementGuard, FailBack and what wakes them; see ``planted_bugs``."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Any, Final

from karmada_pyscheduler.informer.reflector import Reflector
from karmada_pyscheduler.scheduler.reconsideration import Reconsiderations
from karmada_pyscheduler.scheduling_queue.held_keys import HeldKeys
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework import SUCCESS, BindContext, GuardContext, ReconsiderContext
from karmada_scheduler.structs import replace
from karmada_scheduler_plugins import fail_back, placement_guard
from karmada_scheduler_plugins._cluster_outages import ClusterOutages, is_ready
from karmada_scheduler_plugins._guard_budget import MoveBooks
from karmada_scheduler_plugins._moves_under_way import MovesUnderWay
from karmada_scheduler_plugins._returns_under_way import ReturnsUnderWay
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
    yield placement_guard, "_record", lambda *_: None


@_bug("a window is half as long", "within budget", found_by=("2", "guard"))
def _window_is_half() -> Patches:
    original = MoveBooks._recent

    def recent(self: MoveBooks, key: Any, text: str, moves: Any, now: float) -> Any:
        return [
            each for each in original(self, key, text, moves, now) if each.at > now - self._kept_seconds / 2
        ]

    yield MoveBooks, "_recent", recent


@_bug("atOnce counts stored tasks only", "within budget", found_by=("6", "guard"))
def _at_once_counts_stored_tasks_only() -> Patches:
    original = MovesUnderWay.begin

    def begin(self: MovesUnderWay, context: BindContext) -> None:
        original(self, replace(context, eviction_tasks=()))

    yield MovesUnderWay, "begin", begin


@_bug("percent is ignored", "within budget", found_by=("1", "guard"))
def _percent_is_ignored() -> Patches:
    yield MoveBooks, "_most_replicas", lambda _self, budget, _scope: budget.replicas


@_bug("a new leader does not look for moves", "within budget", found_by=("17", "guard"))
def _budget_of_others_is_not_seen_after_a_start() -> Patches:
    original = MoveBooks._update

    def update(self: MoveBooks, key: Any, binding: Any) -> None:
        if self._is_asked:
            original(self, key, binding)

    yield MoveBooks, "_update", update


@_bug("what fits nowhere is emptied", "kept", found_by=("4", "guard"))
def _empties_what_fits_nowhere() -> Patches:
    yield PlacementGuard, "_nothing_fits", lambda *_: SUCCESS


@_bug("a graceful move has no tasks", "graceful", found_by=("6", "guard"))
def _leaves_without_tasks() -> Patches:
    yield PlacementGuard, "_tasks", lambda *_: []


@_bug("the last healthy copy is not seen", "last copy", found_by=("3", "guard"))
def _last_copy_is_not_seen() -> Patches:
    yield placement_guard, "leaves_last_healthy_copy", lambda *_: False


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
    yield ReturnsUnderWay, "count", lambda *_, **__: 0


@_bug("nothing is reconsidered", "converged", found_by=("1", "fail_back"))
def _nothing_is_reconsidered_at_intervals() -> Patches:
    async def look(_: Reconsiderations) -> None:
        return

    yield Reconsiderations, "look", look


@_bug("taints wake nobody", "converged", "no lost key", found_by=("2", "churn"), profiles=PROFILES)
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
    original = placement_guard._record
    yield placement_guard, "_record", lambda context, move, _, now: original(context, move, (), now)


@_bug("a cluster that goes exempts the whole decision", "within budget", found_by=("11", "guard"))
def _a_cluster_that_goes_exempts_all() -> Patches:
    original = PlacementGuard._is_exempt

    def is_exempt(self: PlacementGuard, context: GuardContext, healthy: frozenset[str]) -> bool:
        return bool(context.gone) or original(self, context, healthy)

    yield PlacementGuard, "_is_exempt", is_exempt


@_bug("a cluster that is not Ready for a moment is lost", "within budget", found_by=("3", "guard"))
def _not_ready_for_a_moment_is_lost() -> Patches:
    yield ClusterOutages, "is_lost", lambda _, name, snapshot: not is_ready(snapshot.get(name))


@_bug("nothing is exempt", "exempt", found_by=("10", "guard"))
def _nothing_is_exempt() -> Patches:
    yield PlacementGuard, "_is_exempt", lambda *_: False


@_bug("a binding in deletion has tasks that nobody stamps", "graceful", found_by=("28", "guard"))
def _bindings_in_deletion_count() -> Patches:
    original = MoveBooks._update

    def update(self: MoveBooks, key: Any, binding: Binding | None) -> None:
        original(self, key, None if binding is None else replace(binding, deleting=False))

    yield MoveBooks, "_update", update


@_bug("a line stops after its first key", "converged", found_by=("1", "guard"))
def _line_stops() -> Patches:
    def release(self: HeldKeys[Any], key: Any) -> None:
        self._held.pop(key, None)

    yield HeldKeys, "release", release
