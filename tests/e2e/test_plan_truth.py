"""What a plan says about deletions and quotas, and what Karmada then does."""

from __future__ import annotations

from tests.e2e.asking import BINDINGS, CLUSTERS, POLICIES, WORKLOADS, Asking, reader
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import AGGREGATED, DUPLICATED, Workload, condition, labelled, named
from tools.controlplane import ControlPlane, Object

CLUSTER = "/apis/cluster.karmada.io/v1alpha1/clusters/staying"
EXECUTION_SPACE = "/api/v1/namespaces/karmada-es-staying"
QUOTAS: Object = {
    "apiGroups": ["policy.karmada.io"],
    "resources": ["federatedresourcequotas"],
    "verbs": ["get", "list"],
}
LEASES: Object = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "verbs": ["get", "list"],
}


def asking(web: Workload) -> Asking:
    """Return what asks as a user who may also read quotas and Leases."""
    rules = (CLUSTERS, BINDINGS, POLICIES, WORKLOADS, QUOTAS, LEASES)
    return Asking(reader(web.plane, "plan-reader", *rules), web.namespace)


def test_a_deleted_cluster_stays_terminating_while_a_suspended_binding_is_on_it_as_planned(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    controlplane.add_simulated_member("staying", labels={"kind": "staying"})
    web.create(named("staying", "sim-a1", replicaScheduling=DUPLICATED), replicas=1)
    web.wait_placed({"staying": 1, "sim-a1": 1})
    controlplane.client.patch(web.binding_path, {"spec": {"suspension": {"scheduling": True}}})

    answer = asking(web).run("plan", "--without", "staying", "-o", "json")

    assert answer.status == 1, answer.err
    [deletion] = answer.fields["blocked"]
    assert [each["name"] for each in deletion["bindings"]] == ["web-deployment"]
    assert deletion["bindings"][0]["text"].startswith("scheduling is suspended")

    controlplane.client.delete(CLUSTER)
    controlplane.wait_for(
        lambda: controlplane.client.find(EXECUTION_SPACE) is None, "the Works there to be deleted", timeout=90
    )
    found = controlplane.client.find(CLUSTER)
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]
    assert web.placed() == {"staying": 1, "sim-a1": 1}

    controlplane.client.patch(web.binding_path, {"spec": {"suspension": None}})
    web.wait_placed({"sim-a1": 1})
    controlplane.wait_for(
        lambda: controlplane.client.find(CLUSTER) is None, "the cluster to be gone", timeout=90
    )


def test_a_workload_that_is_scaled_beyond_a_quota_is_held_as_planned(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    controlplane.client.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "FederatedResourceQuota",
            "metadata": {"namespace": web.namespace, "name": "team"},
            "spec": {"overall": {"cpu": "2"}},
        }
    )
    path = f"/apis/policy.karmada.io/v1alpha1/namespaces/{web.namespace}/federatedresourcequotas/team"
    controlplane.wait_for(
        lambda: controlplane.client.get(path).get("status", {}).get("overall"), "the quota to be in force"
    )
    web.create(labelled("sim", replicaScheduling=AGGREGATED), replicas=2)
    placed = web.wait_settled(replicas=2)

    user = asking(web)
    within = user.run("plan", f"--scale={web.namespace}/web=4", "-o", "json").fields
    beyond = user.run("plan", f"--scale={web.namespace}/web=6", "-o", "json", "--fail-on=held")

    assert (within["counts"]["moved"], within["counts"]["held"]) == (1, 0)
    assert beyond.status == 1, beyond.err
    assert beyond.fields["counts"]["moved"] == 0
    [group] = beyond.fields["failures"]
    assert group["message"] == (
        f"quota {web.namespace}/team allows 2 cpu, and 3 would be used; it allows 4 of 6 replicas"
    )

    web.scale(6)
    web.wait(lambda found: condition(found)["reason"] == "QuotaExceeded", "refused by the quota")
    assert web.placed() == placed
    web.scale(4)
    web.wait_settled(replicas=4)
