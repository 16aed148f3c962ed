from __future__ import annotations

from typing import Any

from tools.oracle.generator.scenarios import scenarios
from tools.oracle.shrink import shrink


def _one_case() -> dict[str, Any]:
    scenario = next(scenario for scenario in scenarios(5, cases=10_000) if len(scenario["clusters"]) > 5)
    return {**scenario, "bindings": scenario["bindings"][:1]}


def test_irrelevant_fields_are_removed() -> None:
    small = shrink(_one_case(), lambda scenario: len(scenario["clusters"]) >= 2)
    assert len(small["clusters"]) == 2
    assert small["clusters"][0].keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert small["clusters"][0]["spec"] == {}
    assert small["bindings"][0]["spec"].keys() <= {"resource"}


def test_shrinking_reduces_numbers_as_far_as_the_difference_remains() -> None:
    scenario = _one_case()
    scenario["bindings"][0]["spec"]["replicas"] = 977
    small = shrink(scenario, lambda each: each["bindings"][0]["spec"].get("replicas", 0) >= 13)
    assert small["bindings"][0]["spec"]["replicas"] == 13


def test_an_invalid_scenario_is_not_accepted() -> None:
    def needs_the_resource(scenario: dict[str, Any]) -> bool:
        return bool(scenario["bindings"][0]["spec"]["resource"]["kind"])

    assert shrink(_one_case(), needs_the_resource)["bindings"][0]["spec"]["resource"]["kind"]


def test_shrinking_ends_with_its_budget() -> None:
    tried = 0

    def never(_: dict[str, Any]) -> bool:
        nonlocal tried
        tried += 1
        return False

    scenario = _one_case()
    assert shrink(scenario, never, budget=20) == scenario
    assert tried <= 21
