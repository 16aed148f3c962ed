"""The flags of ``why-not``."""

from __future__ import annotations

import argparse
from typing import Final

from karmada_advisor.cli.flags import shared

_MAX_REPLICAS: Final = 2**31 - 1


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
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
    parser.add_argument("cluster", nargs="?", default="", metavar="CLUSTER", help="the cluster")
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        help="namespace of the binding (default: that of the context, or default)",
    )
    goals = parser.add_mutually_exclusive_group()
    goals.add_argument("--placed", action="store_true", help="find changes that place the binding anywhere")
    goals.add_argument("--off", action="store_true", help="find changes after which the cluster has none")
    goals.add_argument(
        "--cluster",
        dest="of_cluster",
        default="",
        metavar="CLUSTER",
        help="without a binding: which bindings this cluster does not have, by primary cause (30s, or --timeout)",
    )
    goals.add_argument("--replicas", type=_replicas, default=1, metavar="N", help="at least N (default 1)")
    parser.add_argument(
        "--allow",
        action="append",
        choices=("configuration",),
        default=[],
        help="also try single changes of gates and plugins of the scheduler",
    )
    parser.add_argument("--as-new", action="store_true", help="as if nothing had ever been scheduled")
    parser.add_argument("--timeout", type=shared.seconds, metavar="TIME", help="of the search (default 2s)")
    parser.add_argument(
        "--max-runs",
        type=_positive,
        default=96,
        metavar="N",
        help="sets of changes to try (default 96)",
    )
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
