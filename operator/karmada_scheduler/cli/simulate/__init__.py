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
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.cli.simulate.files import Contents, Problem, as_binding, as_cluster, as_workload, read
from karmada_scheduler.cli.simulate.forecast import as_new, simulate
from karmada_scheduler.cli.simulate.output import WRITERS, with_progress
from karmada_scheduler.cli.simulate.result import Outcome, SimulationResult
from karmada_scheduler.cli.simulate.state import SimulatedBindings, SimulatedHandle
from karmada_scheduler.cli.simulate.workloads import StoredWorkloads, Workloads
from karmada_scheduler.config import features
from karmada_scheduler.config.flags import plugin_tokens
from karmada_scheduler.config.options import LeaderElection, Options
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration, load, plugin_budget
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.workload import needs_workload
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler_plugins.registry import IN_TREE, in_tree

__all__ = ["Contents", "Problem", "SimulationResult", "add_parser", "read", "run", "simulate"]

ALL_PLACED: Final = 0
SOME_NOT_PLACED: Final = 1
BAD_INPUT: Final = 2

_NOT_RUN: Final = (Point.PRE_BIND, Point.BIND, Point.POST_BIND)
_NO_ELECTION: Final = LeaderElection(enabled=False)


class _Input(NamedTuple):
    """The contents of the files; ``workloads`` is None without files."""

    clusters: Contents[Cluster]
    bindings: Contents[Binding]
    workloads: Contents[Workload] | None

    @property
    def problems(self) -> list[Problem]:
        return [problem for each in self if each is not None for problem in each.problems]


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "simulate",
        help="decide over files: no control plane needed",
        description="Decide where the bindings of a file would go on the clusters of another.",
        epilog="Bindings are decided in the order of the files, each as if the decisions before it had been written. "
        "PreEnqueue, Reserve and Permit plugins are called, PreBind, Bind and PostBind plugins are not. "
        "Exit status: 0 every binding is placed; 1 some are not, are gated at PreEnqueue, wait at Permit, or name "
        "a scheduler that no profile has; 2 some input cannot be used (the rest was still decided, unless there is no cluster).",
    )
    files = "YAML or JSON as kubectl writes it, also gzipped, - for standard input; may be repeated"
    for name, what in (("--clusters", "Clusters"), ("--bindings", "bindings of both kinds")):
        parser.add_argument(name, required=True, action="append", metavar="FILE", help=f"{what}: {files}")
    parser.add_argument(
        "--workloads",
        action="append",
        metavar="FILE",
        help=f"objects of any kind, for plugins that read the workload's labels and annotations: {files}",
    )
    parser.add_argument(
        "--anew", dest="as_new", action="store_true", help="decide placed bindings as if they were new"
    )
    parser.add_argument(
        "--ignore-other-schedulers",
        action="store_true",
        help="exit with 0 although some bindings have a schedulerName that no profile of --config, and not "
        "--scheduler-name, has",
    )
    parser.add_argument(
        "-o", "--output", choices=sorted(WRITERS), default="table", help="what to print (default table)"
    )
    parser.add_argument(
        "--plugins",
        action="append",
        metavar="LIST",
        help="plugins to enable: *, *,-Name, Name,Other (default *)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="profiles and plugin args; no extenders")
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="as for the scheduler; with it or --config, bindings of other schedulers are reported and not decided "
        "(default: without --config all bindings are decided)",
    )
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="directory of plugin files; may be repeated",
    )
    parser.add_argument(
        "--feature-gates", action="append", default=[], metavar="LIST", help="gates, as A=true,B=false"
    )
    parser.add_argument(
        "--enable-empty-workload-propagation",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="keep selected clusters with 0 replicas in the result",
    )


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        _print_error(f"--feature-gates: {error}")
        return BAD_INPUT
    if [*arguments.clusters, *arguments.bindings, *(arguments.workloads or ())].count("-") > 1:
        _print_error("Error: standard input (-) can be read once only")
        return BAD_INPUT
    given = _Input(
        read(arguments.clusters, as_cluster),
        read(arguments.bindings, as_binding),
        read(arguments.workloads, as_workload) if arguments.workloads else None,
    )
    clusters = given.clusters
    if clusters.problems and not clusters.objects:
        for problem in given.problems:
            _print_error(str(problem))
        _print_error("No cluster could be read, so nothing is decided.")
        return BAD_INPUT
    with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the result
        results = _schedule_all(arguments, gates, own, given)
    if results is None:
        return BAD_INPUT
    WRITERS[arguments.output](results, sys.stdout)
    sys.stdout.flush()
    counts = Counter(each.outcome for each in results)
    problems = len(given.problems)
    others = "".join(
        f", {counts[outcome]} {outcome.value}"
        for outcome in (Outcome.GATED, Outcome.WAITING, Outcome.LEFT_ALONE, Outcome.OTHER_SCHEDULER)
        if counts[outcome]
    )
    _print_error(
        f"{len(results)} bindings on {len(clusters.objects)} clusters: "
        f"{counts[Outcome.PLACED]} placed, {counts[Outcome.NOT_PLACED]} not{others}, {problems} problems in the input"
    )
    if problems:
        return BAD_INPUT
    others_fail = counts[Outcome.OTHER_SCHEDULER] > 0 and not arguments.ignore_other_schedulers
    not_placed = sum(counts[each] for each in (Outcome.NOT_PLACED, Outcome.GATED, Outcome.WAITING))
    return SOME_NOT_PLACED if not_placed or others_fail else ALL_PLACED


