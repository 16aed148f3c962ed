"""Moves that a budget holds: as many are decided again as it lets through, in order, and after all other bindings."""

from __future__ import annotations

from typing import Any

import pytest

from tests import manifests
from tests.unit.plugins.test_placement_guard import Guarded, move_all, moved, to

COUNT = 30


def budgeted(*, scope: str = "namespace", **limits: Any) -> Guarded:
    budget = {"scope": scope, "window": "20s", **limits}
    return Guarded(lastHealthyCopy={"enabled": False}, budgets=[budget])


def held(harness: Guarded) -> float:
    return float(harness.metrics.plugins.guard_answers.labels("held")._value.get())


async def run(harness: Guarded) -> None:
    for _ in range(6):
        await harness.run()


@pytest.mark.parametrize("limit", [1, 3])
async def test_as_many_held_moves_are_decided_again_as_the_budget_lets_through_and_one_more(
    limit: int,
) -> None:
    harness = budgeted(bindings=limit)
    await move_all(harness, COUNT)
    await run(harness)
    assert (moved(harness), held(harness)) == (limit, COUNT - limit)
    for times in range(1, 5):
        harness.sleep(20.5)
        await run(harness)
        assert moved(harness) == limit * (times + 1)
        assert held(harness) == COUNT - limit + times


async def test_they_move_in_the_order_in_which_they_were_held_the_urgent_ones_first() -> None:
    harness = budgeted(bindings=1)
    for number in range(6):
        harness.on_m1(f"w{number}", schedulePriority={"priority": 7 if number in (3, 5) else 0})
    await run(harness)
    for number in range(6):
        await harness.edit(f"w{number}", placement=to("m2"))
    order: list[str] = []
    while len(order) < 6:
        order += [
            name
            for name in sorted(harness.server.stored)
            if harness.placed(name) == ["m2"] and name not in order
        ]
        harness.sleep(20.5)
        await run(harness)
    assert order == ["w0", "w3", "w5", "w1", "w2", "w4"]


async def test_a_large_move_is_not_overtaken_by_small_ones_that_wait_behind_it() -> None:
    harness = budgeted(replicas=4)
    large: dict[str, Any] = {"replicas": 9, "clusters": [{"name": "m1", "replicas": 9}]}
    names = ["w0", "large", "w1", "w2", "w3"]
    for name in names:
        harness.on_m1(name, **(large if name == "large" else {}))
        harness.report(name, m1=9 if name == "large" else 2)
    await run(harness)
    for name in names:
        harness.server.change(name, placement=to("m2"))
    await run(harness)
    seen = [moved(harness)]
    for _ in range(2):
        harness.sleep(20.5)
        await run(harness)
        seen.append(harness.placed("large") == ["m2"])
    assert seen[1:] == [True, True]


async def test_a_held_move_that_is_not_needed_any_more_does_not_delay_those_behind_it() -> None:
    harness = budgeted(bindings=1)
    await move_all(harness, 4)
    await harness.edit("w1", placement=to("m1"))
    harness.sleep(20.5)
    await run(harness)
    assert harness.placed("w2") == ["m2"]


async def test_a_held_binding_that_is_deleted_does_not_delay_those_behind_it() -> None:
    harness = budgeted(bindings=1)
    await move_all(harness, 4)
    manifest = harness.server.stored.pop("w1")
    manifest["metadata"]["resourceVersion"] = str(int(manifest["metadata"]["resourceVersion"]) + 1)
    harness.handlers.on_event("ResourceBinding", "DELETED", manifest)
    harness.sleep(20.5)
    await run(harness)
    assert harness.placed("w2") == ["m2"]


async def test_the_budgets_of_different_policies_do_not_wait_for_each_other() -> None:
    harness = budgeted(scope="policy", bindings=1)
    for number in range(4):
        harness.on_m1(f"w{number}")
        harness.manifest(f"w{number}")["metadata"]["labels"] = {manifests.POLICY_LABEL: f"p{number % 2}"}
    for number in range(4):
        await harness.edit(f"w{number}", placement=to("m2"))
    assert moved(harness) == 2
    harness.sleep(20.5)
    await run(harness)
    assert moved(harness) == 4


async def test_a_new_binding_is_placed_before_held_ones_are_decided_again() -> None:
    harness = budgeted(bindings=COUNT)
    await move_all(harness, COUNT)
    await run(harness)
    assert moved(harness) == COUNT
    for number in range(COUNT):
        harness.server.change(f"w{number}", placement=to("m1"))
        harness.report(f"w{number}", m2=2)
    await run(harness)
    assert moved(harness) == COUNT  # all are held
    harness.sleep(20.5)
    harness.put("new", placement=to("m2"))
    order: list[str] = []
    original = harness.server.event

    def event(manifest: Any) -> None:
        order.append(manifest["metadata"]["name"])
        original(manifest)

    harness.server.event = event
    await run(harness)
    assert order[0] == "new"
    assert harness.placed("new") == ["m2"]
    assert moved(harness) == 1  # all others have moved as well
