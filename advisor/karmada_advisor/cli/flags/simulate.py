"""The flags of ``simulate``."""

from __future__ import annotations

import argparse

from karmada_advisor.cli.flags import shared


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "simulate",
        "Decide where the bindings of a file would go on the clusters of another.",
        "Bindings are decided in the order of the files, each as if the decisions before it had been written. "
        "PreEnqueue, Reserve and Permit plugins are called, PreBind, Bind and PostBind plugins are not. "
        "Exit status: 0 every binding is placed; 1 some are not, are gated at PreEnqueue, wait at Permit, or name "
        "a scheduler that no profile has; 2 some input cannot be used (the rest was still decided, unless there is no cluster).",
    )
    for name, what in (("--clusters", "Clusters"), ("--bindings", "bindings of both kinds")):
        parser.add_argument(
            name, required=True, action="append", metavar="FILE", help=f"{what}: {shared.FILES}"
        )
    shared.add_workloads(parser)
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
        "-o",
        "--output",
        choices=("json", "table", "yaml"),
        default="table",
        help="what to print (default table)",
    )
    shared.add_rules(parser)
    return parser
