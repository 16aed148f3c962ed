"""Every field that is written exists in the oldest supported Karmada; an API server drops others without an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.features import RULES, DecisionRules
from tests.served_fields import SERVED_SINCE_1_16, SERVED_SINCE_1_19, paths_of
from tests.unit.binding_cycle.test_binding_cycle import CycleHarness
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.ours import Scenario

CASES = 100


def written(rules: DecisionRules) -> Iterator[tuple[CycleHarness, Any]]:
    """Yield generated bindings whose decision is to be written, with the decision."""
    for document in scenarios(29, cases=CASES):
        gates = {**document["gates"], "MultiplePodTemplatesScheduling": True}
        scenario = Scenario({**document, "gates": gates}, rules)
        for manifest in document["bindings"]:
            decided = scenario.decide(manifest)
            if decided.decision is not None and not decided.binding.deleting:
                stored = {
                    **manifest,
                    "metadata": {"generation": 1, **manifest["metadata"], "resourceVersion": "1"},
                }
                yield CycleHarness(stored), decided.decision


@pytest.mark.parametrize(
    ("decisions_of", "newer"), [("1.17", set()), ("1.18", set()), ("1.19", SERVED_SINCE_1_19)]
)
async def test_generated_decisions_write_no_field_that_1_16_lacks(decisions_of: str, newer: set[str]) -> None:
    found: set[str] = set()
    for harness, decision in written(RULES[decisions_of]):
        harness.binding = Binding.from_manifest(harness.stored)
        if harness.needs_transaction(decision):
            await harness.bind(decision)
        for kind, body in harness.requests:
            found |= paths_of(body, "status" if kind == "status" else "spec")
    assert found - SERVED_SINCE_1_16 == newer
    assert {"spec.clusters[].replicas", "status.conditions[].reason"} <= found


@pytest.mark.parametrize("more", [{"components": []}, {"name": "m1", "weight": 1}])
def test_a_field_of_another_version_is_found(more: dict[str, Any]) -> None:
    assert paths_of({"clusters": [more]}, "spec") - SERVED_SINCE_1_16
