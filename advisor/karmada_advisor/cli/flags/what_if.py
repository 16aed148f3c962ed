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


def plan_parser() -> argparse.ArgumentParser:
    """Return the parser of plan's arguments."""
    parser = shared.make_parser(
        "plan",
        "Compare the decisions of the scheduler before and after a change, and classify the bindings. "
        "Nothing is written.",
        f"Exit status: 0 there is nothing of --fail-on (default {PLAN_FAIL_ON}); 1 there is; 2 there "
        "is no answer, some input cannot be used, or --expect names another fleet.",
    )
    _add_changes(parser)
    text = "namespace of objects of -f that name none (default: that of the context, or default)"
    shared.add(parser, "-n --namespace NAMESPACE", text)
    shared.add_objects(parser)
    shared.add_quotas(parser)
    shared.add_rules(parser)
    _add_current_rules(parser)
    shared.add_process(parser, "whose rules are the current ones")
    text = "karmada-controller-manager runs with this flag: it evicts from clusters with NoExecute taints"
    shared.add(parser, "--enable-no-execute-taint-eviction", text)
    shared.add(parser, "--no-drift", "do not compute what would change anyway")
    shared.add_expected_fleet(parser, "plan")
    text = f"exit with 1 if there is any of these: {', '.join(FAIL_ON)} (default {PLAN_FAIL_ON})"
    shared.add(parser, "--fail-on LIST", text, default=PLAN_FAIL_ON)
    shared.add_output(parser, "markdown")
    return parser


def _add_changes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "the change: any of these, combined; --feature-gates, --decisions-of, --plugins, --config too"
    )
    add = partial(shared.add, group)
    text = "policies, clusters, bindings, templates; a directory is read whole, - is standard input"
    add("-f --filename FILE...", text)
    add("--apply client|server", "which side of kubectl apply merges -f with what is stored")
    add("--delete KIND/[NS/]NAME...", "delete an object: PropagationPolicy/shop/web, Cluster/eu-west-3")
    text = "change an object by a merge patch, as kubectl patch --type merge"
    add("--edit KIND/[NS/]NAME=PATCH...", text)
    add("--without C...", "delete a cluster, as karmadactl unjoin")
    add("--cordon C...", "cordon a cluster, as karmadactl cordon")
    add("--uncordon C...", "uncordon a cluster")
    add("--ready C=false...", "let a cluster be ready or not, with the taint that Karmada gives to it")
    add("--taint C=key=value:Effect...", "add a taint, or remove it: C=key-")
    add("--label C=key=value...", "set a label of a cluster, or remove it: C=key-")
    add("--room C=cpu=+20,memory=-64Gi...", "change what is free in a cluster; without a sign, set it")
    text = "add an empty cluster that is like another one, or the Clusters of a file"
    add("--add NAME=LIKE|FILE...", text)
    add("--scale NS/NAME=30...", "set the replicas of a workload (NS/KIND/NAME if several have the name)")
    add("--rebalance NS/NAME...", "request a reschedule of a workload, as a WorkloadRebalancer")


def _add_current_rules(parser: argparse.ArgumentParser) -> None:
    current = parser.add_argument_group("the scheduler as it is now, where it differs from the defaults")
    add = partial(shared.add, current)
    add("--current-feature-gates VALUE...", "gates, as A=true,B=false; see --feature-gates")
    add("--current-plugins VALUE...", "enabled plugins; see --plugins", default=None)
    add("--current-config VALUE", "the configuration file; see --config", Path)
    add("--current-plugin-dir VALUE...", "directory of plugin files; see --plugin-dir", Path)
    shared.add_decisions_of(current, "--current-decisions-of")


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
