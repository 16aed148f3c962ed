"""Edits of the selectors of an affinity, and of the labels and fields of a cluster that they look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.framework import Cluster, Edit, EditContext, Harm, Path

_PLACES: Final = frozenset(
    {"region", "zone", "provider", "cloud", "country", "location", "datacenter", "site"}
)


def matches(found: Any, cluster: Cluster) -> bool:
    """Return whether an affinity, as it is written, selects a cluster."""
    return isinstance(found, dict) and read_object(ClusterAffinity, found, "").matches(cluster)


def selector_edits(context: EditContext, path: Path, selector: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of a label or field selector, and of what it looks at in the cluster, so that it selects the cluster."""
    failing, name, cluster = 0, str(path[-1]), context.cluster
    labels = selector.get("matchLabels") or {}
    for key, value in labels.items():
        if cluster.labels.get(key) == value:
            continue
        failing += 1
        yield from _corrected_label(context, path, labels, key)
        yield from _set_label(context, key, value)
        yield context.on_policy.remove(
            "dropLabel", (*path, "matchLabels", key), f"drop the label {key}={value} of the selector",
            harm=Harm.WIDENS,
        )  # fmt: skip
    of_expression = _label_expression if name == "labelSelector" else _field_expression
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        if matches({name: {"matchExpressions": [expression]}}, cluster):
            continue
        failing += 1
        yield from of_expression(context, (*path, "matchExpressions", index), expression)
    if failing:  # one that fails alone may rather go alone
        yield context.on_policy.remove(
            f"drop{name[0].upper()}{name[1:]}", path, f"drop the {name}", extra=1.0 if failing == 1 else 0.2,
            harm=Harm.WIDENS,
        )  # fmt: skip


