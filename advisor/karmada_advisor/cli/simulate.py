"""``karmada-pyscheduler simulate``: decisions about the bindings of files, without a control plane.

Reads the output of ``kubectl get -o yaml`` (or ``-o json``) and prints the stable decision about each binding. Bindings
are scheduled in the order of the files, each as if the previous decisions had been written: ``handle.bindings()`` has
them. The clusters stay as in their files. Capacity of earlier decisions counts as taken only with
SchedulingOvercommitProtection, as in the scheduler until members report.

Plugins run as in the scheduler and have the same timeout; a plugin that timed out is called again for the next binding.
PreEnqueue, Reserve and Permit run. A binding that waits at Permit continues when a plugin allows it during a later
decision; Permit timeouts do not expire. PreBind, Bind and PostBind do not run, and Unreserve runs only for rejected
decisions.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from typing import TypeVar

from karmada_advisor.cli.output import exit_status, print_error, print_errors
from karmada_advisor.cli.questions import rules_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import as_binding, as_cluster, as_workload, read
from karmada_advisor.state.model import BindingState, Placed
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.views.fields import as_json, as_yaml
from karmada_advisor.views.text import table
from karmada_scheduler.dryrun.forecast import Simulation, as_new
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.dryrun.result import Outcome, SimulationResult
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration

T = TypeVar("T")


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: Nothing can be decided.
    """
    rules = rules_of(arguments, own)
    _ = rules.gates  # a mistake there is reported before anything is read
    if [*arguments.clusters, *arguments.bindings, *arguments.workloads].count("-") > 1:
        raise NoAnswerError("standard input (-) can be read once only")
    clusters, bindings = read(arguments.clusters, as_cluster), read(arguments.bindings, as_binding)
    workloads = read(arguments.workloads, as_workload)
    problems = [*clusters.problems, *bindings.problems, *workloads.problems]
    if clusters.problems and not clusters.objects:
        print_errors(map(str, problems))
        raise NoAnswerError("No cluster could be read, so nothing is decided.")
    with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the result
        wanted = [as_new(binding) for binding in bindings.objects] if arguments.as_new else bindings.objects
        snapshot = Snapshot.of(clusters.objects)
        objects = ShownObjects(Workloads(workloads.objects if arguments.workloads else None))
        objects.show(snapshot, wanted)
        with rules.dry_run(objects) as dry_run:
            print_errors(map(str, problems))
            results = Simulation(dry_run, snapshot).run(with_progress(wanted, total=len(wanted)))
    # A closed pipe raises only between two writes.
    sys.stdout.writelines(_written(results, arguments.output).splitlines(keepends=True))
    sys.stdout.flush()
    counts = Counter(map(_outcome, results))
    others = "".join(
        f", {counts[outcome]} {outcome.value}"
        for outcome in (Outcome.GATED, Outcome.WAITING, Outcome.LEFT_ALONE, Outcome.OTHER_SCHEDULER)
        if counts[outcome]
    )
    print_error(
        f"{counted(len(results), 'binding')} on {counted(len(clusters.objects), 'cluster')}: "
        f"{counts[Outcome.PLACED]} placed, {counts[Outcome.NOT_PLACED]} not{others}, "
        f"{counted(len(problems), 'problem')} in the input"
    )
    others_fail = counts[Outcome.OTHER_SCHEDULER] > 0 and not arguments.ignore_other_schedulers
    waits = any(counts[outcome] for outcome in (Outcome.NOT_PLACED, Outcome.GATED, Outcome.WAITING))
    lacks = any(_lacks_clusters(result) for result in results)
    return exit_status(is_good=not (waits or lacks or others_fail), problems=problems)


def _outcome(result: SimulationResult) -> Outcome:
    """Return the outcome of a binding; it is not placed if nothing is decided, and it lacks replicas."""
    is_placed = result.outcome is Outcome.PLACED
    return Outcome.NOT_PLACED if is_placed and _lacks_clusters(result) else result.outcome


def _lacks_clusters(result: SimulationResult) -> bool:
    """Return whether nothing is decided about a binding that lacks clusters, or replicas on them."""
    state = _undecided(result)
    return state is not None and state.placed is not Placed.ALL and not state.is_good


def _undecided(result: SimulationResult) -> BindingState | None:
    """Return the state of a binding about which nothing is decided; None for others, and for followers of others."""
    is_decided = result.decision is not None or result.held is not None or not result.has_profile
    binding = result.binding
    return None if is_decided or binding.spec.placement is None else state_of(binding, {}, Facts())


def _written(results: Sequence[SimulationResult], output: str) -> str:
    if output == "table":
        return _table(results)
    fields = [result.as_fields() for result in results]
    return as_json(fields) if output == "json" else as_yaml(fields)


def _table(results: Sequence[SimulationResult]) -> str:
    rows = []
    for result in results:
        condition = result.condition
        clusters = ", ".join(f"{target.name}:{target.replicas}" for target in result.targets)
        scheduled, message = "-" if condition is None else condition.status, ""
        type_ = result.type.value if result.has_profile else "-"
        if not result.has_profile:
            scheduled = "OtherScheduler"
            message = f'no profile has the schedulerName "{result.binding.spec.responsible_scheduler}"'
        elif result.held is not None:
            scheduled = "Gated" if result.held.point is Point.PRE_ENQUEUE else "Waiting"
            message = str(result.held)
        elif condition is not None and condition.status != "True":
            scheduled, message = condition.reason, condition.message
        elif (state := _undecided(result)) is not None and not state.is_good:
            message = "; ".join(filter(None, (state.name.value, state.text)))
        rows.append((result.binding.key.display, type_, scheduled, clusters or "-", message))
    return table(("BINDING", "TYPE", "SCHEDULED", "CLUSTERS", "MESSAGE"), rows) + "\n"


def with_progress(bindings: Iterable[T], *, total: int) -> Iterator[T]:
    """Show how many bindings are scheduled, if standard error is a terminal."""
    from karmada_advisor.whatif.plan.fleet_rules import (
        progress_of_bindings,  # a plan, which this does without
    )

    draw = progress_of_bindings()
    for number, binding in enumerate(bindings, 1):
        draw(number, total)
        yield binding
