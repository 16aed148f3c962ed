"""The remedies of a report of ``survive``: only those who ask for them import the search."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator, Sequence

from karmada_advisor.cli.fleet import as_manifests
from karmada_advisor.cli.survive_inputs import is_reported_by
from karmada_advisor.explain.amounts import counted
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.survive import least_capacity, remedies
from karmada_advisor.survive.edited import FleetEditor
from karmada_advisor.survive.engine import Losses
from karmada_advisor.survive.least_capacity import LeastCapacity
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import LossSettings
from karmada_advisor.survive.remedies import FoundRemedy, Remedies
from karmada_advisor.whynot.scheduled import SimulatedScheduler


def remedy_steps(
    arguments: argparse.Namespace, sources: Objects, losses: Losses, settings: LossSettings, deadline: float
) -> Generator[None, None, tuple[Sequence[FoundRemedy], Sequence[str]]]:
    """Look for what mends losses, in steps; returns it, and notes about what was not looked for."""
    found = Remedies(
        FleetEditor(
            losses, sources.manifests, as_manifests(sources).policies, SimulatedScheduler(losses.inputs.rules)
        ),
        settings.loss,
        is_reported_by(arguments),
        arguments.demand == "holds",
        per_policy=arguments.remedies,
        is_over=_after(remedies.SECONDS, deadline),
    )
    edits, unsearched = yield from found.steps()
    notes = []
    if unsearched:
        text = counted(unsearched, "group of failing bindings", "groups of failing bindings")
        notes.append(f"no remedy was looked for, for {text}: there are too many, or the time was over")
    capacity = LeastCapacity(losses, settings.loss, _after(least_capacity.SECONDS, deadline))
    more = [] if settings.loss is Loss.ITSELF else (yield from capacity.steps())
    if capacity.looked < capacity.short:
        of = counted(capacity.short, "domain leaves", "domains leave")
        notes.append(f"{of} something short; the least capacity to add was looked for in {capacity.looked:,}")
    return [*edits, *more, *found.of_settings(settings)], notes


def _after(seconds: float, deadline: float) -> Callable[[], bool]:
    """Return what says whether some time from now, or a deadline, is over."""
    end = min(deadline, time.monotonic() + seconds)
    return lambda: time.monotonic() >= end
