"""A claim is kept while its policy matches, and what ends it: karmada v1.18.2 pkg/detector/policy.go, detector.go."""

from __future__ import annotations

from karmada_advisor.claims.model import PolicyDeleted, Waits
from tests.unit.claims.objects import (
    NAMESPACE,
    Cluster,
    all_deployments,
    by_labels,
    by_name,
    claimed_by,
    cluster_policy,
    cluster_with,
    deployment,
    goes_to,
    key_of,
    only,
    policy,
)

WEB = deployment(labels={"app": "web"})


def test_a_higher_priority_that_comes_later_takes_nothing() -> None:
    shop = cluster_with(policy("first"), WEB)
    result = shop.apply(policy("second", priority=9))
    assert (claimed_by(result), goes_to(result)) == ("first", "first")
    assert only(result).binding_after is only(result).binding_before


def test_an_edited_placement_reaches_the_binding() -> None:
    shop = cluster_with(policy("own", to="here"), WEB)
    result = shop.apply(policy("own", to="there"))
    assert goes_to(result) == "there"


def test_an_edit_without_effect_changes_nothing() -> None:
    shop = cluster_with(policy("own"), WEB)
    result = only(shop.apply(policy("own", priority=0, preemption="Never")))
    assert result.binding_after is result.binding_before


def test_selectors_that_no_longer_match_release_the_template_to_the_next_policy() -> None:
    shop = cluster_with(policy("first"), WEB, policy("second", all_deployments()))
    result = shop.apply(policy("first", by_name("other")))
    assert (claimed_by(result), goes_to(result)) == ("second", "second")


def test_without_another_policy_the_released_binding_keeps_its_placement() -> None:
    shop = cluster_with(policy("first"), WEB)
    result = only(shop.apply(policy("first", by_name("other"))))
    assert result.policy_after is None
    assert result.binding_before is not None
    assert result.binding_after is not None
    assert result.binding_after["spec"] == result.binding_before["spec"]
    assert result.binding_after["metadata"]["labels"] == {}
    assert result.binding_after["metadata"]["generation"] == result.binding_before["metadata"]["generation"]


def test_a_deleted_policy_leaves_its_templates_to_the_next_one() -> None:
    shop = Cluster()
    first = policy("first")
    shop.apply(first, WEB, cluster_policy("everywhere", all_deployments()))
    result = shop.change(PolicyDeleted(key_of(first)))
    assert (claimed_by(result), goes_to(result)) == ("everywhere", "everywhere")


def test_the_binding_of_a_deleted_policy_keeps_its_placement() -> None:
    shop = Cluster()
    first = policy("first")
    shop.apply(first, WEB)
    result = shop.change(PolicyDeleted(key_of(first)))
    assert (claimed_by(result), goes_to(result)) == (None, "first")


def test_a_new_policy_claims_a_template_that_waits() -> None:
    shop = Cluster()
    assert claimed_by(shop.apply(WEB)) is None
    assert goes_to(shop.apply(policy("own"))) == "own"


def test_changed_labels_do_not_release_a_template_until_its_policy_is_edited() -> None:
    shop = cluster_with(policy("first", by_labels(app="web")), WEB, policy("second", all_deployments()))
    result = only(shop.apply(deployment(labels={"app": "api"}, replicas=9)))
    assert result.binding_after is result.binding_before
    assert (result.policy_after and result.policy_after.name, result.waits) == ("first", Waits.MATCH)
    assert claimed_by(shop.apply(policy("first", by_labels(app="web"), to="there"))) == "second"


def test_a_binding_with_the_id_of_a_recreated_policy_is_claimed_again() -> None:
    shop = Cluster()
    first = policy("first")
    shop.apply(first, WEB)
    shop.change(PolicyDeleted(key_of(first)))
    first["metadata"]["labels"] = {}
    result = shop.apply(first)
    assert claimed_by(result) == "first"
    assert only(result).claim_after.id == f"{NAMESPACE}/first#1"


def test_the_targets_of_a_binding_stay_under_another_policy() -> None:
    shop = Cluster()
    first = policy("first")
    shop.apply(first, WEB, policy("second", all_deployments(), schedulerName="mine"))
    key = only(shop.change()).binding
    binding = dict(shop.bindings[key])
    shop.bindings[key] = {
        **binding,
        "spec": {**binding["spec"], "clusters": [{"name": "first", "replicas": 3}]},
    }
    result = only(shop.change(PolicyDeleted(key_of(first)))).binding_after
    assert result is not None
    assert result["spec"]["clusters"] == [{"name": "first", "replicas": 3}]
    assert result["spec"]["schedulerName"] == "mine"
