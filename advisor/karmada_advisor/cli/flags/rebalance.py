"""The flags of ``rebalance``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared

GOALS: Final = "spread, consolidate or fill=CLUSTER"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "rebalance",
        "Propose which bindings a WorkloadRebalancer should reschedule, in batches, with the result of each "
        "decision. Nothing is executed: kubectl create does that with the manifests of --write-to.",
        "Exit status: 0 there is a proposal, or nothing to rebalance; 2 there is no answer, some input cannot be "
        "used, or --expect names another fleet.",
    )
    parser.add_argument(
        "--max-moves",
        type=shared.positive,
        required=True,
        metavar="N",
        help="replicas that stop, of all bindings together",
    )
    for flag, what in (("bindings", "bindings"), ("per-namespace", "bindings of one namespace")):
        parser.add_argument(
            f"--max-{flag}", type=shared.positive, metavar="N", help=f"{what} (default: any number)"
        )
    parser.add_argument(
        "--min-kept",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="the part of its replicas that each binding keeps where they are, as 50%% or 0.5 (default 50%%)",
    )
    parser.add_argument("--goal", default="spread", metavar="GOAL", help=f"{GOALS} (default spread)")
    parser.add_argument(
        "--min-gain",
        type=_gain,
        default=0.0,
        metavar="X",
        help="what each replica that moves has to gain: the sum of the squares of shares for spread, clusters for "
        "consolidate, replicas for fill (default 0)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        dest="namespaces",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="move bindings of this namespace only; may be repeated (default: all bindings)",
    )
    shared.add_texts(
        parser,
        "--exclude",
        "PATTERN",
        "bindings that are not moved, as NAMESPACE/NAME with * and ?; may be repeated",
    )
    parser.add_argument(
        "--batch-size",
        type=shared.positive,
        default=10,
        metavar="N",
        help="bindings in a WorkloadRebalancer (default 10)",
    )
    parser.add_argument(
        "--write-to",
        type=Path,
        metavar="DIR",
        help="write the WorkloadRebalancers there, as batch-1.yaml and so on",
    )
    shared.add_fleet(parser, "proposal")
    shared.add_output(parser)
    return parser


def _share(text: str) -> float:
    """Return a share from 0 to 1, written as ``0.5`` or ``50%``."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"expected a share from 0% to 100%, got {text!r}")
    return found


def _gain(text: str) -> float:
    """Return a finite number from 0."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r}")
    return found
