"""On real controllers: clusters that fail or refuse, evictions, and what comes after."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DUPLICATED, DYNAMIC, Workload, condition, is_settled, labelled, named, placed
from tools.controlplane import ControlPlane, Object

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
CORDON = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


def rebalance(web: Workload) -> None:
    """Create a WorkloadRebalancer that is newer than the last scheduling."""
    before = web.binding()["status"]["lastScheduledTime"]
    web.plane.wait_for(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > before, "a later second")
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": web.namespace, "name": web.name}
    web.plane.client.create(
        {
            "apiVersion": "apps.karmada.io/v1alpha1",
            "kind": "WorkloadRebalancer",
            "metadata": {"name": web.namespace},
            "spec": {"workloads": [workload]},
        }
    )


def test_a_rebalancer_from_before_the_uncordon_has_acted(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    controlplane.client.patch(f"{CLUSTERS}/sim-c1", {"spec": {"taints": [CORDON]}})
    try:
        web.create(named("sim-c1", "sim-c2", replicaScheduling=DYNAMIC), scheduler=None)
        web.wait_placed({"sim-c2": 4})
        rebalance(web)
        done = web.wait(lambda found: found["spec"].get("rescheduleTriggeredAt"), "triggered")
        requested = done["spec"]["rescheduleTriggeredAt"]
        web.wait(
            lambda found: is_settled(found) and found["status"]["lastScheduledTime"] >= requested,
            "rebalanced",
        )
    finally:
        controlplane.client.patch(f"{CLUSTERS}/sim-c1", {"spec": {"taints": None}})

    answer = ask.explain()

    assert web.placed() == {"sim-c2": 4}
    assert answer.status == 0
    assert answer.codes[0] in {"NothingAsks", "RebalancerTooOld"}
    assert "NothingAsks" in answer.codes
    evidence = next(each["evidence"] for each in answer.fields["causes"] if each["code"] == "NothingAsks")
    assert evidence["rebalancedAt"] == requested
    assert evidence["onRebalance"] == {"sim-c1": 2, "sim-c2": 2}


def test_a_cordoned_cluster_names_its_taint(controlplane: ControlPlane, web: Workload, ask: Asking) -> None:
    controlplane.client.patch(f"{CLUSTERS}/sim-c1", {"spec": {"taints": [CORDON]}})
    try:
        web.create(named("sim-c1", replicaScheduling=DYNAMIC), scheduler=None)
        web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "refused")

        answer = ask.explain()
    finally:
        controlplane.client.patch(f"{CLUSTERS}/sim-c1", {"spec": {"taints": None}})

    assert (answer.status, answer.fields["state"]["name"]) == (1, "not placed")
    assert "UntoleratedTaint" in answer.codes
    assert answer.fields["condition"]["agrees"] is True


@pytest.fixture
def incomplete(controlplane: ControlPlane) -> Iterator[str]:
    """A member whose agent could not list all APIs."""
    path = f"{CLUSTERS}/sim-b2"
    before = controlplane.client.get(path)["status"]
    conditions = [
        {**each, "status": "False", "reason": "Partial"} if each["type"] == "CompleteAPIEnablements" else each
        for each in before["conditions"]
    ]
    served = [each for each in before["apiEnablements"] if each["groupVersion"] != "apps/v1"]
    changed = {"status": {"conditions": conditions, "apiEnablements": served}}
    controlplane.client.patch(f"{path}/status", changed)
    yield "sim-b2"
    restored = {"conditions": before["conditions"], "apiEnablements": before["apiEnablements"]}
    controlplane.client.patch(f"{path}/status", {"status": restored})


def test_a_cluster_with_an_incomplete_list_of_apis_refuses_new_bindings(
    incomplete: str, web: Workload, ask: Asking
) -> None:
    web.create(named(incomplete, replicaScheduling=DUPLICATED), scheduler=None)
    web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "refused")

    answer = ask.explain()

    assert (answer.status, answer.fields["state"]["name"]) == (1, "not placed")
    assert "ApiListIncomplete" in answer.codes
    row = next(each for each in answer.fields["clusters"] if each["name"] == incomplete)
    assert row["cause"] == "ApiListIncomplete"


def test_a_group_keeps_a_binding_away_from_the_cluster_of_its_peer(
    controlplane: ControlPlane, namespace: str, ask: Asking
) -> None:
    apart = labelled(
        "sim",
        replicaScheduling=DUPLICATED,
        workloadAffinity={"antiAffinity": {"groupByLabelKey": "team"}},
    )
    on_one = {**apart, "clusterAffinity": {"clusterNames": ["sim-a1"]}}
    first = Workload(controlplane, namespace, "first")
    first.create(on_one, scheduler=None, labels={"team": "red"}).wait_placed({"sim-a1": 4})
    second = Workload(controlplane, namespace, "second")
    second.create(on_one, scheduler=None, labels={"team": "red"})
    second.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "refused")

    answer = ask.explain("deployment/second", "--feature-gates=WorkloadAffinity=true")

    assert (answer.status, answer.fields["state"]["name"]) == (1, "not placed")
    assert "GroupAntiAffinity" in answer.codes
    without_the_gate = ask.explain("deployment/second").fields
    assert (without_the_gate["state"]["name"], without_the_gate["wouldBe"]["outcome"]) == (
        "not placed",
        "placed",
    )


def test_a_condition_of_an_earlier_generation_contradicts_the_decision(
    web: Workload, ask: Asking, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("sim-a1", replicaScheduling=DUPLICATED)).wait_placed({"sim-a1": 4})
    scheduler.process.stop()
    web.apply_policy(named("sim-a9", replicaScheduling=DUPLICATED))
    web.wait(lambda found: "sim-a9" in str(found["spec"]["placement"]), "edited")

    answer = ask.explain()

    assert (answer.status, answer.fields["state"]["name"]) == (1, "out of date")
    assert answer.fields["state"]["clusters"] == [{"name": "sim-a1", "replicas": 4}]
    assert answer.fields["wouldBe"]["outcome"] == "not placed"
    assert "StaleCondition" in answer.codes[:2]
    condition_ = answer.fields["condition"]
    assert (condition_["status"], condition_["isCurrent"], condition_["agrees"]) == ("True", False, False)
    assert any("sim-a9, which does not exist. Nearest: sim-a" in each for each in answer.fields["warnings"])


def test_a_cluster_that_is_down_evicts_nothing_by_itself(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    web.create(named("sim-c2", replicaScheduling=DYNAMIC), scheduler=None)
    web.wait_placed({"sim-c2": 4})
    path = f"{CLUSTERS}/sim-c2"
    before = controlplane.client.get(path)["status"]["conditions"]
    down = [{**each, "status": "False"} if each["type"] == "Ready" else each for each in before]
    controlplane.client.patch(f"{path}/status", {"status": {"conditions": down}})
    try:
        controlplane.wait_for(
            lambda: [each["key"] for each in controlplane.client.get(path)["spec"].get("taints") or ()],
            "Karmada to taint the cluster",
            until=lambda keys: "cluster.karmada.io/not-ready" in keys,
            timeout=60,
        )

        answer = ask.explain()
    finally:
        controlplane.client.patch(f"{path}/status", {"status": {"conditions": before}})

    assert (answer.status, answer.codes[:2]) == (1, ["ClusterNotReady", "NoEviction"])
    assert answer.fields["state"]["name"] == "not running"
    evidence = answer.fields["causes"][1]["evidence"]
    assert evidence["cluster"] == "sim-c2"
    assert evidence["taints"] == ["cluster.karmada.io/not-ready:NoSchedule"]
    assert placed(web.binding()) == {"sim-c2": 4}


@pytest.mark.in_members
def test_a_work_that_cannot_be_applied_is_not_a_matter_of_scheduling(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    member = controlplane.members["real2"].client
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": web.namespace}}
    member.apply(namespace)  # Karmada's namespace controller may have been quicker
    labels = {"app": "mine"}
    container = {"name": "mine", "image": "nginx:1.29"}
    foreign: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": web.namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    member.create(foreign)  # exists before Karmada, so its Work is refused
    web.create(named("real1", "real2", replicaScheduling=DUPLICATED), replicas=1, scheduler=None)
    web.wait_placed({"real1": 1, "real2": 1})
    web.wait(
        lambda found: (
            {
                each["clusterName"]: (each.get("applied", False), bool(each.get("appliedMessage")))
                for each in found["status"].get("aggregatedStatus") or ()
            }
            == {"real1": (True, False), "real2": (False, True)}  # without a message nothing is reported yet
        ),
        "reported by both members",
        timeout=60,
    )

    answer = ask.explain()

    assert (answer.status, answer.codes[0]) == (1, "NotApplied")
    assert answer.fields["state"]["name"] == "not running"
    assert answer.evidence["messages"]["real2"]
    assert answer.evidence["clusters"] == ["real2"]
    assert answer.evidence["works"] == ["karmada-es-real2"]
