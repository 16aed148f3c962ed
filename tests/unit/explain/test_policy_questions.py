"""Which policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from karmada_advisor.claims.template import Template, TemplateKey
from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.model import Cause
from karmada_advisor.explain.policies import matching
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_advisor.state.model import StateName
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster
from tests.unit.explain.asking import causes, codes, inputs_of, primary

WEB = Template(TemplateKey("apps/v1", "Deployment", "shop", "web"), {"app": "web"})
DEPLOYMENTS = {"apiVersion": "apps/v1", "kind": "Deployment"}


def policy(
    name: str, *selectors: Mapping[str, Any], namespace: str = "shop", priority: int = 0, **spec: Any
) -> dict[str, Any]:
    """Return a policy; without namespace a ClusterPropagationPolicy."""
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {f"{kind.lower()}.karmada.io/permanent-id": name},
        },
        "spec": {"resourceSelectors": list(selectors), "priority": priority, **spec},
    }


BY_NAME = {**DEPLOYMENTS, "name": "web"}
BY_LABELS = {**DEPLOYMENTS, "labelSelector": {"matchLabels": {"app": "web"}}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (policy("z", DEPLOYMENTS), policy("a", BY_NAME, namespace="", priority=9)),
        (policy("z", DEPLOYMENTS, priority=1), policy("a", BY_NAME)),
        (policy("z", BY_NAME), policy("a", BY_LABELS)),
        (policy("z", BY_LABELS), policy("a", DEPLOYMENTS)),
        (policy("a", DEPLOYMENTS), policy("z", DEPLOYMENTS)),
    ],
    ids=["namespaced first", "priority", "name before labels", "labels before all", "smaller name"],
)
def test_the_order_of_policies(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert [each.policy for each in matching([second, first], WEB)] == [first, second]


def test_a_name_makes_the_label_selector_void() -> None:
    selector = {**BY_NAME, "labelSelector": {"matchLabels": {"app": "other"}}}
    assert len(matching([policy("a", selector)], WEB)) == 1


@pytest.mark.parametrize(
    "other",
    [
        policy("a", {**DEPLOYMENTS, "kind": "StatefulSet"}),
        policy("a", BY_NAME, namespace="pay"),
        policy("a", {**DEPLOYMENTS, "name": "api"}),
        policy("a", {**DEPLOYMENTS, "labelSelector": {"matchLabels": {"app": "api"}}}),
        policy("a", {**DEPLOYMENTS, "namespace": "pay"}, namespace=""),
    ],
)
def test_other_policies_do_not_match(other: dict[str, Any]) -> None:
    assert matching([other], WEB) == []


def claimed_by(holder: str, policies: list[dict[str, Any]]) -> list[Cause]:
    """Return the causes of a placed binding that a policy claims."""
    asked = binding("web", namespace="shop").replicas(2).duplicated().on(m1=2).applied()
    asked.label("propagationpolicy.karmada.io/permanent-id", holder)
    inputs = inputs_of(asked.last_scheduled("2026-11-22T10:00:00Z"), cluster("m1"), policies=policies)
    inputs = replace(inputs, template_labels={"app": "web"})
    return causes_of_binding(Situation(inputs))


def test_of_two_policies_the_order_that_chose_is_named() -> None:
    """karmada-io/karmada#1140"""
    [found] = claimed_by("z", [policy("a", DEPLOYMENTS), policy("z", BY_NAME)])

    assert found.code == "PolicyChosen"
    assert found.evidence["chosen"] == "PropagationPolicy shop/z"
    assert found.evidence["others"] == ["PropagationPolicy shop/a"]
    assert found.evidence["criterion"] == "selector"


def test_a_higher_priority_does_not_take_a_template_that_is_held() -> None:
    """karmada-io/karmada#4697, #2727, #3787"""
    found = claimed_by("a", [policy("a", DEPLOYMENTS), policy("z", BY_NAME, priority=5)])

    assert codes(found) == ["ClaimHeld"]
    assert found[0].evidence == {
        "heldBy": "PropagationPolicy shop/a",
        "first": "PropagationPolicy shop/z",
        "preemption": "Never",
    }


