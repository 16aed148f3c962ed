"""Cluster affinities, and affinity terms."""

from __future__ import annotations

from collections.abc import Sequence

from tools.oracle.generator.rng import Random, ScenarioProfile
from tools.oracle.generator.values import LABELS, PROVIDERS, REGIONS, ZONES, Manifest


def draw_affinity(rng: Random, profile: ScenarioProfile, names: Sequence[str]) -> Manifest:
    affinity: Manifest = {}
    if rng.chance(0.3 + profile.strict * 0.5):
        affinity["clusterNames"] = rng.some(names, len(names), 1 + len(names) // 2) + (
            ["gone"] if rng.chance(0.1) else []
        )
    elif rng.chance(profile.tiny * 0.3):
        affinity["clusterNames"] = []
    if rng.chance(profile.strict * 0.4):
        affinity["exclude"] = rng.some(names, 2, 1)
    if rng.chance(profile.strict * 0.5):
        affinity["labelSelector"] = _draw_label_selector(rng)
    if rng.chance(profile.strict * 0.5):
        count = 0 if rng.chance(profile.tiny) else 1 + rng.upto(1)
        affinity["fieldSelector"] = {"matchExpressions": [_draw_field_expression(rng) for _ in range(count)]}
    return affinity


def draw_terms(
    rng: Random, profile: ScenarioProfile, names: Sequence[str], *, overflow: bool
) -> list[Manifest]:
    terms = []
    for number in range(1 + rng.upto(2)):
        term: Manifest = {"affinityName": f"term{number}", **draw_affinity(rng, profile, names)}
        if overflow and rng.chance(0.6):
            term["clusterNames"] = rng.some(names, max(1, len(names) // 2), 1)
            term["overflowAffinities"] = [
                {"affinityName": f"over{tier}", **draw_affinity(rng, profile, names)}
                for tier in range(rng.upto(2) or 1)
            ]
            if rng.chance(0.03):
                term["overflowAffinities"] = []
        terms.append(term)
    if len(terms) > 1 and rng.chance(0.02):
        terms[1]["affinityName"] = "term0"
    return terms


def _draw_label_selector(rng: Random) -> Manifest:
    selector: Manifest = {}
    if rng.chance(0.4):
        selector["matchLabels"] = {key: rng.pick(LABELS[key]) for key in rng.some(tuple(LABELS), 2, 1)}
        if rng.chance(0.02):
            selector["matchLabels"][rng.pick(("", "bad key", "-x", "a/b/c", "a" * 64, "x.io/y"))] = "v"
    if rng.chance(0.6):
        selector["matchExpressions"] = [_draw_label_expression(rng) for _ in range(1 + rng.upto(1))]
    return selector


def _draw_label_expression(rng: Random) -> Manifest:
    key = rng.pick(tuple(LABELS))
    operator = rng.pick(("In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"))
    expression: Manifest = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        expression["values"] = rng.some(LABELS[key], 3, 1)
    if rng.chance(0.03):
        expression |= rng.pick(
            (
                {"values": []},
                {"operator": "Gt", "values": ["1"]},
                {"operator": ""},
                {"values": ["not valid!"]},
                {"key": "Bad/"},
            )
        )
    return expression


def _draw_field_expression(rng: Random) -> Manifest:
    key, values = rng.pick((("provider", PROVIDERS), ("region", REGIONS), ("zone", ZONES)))
    operator = rng.pick(("In", "In", "In", "NotIn", "NotIn", "NotIn", "Exists", "DoesNotExist"))
    expression: Manifest = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        expression["values"] = rng.some(values, 3, 1)
    if rng.chance(0.05):
        expression |= rng.pick(
            (
                {"values": []},
                {"operator": "Gt", "values": ["1"]},
                {"operator": "Lt", "values": ["x"]},
                {"operator": "", "values": ["p1"]},
                {"key": "metadata.name", "values": ["m1"]},
                {"operator": "Exists", "values": ["p1"]},
                {"values": ["not valid!"]},
            )
        )
    return expression
