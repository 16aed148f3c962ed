"""Edits of the cluster affinities, and of what they select a cluster by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement_json import read_affinity
from karmada_scheduler.whynot.edits import Action, Edit, Path, Side
from karmada_scheduler.whynot.vocabulary.context import NEAREST, PLACEMENT, Context


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for a cluster that the affinity does not select."""
    for path, found in context.affinity_paths():
        if isinstance(found, dict):
            yield from _select(context, path, found)
    if context.placement.cluster_affinity is not None:
        yield context.policy(
            "dropAffinity", Action.REMOVE, ("clusterAffinity",), "drop clusterAffinity", extra=1.5
        )
    elif context.placement.cluster_affinities:
        yield from _terms(context)


def only(context: Context) -> Iterator[Edit]:
    """Yield the affinity that selects nothing else by name."""
    for path, found in context.affinity_paths():
        names = found.get("clusterNames") if isinstance(found, dict) else None
        if names != [context.name]:
            yield context.policy(
                "selectOnly",
                Action.SET,
                (*path, "clusterNames"),
                f"clusterNames: [{context.name}]",
                value=[context.name],
                extra=2.5,
            )
        return


def competitors(context: Context) -> Iterator[Edit]:
    """Yield edits that take selected clusters, or their regions, out of the affinity."""
    regions: dict[str, None] = {}
    for number, each in enumerate(context.competitors()):
        if number >= NEAREST:
            break
        yield from exclude(context, each.name, extra=0.1 * number)
        region = each.cluster.region
        if region and region != context.cluster.region:
            regions[region] = None
    for region in regions:
        for path, _ in context.affinity_paths():
            yield context.policy(
                "excludeRegion",
                Action.APPEND,
                (*path, "fieldSelector", "matchExpressions"),
                f"region NotIn [{region}]",
                value={"key": "region", "operator": "NotIn", "values": [region]},
                extra=0.5,
            )
            break