def test_a_template_that_no_policy_matches_has_the_nearest_one() -> None:
    """karmada-io/karmada#5031"""
    policies = [policy("far", {**DEPLOYMENTS, "kind": "Job"}), policy("near", {**DEPLOYMENTS, "name": "wep"})]

    found = explain_unclaimed(WEB, policies)

    assert found.state.name is StateName.NOT_CLAIMED
    assert codes(found.causes) == ["NotClaimed"]
    assert found.causes[0].evidence["nearest"] == {
        "PropagationPolicy shop/far": "kind is Job",
        "PropagationPolicy shop/near": "name is wep",
    }
    assert "nearest: PropagationPolicy shop/near, but its name is wep" in found.state.text


def test_a_claimed_template_without_a_binding_waits_for_a_change_or_a_restart() -> None:
    claimed = replace(WEB, labels={"app": "web", "propagationpolicy.karmada.io/permanent-id": "mine"})

    found = explain_unclaimed(claimed, [policy("mine", DEPLOYMENTS)])

    assert "as after a deletion of the binding" in found.state.text
    assert "next change of the template" in found.state.text
    assert "when karmada-controller-manager restarts" in found.state.text


def test_a_reserved_namespace_is_never_propagated() -> None:
    """karmada-io/karmada#5031"""
    found = explain_unclaimed(replace(WEB, key=WEB.key._replace(namespace="kube-system")), [])

    assert found.causes[0].evidence["reserved"] is True
    assert "never propagated" in found.state.text


PRIORITY = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "hgh-priority"}


def test_a_priority_class_that_does_not_exist_has_the_nearest_one() -> None:
    event = {
        "reason": "ApplyPolicyFailed",
        "message": 'PriorityClass "hgh-priority" not found',
        "source": {"component": "resource-detector"},
        "lastTimestamp": "2026-11-24T10:00:00Z",
    }

    found = explain_unclaimed(
        WEB,
        [policy("near", BY_NAME, schedulePriority=PRIORITY)],
        priority_classes=["high-priority", "low-priority"],
        events=[event],
    )

    assert codes(found.causes) == ["PriorityClassMissing", "Reported"]
    assert found.causes[0].evidence == {
        "policy": "PropagationPolicy shop/near",
        "priorityClass": "hgh-priority",
        "nearest": "high-priority",
    }
    assert found.state.text.endswith(
        "PriorityClass hgh-priority, which does not exist; nearest: high-priority"
    )
    assert "resource-detector" in found.causes[1].text


@pytest.mark.parametrize("known", [["hgh-priority"], None], ids=["exists", "not known"])
def test_a_priority_class_is_no_cause_if_it_exists_or_that_is_not_known(known: list[str] | None) -> None:
    policies = [policy("near", BY_NAME, schedulePriority=PRIORITY)]
    assert codes(explain_unclaimed(WEB, policies, priority_classes=known).causes) == ["NotClaimed"]


def test_the_priority_class_is_that_of_the_policy_that_holds_the_template() -> None:
    """Karmada claims a template before it looks for the PriorityClass."""
    policies = [policy("held", BY_NAME, schedulePriority=PRIORITY), policy("z", BY_NAME, priority=5)]
    held = replace(WEB, labels={"propagationpolicy.karmada.io/permanent-id": "held"})

    assert codes(explain_unclaimed(held, policies, priority_classes=["high"]).causes) == [
        "PriorityClassMissing"
    ]
    assert codes(explain_unclaimed(WEB, policies, priority_classes=["high"]).causes) == ["NotClaimed"]


