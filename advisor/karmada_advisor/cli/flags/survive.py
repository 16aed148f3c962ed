"""The flags of ``survive``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared

SURVIVE_FAIL_ON: Final = "dark"
DOMAINS: Final = "cluster, zone, region, provider or label=KEY"
LOSSES: Final = ("gone", "itself", "deleted")
TOP: Final = 10
REMEDIES: Final = 3
TIMEOUT_SECONDS: Final = 600.0


def survive_parser() -> argparse.ArgumentParser:
    """Return the parser of survive's arguments."""
    parser = shared.make_parser(
        "survive",
        "Say for each cluster, zone, region and provider which bindings its loss would leave without a home, with "
        "fewer replicas, or where they are. Nothing is written.",
        f"Exit status: 0 no loss does anything of --fail-on (default {SURVIVE_FAIL_ON}); 1 one does; 2 there is no "
        "answer, some input cannot be used, not all domains are done, or --expect names another fleet.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="look at these clusters, zones, regions, ... only, each alone (default: all)",
    )
    add = partial(shared.add, parser)
    add(
        "--domain KIND...",
        f"what is lost together: {DOMAINS}; may be repeated (default: cluster, and of zone, region and provider those "
        "with at least two values)",
    )
    add(
        f"--loss {'|'.join(LOSSES)}",
        "the world after the loss by which domains are ordered and judged: bindings are evicted, as far as they do "
        "not tolerate it; what Karmada does by itself; or the Cluster objects are deleted",
    )
    add("--spanning kept|lost", "whether a cluster in several zones is lost with each of them")
    text = "report bindings of this namespace only; may be repeated. All bindings compete for capacity"
    add("-n --namespace NAMESPACE...", text, dest="namespaces")
    add(
        "--pairs A+B|N...",
        "also lose two domains at once: those named, or N pairs of clusters, half of them of the worst 50; shown is what "
        "neither does alone; may be repeated",
    )
    add("--min-priority N", "report bindings whose schedulePriority is at least N only", int)
    add(
        "--demand returns|holds",
        "what counts as surviving: every replica runs again; or nothing is interrupted either, which is then the "
        "default of --fail-on, and what remedies have to reach (default returns)",
    )
    text = "report bindings of this policy only, as NAME or NAMESPACE/NAME; may be repeated"
    add("--policy NAME...", text)
    add("--top N", "domains and groups of bindings in the text", shared.positive, default=TOP)
    add(
        "--fail-on LIST",
        "what gives the exit status 1: classes of docs/survive.md, dark, interrupted, missing, overcommit, spof, none; "
        f"for one kind of domain as dark@zone (default {SURVIVE_FAIL_ON}, and not-judged if there is any)",
    )
    add("--baseline FILE", "an earlier report as JSON: --fail-on counts only what is worse than there")
    add_reactions(parser)
    text = "end with the domains that are done, those with the most bindings first, and with status 2"
    add("--timeout TIME", text, _time, default=TIMEOUT_SECONDS)
    text = "remedies for each policy with failing bindings"
    add("--remedies N", text, shared.positive, default=REMEDIES)
    add("--no-remedies", "look for no edits after which workloads survive")
    add("--write-to DIR", "write the report there in all formats, as survive.json and so on", Path)
    text = "write figures there in the text format of Prometheus, for node_exporter"
    add("--metrics FILE", text)
    shared.add_fleet(parser, "report")
    shared.add_output(parser, "markdown", "html", "junit")
    return parser


def add_reactions(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how Karmada reacts to the loss of a cluster."""
    shared.add(
        parser,
        "--controller-manager FILE",
        "the Deployment or Pod of karmada-controller-manager as YAML, - for standard input, for its gates and flags "
        "(default: Karmada's defaults)",
    )
    text = "ClusterTaintPolicies, where objects come from files; may be repeated"
    shared.add(parser, "--taint-policies FILE...", text)


def _time(text: str) -> float:
    """Return a time in seconds, as ``2s`` or ``0``."""
    return 0.0 if text.strip() in {"0", "0s"} else shared.seconds(text)
