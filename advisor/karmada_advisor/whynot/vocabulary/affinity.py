"""Edits of the cluster affinities, and of what they select a cluster by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from karmada_advisor.whynot.edits import Edit, Harm, PatchAction, Path, Side
from karmada_advisor.whynot.vocabulary.context import NEAREST, PLACEMENT, Context
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity

_PLACES: Final = frozenset(
    {"region", "zone", "provider", "cloud", "country", "location", "datacenter", "site"}
)


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits for a cluster that the affinity does not select."""
    for path, found in context.affinity_paths():
        if isinstance(found, dict):
            yield from _select(context, path, found)
    if context.placement.cluster_affinity is not None:
        yield context.policy(
            "dropAffinity", PatchAction.REMOVE, ("clusterAffinity",), "drop clusterAffinity", extra=1.5,
            harm=Harm.WIDENS,
        )  # fmt: skip
    elif context.placement.cluster_affinities:
        yield from _terms(context)


def only(context: Context) -> Iterator[Edit]:
    """Yield the affinity that selects nothing else by name."""
    for path, found in context.affinity_paths():
        names = found.get("clusterNames") if isinstance(found, dict) else None
        if names != [context.name]:
            yield context.policy(
                "selectOnly",
                PatchAction.SET,
                (*path, "clusterNames"),
                f"clusterNames: [{context.name}]",
                value=[context.name],
                extra=2.5,
                harm=Harm.NARROWS,
                caution="It takes every other cluster out of the policy.",
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
            caution = f"It takes all clusters of {region} out of the policy."
            yield exclude_region(context, path, region, harm=Harm.NARROWS, caution=caution)
            break


def exclude_region(context: Context, path: Path, region: str, **rest: Any) -> Edit:
    """Return that an affinity no longer selects the clusters of a region."""
    return context.policy(
        "excludeRegion",
        PatchAction.APPEND,
        (*path, "fieldSelector", "matchExpressions"),
        f"region NotIn [{region}]",
        value={"key": "region", "operator": "NotIn", "values": [region]},
        extra=0.5,
        **rest,
    )


def exclude(context: Context, name: str, *, extra: float = 0.0) -> Iterator[Edit]:
    """Yield the edit that takes one cluster out of the affinity; harmless if another one is asked for, or this one is left."""
    harm = Harm.NONE if context.is_wanted or name == context.name else Harm.NARROWS
    caution = "" if name == context.name else f"It takes {name}, which the policy allows, out of it."
    for path, found in context.affinity_paths():
        names = (found.get("clusterNames") or ()) if isinstance(found, dict) else ()
        if name in names and len(names) > 1:
            yield context.policy(
                "removeClusterName", PatchAction.REMOVE, (*path, "clusterNames", names.index(name)),
                f"remove {name} from clusterNames", extra=extra, harm=harm, caution=caution,
            )  # fmt: skip
        else:
            yield context.policy(
                "excludeCluster",
                PatchAction.APPEND,
                (*path, "exclude"),
                f"exclude {name}",
                value=name,
                extra=extra,
                harm=harm,
                caution=caution,
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
        PatchAction.APPEND,
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
                yield drop_term(context, index, name, extra=0.5)
        elif _matches(term, context.cluster):
            others = [each for each in listed if each is not term]
            yield context.policy(
                "termFirst",
                PatchAction.SET,
                ("clusterAffinities",),
                f"affinity term {term.get('affinityName')} first, with another name",
                value=[{**term, "affinityName": f"{term.get('affinityName')}-first"[:63]}, *others],
                extra=0.5,
            )
    yield context.policy(
        "dropTerms", PatchAction.REMOVE, ("clusterAffinities",), "drop clusterAffinities", extra=1.5,
        harm=Harm.WIDENS,
    )  # fmt: skip


def drop_term(context: Context, index: int, name: str, *, extra: float) -> Edit:
    """Return the edit that removes an affinity term, so that the next one is used."""
    return context.policy(
        "dropTerm",
        PatchAction.REMOVE,
        ("clusterAffinities", index),
        f"drop affinity term {name}",
        extra=extra,
        harm=Harm.WIDENS,
    )


def _matches(found: Any, cluster: Cluster) -> bool:
    return isinstance(found, dict) and read_object(ClusterAffinity, found, "").matches(cluster)


def _select(context: Context, path: Path, found: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of one affinity, or of what it selects by."""
    name = context.name
    excluded = found.get("exclude") or []
    if name in excluded:
        yield context.policy(
            "removeExclude",
            PatchAction.REMOVE,
            (*path, "exclude", excluded.index(name)),
            f"remove {name} from exclude",
            harm=Harm.WIDENS,
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
                "correctClusterName", PatchAction.SET, (*path, "clusterNames", index),
                f"write {near} instead of {each}, which does not exist", value=near, extra=-0.2,
            )  # fmt: skip
    # A policy that names clusters which exist means them: what refuses them comes first.
    is_meant = any(context.outcome.cluster(each) is not None for each in names)
    yield context.policy(
        "addClusterName", PatchAction.APPEND, (*path, "clusterNames"), f"add {name} to clusterNames", value=name,
        extra=0.5 if is_meant and not context.is_wanted else 0.0,
    )  # fmt: skip


def _labels(context: Context, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    failing = 0
    cluster = context.cluster
    labels = selector.get("matchLabels") or {}
    for key, value in labels.items():
        if cluster.labels.get(key) == value:
            continue
        failing += 1
        yield from _corrected_label(context, path, labels, key)
        yield from _set_label(context, key, value)
        yield context.policy(
            "dropLabel",
            PatchAction.REMOVE,
            (*path, "matchLabels", key),
            f"drop the label {key}={value} of the selector",
            harm=Harm.WIDENS,
        )
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        if _matches({"labelSelector": {"matchExpressions": [expression]}}, cluster):
            continue
        failing += 1
        yield from _label_expression(context, (*path, "matchExpressions", index), expression)
    yield from _dropped(context, path, failing)


def _dropped(context: Context, path: Path, failing: int) -> Iterator[Edit]:
    """Yield that a selector with failing requirements goes; one that fails alone may rather go alone."""
    if failing:
        name = str(path[-1])
        extra = 1.0 if failing == 1 else 0.2
        yield context.policy(
            f"drop{name[0].upper()}{name[1:]}", PatchAction.REMOVE, path, f"drop the {name}", extra=extra,
            harm=Harm.WIDENS,
        )  # fmt: skip


def _label_expression(context: Context, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    present = context.cluster.labels.get(str(key))
    if operator in {"In", "Exists"}:
        yield from _corrected_expression(context, path, expression)
    if operator == "In" and values:
        yield from _set_label(context, str(key), values[0])
    elif operator == "Exists":
        yield from _set_label(context, str(key), "true")
    elif operator in {"NotIn", "DoesNotExist"} and present is not None and not names_a_place(str(key)):
        yield context.on_cluster(
            "removeLabel", PatchAction.REMOVE, ("metadata", "labels", str(key)), f"remove the label {key}"
        )
    yield from _extend(context, path, expression, present)


def _extend(context: Context, path: Path, expression: dict[str, Any], present: str | None) -> Iterator[Edit]:
    """Yield the edits of an expression: another value, or none at all."""
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    if operator == "In" and present:
        yield context.policy(
            "addValue", PatchAction.APPEND, (*path, "values"), f"{key} In [..., {present}]", value=present
        )
    if operator == "NotIn" and present in values and len(values) > 1:
        yield context.policy(
            "removeValue",
            PatchAction.REMOVE,
            (*path, "values", values.index(present)),
            f"{key} NotIn without {present}",
            harm=Harm.WIDENS,
        )
    shown = f"{key} {operator}" + (f" [{', '.join(map(str, values))}]" if values else "")
    yield context.policy(
        "dropExpression",
        PatchAction.REMOVE,
        path,
        f"drop the expression {shown}",
        extra=0.1,
        harm=Harm.WIDENS,
    )


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
        if operator == "In":
            yield from _corrected_field(context, (*path, "matchExpressions", index), str(key), values)
        wanted = values[0] if operator == "In" and values else "other" if operator == "Exists" else None
        if wanted is not None and not present and key in {"provider", "region"}:
            yield set_field(context, str(key), wanted)
        elif wanted is not None and not present and key == "zone":
            yield set_zones(context, wanted)
        yield from _extend(context, (*path, "matchExpressions", index), expression, present)
    yield from _dropped(context, path, failing)


def set_field(context: Context, key: str, value: str, *, extra: float = 0.0) -> Edit:
    """Return the edit that fills in the region or provider of a cluster that has none; another one would be a lie."""
    return context.make(
        Side.CLUSTER, f"set{key.capitalize()}", context.cluster_ref, PatchAction.SET, ("spec", key), value=value,
        text=f"spec.{key} {value}", extra=extra, caution=_if_true(context, value),
    )  # fmt: skip


def set_zones(context: Context, value: str) -> Edit:
    """Return the edit that fills in the zones of a cluster that has none."""
    return context.on_cluster(
        "setZones", PatchAction.SET, ("spec", "zones"), f"zones [{value}]", value=[value],
        caution=_if_true(context, value),
    )  # fmt: skip


def _if_true(context: Context, value: str) -> str:
    return (
        f"Only if {context.name} is in {value}: the field is empty now, and has to say where the cluster is."
    )


def names_a_place(key: str) -> bool:
    """Return whether a label says where a cluster is, so that another value would be a lie."""
    return key.rpartition("/")[2].lower() in _PLACES


def _set_label(context: Context, key: str, value: str) -> Iterator[Edit]:
    """Yield the label of the cluster, unless it would say that the cluster is where it is not."""
    present = context.cluster.labels.get(key)
    if names_a_place(key) and present:
        return
    caution = _if_true(context, value) if names_a_place(key) else ""
    if present:
        caution = f"Whatever selects {context.name} by {key}={present} loses it."
    text = f"label {key}={value}" + (f" ({present} now)" if present else "")
    yield context.on_cluster(
        "setLabel", PatchAction.SET, ("metadata", "labels", key), text, value=value, caution=caution,
        harm=Harm.NARROWS if present else Harm.NONE,
    )  # fmt: skip


def _corrected_label(context: Context, path: Path, labels: dict[str, str], key: str) -> Iterator[Edit]:
    """Yield the nearest label that clusters have, for one that none has."""
    near = context.objects.near.label(key, labels[key])
    if near is None:
        return
    if near.key == key:
        yield context.policy(
            "correctLabel", PatchAction.SET, (*path, "matchLabels", key),
            f"select {key}={near.value} instead of {key}={labels[key]}, which no cluster has",
            value=near.value, extra=-0.4,
        )  # fmt: skip
        return
    yield context.policy(
        "correctLabelKey", PatchAction.SET, (*path, "matchLabels"),
        f"select {near.key}={near.value} instead of {key}={labels[key]}, which no cluster has",
        value={near.key if each == key else each: near.value if each == key else text for each, text in labels.items()},
        extra=-0.4,
    )  # fmt: skip


def _corrected_expression(context: Context, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    """Yield the nearest values, or the nearest key, that clusters have, for an expression that none meets."""
    key, values = str(expression.get("key")), [str(each) for each in expression.get("values") or []]
    for index, each in enumerate(values):
        near = context.objects.near.label(key, each)
        if near is not None and near.key == key:
            yield context.policy(
                "correctValue", PatchAction.SET, (*path, "values", index),
                f"{key} {near.value} instead of {each}, which no cluster has", value=near.value, extra=-0.4,
            )  # fmt: skip
            return
    near_key = context.objects.near.label_key(key)
    if near_key:
        yield context.policy(
            "correctLabelKey", PatchAction.SET, (*path, "key"),
            f"the label {near_key} instead of {key}, which no cluster has", value=near_key, extra=-0.4,
        )  # fmt: skip


def _corrected_field(context: Context, path: Path, key: str, values: list[Any]) -> Iterator[Edit]:
    """Yield the nearest region, zone or provider of a cluster, for one in which no cluster is."""
    for index, each in enumerate(values):
        near = context.objects.near.field(key, str(each))
        if near:
            yield context.policy(
                "correctValue", PatchAction.SET, (*path, "values", index),
                f"{key} {near} instead of {each}, which no cluster has", value=near, extra=-0.4,
            )  # fmt: skip
