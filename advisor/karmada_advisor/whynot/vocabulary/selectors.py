"""Edits of the selectors of an affinity, and of the labels and fields of a cluster that they look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from karmada_advisor.whynot.edits import Edit, Harm, PatchAction, Path, Side
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity

_PLACES: Final = frozenset(
    {"region", "zone", "provider", "cloud", "country", "location", "datacenter", "site"}
)


def matches(found: Any, cluster: Cluster) -> bool:
    """Return whether an affinity, as it is written, selects a cluster."""
    return isinstance(found, dict) and read_object(ClusterAffinity, found, "").matches(cluster)


def label_selector(context: Context, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of a label selector, and of labels of the cluster, so that it selects the cluster."""
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
        if matches({"labelSelector": {"matchExpressions": [expression]}}, cluster):
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


def field_selector(context: Context, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of a field selector, and of fields that the cluster does not have yet."""
    failing, cluster = 0, context.cluster
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        if matches({"fieldSelector": {"matchExpressions": [expression]}}, cluster):
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
