"""``karmada-pyscheduler simulate``: schedules the bindings of files, without a control plane.

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
from typing import NamedTuple, TypeVar

from karmada_advisor.cli.output import NO_ANSWER, exit_status, print_error, print_errors, table
from karmada_advisor.explain.amounts import counted
from karmada_advisor.sources import rules
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import Contents, Problem, as_binding, as_cluster, as_workload, read
from karmada_advisor.views.fields import as_json, as_yaml
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config import features
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.dryrun.forecast import Simulation, as_new
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.dryrun.result import Outcome, SimulationResult
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration

T = TypeVar("T")


class _Input(NamedTuple):
    """The contents of the files; ``workloads`` is None without files."""

    clusters: Contents[Cluster]
    bindings: Contents[Binding]
    workloads: Contents[Workload] | None

    @property
    def problems(self) -> list[Problem]:
        return [problem for each in self if each is not None for problem in each.problems]


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    try:
        gates = rules.parsed_gates(arguments)
    except NoAnswerError as error:
        print_error(str(error))
        return NO_ANSWER
    if [*arguments.clusters, *arguments.bindings, *arguments.workloads].count("-") > 1:
        print_error("Error: standard input (-) can be read once only")
        return NO_ANSWER
    given = _Input(
        read(arguments.clusters, as_cluster),
        read(arguments.bindings, as_binding),
        read(arguments.workloads, as_workload) if arguments.workloads else None,
    )
    clusters = given.clusters
    if clusters.problems and not clusters.objects:
        print_errors(map(str, given.problems))
        print_error("No cluster could be read, so nothing is decided.")
        return NO_ANSWER
    with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the result
        results = _schedule_all(arguments, gates, own, given)
    if results is None:
        return NO_ANSWER
    # A closed pipe raises only between two writes.
    sys.stdout.writelines(_written(results, arguments.output).splitlines(keepends=True))
    sys.stdout.flush()
    counts = Counter(each.outcome for each in results)
    others = "".join(
        f", {counts[outcome]} {outcome.value}"
        for outcome in (Outcome.GATED, Outcome.WAITING, Outcome.LEFT_ALONE, Outcome.OTHER_SCHEDULER)
        if counts[outcome]
    )
    print_error(
        f"{counted(len(results), 'binding')} on {counted(len(clusters.objects), 'cluster')}: "
        f"{counts[Outcome.PLACED]} placed, {counts[Outcome.NOT_PLACED]} not{others}, "
        f"{counted(len(given.problems), 'problem')} in the input"
    )
    others_fail = counts[Outcome.OTHER_SCHEDULER] > 0 and not arguments.ignore_other_schedulers
    not_placed = sum(counts[each] for each in (Outcome.NOT_PLACED, Outcome.GATED, Outcome.WAITING))
    return exit_status(is_good=not (not_placed or others_fail), problems=given.problems)


def _schedule_all(
    arguments: argparse.Namespace,
    gates: features.FeatureGates,
    own: Sequence[Registration],
    given: _Input,
) -> list[SimulationResult] | None:
    """Schedule all bindings; None, after printing why, if the configuration or a plugin cannot be used."""
    wanted = [as_new(each) for each in given.bindings.objects] if arguments.as_new else given.bindings.objects
    snapshot = Snapshot.of(given.clusters.objects)
    objects = ShownObjects(Workloads(None if given.workloads is None else given.workloads.objects))
    objects.show(snapshot, wanted)
    try:
        with rules.dry_running(arguments, gates, own, objects) as dry_run:
            print_errors(map(str, given.problems))
            return Simulation(dry_run, snapshot).run(with_progress(wanted, total=len(wanted)))
    except ConfigError as unusable:
        print_errors(f"Error: {each}" for each in unusable.problems)
        return None


def _written(results: Sequence[SimulationResult], output: str) -> str:
    if output == "table":
        return _table(results)
    fields = [each.as_fields() for each in results]
    return as_json(fields) if output == "json" else as_yaml(fields)


def _table(results: Sequence[SimulationResult]) -> str:
    rows = []
    for each in results:
        condition = each.condition
        clusters = ", ".join(f"{target.name}:{target.replicas}" for target in each.targets)
        scheduled, message = "-" if condition is None else condition.status, ""
        type_ = each.type.value if each.has_profile else "-"
        if not each.has_profile:
            scheduled = "OtherScheduler"
            message = f'no profile has the schedulerName "{each.binding.spec.responsible_scheduler}"'
        elif each.held is not None:
            scheduled = "Gated" if each.held.point is Point.PRE_ENQUEUE else "Waiting"
            message = str(each.held)
        elif condition is not None and condition.status != "True":
            scheduled, message = condition.reason, condition.message
        rows.append((each.binding.key.display, type_, scheduled, clusters or "-", message))
    return table(("BINDING", "TYPE", "SCHEDULED", "CLUSTERS", "MESSAGE"), rows) + "\n"


def with_progress(bindings: Iterable[T], *, total: int) -> Iterator[T]:
    """Draw a progress bar while bindings are scheduled, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield from bindings
        return
    step = max(1, total // 200)
    for number, each in enumerate(bindings, 1):
        if number % step == 0 or number == total:
            bar = "#" * (40 * number // total)
            sys.stderr.write(f"\r[{bar:<40}] {number}/{total} bindings")
        yield each
    sys.stderr.write("\n")
