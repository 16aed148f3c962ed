"""``karmada-pyscheduler status``: which schedulers decide, and what they have placed. Reads only."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from karmada_advisor.cli.output import CommandAnswer, exit_status, print_errors
from karmada_advisor.cli.questions import source_of
from karmada_advisor.explain.fleet_status import FleetStatus, uses_of
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.state.propagation import cluster_problem
from karmada_advisor.state.reading import state_of
from karmada_advisor.views.status_text import status_text
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

_PAUSE_SECONDS: Final = 2.0


def answer(arguments: argparse.Namespace, _own: Sequence[Registration] = ()) -> CommandAnswer:
    """Return what to print, and the exit status.

    Raises:
        NoAnswerError: There is no answer.
    """
    found, problems = waited(lambda: _read(arguments), seconds=arguments.wait or 0.0)
    print_errors(problems)
    return CommandAnswer(
        found, partial(status_text, found), exit_status(is_good=found.is_good, problems=problems)
    )


def waited(
    read: Callable[[], tuple[FleetStatus, list[str]]],
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> tuple[FleetStatus, list[str]]:
    """Read until the status is good, for some seconds at most; return what was read last."""
    end = clock() + seconds
    while True:
        found = read()
        if found[0].is_good or clock() >= end:
            return found
        sleep(min(_PAUSE_SECONDS, max(0.0, end - clock())))


def _read(arguments: argparse.Namespace) -> tuple[FleetStatus, list[str]]:
    fleet = read_fleet(source_of(arguments), all_bindings=True)
    schedulers = fleet.schedulers(None)
    facts = replace(fleet.facts(None), schedulers=schedulers)
    states = [
        (each.spec.responsible_scheduler, state_of(each, fleet.manifests.get(each.key) or {}, facts))
        for each in fleet.bindings
    ]
    names = (each.name for each in fleet.clusters)
    not_ready = tuple(name for name in names if cluster_problem(name, fleet.manifests.get(name, {}))[0])
    not_read = dict(fleet.coverage.refused)
    if schedulers.problem:
        not_read.setdefault("Leases of schedulers", schedulers.problem)
    moment = at(fleet.at or datetime.now(UTC))
    status = FleetStatus(
        fleet.source, moment, len(fleet.clusters), not_ready, uses_of(states, schedulers), not_read
    )
    return status, [*fleet.problems]
