"""The flags of ``why-not``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from karmada_advisor.cli.flags import shared

_MAX_REPLICAS: Final = 2**31 - 1


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
    add("--replicas N", "at least N", _replicas, default=1)
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
    add("--max-runs N", "sets of changes to try", _positive, default=96)
    shared.add_objects(parser, cluster_flag="--kubeconfig-cluster", replays_rules=True)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    shared.add_output(parser)
    return parser


def _positive(text: str) -> int:
    """Return an integer from 1; what is no integer is argparse's own error."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {number}")
    return number


def _replicas(text: str) -> int:
    """Return a number of replicas from 1 that a workload can have."""
    number = _positive(text)
    if number > _MAX_REPLICAS:
        raise argparse.ArgumentTypeError(f"a workload has at most {_MAX_REPLICAS} replicas, got {number}")
    return number
