"""The flags of ``rebalance``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared

GOALS: Final = "spread, consolidate or fill=CLUSTER"


def rebalance_parser() -> argparse.ArgumentParser:
    """Return the parser of rebalance's arguments."""
    parser = shared.make_parser(
        "rebalance",
        "Propose which bindings a WorkloadRebalancer should reschedule, in batches, with the result of each "
        "decision. Nothing is executed: kubectl create does that with the manifests of --write-to.",
        "Exit status: 0 there is a proposal, or nothing to rebalance; 1 some bindings are not judged; 2 there is no answer, some input cannot be "
        "used, or --expect names another fleet.",
    )
    add = partial(shared.add, parser)
    text = "replicas that stop, of all bindings together"
    add("--max-moves N", text, shared.positive, required=True)
    add("--max-bindings N", "bindings (default: any number)", shared.positive)
    add("--max-per-namespace N", "bindings of one namespace (default: any number)", shared.positive)
    text = "the part of its replicas that each binding keeps where they are, as 50%% or 0.5 (default 50%%)"
    add("--min-kept SHARE", text, _share, default=0.5)
    add("--goal GOAL", GOALS, default="spread")
    text = (
        "what each replica that moves has to gain: squared deviations of shares for spread, clusters for "
        "consolidate, replicas for fill (default 0)"
    )
    add("--min-gain X", text, _gain, default=0.0)
    text = "move bindings of this namespace only; may be repeated (default: all bindings)"
    add("-n --namespace NAMESPACE...", text, dest="namespaces")
    text = "bindings that are not moved, as NAMESPACE/NAME with * and ?; may be repeated"
    add("--exclude PATTERN...", text)
    add("--batch-size N", "bindings in a WorkloadRebalancer", shared.positive, default=10)
    add("--write-to DIR", "write the WorkloadRebalancers there, as batch-1.yaml and so on", Path)
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