def test_a_cluster_scoped_template_needs_no_priority_class() -> None:
    role = Template(TemplateKey("rbac.authorization.k8s.io/v1", "ClusterRole", "", "web"), {})
    selector = {"apiVersion": role.key.api_version, "kind": role.key.kind}
    policies = [policy("p", selector, namespace="", schedulePriority=PRIORITY)]

    assert codes(explain_unclaimed(role, policies, priority_classes=[]).causes) == ["NotClaimed"]


@pytest.mark.parametrize(
    ("spec", "labels", "said"),
    [
        ({}, {}, "Karmada's detector has not made a binding yet"),
        (
            {},
            {"propagationpolicy.karmada.io/permanent-id": "own"},
            "or when karmada-controller-manager restarts",
        ),
        (
            {"activationPreference": "Lazy"},
            {},
            "is Lazy: Karmada makes its binding at the next change of the template",
        ),
    ],
    ids=["not claimed", "its binding was deleted", "lazy"],
)
def test_why_a_template_has_no_binding_although_a_policy_matches(
    spec: dict[str, Any], labels: dict[str, str], said: str
) -> None:
    found = explain_unclaimed(replace(WEB, labels=labels), [policy("own", BY_NAME, **spec)])
    assert said in found.causes[0].text


@pytest.mark.parametrize(("length", "said"), [(242, False), (243, True)])
@pytest.mark.parametrize("labels", [{}, {"propagationpolicy.karmada.io/permanent-id": "own"}])
def test_no_binding_is_promised_whose_name_is_too_long(
    length: int, labels: dict[str, str], *, said: bool
) -> None:
    key = TemplateKey("apps/v1", "Deployment", "shop", "a" * length)
    found = explain_unclaimed(Template(key, labels), [policy("own", DEPLOYMENTS)])
    assert ("would be longer than Kubernetes allows" in found.causes[0].text) is said


def test_a_policy_that_claims_a_template_and_no_longer_matches_it_is_named() -> None:
    labels = {"propagationpolicy.karmada.io/permanent-id": "own"}
    other = policy("own", {**BY_NAME, "name": "api"})
    found = explain_unclaimed(replace(WEB, labels=labels), [other])
    assert "PropagationPolicy shop/own claims it, and no longer matches it" in found.causes[0].text


@pytest.mark.parametrize(
    ("namespace", "said"), [("pay", "is in another namespace"), ("", "ClusterPropagationPolicy")]
)
def test_why_a_policy_of_a_namespace_does_not_match_what_is_not_in_it(namespace: str, said: str) -> None:
    template = Template(TemplateKey("v1", "Namespace", namespace, "pay"), {})
    found = explain_unclaimed(
        template, [policy("own", {"apiVersion": "v1", "kind": "Namespace", "name": "pax"})]
    )
    assert said in found.causes[0].text


@pytest.mark.parametrize(
    ("finalizers", "text"),
    [
        (
            ["karmada.io/binding-controller", "example.com/hold"],
            ", and waits for its finalizers: karmada.io/",
        ),
        ([], "the binding is being deleted"),
    ],
)
def test_a_deletion_names_the_finalizers_that_hold_it(finalizers: list[str], text: str) -> None:
    asked = binding("web").replicas(2)
    metadata = asked.manifest()["metadata"]
    metadata |= {"deletionTimestamp": "2026-11-24T08:00:00Z", "finalizers": finalizers}

    found = primary(asked, cluster("m1"))

    assert (found.code, found.evidence["finalizers"]) == ("BeingDeleted", finalizers)
    assert text in found.text


def test_an_eviction_names_the_cluster_that_it_waits_for_and_why() -> None:
    asked = binding("web").replicas(2).duplicated().on(m2=2).applied().evicted_from("m1")
    report = {"clusterName": "m2", "applied": True, "health": "Unhealthy", "status": {"readyReplicas": 0}}
    asked.manifest()["status"]["aggregatedStatus"] = [report]

    [found] = [each for each in causes(asked, cluster("m1"), cluster("m2")) if each.code == "Evicting"]

    assert list(found.evidence["waitsFor"]) == ["m2"]
    assert "; m2: " in found.text
