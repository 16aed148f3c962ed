"""Edits for a cluster that a filter refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.filter_evidence import served_versions, untolerated
from karmada_advisor.explain.names import nearest, nearest_value
from karmada_advisor.whynot.edits import Edit, Harm, ObjectRef, PatchAction, Side
from karmada_advisor.whynot.vocabulary import affinity, selectors
from karmada_advisor.whynot.vocabulary.context import PLACEMENT, Context
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.placement import (
    SPREAD_BY_CLUSTER,
    SPREAD_BY_PROVIDER,
    SPREAD_BY_REGION,
    SPREAD_BY_ZONE,
)
from karmada_scheduler.api.well_known import CORDON_TAINT, KARMADA_TAINTS

BECOME_READY: Final = "becomeReady"
"""The repair of a cluster, of which the removal of taints is the effect."""


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for the plugin that refuses the cluster first."""
    match context.blocker.code:
        case "ClusterAffinity":
            yield from affinity.proposals(context)
        case "TaintToleration":
            yield from _taints(context)
        case "SpreadConstraint":
            yield from _spread(context)
        case "APIEnablement":
            yield from _api(context)
        case "ClusterEviction":
            yield from _evictions(context)
        case "WorkloadAffinity":
            yield from _group(context, "affinityGroup")
        case "WorkloadAntiAffinity":
            yield from _group(context, "antiAffinityGroup")
    if context.placement.cluster_affinities:
        yield from _other_terms(context)


def _other_terms(context: Context) -> Iterator[Edit]:
    """Yield the edit that drops the term in which the cluster is refused, if another term follows."""
    if context.blocker.code == "ClusterAffinity" or context.attempt is None:
        return
    listed = context.items(*PLACEMENT, "clusterAffinities")
    for index, term in enumerate(listed):
        if (
            isinstance(term, dict)
            and term.get("affinityName") == context.attempt.affinity_name
            and len(listed) > 1
        ):
            yield affinity.drop_term(context, index, context.attempt.affinity_name, extra=1.0)


def _taints(context: Context) -> Iterator[Edit]:
    listed = context.at(context.cluster_ref, ("spec", "taints")) or []
    refusing = untolerated(context.cluster, context.placement)
    ours = [taint for taint in refusing if taint.key in KARMADA_TAINTS]
    if ours:
        yield _ready_again(context, ours, listed)
    refusing = [taint for taint in refusing if taint not in ours]
    for taint in refusing:
        is_cordon = taint.key == CORDON_TAINT
        yield from _corrected_toleration(context, taint)
        for index, found in enumerate(listed):
            if (found.get("key") or "", found.get("value") or "", found.get("effect") or "") == tuple(taint):
                yield context.on_cluster(
                    "removeTaint",
                    PatchAction.REMOVE,
                    ("spec", "taints", index),
                    f"uncordon it ({taint})" if is_cordon else f"remove the taint {taint}",
                    extra=-0.9 if is_cordon else 0.0,
                    harm=Harm.NONE if is_cordon else Harm.WIDENS,
                    caution=""
                    if is_cordon
                    else f"Somebody set the taint: {context.name} is then open to all workloads.",
                )
                break
        toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if taint.value:
            toleration = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        yield context.policy(
            "tolerate",
            PatchAction.APPEND,
            ("clusterTolerations",),
            f"tolerate {taint}",
            value=toleration,
            extra=0.2,
            harm=Harm.WIDENS if is_cordon else Harm.NONE,
            caution=f"{context.name} is cordoned: somebody took it out of use." if is_cordon else "",
        )
    if len(refusing) > 1:
        yield context.policy(
            "tolerateAll", PatchAction.APPEND, ("clusterTolerations",), "tolerate every taint",
            value={"operator": "Exists"}, extra=0.6, harm=Harm.WIDENS,
            caution="The workload then goes to every tainted cluster that the policy allows, also to clusters that are down.",
        )  # fmt: skip
        if not ours:
            yield context.on_cluster(
                "removeTaints", PatchAction.REMOVE, ("spec", "taints"), "remove all taints", extra=0.2,
                harm=Harm.WIDENS,
                caution=f"Somebody set the taints: {context.name} is then open to all workloads.",
            )  # fmt: skip


