"""The flags of ``simulate``."""

from __future__ import annotations

import argparse
from functools import partial

from karmada_advisor.cli.flags import shared


def simulate_parser() -> argparse.ArgumentParser:
    """Return the parser of simulate's arguments."""
    parser = shared.make_parser(
        "simulate",
        "Decide where the bindings of a file would go on the clusters of another.",
        "Bindings are decided in the order of the files, each as if the decisions before it had been written. "
        "PreEnqueue, Reserve and Permit plugins are called, PreBind, Bind and PostBind plugins are not. "
        "Exit status: 0 every binding is placed; 1 some are not, are gated at PreEnqueue, wait at Permit, or name "
        "a scheduler that no profile has; 2 some input cannot be used (the rest was still decided, unless there is no cluster).",
    )
    add = partial(shared.add, parser)
    add("--clusters FILE...", f"Clusters: {shared.FILES}", required=True, default=None)
    add("--bindings FILE...", f"bindings of both kinds: {shared.FILES}", required=True, default=None)
    shared.add_workloads(parser)
    add("--anew", "decide placed bindings as if they were new", dest="as_new")
    text = "exit with 0 although some bindings have a schedulerName that no profile of --config, and not --scheduler-name, has"
    add("--ignore-other-schedulers", text)
    add("-o --output json|table|yaml", "what to print", default="table")
    shared.add_rules(parser)
    return parser
