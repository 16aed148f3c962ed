"""The least amount of an edit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karmada_advisor.whynot.quantities import amounts_of, least
from karmada_scheduler.framework.edits import Edit, ObjectRef, PatchAction, Side

REF = ObjectRef("ResourceBinding", "shop", "web")


def replicas(amount: int) -> Edit:
    return Edit(Side.WORKLOAD, "setReplicas", REF, PatchAction.SET, ("spec", "replicas"), value=amount)


def made(base: int, amount: int) -> Edit:
    [found] = amounts_of(replicas, base=base, amounts=[amount])
    return found


def reaching(holds: Callable[[int], bool]) -> Callable[[Edit], bool]:
    return lambda change: holds(change.value)


def test_amounts_that_are_the_base_are_left_out() -> None:
    assert [each.value for each in amounts_of(replicas, base=3, amounts=[3, 4, 4, 8])] == [4, 8]


@pytest.mark.parametrize(("base", "start", "boundary"), [(24, 48, 33), (24, 25, 25), (0, 1000, 1000)])
def test_the_least_larger_amount_is_found(base: int, start: int, boundary: int) -> None:
    found = least(made(base, start), reaching(lambda amount: amount >= boundary), lambda: True)

    assert found.minimal is not None
    assert (found.value, found.minimal.at, found.minimal.fails_at) == (boundary, boundary, boundary - 1)
    assert found.minimal.monotone == "sampled"


def test_the_largest_smaller_amount_is_found() -> None:
    found = least(made(160, 1), reaching(lambda amount: amount <= 155), lambda: True)

    assert found.minimal is not None
    assert (found.minimal.at, found.minimal.fails_at) == (155, 156)


def test_a_smaller_amount_that_a_sample_finds_is_the_answer() -> None:
    # 20 to 59 reach it, and so do 90 and more; the bisection alone ends at 90.
    found = least(made(0, 100), reaching(lambda amount: 20 <= amount < 60 or amount >= 90), lambda: True)

    assert found.minimal is not None
    assert (found.minimal.at, found.minimal.fails_at) == (20, 19)


@pytest.mark.parametrize(
    ("has_time", "monotone", "expected"), [(True, "sampled", 10), (False, "unchecked", 8)]
)
def test_smaller_amounts_are_sampled_if_there_is_time(has_time: bool, monotone: str, expected: int) -> None:
    tried: list[int] = []

    def holds(amount: int) -> bool:
        tried.append(amount)
        return amount >= 14

    found = least(made(0, 1000), reaching(holds), lambda: has_time)

    assert found.minimal is not None
    assert (found.minimal.at, found.minimal.monotone) == (14, monotone)
    assert len(tried) == expected


def test_an_amount_near_the_base_is_found_without_trying_large_ones() -> None:
    tried: list[int] = []

    def holds(amount: int) -> bool:
        tried.append(amount)
        return amount >= 3

    least(made(0, 700), reaching(holds), lambda: True)

    assert max(tried) == 4


def test_an_edit_without_an_amount_stays_as_it_is() -> None:
    assert least(replicas(3), reaching(lambda _: True), lambda: True) == replicas(3)
