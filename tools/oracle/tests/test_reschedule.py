"""A defect of Karmada 1.19, whose oracle is not built: its result is written down here."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_scheduler.config.features import RULES
from tools.oracle.compare import Comparison, compare
from tools.oracle.ours import Scenario

CASE = Path(__file__).parent / "cases" / "reschedule-removes-a-workload.yaml"
OTHER = {"ClusterAffinity": "cluster(s) did not match the placement cluster affinity constraint"}
TAINT = {"TaintToleration": "cluster(s) had untolerated taint {a=b:NoSchedule}"}
FULL = "failed to assign replicas: failed to do fresh scale: Clusters available replicas 7 are not enough to schedule."
TERMS: list[dict[str, Any]] = [
    {"affinity": "primary", "class": "fit", "rejected": {"b": OTHER, "p": TAINT}},
    {"affinity": "backup", "class": "unschedulable", "error": FULL, "clusters": []},
]


def compared(decisions_of: str, change: dict[str, Any] | None = None) -> Comparison:
    document = yaml.safe_load(CASE.read_text())
    binding = copy.deepcopy(document["bindings"][0])
    binding["spec"] |= change or {}
    scenario = Scenario(document, RULES[decisions_of])
    first = {"rules": ["replicasChanged", "rescheduleTriggered"], "terms": TERMS}
    second = {**first, "terms": [TERMS[0], {**TERMS[1], "error": FULL.replace(" 7 ", " 1 ")}]}
    final = {"clusters": [], "affinity": "backup", "appliedPlacement": "{}", "scheduledNow": False}
    final["conditions"] = [["Scheduled", "False", "NoClusterFit", ""]]
    result = {"passes": [first, second], "settled": True, "final": final}
    return compare(scenario, scenario.decide(binding), result)


def test_upstream_clears_what_ours_keeps_and_is_compared_until_then() -> None:
    comparison = compared("1.19")
    assert comparison.differences == []
    assert [*comparison.defects] == [yaml.safe_load(CASE.read_text())["defect"]]


@pytest.mark.parametrize(
    ("decisions_of", "change"),
    [
        ("1.18", {}),
        ("1.19", {"rescheduleTriggeredAt": None}),
        ("1.19", {"replicas": 7}),
        ("1.19", {"clusters": []}),
    ],
)
def test_the_same_result_is_a_difference_for_any_other_decision(
    decisions_of: str, change: dict[str, Any]
) -> None:
    comparison = compared(decisions_of, change)
    assert comparison.differences
    assert not comparison.defects
