"""Edits of a policy after which changes arrive on the clusters of a binding."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_advisor.state.model import Target
from karmada_advisor.whynot.remedies import decided_again, overwritten
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.testing import binding

ID = "propagationpolicy.karmada.io/permanent-id"
POLICY: dict[str, Any] = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web", "namespace": "default", "labels": {ID: "web"}},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1"]}},
        "conflictResolution": "Abort",
    },
}


@pytest.fixture
def refused() -> tuple[Binding, dict[str, Any]]:
    """A binding whose object exists in its member already."""
    made = binding("web").replicas(2, cpu=1).duplicated().names("m1").on(m1=2).applied().generation(1)
    manifest = made.label(ID, "web").manifest()
    manifest["metadata"].setdefault("annotations", {}).update(
        {"propagationpolicy.karmada.io/namespace": "default", "propagationpolicy.karmada.io/name": "web"}
    )
    return made.build(), manifest


def test_an_object_that_a_member_has_already_is_taken_over_by_an_edit_of_the_policy(
    refused: tuple[Binding, dict[str, Any]],
) -> None:
    found = overwritten(*refused, [POLICY])

    assert found is not None
    assert found.edits[0].text == "conflictResolution: Overwrite in PropagationPolicy default/web"
    assert found.apply[0].object.kind == "PropagationPolicy"
    assert found.apply[0].patch[0]["path"] == "/spec/conflictResolution"
    assert found.apply[0].patch[0]["value"] == "Overwrite"
    assert "replaces the object" in found.caution


def test_without_the_policy_there_is_no_such_edit(refused: tuple[Binding, dict[str, Any]]) -> None:
    assert overwritten(*refused, []) is None


def test_a_decision_that_would_succeed_is_asked_for_by_a_rebalancer(
    refused: tuple[Binding, dict[str, Any]],
) -> None:
    now = datetime(2026, 11, 24, 12, tzinfo=UTC)

    found = decided_again(*refused, [Target("m1", 2)], now)

    assert found is not None
    assert found.edits[0].text == "a WorkloadRebalancer"
    assert found.apply[0].object.kind == "ResourceBinding"
    assert found.apply[0].patch[0]["value"] == "2026-11-24T12:00:00Z"
    assert found.result == (Target("m1", 2),)
