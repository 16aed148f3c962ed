"""Reactions of the scheduler to changes of a binding by Karmada's controllers."""

from __future__ import annotations

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

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


@pytest.mark.in_members
def test_a_workload_rebalancer_has_a_binding_scheduled_from_scratch(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("real1", replicaScheduling=DYNAMIC), replicas=4).wait_placed({"real1": 4})
    web.apply_policy(named("real1", "real2", replicaScheduling=DYNAMIC))
    web.wait(
        lambda found: is_settled(found) and "real2" in str(found["spec"]["placement"]),
        "to have the new policy",
    )
    assert web.placed() == {"real1": 4}, "the sum is right, so nothing moves by itself"

    web.rebalance()
    found = web.wait(lambda found: len(placed(found)) == 2 and is_settled(found), "on both clusters")
    assert found["status"]["lastScheduledTime"] >= found["spec"]["rescheduleTriggeredAt"]
    assert (
        f"Reschedule ResourceBinding({web.namespace}/web-deployment) as explicitly triggered" in scheduler.log
    )


def test_a_deleted_cluster_loses_its_bindings_and_is_removed(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    controlplane.add_simulated_member("leaving", labels={"kind": "leaving"})
    web.create(named("leaving", "sim-a1", replicaScheduling=AGGREGATED), replicas=2)
    on_it = Workload(controlplane, web.namespace, "copies").create(
        named("leaving", "sim-a2", replicaScheduling=DUPLICATED), replicas=1
    )
    web.wait_settled(replicas=2)
    on_it.wait_placed({"leaving": 1, "sim-a2": 1})
    controlplane.client.delete(f"{CLUSTERS}/leaving")
    on_it.wait_placed({"sim-a2": 1})
    web.wait_placed({"sim-a1": 2})
    controlplane.wait_for(
        lambda: controlplane.client.find(f"{CLUSTERS}/leaving") is None, "the cluster to be gone", timeout=60
    )


def test_a_label_that_is_taken_from_a_cluster_and_given_back_moves_a_duplicated_binding(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    for name in ("sim-b1", "sim-b2"):
        controlplane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": {"gold": web.namespace}}})
    placement = {"clusterAffinity": {"labelSelector": {"matchLabels": {"gold": web.namespace}}}}
    web.create(placement, replicas=1).wait_placed({"sim-b1": 1, "sim-b2": 1})
    controlplane.client.patch(f"{CLUSTERS}/sim-b1", {"metadata": {"labels": {"gold": None}}})
    web.wait_placed({"sim-b2": 1})
    controlplane.client.patch(f"{CLUSTERS}/sim-b1", {"metadata": {"labels": {"gold": web.namespace}}})
    web.wait_placed({"sim-b1": 1, "sim-b2": 1})
    for name in ("sim-b1", "sim-b2"):
        controlplane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": {"gold": None}}})


def test_a_no_schedule_taint_moves_no_placed_binding(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    before = web.create(named("sim-c1", replicaScheduling=DYNAMIC), replicas=2).wait_placed({"sim-c1": 2})
    taints = {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}}
    controlplane.client.patch(f"{CLUSTERS}/sim-c1", taints)
    try:
        web.scale(3)
        found = web.wait_placed({"sim-c1": 3})
        assert found["metadata"]["generation"] == before["metadata"]["generation"] + 2
    finally:
        controlplane.client.patch(f"{CLUSTERS}/sim-c1", {"spec": {"taints": None}})


def test_affinity_terms_are_tried_in_order_and_the_one_in_force_is_recorded(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    placement = {
        "clusterAffinities": [
            {"affinityName": "first", "labelSelector": {"matchLabels": {"first": web.namespace}}},
            {"affinityName": "second", "clusterNames": ["sim-c2"]},
        ]
    }
    found = web.create(placement, replicas=1).wait_placed({"sim-c2": 1})
    assert found["status"]["schedulerObservingAffinityName"] == "second"
    [failed] = web.plane.wait_for(lambda: web.events("ScheduleBindingFailed"), "the event of the first term")
    assert failed["message"].startswith(
        f"failed to schedule ResourceBinding({web.namespace}/web-deployment) with clusterAffiliates index(0): "
    )


@pytest.mark.in_members
def test_a_dependency_follows_its_workload_and_is_not_scheduled_itself(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    client = controlplane.client
    client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": web.namespace},
            "data": {"a": "b"},
        }
    )
    web.create(named("real1"), replicas=1)
    client.patch(web.policy_path, {"spec": {"propagateDeps": True}})
    template = {"spec": {"volumes": [{"name": "settings", "configMap": {"name": "settings"}}]}}
    client.patch(web.deployment_path, {"spec": {"template": template}})
    path = f"{WORK}/namespaces/{web.namespace}/resourcebindings/settings-configmap"
    attached = controlplane.wait_for(lambda: client.get(path), "the attached binding")
    assert "placement" not in attached["spec"]
    member = controlplane.members["real1"].client
    controlplane.wait_for(
        lambda: member.find(f"/api/v1/namespaces/{web.namespace}/configmaps/settings"),
        "the ConfigMap in real1",
    )
    assert "clusters" not in client.get(path)["spec"]
    assert "settings-configmap" not in scheduler.log


def test_the_other_scheduler_takes_over_a_binding_when_its_policy_is_replaced(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1"), replicas=1, scheduler="default-scheduler").wait_placed({"sim-a1": 1})
    controlplane.client.delete(web.policy_path)
    label = "propagationpolicy.karmada.io/permanent-id"
    web.wait(lambda found: not found["metadata"].get("labels", {}).get(label), "to be unclaimed")
    controlplane.wait_for(lambda: controlplane.client.find(web.policy_path) is None, "the policy to go")
    assert web.placed() == {"sim-a1": 1}

    web.apply_policy(named("sim-a2"), scheduler="my-scheduler")
    web.wait_placed({"sim-a2": 1})
    web.plane.wait_for(
        lambda: {event["source"]["component"] for event in web.events("ScheduleBindingSucceed")},
        "the events of both",
        until=lambda sources: sources == {"default-scheduler", "my-scheduler"},
    )


def test_a_namespace_that_is_deleted_takes_its_bindings_with_it_and_costs_no_retries(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    name = f"{namespace}-going"
    controlplane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    web = Workload(controlplane, name).create(labelled("sim"), replicas=1)
    web.wait(is_settled, "to be scheduled")
    controlplane.client.delete(f"/api/v1/namespaces/{name}")
    controlplane.wait_for(
        lambda: controlplane.client.find(f"/api/v1/namespaces/{name}") is None,
        "the namespace to go",
        timeout=60,
    )
    assert "Traceback" not in scheduler.log
    assert scheduler.answers("/readyz") == 200


def test_an_exceeded_quota_is_reported_and_retried_until_it_suffices(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    quota: Object = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "small", "namespace": web.namespace},
        "spec": {"overall": {"cpu": "700m"}},
    }
    controlplane.client.create(quota)
    path = f"/apis/policy.karmada.io/v1alpha1/namespaces/{web.namespace}/federatedresourcequotas/small"
    controlplane.wait_for(
        lambda: controlplane.client.get(path).get("status", {}).get("overall"), "the quota to be in force"
    )
    web.create(named("sim-a1"), replicas=2, cpu="400m")
    # The webhook of 1.16.0 refuses without the reason that a scheduler looks for.
    reason = "SchedulerError" if controlplane.version.name == "1.16.0" else "QuotaExceeded"
    refused = web.wait(lambda found: condition(found).get("reason") == reason, "to be refused")
    assert "FederatedResourceQuota(" in condition(refused)["message"]
    assert "exceeded for resource cpu" in condition(refused)["message"]
    assert "clusters" not in refused["spec"]
    template_events = controlplane.wait_for(
        lambda: [
            event["message"]
            for event in controlplane.client.list(f"/api/v1/namespaces/{web.namespace}/events")
            if event["involvedObject"].get("kind") == "Deployment"
            and event["reason"] == "ScheduleBindingFailed"
        ],
        "the event on the Deployment",
    )
    assert 'admission webhook "resourcebinding.karmada.io" denied the request' in template_events[0]

    controlplane.client.patch(path, {"spec": {"overall": {"cpu": "2"}}})
    web.wait_placed({"sim-a1": 2}, timeout=60)