def _label_expression(context: EditContext, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    present = context.cluster.labels.get(str(key))
    if operator in {"In", "Exists"}:
        yield from _corrected_expression(context, path, expression)
    if operator == "In" and values:
        yield from _set_label(context, str(key), values[0])
    elif operator == "Exists":
        yield from _set_label(context, str(key), "true")
    elif operator in {"NotIn", "DoesNotExist"} and present is not None and not names_a_place(str(key)):
        yield context.on_cluster.remove(
            "removeLabel", ("metadata", "labels", str(key)), f"remove the label {key}"
        )
    yield from _extend(context, path, expression, present)


def _extend(
    context: EditContext, path: Path, expression: dict[str, Any], present: str | None
) -> Iterator[Edit]:
    """Yield the edits of an expression: another value, or none at all."""
    key, operator, values = expression.get("key"), expression.get("operator"), expression.get("values") or []
    if operator == "In" and present:
        yield context.on_policy.append("addValue", (*path, "values"), present, f"{key} In [..., {present}]")
    if operator == "NotIn" and present in values and len(values) > 1:
        yield context.on_policy.remove(
            "removeValue", (*path, "values", values.index(present)), f"{key} NotIn without {present}",
            harm=Harm.WIDENS,
        )  # fmt: skip
    shown = f"{key} {operator}" + (f" [{', '.join(map(str, values))}]" if values else "")
    yield context.on_policy.remove(
        "dropExpression", path, f"drop the expression {shown}", extra=0.1, harm=Harm.WIDENS
    )


def _field_expression(context: EditContext, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    """Yield edits of an expression, and of a field that the cluster does not have yet."""
    key, operator = str(expression.get("key")), expression.get("operator")
    values, cluster = expression.get("values") or [], context.cluster
    zone = cluster.zones[0] if cluster.zones else None
    present = {"provider": cluster.provider, "region": cluster.region, "zone": zone}.get(key)
    if operator == "In":
        for index, value in enumerate(values):
            if near := context.values.field(key, str(value)):
                yield _corrected_value(context, (*path, "values", index), key, value, near)
    wanted = values[0] if operator == "In" and values else "other" if operator == "Exists" else None
    if wanted is not None and not present and key in {"provider", "region", "zone"}:
        yield set_zones(context, wanted) if key == "zone" else set_field(context, key, wanted)
    yield from _extend(context, path, expression, present)


def set_field(context: EditContext, key: str, value: str, *, extra: float = 0.0) -> Edit:
    """Return the edit that fills in the region or provider of a cluster that has none; another one would be a lie."""
    return context.on_cluster.set(
        f"set{key.capitalize()}", ("spec", key), value, f"spec.{key} {value}", extra=extra,
        caution=_if_true(context, value),
    )  # fmt: skip


def set_zones(context: EditContext, value: str) -> Edit:
    """Return the edit that fills in the zones of a cluster that has none."""
    return context.on_cluster.set(
        "setZones", ("spec", "zones"), [value], f"zones [{value}]", caution=_if_true(context, value)
    )


def _if_true(context: EditContext, value: str) -> str:
    return (
        f"Only if {context.name} is in {value}: the field is empty now, and has to say where the cluster is."
    )


def as_fields(context: EditContext, path: Path, affinity: dict[str, Any]) -> Iterator[Edit]:
    """Yield the fieldSelector of an affinity that asks for labels which no cluster has, where fields are meant."""
    selector = affinity.get("labelSelector") or {}
    labels = dict(selector.get("matchLabels") or {})
    expressions = list(selector.get("matchExpressions") or [])
    asked = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    moved = []
    for expression in [*asked, *expressions]:
        key, values = str(expression.get("key")), expression.get("values") or []
        field = _field_of(key)
        is_meant = field and expression.get("operator") == "In" and key not in context.values.labels
        if not is_meant or context.values.fields[field].isdisjoint(values):
            continue
        moved.append({"key": field, "operator": "In", "values": values})
        labels.pop(key, None)
        expressions = [other for other in expressions if other is not expression]
    if not moved:
        return
    fields = (affinity.get("fieldSelector") or {}).get("matchExpressions") or []
    changed = affinity | {"fieldSelector": {"matchExpressions": [*fields, *moved]}}
    changed["labelSelector"] = {"matchLabels": labels, "matchExpressions": expressions}
    if not (labels or expressions):
        del changed["labelSelector"]
    shown = " and ".join(f"{expression['key']} {' or '.join(expression['values'])}" for expression in moved)
    text = f"fieldSelector {shown} instead of a label, which no cluster has"
    yield context.on_policy.set("selectField", path, changed, text, extra=-0.4)


def _field_of(key: str) -> str:
    """Return the field of a Cluster that has the name of a label: region, zone or provider; "" without one."""
    name = key.rpartition("/")[2].lower().removesuffix("s")
    return name if name in {"region", "zone", "provider"} else ""


def names_a_place(key: str) -> bool:
    """Return whether a label says where a cluster is, so that another value would be a lie."""
    return key.rpartition("/")[2].lower() in _PLACES


def _set_label(context: EditContext, key: str, value: str) -> Iterator[Edit]:
    """Yield the label of the cluster, unless it would say that the cluster is where it is not."""
    present = context.cluster.labels.get(key)
    field, cluster = _field_of(key), context.cluster
    places = {"region": [cluster.region], "provider": [cluster.provider], "zone": cluster.zones}.get(
        field, ()
    )
    if names_a_place(key) and (present or any(place and place != value for place in places)):
        return
    caution = _if_true(context, value) if names_a_place(key) and value not in places else ""
    if present:
        caution = f"Whatever selects {context.name} by {key}={present} loses it."
    text = f"label {key}={value}" + (f" ({present} now)" if present else "")
    yield context.on_cluster.set(
        "setLabel", ("metadata", "labels", key), value, text, caution=caution,
        harm=Harm.NARROWS if present else Harm.NONE,
    )  # fmt: skip


def _corrected_label(context: EditContext, path: Path, labels: dict[str, str], key: str) -> Iterator[Edit]:
    """Yield the nearest label that clusters have, for one that none has."""
    near = context.values.label(key, labels[key])
    if near is None:
        return
    op, where = "correctLabel", (*path, "matchLabels", key)
    corrected: Any = near.value
    if near.key != key:
        kept = {name: value for name, value in labels.items() if name != key}
        op, where, corrected = "correctLabelKey", (*path, "matchLabels"), {near.key: near.value, **kept}
    text = f"select {near.key}={near.value} instead of {key}={labels[key]}, which no cluster has"
    yield context.on_policy.set(op, where, corrected, text, extra=-0.4)


def _corrected_expression(context: EditContext, path: Path, expression: dict[str, Any]) -> Iterator[Edit]:
    """Yield the nearest value, or the nearest key, that clusters have, for an expression that none meets."""
    key, values = str(expression.get("key")), [str(value) for value in expression.get("values") or []]
    for index, value in enumerate(values):
        near = context.values.label(key, value)
        if near is not None and near.key == key:
            yield _corrected_value(context, (*path, "values", index), key, value, near.value)
            return
    near_key = context.values.label_key(key)
    if near_key:
        text = f"the label {near_key} instead of {key}, which no cluster has"
        yield context.on_policy.set("correctLabelKey", (*path, "key"), near_key, text, extra=-0.4)


def _corrected_value(context: EditContext, path: Path, key: str, value: Any, near: str) -> Edit:
    text = f"{key} {near} instead of {value}, which no cluster has"
    return context.on_policy.set("correctValue", path, near, text, extra=-0.4)
