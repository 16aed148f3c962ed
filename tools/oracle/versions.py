"""Comparison with another version of karmada-scheduler, and by other rules: what differs by intention.

What an older version lacks is taken out of the scenario, for both. Its bugs are not copied
(docs/karmada-versions.md); each is recognized by its cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.api.binding import ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import DEFAULT_RULES, RULES, DecisionRules
from karmada_scheduler.core.condition import UNSCHEDULABLE
from karmada_scheduler.estimator.capacity import Grades
from tools.controlplane.versions import CURRENT, KarmadaVersion
from tools.oracle.defects import APPLIED
from tools.oracle.ours import OurDecision, Scenario
from tools.oracle.program import UpstreamResult

LOST_TYPE: Final = "R3: too little capacity has the reason SchedulerError"
LEFT_CLUSTERS: Final = "R5: a scale-down divides over clusters that no longer fit"
NO_RESULT: Final = "R9: an Event says `Result: {}`"
NO_TIERS: Final = "R10: clusters that the affinity term does not select come in no tier of their own"
REQUEST_ORDER: Final = (
    "order of requested resources, of which one is in no model and another exceeds all grades"
)

ONE_RULE: Final[Mapping[str, DecisionRules]] = {
    "R1, the estimate by resource models": DecisionRules(model_estimate=RULES["1.17"].model_estimate),
    "R2, In on zones": DecisionRules(zones_must_all_match=True),
    "R1 and R2 together": RULES["1.17"],
}
"""What other placements of 1.17 may be explained by."""

_TOO_LITTLE: Final = re.compile(r"Clusters available replicas -?\d+ are not enough to schedule\.$")


@dataclass(frozen=True, slots=True)
class Against:
    """What decisions are compared with.

    Attributes:
        version: Of upstream.
        rules: Ours.
        default_gates: Whether all feature gates have their defaults.
    """

    version: KarmadaVersion = CURRENT
    rules: DecisionRules = DEFAULT_RULES
    default_gates: bool = False

    def adapted(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a scenario without what the version lacks, of clusters as Karmada's components write them."""
        gates = {} if self.default_gates else document["gates"]
        if self.version.is_current:
            return document if gates is document["gates"] else {**document, "gates": gates}
        clusters = [_as_written(each) for each in document["clusters"]]
        adapted: dict[str, Any] = _without(self.version.unknown_fields, {**document, "clusters": clusters})
        known = {name: value for name, value in gates.items() if name not in self.version.unknown_gates}
        adapted["gates"] = known | (
            {} if self.default_gates else dict.fromkeys(self.version.unknown_gates, False)
        )
        return adapted

    @property
    def is_between_versions(self) -> bool:
        """Whether decisions are expected to differ."""
        return not self.version.is_current and self.rules == DEFAULT_RULES

    def is_bug(self, scenario: Scenario, decided: OurDecision) -> str:
        """Return the bug of the version by which a placement is another one; "" without one."""
        if self.version.is_current:
            return ""
        if _lets_others_in(scenario, decided):
            return NO_TIERS
        if self.version.name.startswith("1.16.") and _scales_down_from_elsewhere(decided):
            return LEFT_CLUSTERS
        return ""

    def corrected(self, result: UpstreamResult) -> set[str]:
        """Give errors of a result the type that they have since 1.18; return the bugs that showed."""
        if self.version.is_current:
            return set()
        found: set[str] = set()
        for each in result["passes"]:
            for term in each.get("terms", ()):
                if term["class"] == "error" and _TOO_LITTLE.search(term.get("error", "")):
                    term["class"] = "unschedulable"
                    found.add(LOST_TYPE)
            if any("Result: {}" in message for *_, message in each.get("events", ())):
                found.add(NO_RESULT)
        for condition in result["final"]["conditions"]:
            if condition[2] == "SchedulerError" and _TOO_LITTLE.search(condition[3]):
                condition[2] = UNSCHEDULABLE
                found.add(LOST_TYPE)
        return found

    def is_random(self, scenario: Scenario, decided: OurDecision) -> bool:
        """Return whether upstream looks at the requested resources in an order that decides."""
        requirements = decided.binding.spec.replica_requirements
        return (
            not self.version.is_current
            and requirements is not None
            and any(_depends_on_order(each, requirements) for each in scenario.clusters)
        )


LATEST: Final = Against()


def _without(names: frozenset[str], value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _annotation(names, item)
            if key == APPLIED and isinstance(item, str)
            else _without(names, item)
            for key, item in value.items()
            if key not in names
        }
    return [_without(names, each) for each in value] if isinstance(value, list) else value


def _annotation(names: frozenset[str], written: str) -> str:
    try:
        found = json.loads(written)
    except ValueError:
        return written
    plain = _without(names, found)
    return written if plain == found else json.dumps(plain)


def _as_written(cluster: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster with resource models and numbers of nodes as Karmada's webhook and agent leave them."""
    models = cluster["spec"].get("resourceModels")
    if not models:
        return cluster
    named = [{each["name"]: each for each in model["ranges"]} for model in models]
    every = {name: each for ranges in named for name, each in ranges.items()}
    written = [
        {**model, "ranges": list((every | ranges).values())}
        for model, ranges in zip(models, named, strict=True)
    ]
    status = cluster["status"]
    summary = status.get("resourceSummary", {})
    if counts := {each["grade"]: each for each in summary.get("allocatableModelings", ())}:
        nodes = [counts.get(each["grade"], {"grade": each["grade"], "count": 0}) for each in models]
        status = {**status, "resourceSummary": {**summary, "allocatableModelings": nodes}}
    return {**cluster, "spec": {**cluster["spec"], "resourceModels": written}, "status": status}


def _depends_on_order(cluster: Cluster, requirements: ReplicaRequirements) -> bool:
    found = Grades.of(cluster)
    if found is None:
        return False
    wanted = {name: amount for name, amount in requirements.resource_request.items() if amount.value > 0}
    unknown = [name for name in wanted if name not in found.minimums]
    return bool(unknown) and any(
        found.replicas({name: amount}) == 0 for name, amount in wanted.items() if name not in unknown
    )


def _lets_others_in(scenario: Scenario, decided: OurDecision) -> bool:
    """Return whether clusters pass that no affinity of the terms selects: ClusterAffinity is off."""
    placement = decided.binding.spec.placement
    return (
        placement is not None
        and bool(placement.cluster_affinities)
        and all(each.name != "ClusterAffinity" for each in scenario.framework.plugins.filter)
    )


def _scales_down_from_elsewhere(decided: OurDecision) -> bool:
    """Return whether replicas are removed while a cluster of the binding is not selected."""
    spec, decision = decided.binding.spec, decided.decision
    if decision is None or sum(each.replicas for each in spec.clusters) <= spec.replicas:
        return False
    return any(
        not spec.target_names <= {each.name for each in attempt.selected}
        for attempt in decision.attempts
        if attempt.selected
    )
