"""The flags of the questions about placement: ``explain``, ``status`` and ``why-not``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from karmada_advisor.cli.flags import shared

_SCOPE: Final = {
    "-A --all-namespaces": "of all namespaces, and those without one",
    "--policy [NS/]NAME": "those that this policy claims, of all namespaces",
    "-l --selector SELECTOR": "those of -n or -A with these labels: app=web,tier in (a,b),!canary",
    "--on CLUSTER": "those that are on this cluster",
}
"""The flags that name many bindings."""


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
    scope = parser.add_argument_group("all bindings by state and cause, instead of one binding")
    shared.add_all(scope, _SCOPE)
    shared.add_objects(parser, replays_rules=True)
    shared.add_all(parser, shared.QUOTAS)
    shared.add_rules(parser)
    effect = "; its profiles, plugins, arguments and feature gates are used"
    shared.add_process(parser, "for its record and its queue", effect)
    text = "also write all that the answer is made of into a file, for --replay and for bug reports; with -A all that the commands read"
    add("--capture FILE", text)
    text = "do not search for changes that place a binding which is not placed"
    add("--no-remedies", text, dest="remedies", action="store_false")
    add("--timeout TIME = 2s", "of that search (default 2s); why-not searches on")
    shared.add_output(parser, "markdown", "html", "name", "wide")
    add("-q --quiet", "only the answer, the steps, and what is wrong")
    text = "print each change of the state until the binding is placed, for this time at most (default 600s)"
    add("-w --watch [TIME = 600s]", text)
    return parser


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
    add("--replicas N = 1", "at least N")
    add = partial(shared.add, parser)
    text = "also try single changes of gates and plugins of the scheduler"
    add("--allow configuration", text, action="append", default=[])
    add("--as-new", "as if nothing had ever been scheduled")
    add("--timeout TIME", "of the search (default 2s)")
    add("--max-runs N = 96", "sets of changes to try")
    shared.add_objects(parser, cluster_flag="--kubeconfig-cluster", replays_rules=True)
    shared.add_all(parser, shared.QUOTAS)
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
    text = "wait until the exit status is 0, for this time at most (default 300s)"
    shared.add(parser, "--wait [TIME = 300s]", text)
    shared.add_output(parser)
    return parser
