"""Expressions that are not known end a decision, and the placement stays."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import FitError, SchedulingError
from karmada_scheduler.framework.diagnosis import InvalidExpressionError
from karmada_scheduler.testing import BindingBuilder, binding, cluster, decide, placed

PREFIX = {"labelSelector": {"matchExpressions": [{"key": "zone", "operator": "Prefix", "values": ["a"]}]}}
ODD_TOLERATION = {"clusterTolerations": [{"operator": "Exists"}, {"key": "k", "operator": "Like"}]}


def weights(selector: dict[str, Any], **strategy: Any) -> dict[str, Any]:
    weighted = {"staticWeightList": [{"targetCluster": selector, "weight": 1}]}
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": weighted,
            **strategy,
        }
    }


def decided(found: BindingBuilder) -> Decision:
    return decide(found, cluster("m1").labels(zone="a1"), cluster("m2"))


@pytest.mark.parametrize(
    ("placement", "field"),
    [
        ({"clusterAffinity": PREFIX}, "clusterAffinity.labelSelector: zone Prefix [a]"),
        (ODD_TOLERATION, "clusterTolerations[1]: operator 'Like', effect ''"),
        (
            {"clusterAffinities": [{"affinityName": "one", **PREFIX}]},
            "clusterAffinities[one].labelSelector: zone Prefix [a]",
        ),
        (
            {
                "clusterAffinities": [
                    {
                        "affinityName": "one",
                        "clusterNames": ["m1"],
                        "overflowAffinities": [
                            {"affinityName": "o", "clusterNames": ["m2"]},
                            {"affinityName": "p", **PREFIX},
                        ],
                    }
                ]
            },
            "clusterAffinities[one].overflowAffinities[1].labelSelector: zone Prefix [a]",
        ),
        (
            weights(PREFIX),
            "replicaScheduling.weightPreference.staticWeightList[0].targetCluster.labelSelector: zone Prefix [a]",
        ),
    ],
)
def test_the_error_names_the_field_and_the_expression_and_keeps_the_placement(
    placement: dict[str, Any], field: str
) -> None:
    decision = decided(binding("w").replicas(2).on(m1=1, m2=1).placement(placement))
    assert isinstance(decision.error, InvalidExpressionError)
    assert (
        str(decision.error) == f"spec.placement.{field} is no valid expression; the placement stays as it is"
    )
    assert decision.targets is None
    assert isinstance(decided(binding("w").replicas(2).placement(placement)).error, InvalidExpressionError)


def test_a_long_expression_is_cut() -> None:
    long = {"labelSelector": {"matchLabels": {"zone": "x" * 60_000}}}
    error = decided(binding("w").placement({"clusterAffinity": long})).error
    assert isinstance(error, SchedulingError)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("found", "targets"),
    [
        pytest.param(
            binding("w").placement({
                "clusterAffinities": [
                    {"affinityName": "one", "clusterNames": ["m2"]}, {"affinityName": "two", **PREFIX}
                ]
            }),
            {"m2": 0},
            id="of-a-later-term",
        ),
        pytest.param(
            binding("w").placement({
                "clusterAffinities": [
                    {
                        "affinityName": "one",
                        "clusterNames": ["m2"],
                        "overflowAffinities": [{"affinityName": "o", **PREFIX}],
                    }
                ]
            }),
            {"m2": 0},
            id="of-an-overflow-affinity-without-replicas",
        ),
        pytest.param(binding("w").placement(weights(PREFIX)), {"m1": 0, "m2": 0}, id="of-a-weight-without-replicas"),
        pytest.param(
            binding("w").replicas(1).placement(weights(PREFIX, replicaSchedulingType="Duplicated")),
            {"m1": 1, "m2": 1},
            id="of-a-weight-that-does-not-count",
        ),
    ],
)  # fmt: skip
def test_an_expression_that_a_decision_does_not_depend_on_changes_nothing(
    found: BindingBuilder, targets: dict[str, int]
) -> None:
    decision = decided(found)
    assert decision.error is None
    assert placed(decision) == targets


def test_terms_after_an_unknown_expression_are_not_tried_and_those_before_clear_nothing() -> None:
    terms = [
        {"affinityName": "one", "clusterNames": ["moon"]},
        {"affinityName": "two", **PREFIX},
        {"affinityName": "three", "clusterNames": ["m1"]},
    ]
    decision = decided(binding("w").on("m2").placement({"clusterAffinities": terms}))
    assert isinstance(decision.error, InvalidExpressionError)
    assert decision.targets is None
    assert [type(each.error) for each in decision.failed_terms] == [FitError, InvalidExpressionError]
