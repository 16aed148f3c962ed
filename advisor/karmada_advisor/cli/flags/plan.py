"""The flags of ``plan``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from karmada_advisor.cli.flags import shared

FAIL_ON: Final = (
    *("unchanged", "moved", "placed", "unplaced", "stuck", "held", "undecided", "latent", "deferred"),
    *("deleted", "adopted", "released", "overcommit", "blocked", "warnings", "drift", "none"),
)
"""What ``--fail-on`` takes: the classes of ``plan.model.CLASSES``, and what a plan has besides."""

DEFAULT_FAIL_ON: Final = "unplaced,stuck,undecided,blocked,warnings"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "plan",
        "Compare the decisions of the scheduler before and after a change, and classify the bindings. "
        "Nothing is written.",
        f"Exit status: 0 there is nothing of --fail-on (default {DEFAULT_FAIL_ON}); 1 there is; 2 there "
        "is no answer, some input cannot be used, or --expect names another fleet.",
    )
    _add_changes(parser)
    parser.add_argument(
        "-n",
        "--namespace",
        default="",
        help="namespace of objects of -f that name none (default: that of the context, or default)",
    )
    shared.add_objects(parser)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    _add_current_rules(parser)
    shared.add_process(parser, "whose rules are the current ones")
    parser.add_argument(
        "--enable-no-execute-taint-eviction",
        action="store_true",
        help="karmada-controller-manager runs with this flag: it evicts from clusters with NoExecute taints",
    )
    parser.add_argument("--no-drift", action="store_true", help="do not compute what would change anyway")
    shared.add_expected_fleet(parser, "plan")
    parser.add_argument(
        "--fail-on",
        default=DEFAULT_FAIL_ON,
        metavar="LIST",
        help=f"exit with 1 if there is any of these: {', '.join(FAIL_ON)} (default {DEFAULT_FAIL_ON})",
    )
    shared.add_output(parser, "markdown")
    return parser


def _add_changes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "the change: any of these, combined; --feature-gates, --decisions-of, --plugins, --config too"
    )
    add = partial(shared.add_texts, group)
    add(
        "--filename",
        "FILE",
        "policies, clusters, bindings, templates; a directory is read whole, - is standard input",
        "-f",
    )
    add("--delete", "KIND/[NS/]NAME", "delete an object: PropagationPolicy/shop/web, Cluster/eu-west-3")
    add("--edit", "KIND/[NS/]NAME=PATCH", "change an object by a merge patch, as kubectl patch --type merge")
    add("--without", "C", "delete a cluster, as karmadactl unjoin")
    add("--cordon", "C", "cordon a cluster, as karmadactl cordon")
    add("--uncordon", "C", "uncordon a cluster")
    add("--ready", "C=false", "let a cluster be ready or not, with the taint that Karmada gives to it")
    add("--taint", "C=key=value:Effect", "add a taint, or remove it: C=key-")
    add("--label", "C=key=value", "set a label of a cluster, or remove it: C=key-")
    add("--room", "C=cpu=+20,memory=-64Gi", "change what is free in a cluster; without a sign, set it")
    add("--add", "NAME=LIKE|FILE", "add an empty cluster that is like another one, or the Clusters of a file")
    add("--scale", "NS/NAME=30", "set the replicas of a workload (NS/KIND/NAME if several have the name)")
    add("--rebalance", "NS/NAME", "request a reschedule of a workload, as a WorkloadRebalancer")


def _add_current_rules(parser: argparse.ArgumentParser) -> None:
    current = parser.add_argument_group("the scheduler as it is now, where it differs from the defaults")
    for name, what in (
        ("feature-gates", "gates, as A=true,B=false"),
        ("plugins", "enabled plugins"),
        ("config", "the configuration file"),
        ("plugin-dir", "directory of plugin files"),
    ):
        shared.add_texts(current, f"--current-{name}", "VALUE", f"{what}; see --{name}")
    shared.add_decisions_of(current, "--current-decisions-of")