def _ready_again(context: Context, ours: Sequence[Taint], listed: list[Any]) -> Edit:
    """Return the effect of a repair of the cluster: Karmada removes its own taints, and sets them again if a person does."""
    keys = {each.key for each in ours}
    kept = [each for each in listed if not isinstance(each, dict) or each.get("key") not in keys]
    shown = ", ".join(sorted(keys))
    return context.on_cluster(
        BECOME_READY, PatchAction.SET, ("spec", "taints"), f"it is down ({shown}) and has to be Ready again", value=kept,
        extra=-1.0,
        instead=f"Repair {context.name} until its condition Ready is True; Karmada then removes the taint by itself.",
    )  # fmt: skip


def _corrected_toleration(context: Context, taint: Taint) -> Iterator[Edit]:
    """Yield the toleration that was meant for a taint: with another value or effect, or nearly the same key."""
    for index, each in enumerate(context.items(*PLACEMENT, "clusterTolerations")):
        if not isinstance(each, dict) or not each.get("key"):
            continue
        key = str(each["key"])
        if key != taint.key and not nearest_value(key, [taint.key]):
            continue
        changed = {**each, "key": taint.key}
        if each.get("effect"):
            changed["effect"] = taint.effect
        if each.get("operator") != "Exists" and (each.get("value") or "") != taint.value:
            if key != taint.key and each.get("value"):
                continue  # neither the key nor the value is that of the taint
            changed["value"] = taint.value
        yield context.policy(
            "correctToleration", PatchAction.SET, ("clusterTolerations", index),
            f"tolerate {taint} instead of {_toleration(each)}", value=changed, extra=-0.3,
        )  # fmt: skip


def _toleration(found: Mapping[str, Any]) -> str:
    value = f"={found['value']}" if found.get("value") else ""
    return f"{found.get('key')}{value}" + (f":{found['effect']}" if found.get("effect") else "")


def _spread(context: Context) -> Iterator[Edit]:
    cluster = context.cluster
    lacking = {
        SPREAD_BY_PROVIDER: not cluster.provider,
        SPREAD_BY_REGION: not cluster.region,
        SPREAD_BY_ZONE: not cluster.zones,
    }
    for index, constraint in enumerate(context.items(*PLACEMENT, "spreadConstraints")):
        name = constraint.get("spreadByField")
        if not lacking.get(name):
            continue
        if name == SPREAD_BY_ZONE:
            yield selectors.set_zones(context, "zone-1")
        else:
            yield from new_field(context, name)
        yield drop_constraint(context, index, name)
    if any(lacking.get(each.get("spreadByField")) for each in context.items(*PLACEMENT, "spreadConstraints")):
        yield from drop_constraints(context)


def new_field(context: Context, name: str) -> Iterator[Edit]:
    """Yield edits that fill in the region (or provider) of a cluster that has none: an existing one, or one of its own."""
    existing = sorted(
        {getattr(each, name) for each in context.outcome.snapshot} - {"", getattr(context.cluster, name)}
    )
    attempt = context.attempt
    used = [getattr(each.cluster, name) for each in attempt.selected] if attempt is not None else []
    first = [each for each in existing if each in used]
    others = [each for each in existing if each not in used]
    for number, value in enumerate([*first[:2], *others[:1], f"{context.name}-{name}"]):
        yield selectors.set_field(context, name, value, extra=0.05 * number)


def drop_constraint(context: Context, index: int, name: Any) -> Edit:
    """Return the edit that removes a spread constraint; without that of clusters, sets of components are not counted."""
    ends_check = name == SPREAD_BY_CLUSTER and context.counts_sets
    return context.policy(
        "dropConstraint",
        PatchAction.REMOVE,
        ("spreadConstraints", index),
        f"drop the {name} constraint",
        extra=0.5,
        harm=Harm.UNCHECKED if ends_check else Harm.WIDENS,
        caution=""
        if ends_check
        else f"It gives up the spread by {name} that the owner of the policy asked for.",
    )


