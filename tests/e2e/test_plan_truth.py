"""What a plan says about deletions and quotas, and what Karmada then does."""

from __future__ import annotations

from tests.e2e.asking import BINDINGS, CLUSTERS, POLICIES, WORKLOADS, Answer, Asking, reader
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
    # Karmada charges a quota before the write is stored: where another write comes in between (409), the charge for
    # two replicas stays until its periodic recount. The quota allows one such charge.
    start_scheduler()
    controlplane.client.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "FederatedResourceQuota",
            "metadata": {"namespace": web.namespace, "name": "team"},
            "spec": {"overall": {"cpu": "3500m"}},
        }
    )
    path = f"/apis/policy.karmada.io/v1alpha1/namespaces/{web.namespace}/federatedresourcequotas/team"
    controlplane.wait_for(
        lambda: controlplane.client.get(path).get("status", {}).get("overall"), "the quota to be in force"
    )
    web.create(labelled("sim", replicaScheduling=AGGREGATED), replicas=2)
    web.wait_settled(replicas=2)

    user = asking(web)
    within = user.run("plan", f"--scale={web.namespace}/web=4", "-o", "json")
    beyond = user.run("plan", f"--scale={web.namespace}/web=8", "-o", "json", "--fail-on=held")

    assert _effects(within, web) == ["moved"]
    assert beyond.status == 1, beyond.err
    assert _effects(beyond, web) == ["held"]
    [group] = [
        each for each in beyond.fields["failures"] if any(web.namespace in name for name in each["bindings"])
    ]
    assert group["message"] == (
        f"quota {web.namespace}/team allows 3.5 cpu, and 4 would be used; it allows 7 of 8 replicas"
    )

    web.scale(4)
    placed = web.wait_settled(replicas=4)
    web.scale(8)
    web.wait(lambda found: condition(found)["reason"] == "QuotaExceeded", "refused by the quota")
    assert web.placed() == placed


def _effects(answer: Answer, web: Workload) -> list[str]:
    """The effects on the workload; the control plane may have bindings of other tests, which are not compared."""
    return [each["effect"] for each in answer.fields["bindings"] if each["namespace"] == web.namespace]
