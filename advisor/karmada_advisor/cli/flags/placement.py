"""The flags of the questions about placement: ``explain``, ``status`` and ``why-not``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from karmada_advisor.cli.flags import shared

_REMEDY_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 600.0


_WAIT_SECONDS: Final = 300.0


def explain_parser() -> argparse.ArgumentParser:
    """Return the parser of explain's arguments."""
    parser = shared.make_parser(
        "explain",
        "Explain the placement of a binding: the answer, the step that decided it, and the evidence. "
        "(karmadactl explain is another command: it documents the fields of an object.)",
        "Exit status: 0 it is placed, or has nothing to place; 1 it is not placed; 2 there is no answer "
        "(bad input, unknown binding, forbidden).",
    )
    parser.add_argument(
        "name",
        nargs="*",
        default=[],
        metavar="[NS/][KIND/]NAME",
        help="the binding (rb/NAME, crb/NAME), or the workload that it propagates (deploy/NAME, or deploy NAME)",
    )
    add = partial(shared.add, parser)
    text = "namespace of the binding (default: that of the context, or default); without a name, all bindings in it"
    add("-n --namespace NAMESPACE", text)
    _add_scope(parser)
    shared.add_objects(parser, replays_rules=True)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    effect = "; its profiles, plugins, arguments and feature gates are used"
    shared.add_process(parser, "for its record and its queue", effect)
    text = (
        "also write all that the answer is made of into a file, for --replay and for bug reports; with -A all that the commands "
        "read"
    )
    add("--capture FILE", text)
    parser.add_argument(
        "--no-remedies",
        dest="remedies",
        action="store_false",
        help="do not search for changes that place a binding which is not placed",
    )
    text = f"of that search (default {_REMEDY_SECONDS:g}s); why-not searches on"
    add("--timeout TIME", text, shared.seconds, default=_REMEDY_SECONDS)
    shared.add_output(parser, "markdown", "html", "name", "wide")
    add("-q --quiet", "only the answer, the steps, and what is wrong")
    text = f"print each change of the state until the binding is placed, for this time at most (default {_WATCH_SECONDS:g}s)"
    add("-w --watch TIME", text, shared.seconds, nargs="?", const=_WATCH_SECONDS)
    return parser


def _add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name many bindings."""
    group = parser.add_argument_group("all bindings by state and cause, instead of one binding")
    add = partial(shared.add, group)
    add("-A --all-namespaces", "of all namespaces, and those without one")
    add("--policy [NS/]NAME", "those that this policy claims, of all namespaces")
    add("-l --selector SELECTOR", "those of -n or -A with these labels: app=web,tier in (a,b),!canary")
    add("--on CLUSTER", "those that are on this cluster")


def whynot_parser() -> argparse.ArgumentParser:
    """Return the parser of why-not's arguments."""
    parser = shared.make_parser(
        "why-not",
        "Explain why a cluster has no replicas of a binding, and find changes after which the scheduler, "
        "run again, puts replicas there.",
        "Exit status: 0 the cluster has replicas, or a change was found; 1 no change was found; 2 there is no "
        "answer, or some input cannot be used.",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="[NS/][KIND/]NAME",
        help="the binding (rb/NAME, crb/NAME), or the workload that it propagates (deploy/NAME)",
    )
    text = "the cluster, or all with region=NAME, zone=NAME, provider=NAME, or a label KEY=VALUE"
    parser.add_argument("cluster", nargs="?", default="", metavar="CLUSTER", help=text)
    text = "namespace of the binding (default: that of the context, or default)"
    shared.add(parser, "-n --namespace NAMESPACE", text)
    add = partial(shared.add, parser.add_mutually_exclusive_group())
    add("--placed", "find changes that place the binding anywhere")
    add("--off", "find changes after which the cluster has none")
    text = (
        "without a binding: which bindings this cluster does not have, by primary cause (30s, or --timeout)"
    )
    add("--cluster CLUSTER", text, dest="of_cluster")
    add("--replicas N", "at least N", shared.positive, default=1)
    add = partial(shared.add, parser)
    parser.add_argument(
        "--allow",
        action="append",
        choices=("configuration",),
        default=[],
        help="also try single changes of gates and plugins of the scheduler",
    )
    add("--as-new", "as if nothing had ever been scheduled")
    add("--timeout TIME", "of the search (default 2s)", shared.seconds)
    add("--max-runs N", "sets of changes to try", shared.positive, default=96)
    shared.add_objects(parser, cluster_flag="--kubeconfig-cluster", replays_rules=True)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    shared.add_output(parser)
    return parser


def status_parser() -> argparse.ArgumentParser:
    """Return the parser of status's arguments."""
    parser = shared.make_parser(
        "status",
        "Show which schedulers the bindings name, whether they decide, by which version and rules, and how many bindings "
        "and replicas they have placed; when certificates end; and what of that you may not read.",
        "Exit status: 0 every scheduler that a binding names decides; 1 one does not, or what is read does not tell; "
        "2 there is no answer.",
    )
    shared.add_objects(parser)
    shared.add_scheduler_manifest(parser, "its version, gates and plugins are shown")
    shared.add_process(parser, "whose version, rules and queue are shown")
    text = f"wait until the exit status is 0, for this time at most (default {_WAIT_SECONDS:g}s)"
    shared.add(parser, "--wait TIME", text, shared.seconds, nargs="?", const=_WAIT_SECONDS)
    shared.add_output(parser)
    return parser