def drop_constraints(context: Context) -> Iterator[Edit]:
    """Yield the edit that removes all spread constraints, if there are several."""
    if len(context.items(*PLACEMENT, "spreadConstraints")) > 1:
        yield context.policy(
            "dropConstraints", PatchAction.REMOVE, ("spreadConstraints",), "drop all spread constraints", extra=1.0,
            harm=Harm.UNCHECKED if context.counts_sets else Harm.WIDENS,
            caution="" if context.counts_sets else "It gives up every spread that the owner of the policy asked for.",
        )  # fmt: skip


def _api(context: Context) -> Iterator[Edit]:
    resource = context.binding.spec.resource
    group, slash, version = resource.api_version.partition("/")
    if slash and ("/" in version or not (group or version)):
        return
    group_version = version if slash and not group else resource.api_version
    yield from _served_version(context)
    kind = {"kind": resource.kind, "name": f"{resource.kind.lower()}s"}
    text = f"serve {group_version} {resource.kind} (install the CRD)"
    instead = f"Install what serves {group_version} {resource.kind} on {context.name}; Karmada then updates its list of APIs."
    listed = context.at(context.cluster_ref, ("status", "apiEnablements")) or []
    for index, found in enumerate(listed):
        if isinstance(found, dict) and found.get("groupVersion") == group_version:
            path = ("status", "apiEnablements", index, "resources")
            yield context.on_cluster("serveApi", PatchAction.APPEND, path, text, value=kind, instead=instead)
            return
    value = {"groupVersion": group_version, "resources": [kind]}
    yield context.on_cluster(
        "serveApi", PatchAction.APPEND, ("status", "apiEnablements"), text, value=value, instead=instead
    )


def _served_version(context: Context) -> Iterator[Edit]:
    """Yield the versions of the workload's API that the cluster serves, the nearest first."""
    resource = context.binding.spec.resource
    served = served_versions(context.cluster, resource)
    near = nearest(resource.api_version, served)
    for number, version in enumerate(sorted(served, key=lambda each: (each != near, each))[:2]):
        yield context.make(
            Side.WORKLOAD, "setApiVersion", context.objects.ref, PatchAction.SET, ("spec", "resource", "apiVersion"),
            value=version, extra=0.1 * number,
            text=f"write the {resource.kind} as {version} instead of {resource.api_version}",
            instead=f"Write the manifest and the selector of its policy as {version}; the binding follows.",
        )  # fmt: skip


def _evictions(context: Context) -> Iterator[Edit]:
    found = [
        index
        for index, task in enumerate(context.items("spec", "gracefulEvictionTasks"))
        if isinstance(task, dict) and task.get("fromCluster") == context.name
    ]
    for index in found:
        yield context.make(
            Side.CLUSTER, "endEviction", context.objects.ref, PatchAction.REMOVE, ("spec", "gracefulEvictionTasks", index),
            text=f"end the eviction from {context.name}", harm=Harm.WIDENS,
            caution=f"The eviction has a reason: the one who asked for it wants the replicas off {context.name}.",
        )  # fmt: skip


def _group(context: Context, name: str) -> Iterator[Edit]:
    yield context.make(
        Side.WORKLOAD, "leaveGroup", context.objects.ref, PatchAction.REMOVE, ("spec", "workloadAffinityGroups", name),
        text=f"leave the {name}", harm=Harm.WIDENS, caution=f"It gives up the {name} that the owner asked for.",
    )  # fmt: skip
    groups = context.binding.spec.workload_affinity_groups
    mine = getattr(groups, "affinity_group" if name == "affinityGroup" else "anti_affinity_group", "")
    for ref, (_, peer) in context.objects.bindings.items():
        others = peer.spec.workload_affinity_groups
        if ref == context.objects.ref or others is None:
            continue
        theirs = others.affinity_group if name == "affinityGroup" else others.anti_affinity_group
        is_there = context.name in peer.spec.target_names
        if theirs == mine and is_there == (name == "antiAffinityGroup"):
            yield context.make(
                Side.PEER, "releasePeer", ObjectRef(*peer.key), PatchAction.REMOVE,
                ("spec", "workloadAffinityGroups", name), text=f"{peer.key} leaves the {name}", harm=Harm.WIDENS,
                caution=f"It gives up the {name} that the owner of {peer.key} asked for.",
            )  # fmt: skip
