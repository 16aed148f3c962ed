"""The profiles with PlacementGuard and FailBack: seeds that break nothing, and planted bugs that are found."""

from __future__ import annotations

import pytest

from tools.simulation.generate_guard import PROFILES
from tools.simulation.planted_bugs import PlantedBug
from tools.simulation.planted_guard import GUARD_BUGS
from tools.simulation.profiles import plan_for
from tools.simulation.run import Run

_FOUND_BY = {
    "moves under way do not count": ("1", "guard"),
    "a move whose answer was lost does not count": ("8", "guard"),
    "moves are not recorded": ("1", "guard"),
    "earlier moves of a binding are forgotten": ("2", "guard"),
    "a window is half as long": ("1", "guard"),
    "atOnce counts stored tasks only": ("6", "guard"),
    "percent is ignored": ("1", "guard"),
    "a new leader does not look for moves": ("3", "guard"),
    "what fits nowhere is emptied": ("4", "guard"),
    "a graceful move has no tasks": ("6", "guard"),
    "a generation is observed before it is ready": ("6", "guard"),
    "the last healthy copy is not seen": ("3", "guard"),
    "a held move begins to wait again": ("5", "guard"),
    "the wait goes on after a miss": ("1", "fail_back"),
    "a taint that is tolerated for a while is no miss": ("1", "fail_back"),
    "an exclusive move is graceful": ("1", "fail_back"),
    "a return has no wait": ("1", "fail_back"),
    "the wait is not doubled": ("1", "fail_back"),
    "any number returns at once": ("1", "fail_back"),
    "nothing is reconsidered": ("1", "fail_back"),
    "taints wake nobody": ("1", "churn"),
    "deletions are known already": ("3", "churn"),
    "the first event of a connection is lost": ("3", "churn"),
}
"""A seed and a profile that found each planted bug."""


@pytest.mark.parametrize("bug", GUARD_BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    with bug.planted():
        report = Run(plan_for(*_FOUND_BY[bug.name])).execute()
    assert bug.invariants & {each.invariant for each in report.violations}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_run_breaks_no_invariant_and_repeats_itself(profile: str) -> None:
    """One seed of each profile; `make simulate-faults` runs a hundred."""
    first, second = (Run(plan_for("5", profile)).execute() for _ in range(2))
    assert not first.violations, "\n".join(first.trace[-40:])
    assert first.trace_hash == second.trace_hash
