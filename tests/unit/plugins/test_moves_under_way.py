"""The ledger of moves whose outcome is not known, in the real loop on an API server that loses answers."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from karmada_scheduler.api_error import ApiError
from karmada_scheduler.framework import SUCCESS, BindContext, Result
from karmada_scheduler.testing import binding, make
from karmada_scheduler_plugins._moves_under_way import LOST_SECONDS, MovesUnderWay
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests.unit.fakes import CONFLICT
from tests.unit.framework.plugins import plugin
from tests.unit.framework.scheduler_harness import SchedulerHarness
from tests.unit.lossy_api_server import LossyApiServer
from tests.unit.plugins.test_placement_guard import Guarded, to

ONE = {"lastHealthyCopy": {"enabled": False}, "budgets": [{"scope": "profile", "bindings": 1}]}


class Lossy(Guarded):
    """A scheduler with a budget of one binding, and two bindings on m1; watch events arrive at once."""

    def __init__(self, *more: Any, args: dict[str, Any] = ONE) -> None:
        self.lossy = LossyApiServer()
        SchedulerHarness.__init__(
            self, *more, server=self.lossy, made=lambda handle: [make(PlacementGuard, args, handle=handle)]
        )
        self.watching = True
        self.server.event = self._event
        for name in ("w0", "w1"):
            self.on_m1(name)

    def _event(self, manifest: Any) -> None:
        if self.watching:
            self.handlers.on_event("ResourceBinding", "MODIFIED", manifest)

    async def begin(self) -> None:
        """Let w0 begin to move."""
        await self.edit("w0", placement=to("m2"))
        assert [each.name for each in self.lossy.sent] == ["w0"]

    async def may_move(self, name: str = "w1") -> bool:
        """Edit a binding and return whether it begins to move."""
        sent = len(self.lossy.sent)
        await self.edit(name, placement=to("m2", "m9"))
        return len(self.lossy.sent) > sent


async def test_a_move_counts_while_it_is_being_written() -> None:
    harness = Lossy()
    await harness.begin()
    assert not await harness.may_move()


async def test_a_move_that_the_api_server_refuses_counts_no_more() -> None:
    harness = Lossy()
    await harness.begin()
    (request,) = harness.lossy.sent
    harness.lossy.sent.remove(request)
    request.answer.set_exception(ApiError("denied by a webhook", code=403, reason="Forbidden"))
    await harness.run()
    assert await harness.may_move()


async def test_a_move_that_a_plugin_refuses_before_it_is_written_counts_no_more() -> None:
    async def pre_bind(context: Any) -> Result:
        is_first = context.binding.key.name == "w0"
        return Result.error("not now") if is_first else SUCCESS

    harness = Lossy(plugin("Refuses", pre_bind=pre_bind))
    await harness.edit("w0", placement=to("m2"))
    assert not harness.lossy.sent
    assert await harness.may_move()


async def test_a_move_whose_answer_is_lost_counts_until_the_binding_is_seen_without_it() -> None:
    harness = Lossy()
    await harness.begin()
    harness.lossy.lose(harness.lossy.sent[0])
    await harness.run()
    assert not await harness.may_move()
    await harness.edit("w0", placement=to("m1"))
    assert await harness.may_move()


async def test_a_move_whose_answer_is_lost_counts_as_stored_once_it_is_seen() -> None:
    harness = Lossy()
    await harness.begin()
    request = harness.lossy.sent[0]
    harness.lossy.process(request)
    harness.lossy.lose(request)
    await harness.run()
    assert not await harness.may_move()
    await harness.run(after=601)
    assert [each.name for each in harness.lossy.sent] == ["w1"]


async def test_a_move_whose_repetition_conflicts_counts_on() -> None:
    harness = Lossy()
    await harness.begin()
    harness.watching = False
    request = harness.lossy.sent[0]
    harness.lossy.process(request)
    harness.lossy.lose(request)
    await harness.run()
    await harness.run(after=1)
    (again,) = harness.lossy.sent
    harness.server.failures["get"] = [CONFLICT] * 3  # it cannot be read now
    harness.lossy.answer(again)
    await harness.run()
    harness.watching = True
    assert not await harness.may_move()


async def test_a_move_of_which_nothing_is_heard_counts_for_five_minutes() -> None:
    harness = Lossy()
    await harness.begin()
    harness.lossy.drop(harness.lossy.sent[0])
    await harness.run()
    harness.time_of_day += timedelta(
        seconds=LOST_SECONDS - 1
    )  # the clock of the queue stands, so nothing is repeated
    assert not await harness.may_move()
    harness.time_of_day += timedelta(seconds=1)
    assert await harness.may_move()


async def test_a_move_that_is_stored_does_not_count_again_when_its_record_is_removed() -> None:
    harness = Lossy()
    await harness.begin()
    harness.lossy.answer(harness.lossy.sent[0])
    await harness.run()
    harness.server.change("w0", annotations={"pyscheduler.karmada.io/last-move": None})
    assert await harness.may_move()


@pytest.mark.parametrize("longer", [[], [{"scope": "namespace", "bindings": 5, "window": "1h"}]])
async def test_a_move_that_is_being_written_counts_for_longer_than_the_window(
    longer: list[dict[str, Any]],
) -> None:
    budgets = [{"scope": "profile", "bindings": 1, "window": "1m"}, *longer]
    harness = Lossy(args={"lastHealthyCopy": {"enabled": False}, "budgets": budgets})
    await harness.begin()
    harness.time_of_day += timedelta(minutes=2)
    assert not await harness.may_move()
    assert "is held by the budget profile" in harness.condition("w1")[1]


async def test_a_move_of_which_nothing_is_heard_counts_for_five_minutes_after_the_clock_was_set_back() -> (
    None
):
    harness = Lossy()
    await harness.begin()
    harness.lossy.drop(harness.lossy.sent[0])
    await harness.run()
    harness.time_of_day -= timedelta(days=1)
    assert not await harness.may_move()
    harness.time_of_day += timedelta(seconds=LOST_SECONDS - 1)
    assert not await harness.may_move("w1")
    harness.time_of_day += timedelta(seconds=1)
    assert await harness.may_move()


def test_a_move_that_was_seen_before_its_answer_was_lost_counts_no_more() -> None:
    stored = binding("web").annotation("moves", "text").resource_version("5").build()
    handle: Any = SimpleNamespace(binding=lambda _: stored, now=lambda: 0.0)
    unused: Any = None
    moves = MovesUnderWay(handle, "moves", lambda _: None)
    context = BindContext(stored, (), unused, unused, annotations={"moves": "text"}, may_be_stored=True)
    moves.begin(context)
    moves.end_failed(context)
    assert moves.of(stored.key) is None


async def test_the_wait_for_a_move_under_way_begins_when_it_was_decided() -> None:
    harness = Lossy()
    await harness.begin()
    harness.sleep(100)
    assert not await harness.may_move()
    assert harness.queue.seconds_to_next() == 500.0
