"""Decides one scenario with upstream and with our core, and compares the results."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.oracle import defects, features
from tools.oracle.compare import compare
from tools.oracle.ours import OurDecision, Scenario
from tools.oracle.program import Oracle, OracleEndedError, UpstreamResult
from tools.oracle.versions import LATEST, ONE_RULE, REQUEST_ORDER, Against


@dataclass
class Tally:
    """Results of the comparison of some scenarios.

    Attributes:
        causes: Where decisions of a version are compared with those of another: the rules that explain differences.
        found: Scenario, number of the binding, readable lines; one entry per difference.
    """

    scenarios: int = 0
    cases: int = 0
    decided: int = 0
    features: Counter[str] = field(default_factory=Counter)
    variations: Counter[str] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    found: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the results of other scenarios."""
        self.scenarios += other.scenarios
        self.cases += other.cases
        self.decided += other.decided
        self.features += other.features
        self.variations += other.variations
        self.defects += other.defects
        self.causes += other.causes
        self.found += other.found


def compare_scenario(
    document: dict[str, Any], oracle: Oracle, against: Against = LATEST, *, count_features: bool = True
) -> Tally:
    """Decide all bindings of a scenario with both, and compare."""
    tally, drawn = Tally(scenarios=1), document
    document = against.adapted(document)
    known = len(document["clusters"])
    clusters = defects.with_gone_targets(document["clusters"], document["bindings"])
    sanitized = [defects.sanitized_binding(binding) for binding in document["bindings"]]
    oracle.send({**document, "clusters": clusters, "bindings": [binding for binding, _ in sanitized]})
    scenario = Scenario(document, against.rules)
    ours = [_ours(scenario, binding) for binding in document["bindings"]]  # while upstream decides
    try:
        results = oracle.receive().get("bindings", [])
    except OracleEndedError:
        if len(ours) != 1:
            return _one_by_one(drawn, oracle, against, count_features=count_features)
        results = [{"panic": ""}]
    if count_features:
        tally.features.update(set(features.of_scenario(document)))
    for number, (decided, upstream) in enumerate(zip(ours, results, strict=True)):
        binding = document["bindings"][number]
        tally.cases += 1
        tally.decided += sum(len(each.get("terms", ())) for each in upstream.get("passes", ()))
        tally.defects.update(sanitized[number][1])
        if defects.has_target_in(clusters[known:], binding):
            tally.defects[defects.GONE_TARGET] += 1
        if count_features:
            tally.features.update(set(_features(binding, upstream)))
        if not isinstance(decided, OurDecision):
            tally.found.append((str(document.get("id")), number, ["ours raised", *decided]))
            continue
        if "panic" in upstream:
            tally.defects[defects.ENDED] += 1
            continue
        tally.defects.update(against.corrected(upstream))
        comparison = compare(scenario, decided, upstream)
        tally.variations.update(comparison.variations)
        tally.defects.update(comparison.defects)
        if not comparison.differences:
            continue
        if bug := against.is_bug(scenario, decided):
            tally.defects[bug] += 1
        elif against.is_random(scenario, decided):
            tally.variations[REQUEST_ORDER] += 1
        else:
            tally.found.append((str(document.get("id")), number, comparison.differences))
            if against.is_between_versions:
                tally.causes[_cause(document, binding, upstream)] += 1
    return tally


def _one_by_one(document: dict[str, Any], oracle: Oracle, against: Against, *, count_features: bool) -> Tally:
    """Compare a scenario in which upstream ended, each binding alone, so that the others count."""
    whole = Tally()
    for number, binding in enumerate(document["bindings"]):
        alone = {**document, "bindings": [binding]}
        part = compare_scenario(alone, oracle, against, count_features=count_features)
        part.found = [(identity, number, lines) for identity, _, lines in part.found]
        whole.add(part)
    whole.scenarios = 1
    return whole


def _cause(document: dict[str, Any], binding: Mapping[str, Any], upstream: UpstreamResult) -> str:
    """Return the rules of 1.17 by which ours decides as upstream."""
    for name, rules in ONE_RULE.items():
        scenario = Scenario(document, rules)
        decided = _ours(scenario, binding)
        if isinstance(decided, OurDecision) and not compare(scenario, decided, upstream).differences:
            return name
    return "no rule of 1.17"


def _ours(scenario: Scenario, binding: Mapping[str, Any]) -> OurDecision | list[str]:
    """Decide about a binding; return the lines of a traceback if that fails."""
    try:
        return scenario.decide(binding)
    except Exception:  # noqa: BLE001  (any exception is a difference)
        return traceback.format_exc().splitlines()


def _features(binding: Mapping[str, Any], upstream: UpstreamResult) -> list[str]:
    return [*features.of_case(binding), *features.of_result(upstream)]
