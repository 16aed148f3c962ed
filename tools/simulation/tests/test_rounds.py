"""The profile that repeats the same steps, and the comparison of what processes hold afterwards."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.simulation.flat import growing
from tools.simulation.profiles import ROUNDS, plan_for
from tools.simulation.run import Run


def _sizes(name: str, *sizes: int) -> list[Counter[str]]:
    return [Counter({name: size}) for size in sizes]


@pytest.mark.parametrize(
    ("name", "sizes", "grows"),
    [
        pytest.param("application._left", (5, 10, 15), True, id="one-in-each-round"),
        pytest.param("application._left", (5, 10, 10), False, id="once"),
        pytest.param("application._left", (5, 4, 9), False, id="up-and-down"),
        pytest.param("x._bindings._tombstones", (20, 40, 60), False, id="below-its-bound"),
        pytest.param("x._bindings._tombstones", (9_000, 10_000, 11_000), True, id="above-its-bound"),
    ],
)
def test_what_grows_in_each_block_beyond_its_bound_is_reported(
    name: str, sizes: tuple[int, ...], *, grows: bool
) -> None:
    assert bool(list(growing(_sizes(name, *sizes)))) == grows


def test_rounds_break_no_invariant_and_leave_nothing() -> None:
    run = Run(plan_for("1", ROUNDS))
    report = run.execute()
    assert not report.violations, "\n".join(report.trace[-40:])
    assert run.judge.measured == 3
