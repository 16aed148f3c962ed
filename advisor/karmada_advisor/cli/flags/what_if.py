"""The flags of the questions about changes: ``plan``, ``rebalance`` and ``survive``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared

FAIL_ON: Final = (
    *("unchanged", "moved", "placed", "unplaced", "stuck", "held", "undecided", "not-judged", "latent"),
    *("deferred", "deleted", "adopted", "released", "cannot-start", "pending"),
    *("overcommit", "blocked", "warnings", "drift", "none"),
)
"""What ``--fail-on`` takes: the classes of ``plan.model.CLASSES``, and what a plan has besides."""

PLAN_FAIL_ON: Final = "unplaced,stuck,undecided,not-judged,cannot-start,blocked,warnings"

GOALS: Final = "spread, consolidate or fill=CLUSTER"

SURVIVE_FAIL_ON: Final = "dark"
DOMAINS: Final = "cluster, zone, region, provider or label=KEY"
LOSSES: Final = ("gone", "itself", "deleted")
TOP: Final = 10
REMEDIES: Final = 3
TIMEOUT_SECONDS: Final = 600.0


_CHANGES: Final = {
    "-f --filename FILE...": "policies, clusters, bindings, templates; a directory is read whole, - is standard input",
    "--apply client|server": "which side of kubectl apply merges -f with what is stored",
    "--delete KIND/[NS/]NAME...": "delete an object: PropagationPolicy/shop/web, Cluster/eu-west-3",
    "--edit KIND/[NS/]NAME=PATCH...": "change an object by a merge patch, as kubectl patch --type merge",
    "--without C...": "delete a cluster, as karmadactl unjoin",
    "--cordon C...": "cordon a cluster, as karmadactl cordon",
    "--uncordon C...": "uncordon a cluster",
    "--ready C=false...": "let a cluster be ready or not, with the taint that Karmada gives to it",
    "--taint C=key=value:Effect...": "add a taint, or remove it: C=key-",
    "--label C=key=value...": "set a label of a cluster, or remove it: C=key-",
    "--room C=cpu=+20,memory=-64Gi...": "change what is free in a cluster; without a sign, set it",
    "--add NAME=LIKE|FILE...": "add an empty cluster that is like another one, or the Clusters of a file",
    "--scale NS/NAME=30...": "set the replicas of a workload (NS/KIND/NAME if several have the name)",
    "--rebalance NS/NAME...": "request a reschedule of a workload, as a WorkloadRebalancer",
}
_PLANNED: Final = {
    "--enable-no-execute-taint-eviction": "karmada-controller-manager runs with this flag: it evicts from clusters with NoExecute taints",
    "--no-drift": "do not compute what would change anyway",
}


def plan_parser() -> argparse.ArgumentParser:
    """Return the parser of plan's arguments."""
    parser = shared.make_parser(
        "plan",
        "Compare the decisions of the scheduler before and after a change, and classify the bindings. "
        "Nothing is written.",
        f"Exit status: 0 there is nothing of --fail-on (default {PLAN_FAIL_ON}); 1 there is; 2 there "
        "is no answer, some input cannot be used, or --expect names another fleet.",
    )
    group = parser.add_argument_group(
        "the change: any of these, combined; --feature-gates, --decisions-of, --plugins, --config too"
    )
    shared.add_all(group, _CHANGES)
    text = "namespace of objects of -f that name none (default: that of the context, or default)"
    shared.add(parser, "-n --namespace NAMESPACE", text)
    shared.add_objects(parser)
    shared.add_all(parser, shared.QUOTAS)
    shared.add_rules(parser)
    current = parser.add_argument_group("the scheduler as it is now, where it differs from the defaults")
    add = partial(shared.add, current)
    add("--current-feature-gates VALUE...", "gates, as A=true,B=false; see --feature-gates")
    add("--current-plugins VALUE...", "enabled plugins; see --plugins", default=None)
    add("--current-config VALUE", "the configuration file; see --config", type=Path)
    add("--current-plugin-dir VALUE...", "directory of plugin files; see --plugin-dir", type=Path)
    shared.add_decisions_of(current, "--current-decisions-of")
    shared.add_process(parser, "whose rules are the current ones")
    shared.add_all(parser, _PLANNED)
    shared.add_expected_fleet(parser, "plan")
    text = f"exit with 1 if there is any of these: {', '.join(FAIL_ON)} (default {PLAN_FAIL_ON})"
    shared.add(parser, f"--fail-on LIST = {PLAN_FAIL_ON}", text)
    shared.add_output(parser, "markdown")
    return parser


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
    add("--max-moves N", "replicas that stop, of all bindings together", required=True)
    add("--max-bindings N", "bindings (default: any number)")
    add("--max-per-namespace N", "bindings of one namespace (default: any number)")
    text = "the part of its replicas that each binding keeps where they are, as 50%% or 0.5 (default 50%%)"
    add("--min-kept SHARE = 50%", text, type=_share)
    add("--goal GOAL = spread", GOALS)
    text = "what each replica that moves has to gain: squared deviations of shares for spread, clusters for consolidate, replicas for fill (default 0)"
    add("--min-gain X = 0", text, type=_gain)
    text = "move bindings of this namespace only; may be repeated (default: all bindings)"
    add("-n --namespace NAMESPACE...", text, dest="namespaces")
    text = "bindings that are not moved, as NAMESPACE/NAME with * and ?; may be repeated"
    add("--exclude PATTERN...", text)
    add("--batch-size N = 10", "bindings in a WorkloadRebalancer")
    add("--write-to DIR", "write the WorkloadRebalancers there, as batch-1.yaml and so on")
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


