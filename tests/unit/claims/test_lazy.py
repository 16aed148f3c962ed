"""Policies with activationPreference Lazy: karmada v1.18.2 pkg/detector/detector.go OnUpdate, ApplyPolicy."""

from __future__ import annotations

from karmada_advisor.claims.model import PolicyDeleted, TemplateWritten, Waits
from karmada_advisor.claims.template import read_template
from tests.unit.claims.objects import (
    Cluster,
    all_deployments,
    by_name,
    claimed_by,
    cluster_with,
    deployment,
    goes_to,
    key_of,
    only,
    policy,
)

WEB = deployment()
LAZY = {"activationPreference": "Lazy"}


def test_a_new_template_is_bound_at_once() -> None:
    shop = cluster_with(policy("own", **LAZY))
    assert goes_to(shop.apply(WEB)) == "own"


def test_an_edit_waits_for_a_change_of_the_template() -> None:
    shop = cluster_with(policy("own", to="here", **LAZY), WEB)
    result = shop.apply(policy("own", to="there", **LAZY))
    assert (goes_to(result), only(result).waits) == ("here", Waits.TEMPLATE_CHANGE)
    result = shop.apply(deployment(replicas=4))
    assert (goes_to(result), only(result).waits) == ("there", Waits.NOTHING)


def test_a_change_by_karmada_itself_does_not_end_the_wait() -> None:
    shop = cluster_with(policy("own", to="here", **LAZY), WEB)
    shop.apply(policy("own", to="there", **LAZY))
    marked = deployment()
    marked["metadata"]["annotations"] = {"resourcetemplate.karmada.io/managed-labels": "x"}
    assert goes_to(shop.apply(marked)) == "here"


def test_a_change_of_a_template_whose_content_is_not_known_counts_as_one_by_a_user() -> None:
    shop, metadata = Cluster(), read_template(WEB, metadata_only=True)
    shop.apply(policy("own", to="here", **LAZY))
    shop.change(TemplateWritten(metadata))
    shop.apply(policy("own", to="there", **LAZY))
    assert goes_to(shop.change(TemplateWritten(metadata))) == "there"


def test_a_template_that_waited_for_a_lazy_policy_gets_no_binding_until_it_changes() -> None:
    shop = cluster_with(WEB)
    result = shop.apply(policy("own", **LAZY))
    assert (claimed_by(result), goes_to(result), only(result).waits) == ("own", None, Waits.TEMPLATE_CHANGE)
    # It has no binding by which an edit of the policy would find it.
    assert goes_to(shop.apply(policy("own"))) is None
    assert goes_to(shop.apply(deployment(replicas=4))) == "own"


def test_a_policy_that_is_no_longer_lazy_is_applied_with_what_had_waited() -> None:
    shop = cluster_with(policy("own", to="here", **LAZY), WEB)
    shop.apply(policy("own", to="there", **LAZY))
    assert goes_to(shop.apply(policy("own", to="there"))) == "there"


def test_a_policy_that_becomes_lazy_does_not_apply_the_same_edit() -> None:
    shop = cluster_with(policy("own", to="here"), WEB)
    assert goes_to(shop.apply(policy("own", to="there", **LAZY))) == "here"


def test_a_template_released_by_another_policy_is_bound_by_a_lazy_one_at_once() -> None:
    shop = Cluster()
    first = policy("first")
    shop.apply(first, WEB, policy("second", all_deployments(), **LAZY))
    assert goes_to(shop.change(PolicyDeleted(key_of(first)))) == "second"
    shop = cluster_with(first, WEB, policy("second", all_deployments(), **LAZY))
    assert goes_to(shop.apply(policy("first", by_name("other")))) == "second"


def test_the_order_of_two_events_can_decide_whether_a_binding_is_made() -> None:
    shop = cluster_with(WEB)
    result = shop.apply(policy("lazy", priority=1, **LAZY), policy("eager"))
    assert claimed_by(result) == "lazy"
    found = {(each.policy and each.policy.name, each.spec is None) for each in only(result).alternatives}
    assert ("eager", False) in found
