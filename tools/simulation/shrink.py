"""Makes a failing plan smaller: fewer steps, faults and processes, with the same invariant broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tools.simulation.plan import Plan

Fails = Callable[[Plan], bool]


def shrink(plan: Plan, fails: Fails, *, runs: int = 200) -> Plan:
    """Return the smallest plan found that still fails.

    Args:
        plan: A plan that fails.
        fails: Runs a plan and returns whether it fails in the same way.
        runs: How many plans are tried at most.
    """
    budget = _Budget(fails, runs)
    for smaller in _with_fewer_processes(plan):
        if budget.fails(smaller):
            plan = smaller
            break
    plan = _without(plan, budget, "faults")
    return _without(plan, budget, "steps")


class _Budget:
    def __init__(self, fails: Fails, runs: int) -> None:
        self._fails = fails
        self._left = runs

    def fails(self, plan: Plan) -> bool:
        """Return whether a plan fails; False once the budget is spent."""
        if self._left <= 0:
            return False
        self._left -= 1
        return self._fails(plan)


def _with_fewer_processes(plan: Plan) -> list[Plan]:
    return [replace(plan, processes=count) for count in range(1, plan.processes)]


def _without(plan: Plan, budget: _Budget, field: str) -> Plan:
    """Remove chunks of a tuple of the plan, halving their size (delta debugging; Zeller and Hildebrandt, TSE 2002)."""
    size = max(1, len(getattr(plan, field)) // 2)
    while True:
        start = 0
        while start < len(getattr(plan, field)):
            chunk = frozenset(range(start, start + size))
            smaller = plan.without(**{field: chunk})
            if budget.fails(smaller):
                plan = smaller
            else:
                start += size
        if size == 1:
            return plan
        size //= 2
