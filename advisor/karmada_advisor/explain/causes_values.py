"""Causes in values that a placement asks for and no cluster has: labels, regions, zones, providers, tolerations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.names import FleetValues, affinities_of, nearest_value
from karmada_scheduler.api.matching import IN, Requirement, Taint, Toleration
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.framework.snapshot import Snapshot


@lru_cache(maxsize=1)
def values_of(snapshot: Snapshot) -> FleetValues:
    """Return the values that clusters have; cached, because every cause of a decision asks for them."""
    return FleetValues(snapshot)


def unknown_values(inputs: ExplainInputs) -> Iterator[Cause]:
    """Yield what the placement's selectors ask for and no cluster has, with the nearest value that some cluster has."""
    placement = inputs.binding.spec.placement
    if placement is None:
        return
    unknown = {
        asked: near
        for each in affinities_of(placement)
        for asked, near in _unknown(each, values_of(inputs.snapshot))
    }
    if unknown:
        shown = "; ".join(
            f"no cluster has {asked}" + (f", nearest: {near}" if near else "")
            for asked, near in unknown.items()
        )
        yield Cause("ValueUnknown", Stage.POLICY, {"unknown": unknown}, shown)


def _unknown(affinity: ClusterAffinity, values: FleetValues) -> Iterator[tuple[str, str]]:
    """Yield what no cluster has, with the nearest value, as ``key=value`` for labels and ``key value`` for fields."""
    labels, fields = affinity.label_selector, affinity.field_selector
    if labels is not None:
        for key, value in labels.match_labels:
            if not values.has_label(key, value):
                yield f"{key}={value}", str(values.label(key, value) or "")
        for each in labels.match_expressions:
            yield from _unknown_label(each, values)
    for each in fields.match_expressions if fields is not None else ():
        if each.operator == IN and not any(values.has_field(each.key, value) for value in each.values):
            near = [found for value in each.values if (found := values.field(each.key, value))]
            yield f"{each.key} {' or '.join(each.values)}", near[0] if near else ""


def _unknown_label(found: Requirement, values: FleetValues) -> Iterator[tuple[str, str]]:
    if found.operator == IN and not any(values.has_label(found.key, each) for each in found.values):
        near = [label for each in found.values if (label := values.label(found.key, each)) is not None]
        yield f"{found.key}={' or '.join(found.values)}", str(near[0]) if near else ""
    elif found.operator == "Exists" and not values.has_label_key(found.key):
        yield f"the label {found.key}", values.label_key(found.key)


def near_toleration(taint: Taint, tolerations: Sequence[Toleration]) -> tuple[str, dict[str, Any]]:
    """Return the toleration that is nearly one of a taint, and the parts that differ; empty if none is.

    Args:
        taint: A taint that none of the tolerations tolerates.
        tolerations: Those of the placement.
    """
    for each in tolerations:
        if not each.key or (each.key != taint.key and not nearest_value(each.key, [taint.key])):
            continue
        pairs = {
            "key": (each.key, taint.key),
            "value": (taint.value if each.operator == "Exists" else each.value, taint.value),
            "effect": (each.effect or taint.effect, taint.effect),
        }
        differing = {name: has for name, (has, wanted) in pairs.items() if has != wanted}
        if differing:
            value = f"={each.value}" if each.value else ""
            effect = f":{each.effect}" if each.effect else ""
            return f"{each.key}{value}{effect}", differing
    return "", {}
