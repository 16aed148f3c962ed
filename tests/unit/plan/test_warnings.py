"""What a plan warns of in the policies of a change: names that nothing has, and the nearest that exist."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_advisor.state.schedulers import schedulers_of
from karmada_advisor.whatif.plan.lint_selectors import TemplatesKnown
from karmada_advisor.whatif.plan.model import Plan, PlanWarning
from karmada_advisor.whatif.plan.objects import ChangeError
from karmada_scheduler.testing import cluster
from tests.unit.plan.asking import plan_of
from tests.unit.plan.fleet import policy
from tests.unit.plan.test_classes import policy_p, settled, web

FLEET = [
    cluster("sim-1").region("eu-west").provider("aws").zones("eu-west-1a").labels(tier="prod"),
    cluster("sim-2").region("us-east").provider("gcp").zones("us-east-1b").labels(tier="test", pool="gpu"),
]
ALL = TemplatesKnown(all=True)


def warned(edited: Mapping[str, Any], **asking: Any) -> tuple[PlanWarning, ...]:
    """Return the warnings of a policy that is edited or created."""
    return planned(edited, **asking).warnings


def planned(edited: Mapping[str, Any], **asking: Any) -> Plan:
    asking = {"templates_known": ALL, "policies": [policy_p()], **asking}
    return plan_of(FLEET, [settled(web(), **{"sim-1": 4})], lambda draft: draft.put(edited), **asking)


def placed(**placement: Any) -> dict[str, Any]:
    return policy_p(**placement)


def shown(found: tuple[PlanWarning, ...]) -> list[tuple[str, str, str]]:
    return [(each.code, each.field.removeprefix("spec."), each.text) for each in found]


def test_a_policy_that_is_right_has_no_warnings() -> None:
    assert warned(placed(clusterAffinity={"clusterNames": ["sim-1"], "exclude": ["sim-2"]})) == ()


def test_a_change_that_karmada_would_refuse_has_its_warnings_too() -> None:
    edited = placed(clusterAffinity={"clusterNames": ["sim-x"]}, spreadConstraint=[])
    edited["spec"]["resourceSelectors"] = []
    with pytest.raises(ChangeError) as refused:
        warned(edited)
    refusal, *warnings = str(refused.value).splitlines()
    assert refusal.endswith("Karmada would refuse it: spec.resourceSelectors: at least one is needed")
    assert [each.split(": ")[1] for each in warnings] == ["FieldUnknown", "ClusterUnknown"]


# --- placements ---


@pytest.mark.parametrize(
    ("placement", "code", "field", "text"),
    [
        (
            {"clusterAffinity": {"clusterNames": ["sim-1", "sim-x"]}},
            "ClusterUnknown",
            "placement.clusterAffinity.clusterNames",
            "no cluster is named sim-x; did you mean sim-2?",
        ),
        (
            {"clusterAffinity": {"exclude": ["simm-2"]}},
            "ClusterUnknown",
            "placement.clusterAffinity.exclude",
            "no cluster is named simm-2; did you mean sim-2?",
        ),
        (
            {
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": {
                        "staticWeightList": [
                            {"targetCluster": {"clusterNames": ["sim-1"]}, "weight": 1},
                            {"targetCluster": {"clusterNames": ["sim-2", "zzz"]}, "weight": 2},
                        ]
                    },
                }
            },
            "ClusterUnknown",
            "placement.replicaScheduling.weightPreference.staticWeightList[1].targetCluster.clusterNames",
            "no cluster is named zzz",
        ),
        (
            {"clusterAffinities": [
                {"affinityName": "a", "clusterNames": ["sim-1"]},
                {"affinityName": "b", "clusterNames": ["sim-3"]},
            ]},
            "ClusterUnknown",
            "placement.clusterAffinities[1].clusterNames",
            "no cluster is named sim-3; did you mean sim-2?",
        ),
        (
            {"clusterAffinity": {"fieldSelector": {"matchExpressions": [
                {"key": "region", "operator": "In", "values": ["eu-wst", "us-east"]}
            ]}}},
            "FieldValueUnknown",
            "placement.clusterAffinity.fieldSelector",
            "no cluster has the region eu-wst; did you mean eu-west?",
        ),
        (
            {"clusterAffinity": {"fieldSelector": {"matchExpressions": [
                {"key": "provider", "operator": "NotIn", "values": ["azure"]}
            ]}}},
            "FieldValueUnknown",
            "placement.clusterAffinity.fieldSelector",
            "no cluster has the provider azure; there is aws, gcp",
        ),
        (
            {"clusterAffinity": {"fieldSelector": {"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["eu-west-1a", "us-east-1c"]}
            ]}}},
            "FieldValueUnknown",
            "placement.clusterAffinity.fieldSelector",
            "no cluster has the zone us-east-1c; did you mean us-east-1b?",
        ),
        (
            {"clusterAffinity": {"fieldSelector": {"matchExpressions": [
                {"key": "regions", "operator": "NotIn", "values": ["eu-west"]}
            ]}}},
            "FieldKeyUnknown",
            "placement.clusterAffinity.fieldSelector",
            "clusters have no field regions to select by, only provider, region, zone; did you mean region?",
        ),
        (
            {"clusterAffinity": {"fieldSelector": {"matchExpressions": [
                {"key": "region", "operator": "NotInn", "values": ["nowhere"]}
            ]}}},
            "ExpressionInvalid",
            "placement.clusterAffinity.fieldSelector",
            "region NotInn [nowhere] is no valid expression: decisions end with an error; did you mean NotIn?",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchExpressions": [
                {"key": "tier", "operator": "Prefix", "values": ["nowhere"]}
            ]}}},
            "ExpressionInvalid",
            "placement.clusterAffinity.labelSelector",
            "tier Prefix [nowhere] is no valid expression: decisions end with an error",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "not a value"}}}},
            "ExpressionInvalid",
            "placement.clusterAffinity.labelSelector",
            "tier In [not a value] is no valid expression: decisions end with an error",
        ),
        (
            {"clusterTolerations": [{"operator": "Exists"}, {"operator": "Exist"}]},
            "ExpressionInvalid",
            "placement.clusterTolerations[1].operator",
            "Exist is no valid expression: decisions end with an error; did you mean Exists?",
        ),
        (
            {"clusterTolerations": [{"operator": "Exists", "effect": "NoExecution"}]},
            "ExpressionInvalid",
            "placement.clusterTolerations[0].effect",
            "NoExecution is no valid expression: decisions end with an error; did you mean NoExecute?",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"teir": "prod"}}}},
            "LabelUnknown",
            "placement.clusterAffinity.labelSelector",
            "no cluster has the label teir; did you mean tier?",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "prd"}}}},
            "LabelValueUnknown",
            "placement.clusterAffinity.labelSelector",
            "no cluster has the label tier=prd; did you mean prod?",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchExpressions": [
                {"key": "pool", "operator": "Exists"}, {"key": "tier", "operator": "In", "values": ["prod"]}
            ]}}},
            "MatchesNoCluster",
            "placement.clusterAffinity",
            "no cluster matches all of it together",
        ),
        (
            {"spreadConstraints": [
                {"spreadByField": "region", "minGroups": 9, "maxGroups": 9},
                {"spreadByField": "cluster", "minGroups": 1},
            ]},
            "TooFewGroups",
            "placement.spreadConstraints[0].minGroups",
            "minGroups is 9, and clusters have 2 regions",
        ),
    ],
)  # fmt: skip
def test_what_a_placement_names_and_no_cluster_has_is_a_warning(
    placement: dict[str, Any], code: str, field: str, text: str
) -> None:
    assert shown(warned(placed(**placement))) == [(code, field, text)]


def test_a_label_that_must_not_exist_need_not_exist() -> None:
    selector = {"matchExpressions": [{"key": "retired", "operator": "DoesNotExist"}]}
    assert warned(placed(clusterAffinity={"labelSelector": selector})) == ()


def test_a_toleration_is_a_warning_only_if_a_taint_is_much_like_it() -> None:
    tainted = [*FLEET, cluster("sim-3").region("eu-west").taint("dedicated=batch:NoSchedule")]

    def found(**toleration: str) -> list[tuple[str, str, str]]:
        edited = placed(clusterTolerations=[{"effect": "NoSchedule", **toleration}])
        plan = plan_of(
            tainted, [], lambda draft: draft.put(edited), policies=[], templates_known=TemplatesKnown()
        )
        return shown(plan.warnings)

    assert found(key="dedicated", operator="Equal", value="batch") == []
    assert found(key="dedicated", operator="Exists") == []
    assert found(key="maintenance", operator="Exists") == []
    assert found(key="dedicatd", operator="Exists")[0][2] == (
        "no cluster has a taint that it tolerates; dedicated=batch:NoSchedule differs in its key"
    )
    assert found(key="dedicated", operator="Equal", value="bach")[0][2].endswith("differs in its value")
    assert found(key="dedicated", operator="Exists", effect="NoExecute")[0][2].endswith(
        "differs in its effect"
    )


@pytest.mark.parametrize(("effect", "codes"), [("NoExecute", ["TolerationEnds"]), ("NoSchedule", [])])
def test_a_taint_that_evicts_and_is_tolerated_for_a_time_is_a_warning(effect: str, codes: list[str]) -> None:
    tainted = [*FLEET, cluster("sim-3").region("eu-west").taint(f"maintenance:{effect}")]
    edited = placed(clusterTolerations=[{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 0}])
    plan = plan_of(
        tainted, [], lambda draft: draft.put(edited), policies=[], templates_known=TemplatesKnown()
    )
    assert [warning.code for warning in plan.warnings] == codes


def weighted(*names: str, **fields: Any) -> dict[str, Any]:
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in names]
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": weights},
    }
    return placed(replicaScheduling=scheduling, **fields)


@pytest.mark.parametrize(
    ("edited", "codes"),
    [
        (weighted("sim-1", "sim-2"), []),
        (weighted("sim-1"), ["WeightMissing"]),
        (weighted("sim-1", "sim-2", clusterAffinity={"clusterNames": ["sim-1"]}), ["WeightUnused"]),
        (weighted("sim-1", clusterAffinity={"clusterNames": ["sim-1"]}), []),
        (
            weighted(
                "sim-1",
                "sim-2",
                spreadConstraints=[{"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1}],
            ),
            ["SpreadIgnored"],
        ),
    ],
    ids=[
        "each has one",
        "one has none",
        "outside of the affinity",
        "the affinity only",
        "a spread constraint",
    ],
)
def test_weights_that_do_something_else_than_they_seem_to_are_warnings(
    edited: dict[str, Any], codes: list[str]
) -> None:
    assert [warning.code for warning in warned(edited)] == codes


def test_a_field_of_another_level_is_named_with_its_level() -> None:
    edited = {**placed(), "failover": {}}
    [warning] = warned(edited)
    assert (warning.field, warning.nearest) == ("failover", "spec.failover")


def test_a_label_that_is_a_field_of_clusters_is_named_as_one() -> None:
    [warning] = warned(placed(clusterAffinity={"labelSelector": {"matchLabels": {"region": "eu-west"}}}))[:1]
    assert (warning.code, warning.nearest) == ("LabelUnknown", "fieldSelector")


def test_a_cluster_whose_dispatching_is_suspended_and_that_does_not_exist_is_a_warning() -> None:
    edited = placed()
    edited["spec"]["suspension"] = {"dispatchingOnClusters": {"clusterNames": ["sim-1", "sim-9"]}}
    assert [(warning.code, warning.text.partition(";")[0]) for warning in warned(edited)] == [
        ("ClusterUnknown", "no cluster is named sim-9")
    ]


def test_a_cluster_that_the_change_deletes_is_named_in_no_policy_without_a_warning() -> None:
    plan = plan_of(
        FLEET,
        [],
        lambda draft: draft.without("sim-2"),
        policies=[placed(clusterAffinity={"clusterNames": ["sim-1", "sim-2"]}), policy("prod-batch")],
    )
    assert [(each.code, each.object, each.text) for each in plan.warnings] == [
        ("ClusterDeleted", "ClusterPropagationPolicy/p", "it names sim-2, which this change deletes")
    ]


def test_what_was_wrong_before_is_no_warning_of_another_change() -> None:
    wrong = placed(clusterAffinity={"clusterNames": ["sim-1", "nobody"]})
    plan = plan_of(FLEET, [], lambda draft: draft.cordon("sim-1"), policies=[wrong])
    assert plan.warnings == ()


# --- fields ---


def test_a_field_that_karmada_does_not_know_is_a_warning_with_the_nearest() -> None:
    edited = placed(clusterAffinty={"clusterNames": ["sim-1"]})
    edited["spec"]["sheduleName"] = "x"
    edited["speck"] = {}
    edited["spec"]["resourceSelectors"][0]["lables"] = {}
    assert sorted((each.field, each.nearest) for each in warned(edited)) == [
        ("spec.placement.clusterAffinty", "clusterAffinity"),
        ("spec.resourceSelectors[0].lables", "labelSelector"),
        ("spec.sheduleName", "schedulerName"),
        ("speck", "spec"),
    ]


def test_a_value_that_the_api_server_does_not_take_is_a_warning() -> None:
    edited = placed(replicaScheduling={"replicaSchedulingType": "divided"})
    edited["apiVersion"] = "policy.karmada.io/v1"
    assert [(each.code, each.field, each.nearest) for each in warned(edited)] == [
        ("ApiVersionUnknown", "apiVersion", ""),
        ("ValueUnknown", "spec.placement.replicaScheduling.replicaSchedulingType", "Divided"),
    ]


def test_a_value_in_a_list_has_its_index() -> None:
    edited = placed(spreadConstraints=[{"spreadByField": "cluster"}, {"spreadByField": "regoin"}])
    [found] = warned(edited)
    assert (found.field, found.nearest) == ("spec.placement.spreadConstraints[1].spreadByField", "region")


# --- schedulers ---


def test_a_scheduler_that_does_not_exist_is_a_warning() -> None:
    now = datetime(2026, 11, 22, 14, 20, tzinfo=UTC)
    lease = {
        "metadata": {"name": "karmada-scheduler"},
        "spec": {"holderIdentity": "a", "renewTime": "2026-11-22T14:19:59Z", "leaseDurationSeconds": 15},
    }
    edited = policy("other", {})
    edited["spec"] |= {
        "schedulerName": "default-schedular",
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
    }
    found = [
        each for each in warned(edited, schedulers=schedulers_of([lease], now=now)) if "Sched" in each.code
    ]
    assert [(each.code, each.field, each.nearest) for each in found] == [
        ("SchedulerUnknown", "spec.schedulerName", "default-scheduler")
    ]
    assert found[0].text == (
        "nobody decides about its workloads: no scheduler is named default-schedular; did you mean default-scheduler?"
    )


# --- selectors ---


def selecting(*selectors: dict[str, Any]) -> dict[str, Any]:
    edited = copy.deepcopy(policy_p())
    edited["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in selectors
    ]
    return edited


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"name": "wbe"}, "no Deployment (apps/v1) is named wbe; did you mean web?"),
        (
            {"name": "web", "namespace": "defualt"},
            "no Deployment (apps/v1) is in namespace defualt; did you mean default?",
        ),
        ({"kind": "Deploymnt"}, "there is no Deploymnt (apps/v1); did you mean Deployment?"),
        (
            {"apiVersion": "apps/v1beta1"},
            "there is no Deployment (apps/v1beta1); did you mean apiVersion apps/v1?",
        ),
        (
            {"labelSelector": {"matchLabels": {"app": "webb"}}},
            "no Deployment (apps/v1) matches its labelSelector: none has app=webb; did you mean app=web?",
        ),
        (
            {"labelSelector": {"matchLabels": {"ap": "web"}}},
            "no Deployment (apps/v1) matches its labelSelector: none has the label ap; did you mean app?",
        ),
    ],
)
def test_a_selector_that_matches_nothing_is_a_warning_with_the_nearest(
    selector: dict[str, Any], text: str
) -> None:
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    }
    found = warned(selecting({"name": "web"}, selector), templates=[template])
    assert shown(found) == [("SelectorMatchesNothing", "resourceSelectors[1]", text)]


def test_a_policy_of_which_no_selector_matches_selects_nothing() -> None:
    [found] = warned(selecting({"name": "wbe"}))
    assert found.text == (
        "no Deployment (apps/v1) is named wbe, so the policy selects nothing; did you mean web?"
    )


def test_a_kind_that_the_api_server_does_not_serve_is_named() -> None:
    known = TemplatesKnown(not_served=[("apps/v2", "Deployment")])
    found = warned(selecting({"name": "web"}, {"apiVersion": "apps/v2"}), templates_known=known)
    assert found[0].text.startswith("the API server serves no Deployment (apps/v2)")


@pytest.mark.parametrize(
    ("name", "codes"), [("web", []), ("weeb", ["SelectorMatchesNothing"]), ("something-new", [])]
)
def test_while_not_all_templates_are_known_only_a_name_much_like_another_is_a_warning(
    name: str, codes: list[str]
) -> None:
    found = warned(selecting({"name": name}, {"name": "web"}), templates_known=TemplatesKnown())
    assert [each.code for each in found] == codes


def test_a_label_selector_is_no_warning_while_labels_are_not_known() -> None:
    edited = selecting({"labelSelector": {"matchLabels": {"app": "x"}}})
    assert warned(edited, templates_known=TemplatesKnown()) == ()


def test_a_policy_that_claims_nothing_of_what_it_selects_is_a_warning() -> None:
    second = selecting({})
    second["metadata"] = {"name": "second"}
    found = warned(second)
    assert shown(found) == [
        (
            "ClaimsNothing",
            "resourceSelectors",
            "it claims nothing: what it selects stays with ClusterPropagationPolicy p",
        )
    ]


@pytest.mark.parametrize(
    ("kind", "version"), [("Namespace", "v1"), ("ClusterRole", "rbac.authorization.k8s.io/v1")]
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_policy_of_a_namespace_selects_no_cluster_scoped_kind(
    kind: str, version: str, *, is_known: bool
) -> None:
    edited = policy_p()
    edited |= {"kind": "PropagationPolicy", "metadata": {"namespace": "shop", "name": "p"}}
    edited["spec"]["resourceSelectors"] = [{"apiVersion": version, "kind": kind, "name": "pay"}]
    [warning] = warned(edited, templates_known=TemplatesKnown(all=is_known))
    assert (warning.code, warning.nearest) == ("SelectorMatchesNothing", "ClusterPropagationPolicy")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ({"key": "app", "operator": "Equals", "values": ["web"]}, "app Equals [web]"),
        ({"key": "app", "operator": "In", "values": ["w b"]}, "app In [w b]"),
    ],
)
def test_a_selector_that_is_no_valid_expression_is_a_warning_whatever_is_known(
    expression: object, text: str
) -> None:
    edited = selecting({"name": "web"}, {"labelSelector": {"matchExpressions": [expression]}})
    [found] = warned(edited, templates_known=TemplatesKnown())
    assert found.text == f"its labelSelector matches nothing: {text} is no valid expression"


# --- override policies ---


def override(
    kind: str, name: str = "web", target: object = None, path: str = "/spec/paused"
) -> dict[str, Any]:
    patch = {"path": path, "operator": "replace", "value": 1}
    rule = {"targetCluster": target or {}, "overriders": {"plaintext": [patch]}}
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]
    spec = {"resourceSelectors": selectors, "overrideRules": [rule]}
    metadata = {"name": "o", "namespace": "default"}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("kind", ["ClusterOverridePolicy", "OverridePolicy"])
@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"name": "wbe"}, "SelectorMatchesNothing", "resourceSelectors[0]"),
        ({"target": {"clusterNames": ["sim-x"]}}, "ClusterUnknown", "overrideRules[0].targetCluster.clusterNames"),
        ({"target": {"labelSelector": {"matchLabels": {"tier": "dev"}}}}, "LabelValueUnknown", "overrideRules[0].targetCluster.labelSelector"),
        ({"path": "/spec/replicas"}, "ReplicasOverridden", "overrideRules[0].overriders.plaintext[0]"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_override_policy_is_a_warning(
    kind: str, given: dict[str, Any], code: str, field: str
) -> None:
    assert [each[:2] for each in shown(warned(override(kind, **given)))] == [(code, field)]


@pytest.mark.parametrize("path", ["/spec/replicas", "/spec/paused"])
def test_an_override_of_what_the_scheduler_does_not_divide_is_no_warning(path: str) -> None:
    made = web().duplicated() if path == "/spec/replicas" else web()
    edited = override("OverridePolicy", path=path)
    assert plan_of(FLEET, [settled(made)], lambda draft: draft.put(edited), policies=[]).warnings == ()