def exclude(context: Context, name: str, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield the edit that takes one cluster out of the affinity."""
    for path, found in context.affinity_paths():
        names = (found.get("clusterNames") or ()) if isinstance(found, dict) else ()
        if name in names and len(names) > 1:
            yield context.policy(
                "removeClusterName", Action.REMOVE, (*path, "clusterNames", names.index(name)),
                f"remove {name} from clusterNames", extra=extra,
            )  # fmt: skip
        else:
            yield context.policy(
                "excludeCluster",
                Action.APPEND,
                (*path, "exclude"),
                f"exclude {name}",
                value=name,
                extra=extra,
            )


def tiers(context: Context) -> Iterator[Edit]:
    """Yield edits of the tiers: the cluster in the main affinity of its term, or as overflow of another term."""
    candidate = context.blocker.candidate
    if candidate is not None and candidate.tier > 0:
        for path, found in context.affinity_paths():
            if isinstance(found, dict):
                yield from _select(context, path, found)
            break
    if context.placement.cluster_affinity is None and context.binding.spec.is_workload:
        for index, term in enumerate(context.items(*PLACEMENT, "clusterAffinities")):
            if isinstance(term, dict) and not _matches(term, context.cluster):
                yield _overflow(context, index, str(term.get("affinityName")))


def _overflow(context: Context, index: int, term: str) -> Edit:
    """Return the edit that lets a term overflow to the cluster."""
    return context.policy(
        "addOverflow",
        Action.APPEND,
        ("clusterAffinities", index, "overflowAffinities"),
        f"overflow of affinity term {term}: {context.name}",
        value={"affinityName": f"{term}-{context.name}"[:63], "clusterNames": [context.name]},
        extra=0.5,
    )


def _terms(context: Context) -> Iterator[Edit]:
    """Yield edits of the affinity terms: overflow to the cluster, and terms that no longer come first."""
    name = context.attempt.affinity_name if context.attempt is not None else ""
    listed = context.items(*PLACEMENT, "clusterAffinities")
    for index, term in enumerate(listed):
        if not isinstance(term, dict):
            continue
        if term.get("affinityName") == name:
            if context.binding.spec.is_workload:
                yield _overflow(context, index, name)
            if len(listed) > 1:
                yield context.policy(
                    "dropTerm",
                    Action.REMOVE,
                    ("clusterAffinities", index),
                    f"drop affinity term {name}",
                    extra=0.5,
                )
        elif _matches(term, context.cluster):
            others = [each for each in listed if each is not term]
            yield context.policy(
                "termFirst",
                Action.SET,
                ("clusterAffinities",),
                f"affinity term {term.get('affinityName')} first, with another name",
                value=[{**term, "affinityName": f"{term.get('affinityName')}-first"[:63]}, *others],
                extra=0.5,
            )
    yield context.policy(
        "dropTerms", Action.REMOVE, ("clusterAffinities",), "drop clusterAffinities", extra=1.5
    )


def _matches(found: Any, cluster: Cluster) -> bool:
    return isinstance(found, dict) and read_affinity(found, "").matches(cluster)


def _select(context: Context, path: Path, found: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of one affinity, or of what it selects by."""
    name = context.name
    excluded = found.get("exclude") or []
    if name in excluded:
        yield context.policy(
            "removeExclude",
            Action.REMOVE,
            (*path, "exclude", excluded.index(name)),
            f"remove {name} from exclude",
        )
    names = found.get("clusterNames") or []
    if names and name not in names:
        yield from _names(context, path, names)
    labels = found.get("labelSelector")
    if isinstance(labels, dict):
        yield from _labels(context, (*path, "labelSelector"), labels)
    fields = found.get("fieldSelector")
    if isinstance(fields, dict):
        yield from _fields(context, (*path, "fieldSelector"), fields)


def _names(context: Context, path: Path, names: list[str]) -> Iterator[Edit]:
    name = context.name
    for index, each in enumerate(names):
        near = "" if context.outcome.cluster(each) else context.objects.nearest_cluster(each)
        if near and near not in names:
            yield context.policy(
                "correctClusterName", Action.SET, (*path, "clusterNames", index),
                f"write {near} instead of {each}, which does not exist", value=near, extra=-0.2,
            )  # fmt: skip
    yield context.policy(
        "addClusterName", Action.APPEND, (*path, "clusterNames"), f"add {name} to clusterNames", value=name
    )


def _labels(context: Context, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    failing = 0
    cluster = context.cluster
    for key, value in (selector.get("matchLabels") or {}).items():
        if cluster.labels.get(key) == value:
            continue
        failing += 1
        yield context.on_cluster(
            "setLabel", Action.SET, ("metadata", "labels", key), f"label {key}={value}", value=value
        )
        yield context.policy(
            "dropLabel",
            Action.REMOVE,
            (*path, "matchLabels", key),
            f"drop the label {key}={value} of the selector",
        )
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        if _matches({"labelSelector": {"matchExpressions": [expression]}}, cluster):
            continue
        failing += 1
        yield from _label_expression(context, (*path, "matchExpressions", index), expression)
    if failing:
        yield context.policy(
            "dropLabelSelector",
            Action.REMOVE,
            path,
            "drop the labelSelector",
            extra=1.0 if failing == 1 else 0.2,
        )


def _label_expression(context: Context, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    present = context.cluster.labels.get(str(key))
    if operator == "In" and values:
        yield context.on_cluster(
            "setLabel",
            Action.SET,
            ("metadata", "labels", str(key)),
            f"label {key}={values[0]}",
            value=values[0],
        )
    elif operator == "Exists":
        yield context.on_cluster(
            "setLabel", Action.SET, ("metadata", "labels", str(key)), f"label {key}", value="true"
        )
    elif operator in {"NotIn", "DoesNotExist"} and present is not None:
        yield context.on_cluster(
            "removeLabel", Action.REMOVE, ("metadata", "labels", str(key)), f"remove the label {key}"
        )
    yield from _extend(context, path, expression, present)


def _extend(context: Context, path: Path, expression: dict[str, Any], present: str | None) -> Iterator[Edit]:
    """Yield the edits of an expression: another value, or none at all."""
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    if operator == "In" and present:
        yield context.policy(
            "addValue", Action.APPEND, (*path, "values"), f"{key} In [..., {present}]", value=present
        )
    if operator == "NotIn" and present in values and len(values) > 1:
        yield context.policy(
            "removeValue",
            Action.REMOVE,
            (*path, "values", values.index(present)),
            f"{key} NotIn without {present}",
        )
    shown = f"{key} {operator}" + (f" [{', '.join(map(str, values))}]" if values else "")
    yield context.policy("dropExpression", Action.REMOVE, path, f"drop the expression {shown}", extra=0.1)


def _fields(context: Context, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    failing, cluster = 0, context.cluster
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        if _matches({"fieldSelector": {"matchExpressions": [expression]}}, cluster):
            continue
        failing += 1
        key, operator = expression.get("key"), expression.get("operator")
        values = expression.get("values") or []
        present = {"provider": cluster.provider, "region": cluster.region}.get(str(key))
        if key == "zone":
            present = cluster.zones[0] if cluster.zones else None
        wanted = values[0] if operator == "In" and values else "other" if operator == "Exists" else None
        if wanted is not None and key in {"provider", "region"}:
            yield set_field(context, str(key), wanted)
        elif wanted is not None and key == "zone":
            yield context.on_cluster(
                "setZones", Action.SET, ("spec", "zones"), f"zones [{wanted}]", value=[wanted]
            )
        yield from _extend(context, (*path, "matchExpressions", index), expression, present)
    if failing:
        yield context.policy(
            "dropFieldSelector",
            Action.REMOVE,
            path,
            "drop the fieldSelector",
            extra=1.0 if failing == 1 else 0.2,
        )


def set_field(context: Context, key: str, value: str, *, extra: float = 0.0) -> Edit:
    """Return the edit of the region or provider of the cluster."""
    return context.make(
        Side.CLUSTER, f"set{key.capitalize()}", context.cluster_ref, Action.SET, ("spec", key), value=value,
        text=f"spec.{key} {value}", extra=extra,
    )  # fmt: skip
