"""``karmada-pyscheduler why-not``: why a cluster has no replicas of a binding, and what would change that."""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

import yaml

from karmada_scheduler.api.binding import CLUSTER_RESOURCE_BINDING, RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.cli.simulate.files import Contents, as_binding, as_cluster, as_workload, read
from karmada_scheduler.cli.simulate.forecast import Simulation, as_new
from karmada_scheduler.cli.simulate.result import Outcome as ResultOutcome
from karmada_scheduler.cli.simulate.rules import Rules, add_rule_arguments, print_error, rules_of
from karmada_scheduler.cli.simulate.state import SimulatedBindings
from karmada_scheduler.config import features
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.views import why_not as view
from karmada_scheduler.whynot.answer import Question, answer
from karmada_scheduler.whynot.edits import ObjectRef
from karmada_scheduler.whynot.goals import Goal, IsPlaced, OffCluster, OnCluster
from karmada_scheduler.whynot.model import WhyNot
from karmada_scheduler.whynot.search import Bounds
from karmada_scheduler.whynot.world import Scheduled, World

ANSWERED: Final = 0
NONE_FOUND: Final = 1
NO_ANSWER: Final = 2

_KINDS: Final = {
    "resourcebinding": RESOURCE_BINDING,
    "rb": RESOURCE_BINDING,
    "clusterresourcebinding": CLUSTER_RESOURCE_BINDING,
    "crb": CLUSTER_RESOURCE_BINDING,
}


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "why-not",
        help="why a cluster has no replicas of a binding, and verified changes that give it some",
        description="Explain why a cluster has no replicas of a binding, and find changes after which the scheduler, "
        "run again, puts replicas there.",
        epilog="Exit status: 0 it has replicas, or a change was found; 1 no change was found; 2 no answer.",
    )
    parser.add_argument("binding", nargs="?", metavar="[KIND/]NAME", help="the binding; KIND is rb or crb")
    parser.add_argument("cluster", nargs="?", metavar="CLUSTER", help="the cluster")
    parser.add_argument("-n", "--namespace", default="", help="namespace of the binding")
    files = "YAML or JSON as kubectl writes it, also gzipped, - for standard input; may be repeated"
    for name, what in (("--clusters", "Clusters"), ("--bindings", "bindings of both kinds")):
        parser.add_argument(name, required=True, action="append", metavar="FILE", help=f"{what}: {files}")
    parser.add_argument("--workloads", action="append", metavar="FILE", help=f"objects of any kind: {files}")
    goals = parser.add_mutually_exclusive_group()
    goals.add_argument("--placed", action="store_true", help="find changes that place the binding anywhere")
    goals.add_argument("--off", action="store_true", help="find changes after which the cluster has none")
    goals.add_argument("--replicas", type=int, default=1, metavar="N", help="at least N replicas (default 1)")
    parser.add_argument("--as-new", action="store_true", help="as if the bindings had never been scheduled")
    parser.add_argument(
        "-o", "--output", choices=("json", "text", "yaml"), default="text", help="default text"
    )
    parser.add_argument(
        "--width", type=int, metavar="N", help="columns of text (default: the terminal, or 100)"
    )
    parser.add_argument("--all", dest="show_all", action="store_true", help="show all of long lists")
    parser.add_argument(
        "--timeout", type=_seconds, default=2.0, metavar="TIME", help="of the search (default 2s)"
    )
    parser.add_argument("--max-runs", type=int, default=96, metavar="N", help="decisions to try (default 96)")
    add_rule_arguments(parser)


