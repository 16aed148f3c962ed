"""``karmada-pyscheduler status``: which schedulers decide, and what they have placed. Reads only."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

from karmada_advisor.cli.output import CommandAnswer, exit_status, print_errors
from karmada_advisor.cli.questions import process_of, source_of
from karmada_advisor.explain.amounts import at
from karmada_advisor.explain.fleet_status import FleetStatus, SchedulerSetup, uses_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.fleet.process_rules import ProcessConfiguration
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import RunningScheduler
from karmada_advisor.state.propagation import cluster_problem
from karmada_advisor.state.reading import state_of
from karmada_advisor.views.status_text import status_text
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.cluster import KIND as CLUSTER
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
    source = source_of(arguments)
    fleet = read_fleet(source, all_bindings=True, may_lack=True)
    not_read, process, access = dict(fleet.coverage.refused), None, None
    setups: dict[str, SchedulerSetup] = {}
    running: Mapping[str, str] = {}
    if (asked := process_of(arguments)) is not None:
        try:
            process, found = _asked(asked)
            setups, running = _setups_of(process, found), found.running
        except NoAnswerError as error:
            not_read["the scheduler of --from"] = str(error)
    if arguments.scheduler_manifest:
        setups |= _of_manifest(arguments.scheduler_manifest)
    if source.is_control_plane:
        from karmada_advisor.fleet.plane_access import read_access

        try:
            access = read_access(source.plane)
        except NoAnswerError as error:
            not_read["rights and certificates"] = str(error)
    schedulers = fleet.schedulers(running)
    if schedulers.problem:
        not_read.setdefault("Leases of schedulers", schedulers.problem)
    facts = replace(fleet.facts(running), schedulers=schedulers)
    has_clusters = CLUSTER not in not_read
    if not has_clusters:
        facts = replace(facts, cluster_of=None)
    states = [
        (binding.spec.responsible_scheduler, state_of(binding, fleet.manifests.get(binding.key) or {}, facts))
        for binding in fleet.bindings
    ]
    names = (cluster.name for cluster in fleet.clusters)
    not_ready = tuple(name for name in names if cluster_problem(name, fleet.manifests.get(name, {}))[0])
    moment, clusters = at(fleet.at or datetime.now(UTC)), len(fleet.clusters) if has_clusters else None
    uses = uses_of(states, schedulers, setups)
    status = FleetStatus(fleet.source, moment, clusters, not_ready, uses, not_read, access, process)
    return status, [*fleet.problems]


def _asked(process: RunningScheduler) -> tuple[ProcessState, ProcessConfiguration]:
    from karmada_advisor.fleet.process import read_configuration, read_state
    from karmada_advisor.fleet.process_http import address_of

    address = address_of(process)
    return read_state(address), read_configuration(address)


def _setups_of(process: ProcessState, found: ProcessConfiguration) -> dict[str, SchedulerSetup]:
    """Return what a process says about its profiles, by their names."""
    gates = [f"{name}={str(is_on).lower()}" for name, is_on in found.gates.items()]
    rules = Rules(plugins=found.tokens, feature_gates=gates, decisions_of=found.decisions_of or None)
    text = f"{_words_of(rules)}{' and a --config' if found.file else ''}" if found.is_complete else ""
    source = f"the process {process.name}"
    return {
        name: SchedulerSetup(process.version, source, text, tuple(sorted(plugins)), found.gates, source)
        for name, plugins in found.profiles.items()
    }


def _of_manifest(path: str) -> dict[str, SchedulerSetup]:
    """Return what the Deployment of a scheduler says about it, by its name."""
    from karmada_advisor.fleet.process import image_tag, scheduler_container, with_flags

    container = scheduler_container(path)
    rules, notes = with_flags(Rules(), container)
    print_errors(notes)
    tag, source, plugins = image_tag(container), "the tag of its image", rules.plugins or ("*",)
    gates = rules.gates.settings
    found = SchedulerSetup(tag, source if tag else "", _words_of(rules), tuple(plugins), gates, "its flags")
    return {rules.scheduler_name or DEFAULT_SCHEDULER_NAME: found}


def _words_of(rules: Rules) -> str:
    """Return the plugins and gates of rules, without the version of the rules."""
    plugins = None if [*(rules.plugins or ())] == ["*"] else rules.plugins
    return str(replace(rules, plugins=plugins)).partition(", ")[2]
