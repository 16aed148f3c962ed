"""Filters."""

import asyncio

import pytest

from karmada_advisor.explain.model import NextState
from karmada_scheduler.framework import SUCCESS, PreFilterContext, Result
from karmada_scheduler.testing import Group, binding, cluster, gates
from tests.unit.explain.asking import causes, codes, explained, outcome, placement, primary
from tests.unit.explain.fleet import CORDON, billing, fleet


def test_a_name_that_does_not_exist_has_the_nearest_one() -> None:
    """kubernetes-sigs/karpenter#2123"""
    asked = binding("web").replicas(2).duplicated().names("m-1")

    found = causes(asked, cluster("m1"), cluster("m2"), cluster("m3"))

    assert codes(found) == ["ClusterUnknown", "AffinityMismatch"]
    assert found[0].evidence["unknown"] == {"m-1": "m1"}
    assert (found[1].evidence["count"], found[1].evidence["of"]) == (3, 3)


def test_the_only_named_cluster_is_cordoned() -> None:
    """karmada-io/karmada#1857"""
    cordoned = cluster("m1").taint(CORDON)
    cordoned.manifest()["spec"]["taints"][0]["timeAdded"] = "2026-11-19T08:00:00Z"
    asked = binding("web").replicas(2).duplicated().names("m1")

    found = primary(asked, cordoned, why_not="m1")

    assert found.code == "UntoleratedTaint"
    assert found.evidence["key"] == "cluster.karmada.io/unschedulable"
    assert found.evidence["effect"] == "NoSchedule"
    assert found.evidence["since"] == "2026-11-19T08:00:00Z"
    assert primary(asked, cordoned).code == "UntoleratedTaint"


def test_the_refusal_of_the_cluster_that_the_affinity_selects_comes_before_those_of_many_others() -> None:
    others = [cluster(f"other-{number}").taint(CORDON) for number in range(5)]
    asked = binding("web").replicas(2).duplicated().names("m1")

    found = causes(asked, cluster("m1").taint("team=red:NoSchedule"), *others)

    assert codes(found) == ["UntoleratedTaint", "AffinityMismatch"]
    assert found[0].evidence["taint"] == "team=red:NoSchedule"


def test_an_excluded_cluster_that_is_named_comes_before_those_that_are_not() -> None:
    asked = binding("web").replicas(2).duplicated().names("m1")
    asked.manifest()["spec"]["placement"]["clusterAffinity"]["exclude"] = ["m1"]

    found = causes(asked, cluster("m1"), cluster("m2"), cluster("m3"))

    assert [each.evidence["clause"] for each in found] == ["excluded"]


def test_a_cluster_that_is_being_deleted_comes_first_only_if_the_affinity_selects_it() -> None:
    gone, asked = cluster("gone").deleting(), binding("web").replicas(2).duplicated()
    tainted = cluster("m1").taint("team=red:NoSchedule")

    assert codes(causes(asked.names("m1"), gone, tainted))[0] == "UntoleratedTaint"
    assert codes(causes(asked.names("gone"), gone, tainted))[0] == "ClusterBeingDeleted"


def test_a_taint_of_karmada_is_said_to_mean_that_the_cluster_is_not_ready() -> None:
    down = cluster("m1").taint("cluster.karmada.io/not-ready:NoSchedule")
    found = primary(binding("web").replicas(2).duplicated().names("m1"), down)

    assert found.code == "UntoleratedTaint"
    assert (
        "it is not ready, and Karmada has set the taint cluster.karmada.io/not-ready:NoSchedule" in found.text
    )


def test_a_missing_crd_names_the_clusters_that_serve_it() -> None:
    """karmada-io/karmada#3479, #532"""
    asked = binding("web").resource("example.io/v1", "Widget").names("m1", "m2")
    serving = cluster("m3").serves({"example.io/v1": ["Widget"]})

    found = primary(asked, cluster("m1"), cluster("m2"), serving, why_not="m1")

    assert found.code == "ApiMissing"
    assert (found.evidence["apiVersion"], found.evidence["kind"]) == ("example.io/v1", "Widget")
    assert found.evidence["servedBy"] == ["m3"]


def test_an_incomplete_list_of_apis_refuses_new_clusters_only() -> None:
    incomplete = [cluster(name).serves({}, complete=False) for name in ("m1", "m2")]
    asked = binding("web").replicas(2).duplicated().on(m1=2).applied()

    explanation = explained(asked, *incomplete)

    assert placement(explanation) == {"m1": 2}
    found = primary(asked, *incomplete, why_not="m2")
    assert found.code == "ApiListIncomplete"
    assert found.evidence["condition"].startswith("CompleteAPIEnablements=False")


def test_a_cluster_without_region_is_refused_by_a_region_constraint() -> None:
    """karmada-io/karmada#3231"""
    asked = binding("web").replicas(2).dynamic_weight().spread("region", 1, 2)

    found = primary(asked, cluster("m1").region("eu"), cluster("edge-7"), why_not="edge-7")

    assert found.code == "RegionMissing"
    assert found.evidence["field"] == "spec.region"
    assert "edge-7" in found.text


def test_a_cluster_with_an_eviction_task_is_refused() -> None:
    """karmada-io/karmada#5803"""
    asked = binding("web").replicas(2).duplicated().evicted_from("m1")
    task = asked.manifest()["spec"]["gracefulEvictionTasks"][0]
    task |= {"creationTimestamp": "2026-11-22T10:00:00Z", "gracePeriodSeconds": 600}

    found = primary(asked, cluster("m1"), cluster("m2"), why_not="m1")

    assert found.code == "BeingEvicted"
    assert found.evidence["reason"] == "TaintUntolerated"
    assert found.evidence["creationTimestamp"] == "2026-11-22T10:00:00Z"
    assert found.evidence["gracePeriodSeconds"] == 600


