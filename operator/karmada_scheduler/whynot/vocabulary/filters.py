"""Edits for a cluster that a filter refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_scheduler.api.placement import SPREAD_BY_PROVIDER, SPREAD_BY_REGION, SPREAD_BY_ZONE
from karmada_scheduler.whynot.edits import Action, Edit, ObjectRef, Side
from karmada_scheduler.whynot.vocabulary import affinity
from karmada_scheduler.whynot.vocabulary.context import PLACEMENT, Context


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
            name = term.get("affinityName")
            yield context.policy(
                "dropTerm",
                Action.REMOVE,
                ("clusterAffinities", index),
                f"drop affinity term {name}",
                extra=1.0,
            )


def _taints(context: Context) -> Iterator[Edit]:
    tolerations = context.placement.cluster_tolerations
    listed = context.at(context.cluster_ref, ("spec", "taints")) or []
    refusing = [
        taint
        for taint in context.cluster.taints
        if taint.blocks_scheduling and not any(each.tolerates(taint) for each in tolerations)
    ]
    for taint in refusing:
        for index, found in enumerate(listed):
            if (found.get("key") or "", found.get("value") or "", found.get("effect") or "") == tuple(taint):
                yield context.on_cluster(
                    "removeTaint",
                    Action.REMOVE,
                    ("spec", "taints", index),
                    f"remove the taint {taint}",
                    extra=-0.5,
                )
                break
        toleration = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if taint.value:
            toleration = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
        yield context.policy(
            "tolerate",
            Action.APPEND,
            ("clusterTolerations",),
            f"tolerate {taint}",
            value=toleration,
            extra=0.2,
        )
    if len(refusing) > 1:
        yield context.policy(
            "tolerateAll", Action.APPEND, ("clusterTolerations",), "tolerate every taint",
            value={"operator": "Exists"}, extra=0.6,
        )  # fmt: skip
        yield context.on_cluster(
            "removeTaints", Action.REMOVE, ("spec", "taints"), "remove all taints", extra=0.2
        )


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
            yield context.on_cluster(
                "setZones", Action.SET, ("spec", "zones"), "zones [zone-1]", value=["zone-1"]
            )
        else:
            yield from new_field(context, name)
        yield drop_constraint(context, index, name)
    if any(lacking.get(each.get("spreadByField")) for each in context.items(*PLACEMENT, "spreadConstraints")):
        yield from drop_constraints(context)


def new_field(context: Context, name: str) -> Iterator[Edit]:
    """Yield edits that put the cluster into an existing region (or provider), or into one of its own."""
    existing = sorted(
        {getattr(each, name) for each in context.outcome.snapshot} - {"", getattr(context.cluster, name)}
    )
    attempt = context.attempt
    used = [getattr(each.cluster, name) for each in attempt.selected] if attempt is not None else []
    first = [each for each in existing if each in used]
    others = [each for each in existing if each not in used]
    for number, value in enumerate([*first[:2], *others[:1], f"{context.name}-{name}"]):
        yield affinity.set_field(context, name, value, extra=0.05 * number)


def drop_constraint(context: Context, index: int, name: Any, *, extra: float = 0.0) -> Edit:
    """Return the edit that removes a spread constraint."""
    return context.policy(
        "dropConstraint",
        Action.REMOVE,
        ("spreadConstraints", index),
        f"drop the {name} constraint",
        extra=0.5 + extra,
    )


def drop_constraints(context: Context) -> Iterator[Edit]:
    """Yield the edit that removes all spread constraints, if there are several."""
    if len(context.items(*PLACEMENT, "spreadConstraints")) > 1:
        yield context.policy(
            "dropConstraints", Action.REMOVE, ("spreadConstraints",), "drop all spread constraints", extra=1.0
        )


def _api(context: Context) -> Iterator[Edit]:
    resource = context.binding.spec.resource
    group, slash, version = resource.api_version.partition("/")
    if slash and ("/" in version or not (group or version)):
        return
    group_version = version if slash and not group else resource.api_version
    kind = {"kind": resource.kind, "name": f"{resource.kind.lower()}s"}
    text = f"serve {group_version} {resource.kind} (install the CRD)"
    listed = context.at(context.cluster_ref, ("status", "apiEnablements")) or []
    for index, found in enumerate(listed):
        if isinstance(found, dict) and found.get("groupVersion") == group_version:
            path = ("status", "apiEnablements", index, "resources")
            yield context.on_cluster("serveApi", Action.APPEND, path, text, value=kind)
            return
    value = {"groupVersion": group_version, "resources": [kind]}
    yield context.on_cluster("serveApi", Action.APPEND, ("status", "apiEnablements"), text, value=value)


def _evictions(context: Context) -> Iterator[Edit]:
    found = [
        index
        for index, task in enumerate(context.items("spec", "gracefulEvictionTasks"))
        if isinstance(task, dict) and task.get("fromCluster") == context.name
    ]
    for index in found:
        yield context.make(
            Side.CLUSTER, "endEviction", context.objects.ref, Action.REMOVE, ("spec", "gracefulEvictionTasks", index),
            text=f"end the eviction from {context.name}",
        )  # fmt: skip


def _group(context: Context, name: str) -> Iterator[Edit]:
    yield context.make(
        Side.WORKLOAD, "leaveGroup", context.objects.ref, Action.REMOVE, ("spec", "workloadAffinityGroups", name),
        text=f"leave the {name}",
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
                Side.PEER, "releasePeer", ObjectRef(*peer.key), Action.REMOVE,
                ("spec", "workloadAffinityGroups", name), text=f"{peer.key} leaves the {name}",
            )  # fmt: skip