def _seconds(text: str) -> float:
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                seconds = float(text.removesuffix(suffix)) * factor
            except ValueError:
                continue
            if 0 < seconds < float("inf"):
                return seconds
    raise argparse.ArgumentTypeError(f"expected a time such as 2s or 500ms, got {text!r}")


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status."""
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        print_error(f"--feature-gates: {error}")
        return NO_ANSWER
    clusters = read(arguments.clusters, lambda manifest: (manifest, as_cluster(manifest)))
    bindings = read(arguments.bindings, lambda manifest: (manifest, as_binding(manifest)))
    workloads = read(arguments.workloads, as_workload) if arguments.workloads else None
    for problem in (*clusters.problems, *bindings.problems, *(workloads.problems if workloads else ())):
        print_error(str(problem))
    key = _key(arguments, bindings)
    if key is None or not _is_known(arguments, clusters):
        return NO_ANSWER
    gc.freeze()  # the objects that were read stay until the end, and collecting them takes longer than a decision
    scheduler = SimulatedScheduler(gates, arguments, as_new=arguments.as_new)
    found = None
    with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the answer
        try:
            with rules_of(
                arguments,
                gates,
                own,
                snapshot=lambda: scheduler.snapshot,
                known=scheduler.known,
                workloads=None if workloads is None else workloads.objects,
            ) as rules:
                scheduler.rules = rules
                world = World(
                    key,
                    gates,
                    scheduler,
                    {
                        ObjectRef(CLUSTER, "", each.name): (manifest, each)
                        for manifest, each in clusters.objects
                    },
                    {ObjectRef(*each.key): (manifest, each) for manifest, each in bindings.objects},
                    as_new=arguments.as_new,
                )
                found = answer(
                    world,
                    Question(arguments.cluster or "", _goal(arguments)),
                    Bounds(arguments.timeout, arguments.max_runs),
                    provenance=_provenance(clusters),
                )
        except ConfigError as unusable:
            for each in unusable.problems:
                print_error(f"Error: {each}")
            return NO_ANSWER
    _write(found, arguments)
    return ANSWERED if found.holds or found.remedies else NONE_FOUND


def _goal(arguments: argparse.Namespace) -> Goal:
    if arguments.placed:
        return IsPlaced()
    if arguments.off:
        return OffCluster(arguments.cluster)
    return OnCluster(arguments.cluster, arguments.replicas)


def _key(arguments: argparse.Namespace, bindings: Contents[tuple[Manifest, Binding]]) -> BindingKey | None:
    """Return the key of the binding; None, after printing the nearest name, if the files do not have it."""
    kind, slash, name = arguments.binding.rpartition("/")
    wanted = _KINDS.get(kind.lower()) if slash else None
    if slash and wanted is None:
        print_error(f"Error: unknown kind {kind!r}: expected rb or crb")
        return None
    known = [each.key for _, each in bindings.objects]
    found = [
        each
        for each in known
        if each.name == name
        and (wanted is None or each.kind == wanted)
        and (not arguments.namespace or each.namespace in {"", arguments.namespace})
    ]
    if arguments.namespace and wanted is None:
        found = [each for each in found if each.namespace] or found
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(sorted(each.display for each in found))
        print_error(f"Error: {name} is ambiguous ({shown}): use -n, or rb/ or crb/ before the name")
        return None
    near = get_close_matches(name, sorted({each.name for each in known}), n=1, cutoff=0.4)
    where = f" in namespace {arguments.namespace}" if arguments.namespace else ""
    hint = next((f"; nearest: {each.display}" for each in known if near and each.name == near[0]), "")
    print_error(f"Error: there is no binding {name}{where}{hint}")
    return None


def _is_known(arguments: argparse.Namespace, clusters: Contents[tuple[Manifest, Cluster]]) -> bool:
    if not arguments.cluster:
        if arguments.placed:
            return True
        print_error("Error: name a cluster, or use --placed")
        return False
    names = sorted(each.name for _, each in clusters.objects)
    if arguments.cluster in names:
        return True
    near = get_close_matches(arguments.cluster, names, n=1, cutoff=0.4)
    print_error(f"Error: there is no cluster {arguments.cluster}" + (f"; nearest: {near[0]}" if near else ""))
    return False


def _provenance(clusters: Contents[tuple[Manifest, Cluster]]) -> dict[str, Any]:
    digest = hashlib.sha256()
    for manifest, _ in clusters.objects:
        digest.update(json.dumps(manifest, sort_keys=True, default=str).encode())
    return {
        "tense": "recomputed",
        "source": "files",
        "fleet": digest.hexdigest()[:6],
        "clusters": len(clusters.objects),
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _write(found: WhyNot, arguments: argparse.Namespace) -> None:
    if arguments.output == "json":
        json.dump(found.as_fields(), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    elif arguments.output == "yaml":
        yaml.safe_dump(found.as_fields(), sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        width = arguments.width or shutil.get_terminal_size((100, 24)).columns
        sys.stdout.write(view.text(found, width=max(40, width), show_all=arguments.show_all))


class SimulatedScheduler:
    """Schedules changed objects as ``simulate`` does; implements ``whynot.world.Scheduler``.

    Attributes:
        rules: The plugins; set when they are built.
        snapshot: The clusters that plugins' handles show.
        known: The bindings that they show.
    """

    rules: Rules

    def __init__(self, gates: features.FeatureGates, arguments: argparse.Namespace, *, as_new: bool) -> None:
        """Use the gates and flags of the command line."""
        self.snapshot = Snapshot()
        self.known = SimulatedBindings(())
        self._gates = gates
        self._as_new = as_new
        self._empty = arguments.enable_empty_workload_propagation == "true"
        self._core: SchedulingAlgorithm | None = None

    def parse_cluster(self, manifest: Manifest) -> Cluster:
        """Return a Cluster; ManifestError if it cannot be read."""
        return as_cluster(manifest)

    def parse_binding(self, manifest: Manifest) -> Binding:
        """Return a binding; ManifestError if it cannot be read."""
        return as_binding(manifest)

    def schedule(self, snapshot: Snapshot, bindings: Sequence[Binding], key: BindingKey) -> Scheduled:
        """Return what a binding has after the bindings were scheduled in their order.

        The others are scheduled only where their decisions can change this one.
        """
        self.snapshot = snapshot
        mine = next(each for each in bindings if each.key == key)
        if self._is_coupled():
            every = [as_new(each) for each in bindings] if self._as_new else bindings
            self.known.replace(every)
            chosen = every
        else:
            chosen = [as_new(mine) if self._as_new else mine]
        if self._core is None:
            self._core = self._algorithm()
        simulation = Simulation(
            snapshot,
            framework_of=self.rules.framework_of,
            gates=self._gates,
            known=self.known,
            empty_workload_propagation=self._empty,
            workload_of=self.rules.workloads.of,
            stored_workload=self.rules.stored_workloads.of,
            algorithm=self._core,
        )
        result = next(each for each in simulation.run(chosen) if each.binding.key == key)
        code, problem = "", ""
        if result.outcome is ResultOutcome.OTHER_SCHEDULER:
            code, problem = "OtherScheduler", mine.spec.responsible_scheduler
        elif result.held is not None:
            code = "Gated" if result.held.point is Point.PRE_ENQUEUE else "Waiting"
            problem = str(result.held)
        elif result.decision is not None:
            condition = condition_for(result.decision.error)
            code = condition.reason
            problem = "" if result.decision.error is None else condition.message
        return Scheduled(result.type, result.targets, result.decision, problem, code)

    def _is_coupled(self) -> bool:
        """Return whether the decision about one binding can change that about another."""
        if self._gates.enabled("SchedulingOvercommitProtection") or self._gates.enabled("WorkloadAffinity"):
            return True
        return self.rules.has_own_plugins

    def _algorithm(self) -> SchedulingAlgorithm:
        return SchedulingAlgorithm(
            self._gates,
            [GeneralEstimator(self._gates)],
            empty_workload_propagation=self._empty,
            peers=self.known if self._gates.enabled("WorkloadAffinity") else None,
            stored=self.known.get,
            stored_workload=self.rules.stored_workloads.of,
        )
