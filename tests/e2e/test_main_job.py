"""The main job: bindings of our scheduler are placed, others are not touched."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    WORK,
    Workload,
    condition,
    is_settled,
    labelled,
    named,
    placed,
)
from tools.controlplane import ControlPlane, Object
from tools.controlplane.demo_objects import CASES

pytestmark = pytest.mark.in_members


def test_three_policies_are_scheduled_by_the_scheduler_that_each_names(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    for case in CASES:
        for manifest in case.manifests():
            controlplane.client.create(
                {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
            )

    for case in CASES:
        workload = Workload(controlplane, namespace, case.name)
        found = workload.wait(
            lambda found: found["spec"].get("clusters") and is_settled(found), "to be scheduled"
        )
        assert case.as_expected(placed(found)), f"{case.name}: {placed(found)}"
        assert (found["spec"].get("schedulerName") or "default-scheduler") == case.belongs_to
        workload.wait_event_from(case.belongs_to)

    mine = Workload(controlplane, namespace, "web-my")
    [event] = mine.events("ScheduleBindingSucceed")
    assert event["message"] == "Binding has been scheduled successfully. Result: {real1:8, real2:4}"
    mine.wait_ready_in("real1", 8)
    mine.wait_ready_in("real2", 4)


def test_a_new_binding_costs_one_patch_of_the_spec_and_one_of_the_status(
    web: Workload, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED), replicas=2)
    found = web.wait_placed({"sim-a1": 2, "sim-a2": 2})
    assert found["metadata"]["generation"] == 2
    status = 'karmada_scheduler_api_writes_total{result="200",target="status"} '
    metrics = web.plane.wait_for(
        scheduler.scrape, "the response to the last patch", until=lambda text: status in text
    )
    assert 'karmada_scheduler_api_writes_total{result="200",target="spec"} 1.0' in metrics
    assert status + "1.0" in metrics
    assert 'karmada_scheduler_classified_bindings_total{schedule_class="First"} 1.0' in metrics


def test_the_scheduler_leaves_no_kopf_annotation_or_finalizer_on_objects(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1"), replicas=1).wait_placed({"sim-a1": 1})
    objects: list[Object] = [web.binding(), controlplane.client.get(web.policy_path)]
    objects += controlplane.client.list("/apis/cluster.karmada.io/v1alpha1/clusters")
    for found in objects:
        assert "kopf.zalando.org" not in str(found)
        assert "karmada-pyscheduler" not in str(found["metadata"].get("finalizers", ""))
    binding = objects[0]
    ours = {
        field
        for entry in binding["metadata"]["managedFields"]
        if entry["manager"] == "karmada-pyscheduler"
        for part in ("f:metadata", "f:spec", "f:status")
        for field in entry["fieldsV1"].get(part, {})
    }
    status = {"f:conditions", "f:lastScheduledTime", "f:schedulerObservedGeneration"}
    # A list belongs to whom wrote it last, which for the conditions may be the controller manager.
    assert {"f:annotations", "f:clusters"} <= ours <= {".", "f:annotations", "f:clusters", *status}


def test_a_cluster_scoped_template_is_scheduled_through_its_binding(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    name = f"reader-{namespace}"
    controlplane.client.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "my-scheduler",
                "resourceSelectors": [
                    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name}
                ],
                "placement": named("real2", "sim-b1"),
            },
        }
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    controlplane.client.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        }
    )
    try:
        path = f"{WORK}/clusterresourcebindings/{name}-clusterrole"
        found = controlplane.wait_for(
            lambda: controlplane.client.get(path), "the ClusterResourceBinding", until=is_settled
        )
        assert placed(found) == {"real2": 0, "sim-b1": 0}
        member = controlplane.members["real2"].client
        controlplane.wait_for(
            lambda: member.find(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"),
            "the ClusterRole in real2",
        )
        messages = controlplane.wait_for(
            lambda: [
                event["message"]
                for event in controlplane.client.list("/api/v1/namespaces/default/events")
                if event["involvedObject"].get("name") == f"{name}-clusterrole"
                and event["reason"] == "ScheduleBindingSucceed"
            ],
            "the event on the ClusterResourceBinding",
        )
        assert sorted(messages[0].removeprefix("Binding has been scheduled successfully. Result ")) == sorted(
            "{real2:0, sim-b1:0}"
        )
    finally:
        controlplane.client.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
        controlplane.client.delete(f"/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/{name}")


def test_replicas_follow_the_template_up_and_down(web: Workload, start_scheduler: StartScheduler) -> None:
    scheduler = start_scheduler()
    web.create(labelled("real", replicaScheduling=DYNAMIC), replicas=12)
    assert web.wait_settled(replicas=12) == {"real1": 8, "real2": 4}
    web.scale(6)
    assert web.wait_settled(replicas=6) == {"real1": 4, "real2": 2}
    web.scale(30)
    assert web.wait_settled(replicas=30) == {"real1": 20, "real2": 10}
    scaled = [line for line in scheduler.log.splitlines() if "scaled down or scaled up" in line]
    # A decision that conflicts with another change is taken and reported again.
    assert [web.namespace in line for line in scaled].count(True) >= 2, scaled
    member = web.plane.members["real1"].client
    web.plane.wait_for(
        lambda: member.get(web.deployment_path)["spec"]["replicas"],
        "real1 to follow",
        until=lambda n: n == 20,
    )


def test_a_taint_that_is_not_tolerated_moves_a_binding(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("real1", "real2", replicaScheduling=DYNAMIC), replicas=9)
    web.wait_settled(replicas=9)
    cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/real1"
    controlplane.client.patch(cluster, {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}})
    try:
        web.wait_placed({"real2": 9})
        assert 'schedule_class="Failover"}' in scheduler.scrape()
        controlplane.wait_for(
            lambda: web.in_member("real1") is None, "the Deployment to leave real1", timeout=60
        )
    finally:
        controlplane.client.patch(cluster, {"spec": {"taints": None}})


def test_an_edited_policy_moves_its_binding(web: Workload, start_scheduler: StartScheduler) -> None:
    start_scheduler()
    web.create(named("real1", replicaScheduling=DYNAMIC), replicas=3).wait_placed({"real1": 3})
    web.apply_policy(named("real2", replicaScheduling=DYNAMIC))
    web.wait_placed({"real2": 3})
    web.plane.wait_for(lambda: web.in_member("real1") is None, "the Deployment to leave real1")
    web.wait_ready_in("real2", 3)


def test_a_suspended_binding_is_left_alone_until_it_is_resumed(
    web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1", "sim-b1", replicaScheduling=AGGREGATED), replicas=2)
    before = web.wait_settled(replicas=2)
    client = web.plane.client
    client.patch(web.binding_path, {"spec": {"suspension": {"scheduling": True}}})
    web.scale(5)
    web.wait(lambda found: found["spec"]["replicas"] == 5, "to have the new replicas")

    other = Workload(web.plane, web.namespace, "other").create(named("sim-a1"), replicas=1)
    other.wait_placed({"sim-a1": 1})
    suspended = web.binding()
    assert placed(suspended) == before
    assert suspended["status"]["schedulerObservedGeneration"] < suspended["metadata"]["generation"]

    client.patch(web.binding_path, {"spec": {"suspension": {"scheduling": False}}})
    assert sum(web.wait_settled(replicas=5).values()) == 5


def test_a_binding_of_another_scheduler_is_never_touched(
    web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1"), replicas=1, scheduler="nobody-s-scheduler")
    web.plane.wait_for(web.binding, "the binding")
    other = Workload(web.plane, web.namespace, "other").create(named("sim-a1"), replicas=1)
    other.wait_placed({"sim-a1": 1})
    found = web.binding()
    assert "clusters" not in found["spec"]
    assert "status" not in found or "conditions" not in found["status"]
    assert not [event for event in web.events() if event["source"]["component"] == "my-scheduler"]


def test_a_disabled_plugin_changes_the_decision(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/sim-c1"
    controlplane.client.patch(cluster, {"spec": {"taints": [{"key": "reserved", "effect": "NoSchedule"}]}})
    try:
        first = start_scheduler()
        web.create(named("sim-c1"), replicas=1)
        refused = web.wait(lambda found: condition(found).get("status") == "False", "to be refused")
        assert condition(refused)["reason"] == "NoClusterFit"
        assert "1 cluster(s) had untolerated taint {reserved:NoSchedule}" in condition(refused)["message"]
        first.process.stop()
        controlplane.forget(first.process)

        second = start_scheduler("--plugins=*,-TaintToleration")
        web.wait_placed({"sim-c1": 1})
        assert '"TaintToleration" is disabled' in second.log
        assert 'Enable Scheduler plugin "ClusterAffinity"' in second.log
    finally:
        controlplane.client.patch(cluster, {"spec": {"taints": None}})


def test_a_binding_that_no_cluster_fits_is_placed_when_one_does(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    placement = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": web.namespace}}}}
    web.create(placement, replicas=1)
    refused = web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "to fit nowhere")
    everywhere = "did not match the placement cluster affinity constraint"
    assert re.fullmatch(
        rf"0/\d+ clusters are available: \d+ cluster\(s\) {everywhere}\.", condition(refused)["message"]
    )
    cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/sim-b2"
    controlplane.client.patch(cluster, {"metadata": {"labels": {"tier": web.namespace}}})
    try:
        web.wait_placed({"sim-b2": 1})
    finally:
        controlplane.client.patch(cluster, {"metadata": {"labels": {"tier": None}}})


def test_replicas_that_do_not_fit_keep_the_placement_and_set_the_condition(
    web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, cpu="1").wait_placed({"sim-a1": 2})
    web.scale(100)
    refused = web.wait(lambda found: condition(found).get("reason") == "Unschedulable", "not to fit")
    assert "are not enough to schedule." in condition(refused)["message"]
    assert placed(refused) == {"sim-a1": 2}
    web.scale(3)
    web.wait_placed({"sim-a1": 3})
