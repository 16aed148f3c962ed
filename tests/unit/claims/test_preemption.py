"""Policies that take templates from others: karmada v1.18.2 pkg/detector/preemption.go."""

from __future__ import annotations

from karmada_advisor.claims.model import DetectorOptions, Waits
from karmada_scheduler.config.features import FeatureGates
from tests.unit.claims.objects import (
    PREEMPTION,
    all_deployments,
    by_name,
    claimed_by,
    cluster_policy,
    cluster_with,
    deployment,
    goes_to,
    only,
    policy,
)

WEB = deployment()


def test_a_higher_priority_with_preemption_takes_a_claimed_template() -> None:
    shop = cluster_with(policy("first"), WEB, options=PREEMPTION)
    result = shop.apply(policy("second", priority=1, preemption="Always"))
    assert (claimed_by(result), goes_to(result)) == ("second", "second")
    assert only(result).claim_after.id == "id-second"


def test_preemption_needs_the_feature_gate() -> None:
    shop = cluster_with(policy("first"), WEB)
    assert claimed_by(shop.apply(policy("second", priority=1, preemption="Always"))) == "first"


def test_an_equal_priority_takes_nothing() -> None:
    shop = cluster_with(policy("first"), WEB, options=PREEMPTION)
    assert claimed_by(shop.apply(policy("second", preemption="Always"))) == "first"


def test_a_policy_of_the_namespace_takes_from_a_cluster_wide_one_whatever_the_priorities() -> None:
    shop = cluster_with(cluster_policy("everywhere", by_name(), priority=9), WEB, options=PREEMPTION)
    result = shop.apply(policy("own", preemption="Always"))
    assert (claimed_by(result), goes_to(result)) == ("own", "own")
    claim = only(result).claim_after
    assert (claim.cluster_id, claim.cluster_name) == ("", "")
    binding = only(result).binding_after
    assert binding is not None
    assert "clusterpropagationpolicy.karmada.io/permanent-id" not in binding["metadata"]["labels"]


def test_a_cluster_wide_policy_takes_nothing_from_one_of_the_namespace() -> None:
    shop = cluster_with(policy("own"), WEB, options=PREEMPTION)
    assert (
        claimed_by(shop.apply(cluster_policy("everywhere", by_name(), priority=9, preemption="Always")))
        == "own"
    )


def test_a_cluster_wide_selector_without_a_namespace_takes_nothing() -> None:
    nameless = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    shop = cluster_with(cluster_policy("first", by_name()), WEB, options=PREEMPTION)
    second = cluster_policy("second", nameless, priority=1, preemption="Always")
    assert claimed_by(shop.apply(second)) == "first"
    shop.apply(second)
    assert (
        claimed_by(shop.apply(cluster_policy("second", by_name(), priority=1, preemption="Always")))
        == "second"
    )


def test_lowering_a_priority_lets_those_in_between_take_the_template() -> None:
    shop = cluster_with(
        policy("first", priority=5),
        WEB,
        policy("second", priority=3, preemption="Always"),
        options=PREEMPTION,
    )
    assert claimed_by(shop.apply(policy("first", priority=4))) == "first"
    assert claimed_by(shop.apply(policy("first", priority=1))) == "second"


def test_those_with_exactly_the_old_priority_are_not_tried_again() -> None:
    shop = cluster_with(
        policy("first", priority=5),
        WEB,
        policy("second", priority=5, preemption="Always"),
        options=PREEMPTION,
    )
    assert claimed_by(shop.apply(policy("first", priority=1))) == "first"


def test_of_several_in_between_the_highest_takes_it() -> None:
    shop = cluster_with(
        policy("first", priority=5),
        WEB,
        policy("a", priority=2, preemption="Always"),
        policy("b", priority=3, preemption="Always"),
        options=PREEMPTION,
    )
    assert claimed_by(shop.apply(policy("first"))) == "b"


def test_a_lazy_policy_that_takes_a_template_leaves_the_binding_until_the_template_changes() -> None:
    shop = cluster_with(policy("first"), WEB, options=PREEMPTION)
    lazy = policy("second", priority=1, preemption="Always", activationPreference="Lazy")
    result = shop.apply(lazy)
    assert (claimed_by(result), goes_to(result), only(result).waits) == (
        "second",
        "first",
        Waits.TEMPLATE_CHANGE,
    )
    binding = only(result).binding_after
    assert binding is not None
    assert binding["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] == "id-first"


def test_an_edit_of_the_policy_that_lost_a_template_ends_the_wait_of_a_lazy_one() -> None:
    shop = cluster_with(policy("first"), WEB, options=PREEMPTION)
    shop.apply(policy("second", priority=1, preemption="Always", activationPreference="Lazy"))
    result = shop.apply(policy("first", to="elsewhere"))
    assert (claimed_by(result), goes_to(result)) == ("second", "second")


def test_a_policy_that_matches_everything_cannot_preempt() -> None:
    shop = cluster_with(policy("first"), WEB, options=PREEMPTION)
    result = shop.apply(policy("second", all_deployments(), priority=1, preemption="Always"))
    assert [each.policy.name for each in result.refusals] == ["second"]
    assert claimed_by(result) == "first"


def test_an_edit_that_loses_the_template_may_still_reach_the_binding_if_its_successor_makes_none() -> None:
    gates = FeatureGates({"PropagationPolicyPreemption": True, "PriorityBasedScheduling": True})
    missing = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "missing"}
    shop = cluster_with(
        policy("first", priority=5, to="here"),
        WEB,
        policy("second", priority=3, preemption="Always", schedulePriority=missing),
        options=DetectorOptions(gates, {}),
    )
    result = shop.apply(policy("first", priority=1, to="there"))
    assert (claimed_by(result), goes_to(result), only(result).waits) == (
        "second",
        "there",
        Waits.PRIORITY_CLASS,
    )
    (other,) = only(result).alternatives
    assert other.spec is not None
    assert other.spec["placement"]["clusterAffinity"]["clusterNames"] == ["here"]
