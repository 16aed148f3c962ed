"""Everything that a proposal reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from karmada_advisor.plan.holds import HoldOf, nothing_holds
from karmada_advisor.rebalance.model import Bounds, Goal
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.dryrun.dry_run import DryRun

Progress = Callable[[int, int], None]


def _no_progress(_done: int, _total: int) -> None:
    """Show nothing."""


def _nothing_excluded(_: Binding) -> bool:
    return False


@dataclass(frozen=True)
class Inputs:
    """Everything that a proposal reads.

    Attributes:
        clusters: All clusters.
        bindings: All bindings, in the order in which they were read.
        rules: The configuration of the scheduler.
        goal: What the rebalance is for.
        bounds: Its limits.
        fill: The cluster of the goal ``fill``; "" otherwise.
        is_excluded: Whether a binding must not be moved.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
        fingerprint: A hash over all that decisions read.
        source: Where the objects come from, for people.
        at: The time, as the API writes times.
        progress: Called with the number of first decisions made, and their total.
    """

    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    rules: DryRun
    goal: Goal
    bounds: Bounds
    fill: str = ""
    is_excluded: Callable[[Binding], bool] = field(default=_nothing_excluded)
    hold_of: HoldOf = field(default=nothing_holds)
    fingerprint: str = ""
    source: str = ""
    at: str = ""
    progress: Progress = field(default=_no_progress)
