"""Which of several policies claims a template: karmada v1.18.2 pkg/detector/compare.go, pkg/util/selector.go."""

from __future__ import annotations

import pytest

from karmada_advisor.claims.model import Claims
from tests.unit.claims.objects import (
    Cluster,
    Manifest,
    all_deployments,
    by_labels,
    by_name,
    claimed_by,
    cluster_policy,
    cluster_with,
    deployment,
    goes_to,
    only,
    policy,
)

WEB = deployment(labels={"app": "web"})


def test_the_higher_priority_claims_a_new_template() -> None:
    shop = cluster_with(policy("low", priority=1), policy("high", priority=2))
    result = shop.apply(WEB)
    assert (claimed_by(result), goes_to(result)) == ("high", "high")


def test_a_higher_priority_goes_before_a_better_match() -> None:
    shop = cluster_with(policy("name", by_name()), policy("everything", all_deployments(), priority=1))
    assert claimed_by(shop.apply(WEB)) == "everything"


def test_a_match_by_name_goes_before_labels_and_labels_before_all() -> None:
    shop = cluster_with(policy("a-all", all_deployments()), policy("b-labels", by_labels(app="web")))
    assert claimed_by(shop.apply(WEB)) == "b-labels"
    shop = cluster_with(
        policy("a-all", all_deployments()), policy("b-labels", by_labels(app="web")), policy("c-name")
    )
    assert claimed_by(shop.apply(WEB)) == "c-name"


def test_the_best_selector_of_a_policy_counts() -> None:
    shop = cluster_with(policy("a", by_labels(app="web")), policy("b", all_deployments(), by_name()))
    assert claimed_by(shop.apply(WEB)) == "b"


def test_among_equals_the_smaller_name_claims() -> None:
    shop = cluster_with(policy("b"), policy("a"))
    assert claimed_by(shop.apply(WEB)) == "a"


def test_a_policy_of_the_namespace_goes_before_a_cluster_wide_one_whatever_their_priorities() -> None:
    shop = cluster_with(
        cluster_policy("everywhere", by_name(), priority=100), policy("own", all_deployments())
    )
    assert claimed_by(shop.apply(WEB)) == "own"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (by_name("other", labelSelector={"matchLabels": {"app": "web"}}), False),
        (by_name("web", labelSelector={"matchLabels": {"app": "nothing"}}), True),
        ({**by_name(), "apiVersion": "apps/v1beta1"}, False),
        ({**by_name(), "kind": "StatefulSet"}, False),
        ({**all_deployments(), "labelSelector": {}}, True),
        (by_labels(app="api"), False),
    ],
    ids=["name-without-labels", "labels-are-void", "version", "kind", "empty-selector", "labels"],
)
def test_a_name_makes_the_label_selector_void(selector: Manifest, matches: bool) -> None:
    shop = cluster_with(policy("own", selector))
    assert claimed_by(shop.apply(WEB)) == ("own" if matches else None)


def test_a_policy_of_another_namespace_claims_nothing() -> None:
    shop = Cluster()
    other = policy("own", {"apiVersion": "apps/v1", "kind": "Deployment"})
    other["metadata"]["namespace"] = "other"
    shop.apply(other)
    assert claimed_by(shop.apply(WEB)) is None


def test_a_cluster_scoped_template_is_claimed_by_cluster_wide_policies_only() -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:Reader"},
    }
    selector = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    shop = cluster_with(cluster_policy("roles", selector))
    result = only(shop.apply(role))
    assert result.binding == ("ClusterResourceBinding", "", "system.reader-clusterrole")
    assert result.binding_after is not None


@pytest.mark.parametrize(
    "namespace", ["karmada-system", "karmada-cluster", "karmada-es-member1", "kube-public"]
)
def test_reserved_and_skipped_namespaces_are_not_propagated(namespace: str) -> None:
    shop = Cluster()
    web = deployment()
    web["metadata"]["namespace"] = namespace
    shop.apply(cluster_policy("everywhere", {"apiVersion": "apps/v1", "kind": "Deployment"}))
    result = only(shop.apply(web))
    assert (result.policy_after, result.binding_after) == (None, None)


def test_a_template_of_another_controller_is_not_claimed() -> None:
    shop = cluster_with(policy("own"))
    result = shop.apply(deployment(labels={"resourcetemplate.karmada.io/claimed-by": "MultiClusterService"}))
    assert claimed_by(result) is None


def test_templates_with_equal_labels_are_claimed_alike_but_by_policies_with_a_name() -> None:
    templates = [deployment(name, labels={"tier": "front"}) for name in ("api", "web", "db")]
    broad = cluster_policy("labels", {**by_labels(tier="front"), "namespace": ""})
    named = cluster_policy("named", by_name("db"), priority=1), policy("own", by_name("web"))
    shop = cluster_with(*templates)
    assert _claims(shop.apply(broad, *named)) == {"api": "labels", "web": "labels", "db": "labels"}
    shop = cluster_with(broad, *named)
    assert _claims(shop.apply(*templates)) == {"api": "labels", "web": "own", "db": "named"}


def _claims(result: Claims) -> dict[str, str | None]:
    found = {key.name: each.policy_after for key, each in result.templates.items()}
    return {name: None if each is None else each.name for name, each in found.items()}


def test_an_edit_of_one_policy_changes_the_bindings_of_its_templates_only() -> None:
    shop = cluster_with(
        *(
            cluster_policy(tier, {**by_labels(tier=tier), "namespace": ""}, to="m1")
            for tier in ("front", "back")
        )
    )
    for tier in ("front", "back"):
        shop.apply(*(deployment(f"{tier}-{number}", labels={"tier": tier}) for number in "12"))
    result = shop.apply(cluster_policy("front", {**by_labels(tier="front"), "namespace": ""}, to="m2"))
    changed = {
        key.name for key, each in result.templates.items() if each.binding_after is not each.binding_before
    }
    assert changed == {"front-1", "front-2"}
