"""``karmada-pyscheduler why-not``: why a cluster has no replicas of a binding, and what would change that.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.cli.explain import add_output_arguments, style_of
from karmada_scheduler.cli.sources import objects as objects_source
from karmada_scheduler.cli.sources import rules
from karmada_scheduler.cli.sources.bindings import possible_keys
from karmada_scheduler.cli.sources.objects import NoAnswerError, Objects, gather
from karmada_scheduler.cli.sources.rules import Frameworks
from karmada_scheduler.cli.sources.simulated import SimulatedScheduler
from karmada_scheduler.config import features
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.core.available_replicas import Estimators
from karmada_scheduler.explain.causes import causes_of_binding, causes_of_cluster
from karmada_scheduler.explain.explain import fleet_of
from karmada_scheduler.explain.inputs import ExplainInputs, as_new
from karmada_scheduler.explain.model import Cause, Provenance, Stage, Tense
from karmada_scheduler.explain.names import nearest
from karmada_scheduler.explain.situation import Situation
from karmada_scheduler.explain.trace_trigger import at
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.views.fields import as_json, as_yaml, why_not_fields
from karmada_scheduler.views.why_not import why_not_text
from karmada_scheduler.whynot.answer import Question, answer
from karmada_scheduler.whynot.edits import ObjectRef
from karmada_scheduler.whynot.goals import Goal, IsPlaced, OffCluster, OnCluster
from karmada_scheduler.whynot.model import WhyNot
from karmada_scheduler.whynot.objects import ObjectSet, Outcome
from karmada_scheduler.whynot.search import Bounds

ANSWERED: Final = 0
NONE_FOUND: Final = 1
NO_ANSWER: Final = 2


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "why-not",
        help="why a cluster has no replicas of a binding, and verified changes that give it some",
        description="Explain why a cluster has no replicas of a binding, and find changes after which the scheduler, "
        "run again, puts replicas there.",
        epilog="Exit status: 0 the cluster has replicas, or a change was found; 1 no change was found; 2 there is no "
        "answer, or some input cannot be used.",
    )
    parser.add_argument(
        "name",
        metavar="[KIND/]NAME",
        help="the binding (rb/NAME, crb/NAME), or the workload that it propagates (deployment/NAME)",
    )
    parser.add_argument("cluster", nargs="?", default="", metavar="CLUSTER", help="the cluster")
    parser.add_argument(
        "-n", "--namespace", default="default", help="namespace of the binding (default default)"
    )
    goals = parser.add_mutually_exclusive_group()
    goals.add_argument("--placed", action="store_true", help="find changes that place the binding anywhere")
    goals.add_argument("--off", action="store_true", help="find changes after which the cluster has none")
    goals.add_argument("--replicas", type=_positive, default=1, metavar="N", help="at least N (default 1)")
    parser.add_argument("--as-new", action="store_true", help="as if nothing had ever been scheduled")
    parser.add_argument(
        "--timeout", type=_seconds, default=2.0, metavar="TIME", help="of the search (default 2s)"
    )
    parser.add_argument(
        "--max-runs", type=_positive, default=96, metavar="N", help="sets of changes to try (default 96)"
    )
    objects_source.add_arguments(parser)
    rules.add_arguments(parser)
    add_output_arguments(parser)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {number}")
    return number


def _seconds(text: str) -> float:
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)):
        if text.endswith(suffix):
            try:
                seconds = float(text.removesuffix(suffix)) * factor
            except ValueError:
                break
            if 0 < seconds < float("inf"):
                return seconds
    raise argparse.ArgumentTypeError(f"expected a time such as 2s or 500ms, got {text!r}")


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    try:
        with redirect_stdout(sys.stderr):  # keeps the output of plugins out of the answer
            found, problems = _answer(arguments, own)
    except NoAnswerError as error:
        for line in str(error).splitlines():
            _print_error(f"Error: {line}")
        return NO_ANSWER
    sys.stdout.write(_written(found, arguments))
    sys.stdout.flush()
    if problems:
        return NO_ANSWER
    return ANSWERED if found.holds or found.remedies else NONE_FOUND


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> tuple[WhyNot, Sequence[str]]:
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        raise NoAnswerError(f"--feature-gates: {error}") from error
    keys = possible_keys(arguments.name, arguments.namespace)
    objects = gather(arguments, keys, all_bindings=True)
    for problem in objects.problems:
        _print_error(problem)
    binding = objects.find(keys)
    _check_cluster(arguments, objects)
    scheduler = SimulatedScheduler(gates, arguments, objects.workloads)
    try:
        with rules.configured(arguments, gates, own, handle_for=scheduler.handle_for) as frameworks:
            scheduler.use(frameworks)
            editable = ObjectSet(
                binding.key,
                gates,
                scheduler,
                {
                    ObjectRef(CLUSTER, "", each.name): (objects.manifests[each.name], each)
                    for each in objects.clusters
                },
                {ObjectRef(*each.key): (objects.manifests[each.key], each) for each in objects.bindings},
                as_new=arguments.as_new,
            )
            gc.freeze()  # what was read stays until the end, and collecting it takes longer than a decision
            try:
                found = _of_objects(editable, arguments, objects, scheduler, frameworks)
            finally:
                gc.unfreeze()
    except ConfigError as unusable:
        raise NoAnswerError("\n".join(str(each) for each in unusable.problems)) from unusable
    return found, objects.problems


def _check_cluster(arguments: argparse.Namespace, objects: Objects) -> None:
    if not arguments.cluster:
        if arguments.placed:
            return
        raise NoAnswerError("name a cluster, or use --placed")
    names = [each.name for each in objects.clusters]
    if arguments.cluster not in names:
        near = nearest(arguments.cluster, names)
        raise NoAnswerError(
            f"cluster {arguments.cluster} does not exist" + (f". Nearest: {near}" if near else "")
        )


def _of_objects(
    editable: ObjectSet,
    arguments: argparse.Namespace,
    objects: Objects,
    scheduler: SimulatedScheduler,
    frameworks: Frameworks,
) -> WhyNot:
    inputs = _inputs(editable, objects, scheduler, frameworks)

    def causes(root: Outcome) -> list[Cause]:
        scheduler.show(editable.snapshot, [each for _, each in editable.bindings.values()])
        situation = Situation(inputs, None if arguments.as_new else root.scheduled.decision)
        return _causes(situation, arguments.cluster, of_binding=arguments.off or not arguments.cluster)

    return answer(
        editable,
        Question(arguments.cluster, _goal(arguments)),
        Bounds(arguments.timeout, arguments.max_runs),
        provenance=Provenance(
            Tense.RECOMPUTED,
            objects.source,
            at(inputs.now) if inputs.now is not None else "",
            fleet_of(inputs),
        ),
        causes=causes,
    )


def _causes(situation: Situation, cluster: str, *, of_binding: bool) -> list[Cause]:
    """Return why the cluster has no replicas.

    If no cluster has any and this one passes the filters, what fails for all of them comes first.
    """
    if of_binding:
        return causes_of_binding(situation)
    found = causes_of_cluster(situation, cluster)
    is_refused = bool(found) and found[0].stage in {Stage.TRIGGER, Stage.POLICY, Stage.FILTER}
    if not is_refused and situation.is_decided and situation.now.decision.error is not None:
        found = [*causes_of_binding(situation), *found]
    by_code = {each.code: each for each in reversed(found)}
    ranked = [by_code[code] for code in dict.fromkeys(each.code for each in found)]
    return [replace(each, primary=index == 0) for index, each in enumerate(ranked)]


def _inputs(
    editable: ObjectSet, objects: Objects, scheduler: SimulatedScheduler, frameworks: Frameworks
) -> ExplainInputs:
    binding = editable.bindings[editable.ref][1]
    framework = frameworks.of(binding) or frameworks.any
    return ExplainInputs(
        as_new(binding) if editable.as_new else binding,
        editable.snapshot,
        framework,
        editable.gates,
        scheduler.core,
        Estimators((scheduler.estimator,)),
        peers=scheduler.peers,
        empty_workload_propagation=scheduler.empty_workload_propagation,
        workload=scheduler.workloads.of(binding) if framework.needs_workload else None,
        scheduler_names=frameworks.names,
        binding_manifest=editable.bindings[editable.ref][0],
        cluster_manifest=objects.manifests.get,
        policies=objects.policies,
        now=datetime.now(UTC),
    )


def _goal(arguments: argparse.Namespace) -> Goal:
    if arguments.placed:
        return IsPlaced()
    if arguments.off:
        return OffCluster(arguments.cluster)
    return OnCluster(arguments.cluster, arguments.replicas)


def _written(found: WhyNot, arguments: argparse.Namespace) -> str:
    match arguments.output:
        case "json":
            return as_json(why_not_fields(found))
        case "yaml":
            return as_yaml(why_not_fields(found))
    return why_not_text(found, style_of(arguments))


def _print_error(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)