def _schedule_all(
    arguments: argparse.Namespace,
    gates: features.FeatureGates,
    own: Sequence[Registration],
    given: _Input,
) -> list[SimulationResult] | None:
    """Schedule all bindings; None, after printing why, if the configuration or a plugin cannot be used."""
    wanted = [as_new(each) for each in given.bindings.objects] if arguments.as_new else given.bindings.objects
    known = SimulatedBindings(wanted)
    name = arguments.scheduler_name or DEFAULT_SCHEDULER_NAME
    try:
        configuration = (
            load(arguments.config, scheduler_name=name) if arguments.config else SchedulerConfiguration()
        )
        budget = plugin_budget(configuration, _NO_ELECTION)
        snapshot = Snapshot.of(given.clusters.objects)
        workloads = Workloads(None if given.workloads is None else given.workloads.objects)
        stored_workloads = StoredWorkloads(workloads, known.get)
        setup = PluginSetup.of(
            Options(
                plugins=plugin_tokens(arguments.plugins),
                plugin_dirs=tuple(arguments.plugin_dir),
                scheduler_name=name,
            ),
            in_tree(gates),
            handle_for=lambda profile: SimulatedHandle(
                profile, lambda: snapshot, known, time.time, stored_workloads.for_profile
            ),
            own=own,
            configuration=configuration,
            disabled_by_gates=IN_TREE,
        )
        with closing(SigalrmTimeout(budget)) as alarm:
            caller = PluginCaller(timeout=alarm, coroutine_seconds=budget, interrupts=(KeyboardInterrupt,))
            frameworks = _frameworks(
                setup,
                configuration,
                caller,
                every=not configuration.profiles and not arguments.scheduler_name,
            )
            stored_workloads.framework_of = frameworks
            stored_workloads.declaring = {
                name: any(map(needs_workload, plugins.unique))
                for name, plugins in setup.built.by_name.items()
            }
            for problem in given.problems:
                _print_error(str(problem))
            return simulate(
                with_progress(wanted, total=len(wanted)),
                given.clusters.objects,
                framework_of=frameworks,
                gates=gates,
                known=known,
                empty_workload_propagation=arguments.enable_empty_workload_propagation == "true",
                workload_of=workloads.of,
                stored_workload=stored_workloads.of,
            )
    except ConfigError as unusable:
        for each in unusable.problems:
            _print_error(f"Error: {each}")
        return None


def _frameworks(
    setup: PluginSetup, configuration: SchedulerConfiguration, caller: PluginCaller, *, every: bool
) -> Callable[[Binding], Framework | None]:
    """Return the function that finds the plugins of a binding: those of its profile, or, with ``every``, the only ones.

    Raises:
        ConfigError: A profile or a plugin cannot be used.
    """
    if configuration.extenders:
        _print_error("extenders are not called, as if there were none")
    built = setup.start()
    by_name = {name: Framework(plugins, caller=caller) for name, plugins in built.by_name.items()}
    for warning in (*configuration.warnings, *built.warnings):
        _print_error(warning)
    for message in setup.messages:
        if message.warning:
            _print_error(message.text)
    for text in _not_called(built):
        _print_error(text)
    if every:
        [only] = by_name.values()
        return lambda _: only
    return lambda binding: by_name.get(binding.spec.responsible_scheduler)


def _not_called(built: BuiltProfiles) -> Iterator[str]:
    """Yield a line with the plugins at extension points that do not run, without the mandatory in-tree ones."""
    found = {
        f"{plugin.name} ({point.label})": None
        for profile, plugins in built.by_name.items()
        for point in _NOT_RUN
        for plugin in plugins.at(point)
        if not built.made[profile, plugin.name].registration.mandatory
    }
    if found:
        yield f"PreBind, Bind and PostBind are not called: {', '.join(found)}"


def _print_error(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)