_LOST: Final = {
    "--domain KIND...": f"what is lost together: {DOMAINS}; may be repeated (default: cluster, and of zone, region and provider those with at least two values)",
    f"--loss {'|'.join(LOSSES)}": "the world after the loss by which domains are ordered and judged: bindings are evicted, as far as they do not tolerate it; what Karmada does by itself; or the Cluster objects are deleted",
    "--spanning kept|lost": "whether a cluster in several zones is lost with each of them",
}
_JUDGED: Final = {
    "--demand returns|holds": "what counts as surviving: every replica runs again; or nothing is interrupted either, which is then the default of --fail-on, and what remedies have to reach (default returns)",
    "--policy NAME...": "report bindings of this policy only, as NAME or NAMESPACE/NAME; may be repeated",
    f"--top N = {TOP}": "domains and groups of bindings in the text",
    "--fail-on LIST": f"what gives the exit status 1: classes of docs/survive.md, dark, interrupted, missing, overcommit, spof, none; for one kind of domain as dark@zone (default {SURVIVE_FAIL_ON}, and not-judged if there is any)",
    "--baseline FILE": "an earlier report as JSON: --fail-on counts only what is worse than there",
}
_REPORTED: Final = {
    f"--remedies N = {REMEDIES}": "remedies for each policy with failing bindings",
    "--no-remedies": "look for no edits after which workloads survive",
    "--write-to DIR": "write the report there in all formats, as survive.json and so on",
    "--metrics FILE": "write figures there in the text format of Prometheus, for node_exporter",
}


def survive_parser() -> argparse.ArgumentParser:
    """Return the parser of survive's arguments."""
    parser = shared.make_parser(
        "survive",
        "Say for each cluster, zone, region and provider which bindings its loss would leave without a home, with "
        "fewer replicas, or where they are. Nothing is written.",
        f"Exit status: 0 no loss does anything of --fail-on (default {SURVIVE_FAIL_ON}); 1 one does; 2 there is no "
        "answer, some input cannot be used, not all domains are done, or --expect names another fleet.",
    )
    text = "look at these clusters, zones, regions, ... only, each alone (default: all)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=text)
    shared.add_all(parser, _LOST)
    add = partial(shared.add, parser)
    text = "report bindings of this namespace only; may be repeated. All bindings compete for capacity"
    add("-n --namespace NAMESPACE...", text, dest="namespaces")
    text = "also lose two domains at once: those named, or N pairs of clusters, half of them of the worst 50; shown is what neither does alone; may be repeated"
    add("--pairs A+B|N...", text)
    add("--min-priority N", "report bindings whose schedulePriority is at least N only", type=int)
    shared.add_all(parser, _JUDGED)
    add_reactions(parser)
    text = "end with the domains that are done, those with the most bindings first, and with status 2"
    add(f"--timeout TIME = {TIMEOUT_SECONDS:g}s", text, type=_time)
    shared.add_all(parser, _REPORTED)
    shared.add_fleet(parser, "report")
    shared.add_output(parser, "markdown", "html", "junit")
    return parser


def add_reactions(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how Karmada reacts to the loss of a cluster."""
    shared.add_all(parser, _REACTIONS)


_REACTIONS: Final = {
    "--controller-manager FILE": "the Deployment or Pod of karmada-controller-manager as YAML, - for standard input, for its gates and flags (default: Karmada's defaults)",
    "--taint-policies FILE...": "ClusterTaintPolicies, where objects come from files; may be repeated",
}


def _time(text: str) -> float:
    """Return a time in seconds, as ``2s`` or ``0``."""
    return 0.0 if text.strip() in {"0", "0s"} else shared.seconds(text)