def test_the_counts_of_different_reasons_sum_up_to_all_clusters() -> None:
    """kubernetes/kubernetes#91340, #116713"""
    explanation = explained(billing(), *fleet())

    assert outcome(explanation) is NextState.NOT_PLACED
    assert codes(explanation.causes) == [
        "ClusterUnknown",
        "RegionMissing",
        "UntoleratedTaint",
        "AffinityMismatch",
    ]
    assert [(each.count, each.plugin) for each in explanation.refusals] == [
        (6, "ClusterAffinity"),
        (1, "SpreadConstraint"),
        (1, "TaintToleration"),
    ]
    assert sum(each.count for each in explanation.refusals) == 8
    assert explanation.refusals[1].names == ("edge-7",)


def test_an_affinity_group_names_its_peers_and_where_they_are() -> None:
    """karmada-io/karmada#7479"""
    peer = binding("db").groups(affinity="shop").on(m2=1)
    asked = binding("web").replicas(2).duplicated().groups(affinity="shop")
    on = gates(WorkloadAffinity=True)

    found = primary(asked, cluster("m1"), cluster("m2"), why_not="m1", gates=on, peers=Group(peer))

    assert found.code == "GroupAffinity"
    assert found.evidence["peers"] == {"default/db-deployment": ["m2"]}


def test_taints_are_not_checked_for_present_clusters() -> None:
    """karmada-io/karmada#1640"""
    asked = binding("web").replicas(10, cpu=1).dynamic_weight().on(a=4, b=1).applied()
    asked.last_scheduled("2026-11-22T10:00:00Z")
    not_ready = cluster("a").taint("cluster.karmada.io/not-ready:NoSchedule").capacity(cpu=80)

    explanation = explained(asked, not_ready, cluster("b").capacity(cpu=20))

    assert placement(explanation) == {"a": 8, "b": 2}
    assert any("taints are not checked" in warning and "a has" in warning for warning in explanation.warnings)


@pytest.mark.parametrize(
    ("effect", "seconds", "warns"),
    [("NoExecute", 60, True), ("NoSchedule", 60, False), ("NoExecute", None, False)],
)
@pytest.mark.parametrize("present", [{"a": 2}, {}])
def test_a_toleration_that_ends_is_a_warning_of_the_clusters_that_it_holds(
    present: dict[str, int], effect: str, seconds: int | None, *, warns: bool
) -> None:
    asked = binding("web").replicas(2).names("a").on(**present).tolerates(key="disk", operator="Exists")
    if seconds is not None:
        asked.tolerates(key="disk", operator="Exists", tolerationSeconds=seconds)
    warnings = explained(asked, cluster("a").taint(f"disk:{effect}")).warnings
    text = "a: disk:NoExecute is tolerated for 60 s only: where Karmada evicts, replicas leave again after it"
    assert (text in warnings) is warns


@pytest.mark.parametrize(
    ("effect", "end"), [("NoExecute", ": where Karmada evicts, replicas leave"), ("NoSchedule", "")]
)
def test_a_taint_that_evicts_is_no_taint_that_only_refuses(effect: str, end: str) -> None:
    asked = binding("web").replicas(2).dynamic_weight().names("a").on(a=2)
    warnings = explained(asked, cluster("a").taint(f"disk:{effect}")).warnings
    text = f"a has the taint disk:{effect}, but taints are not checked for clusters that have the binding"
    assert text + end in warnings


def test_a_condition_from_before_can_contradict_the_decision() -> None:
    """karmada-io/karmada#3586"""
    asked = binding("web").replicas(2).duplicated().names("m9").generation(7).observed_generation(6)
    asked.condition(type="Scheduled", status="True", reason="Success", message="scheduled")

    explanation = explained(asked, cluster("m1"))

    assert explanation.causes[0].code == "StaleCondition"
    assert explanation.causes[0].evidence["observedGeneration"] == 6
    assert explanation.causes[0].evidence["generation"] == 7
    assert explanation.condition is not None
    assert not explanation.condition.agrees


def test_every_refusal_of_a_cluster_is_shown_not_only_the_first() -> None:
    asked = binding("web").replicas(2).duplicated().names("m2").spread("region", 1, 1)

    explanation = explained(asked, cluster("m1").taint(CORDON), cluster("m2").region("eu"))

    row = next(each for each in explanation.clusters if each.name == "m1")
    assert [each.plugin for each in row.refusals] == [
        "ClusterAffinity",
        "SpreadConstraint",
        "TaintToleration",
    ]


def test_without_clusters_the_cause_is_that_there_are_none() -> None:
    explanation = explained(binding("web").replicas(2).duplicated())

    assert outcome(explanation) is NextState.NOT_PLACED
    assert codes(explanation.causes) == ["NoClusters"]


class Remote:
    """Asks something before the clusters are filtered."""

    name = "Remote"

    async def pre_filter(self, context: PreFilterContext) -> Result:
        await asyncio.sleep(0)
        return SUCCESS


def test_a_decision_with_an_asynchronous_plugin_is_explained() -> None:
    found = explained(binding("web").replicas(2).duplicated(), cluster("m1"), plugins=[Remote()])
    assert placement(found) == {"m1": 2}
