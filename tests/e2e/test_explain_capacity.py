"""On real controllers: queue, retries, estimators, quotas, and what capacity counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import AGGREGATED, DYNAMIC, Workload, condition, named
from tools.controlplane import ControlPlane, Object
from tools.controlplane.processes import free_port

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


class Status:
    """Changes the status of simulated members, and restores it at the end of the test."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._before: dict[str, Object] = {}

    def change(self, cluster: str, **fields: Any) -> None:
        """Replace fields of a status."""
        path = f"{CLUSTERS}/{cluster}"
        status = self._plane.client.get(path)["status"]
        self._before.setdefault(cluster, {name: status.get(name) for name in fields})
        self._plane.client.patch(f"{path}/status", {"status": fields})

    def restore(self) -> None:
        """Write what there was before."""
        for cluster, status in self._before.items():
            self._plane.client.patch(f"{CLUSTERS}/{cluster}/status", {"status": status})


@pytest.fixture
def status(controlplane: ControlPlane) -> Iterator[Status]:
    made = Status(controlplane)
    yield made
    made.restore()


def test_a_binding_that_fits_again_waits_for_its_retry(
    web: Workload, ask: Asking, status: Status, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web.create(named("sim-c1", replicaScheduling=DYNAMIC), replicas=4, cpu="5")
    web.wait(lambda found: condition(found).get("reason") == "Unschedulable", "unschedulable")
    not_placed = ask.explain()
    scheduler.process.stop()  # so that its retry does not come first
    summary = {"allocatable": {"cpu": "64", "memory": "32Gi", "pods": "220"}}
    status.change("sim-c1", resourceSummary=summary)

    answer = ask.explain()

    assert (not_placed.status, not_placed.codes) == (1, ["NotEnoughRoom"])
    assert (answer.status, answer.codes[0]) == (1, "BackingOff")
    assert answer.evidence["condition"] == "Unschedulable"
    assert web.placed() == {}


def test_a_replica_is_larger_than_every_node_of_its_cluster(
    web: Workload, ask: Asking, status: Status
) -> None:
    status.change("sim-c2", nodeSummary={"totalNum": 16, "readyNum": 16})
    web.create(named("sim-c2", replicaScheduling=DYNAMIC), replicas=1, cpu="4", scheduler=None)
    web.wait_placed({"sim-c2": 1})

    answer = ask.explain()

    assert (answer.status, answer.codes[0]) == (0, "SummaryCounts")
    assert answer.evidence["averageNode"] == "1"
    assert answer.evidence["requested"] == "4"


def test_estimators_that_do_not_answer_leave_the_resource_summaries(
    controlplane: ControlPlane, web: Workload, ask: Asking, start_scheduler: StartScheduler
) -> None:
    port = free_port()
    start_scheduler(
        "--enable-scheduler-estimator",
        *controlplane.estimator_client_flags(),
        f"--explain-bind-address=127.0.0.1:{port}",
    )
    web.create(named("sim-b1", replicaScheduling=DYNAMIC))
    web.wait_placed({"sim-b1": 4})

    answer = ask.explain("deployment/web", f"--from=http://127.0.0.1:{port}")

    assert (answer.status, answer.codes) == (0, ["EstimatorFailed"])
    assert [each["names"] for each in answer.evidence["failed"]] == [["sim-b1"]]
    assert answer.evidence["countedInstead"] == "resource summaries (general estimator)"
    assert answer.evidence["oldestSummarySeconds"] > 0


def test_two_decisions_of_a_burst_take_the_same_capacity(
    controlplane: ControlPlane, namespace: str, ask: Asking, status: Status
) -> None:
    both = [
        Workload(controlplane, namespace, name).create(
            named("sim-b2", replicaScheduling=AGGREGATED), replicas=3, cpu="4", scheduler=None
        )
        for name in ("one", "two")
    ]
    for each in both:
        each.wait_placed({"sim-b2": 3})
    # What the agent of the member reports: the Pods of one run, those of the other are pending.
    summary = {
        "allocatable": {"cpu": "16", "memory": "32Gi", "pods": "220"},
        "allocated": {"cpu": "13", "memory": "2Gi", "pods": "8"},
        "allocating": {"cpu": "12", "memory": "1Gi", "pods": "3"},
    }
    status.change("sim-b2", resourceSummary=summary)

    answer = ask.explain("deployment/one")

    assert answer.codes[0] == "BurstOvercommit"
    assert (answer.evidence["asked"], answer.evidence["free"]) == ("24", "15")
    assert answer.evidence["names"] == [f"{namespace}/one-deployment", f"{namespace}/two-deployment"]


def test_placed_replicas_count_as_capacity_after_their_request_changed(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    web.create(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=None)
    web.wait_placed({"sim-b1": 4})
    template = controlplane.client.get(web.deployment_path)["spec"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8"}}
    controlplane.client.patch(web.deployment_path, {"spec": {"template": template}})
    web.wait(
        lambda found: found["spec"]["replicaRequirements"]["resourceRequest"].get("cpu") == "8",
        "to have the new request",
    )

    answer = ask.explain()

    assert (answer.status, answer.codes) == (0, ["OwnReplicasCount"])
    assert (answer.evidence["asked"], answer.evidence["replicas"]) == ("32", 4)
    assert answer.fields["state"]["clusters"] == [{"name": "sim-b1", "replicas": 4}]


def test_a_quota_refuses_the_write_of_a_decision(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    quota: Object = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "small", "namespace": web.namespace},
        "spec": {"overall": {"cpu": "700m"}},
    }
    path = controlplane.client.path_of(controlplane.client.create(quota))
    controlplane.wait_for(
        lambda: controlplane.client.get(path).get("status", {}).get("overall"), "the quota to be in force"
    )
    web.create(named("sim-a1"), replicas=2, cpu="400m", scheduler=None)
    web.wait(lambda found: condition(found).get("reason") == "QuotaExceeded", "refused")

    answer = ask.explain()

    assert answer.codes[0] == "QuotaRefused"
    assert "exceeded for resource cpu" in answer.evidence["message"]
    assert web.placed() == {}
