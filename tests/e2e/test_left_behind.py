"""What a scheduler finds when it starts: clusters that are gone, and what its predecessor has not reported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DUPLICATED, Workload, condition, is_settled, named, placed
from tools.controlplane import ControlPlane, Object, SimulatedMember
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import static

FORCED = "forced"
CORDON: Object = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}


@pytest.fixture
def forced(controlplane: ControlPlane) -> str:
    """The name of a cluster that a test removes by force."""
    controlplane.add(SimulatedMember(FORCED))
    return FORCED


@pytest.fixture
def cordoned(controlplane: ControlPlane) -> Iterator[str]:
    """The name of a cluster that is cordoned until the end, or until the test uncordons it."""
    controlplane.client.patch(f"{CLUSTERS}/sim-a1", {"spec": {"taints": [CORDON]}})
    yield "sim-a1"
    controlplane.client.patch(f"{CLUSTERS}/sim-a1", {"spec": {"taints": None}})


def test_a_divided_workload_leaves_a_cluster_that_was_removed_by_force(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler, forced: str
) -> None:
    scheduler = start_scheduler()
    division = static({("sim-a1",): 1, (forced,): 1})
    web.create(named("sim-a1", forced, replicaScheduling=division), replicas=4)
    web.wait_placed({"sim-a1": 2, forced: 2})
    scheduler.process.stop()
    controlplane.client.delete(f"{CLUSTERS}/{forced}")
    controlplane.client.patch(f"{CLUSTERS}/{forced}", {"metadata": {"finalizers": None}})
    controlplane.wait_for(lambda: controlplane.client.find(f"{CLUSTERS}/{forced}") is None, "it to be gone")
    assert web.placed() == {"sim-a1": 2, forced: 2}
    start_scheduler()
    web.wait_placed({"sim-a1": 4})


def test_a_result_is_reported_with_its_affinity_term_and_moves_nowhere(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler, cordoned: str
) -> None:
    scheduler = start_scheduler()
    terms = [
        {"affinityName": "first", "clusterNames": [cordoned]},
        {"affinityName": "second", "clusterNames": ["sim-a2"]},
    ]
    web.create({"clusterAffinities": terms, "replicaScheduling": DUPLICATED}, replicas=2)
    reported = web.wait_placed({"sim-a2": 2})
    assert reported["status"]["schedulerObservingAffinityName"] == "second"
    scheduler.process.stop()
    # As before the second patch of a leader whose binding fitted nowhere before.
    failed = {**condition(reported), "status": "False", "reason": "NoClusterFit", "message": "before"}
    before = {
        "conditions": [failed],
        "schedulerObservedGeneration": reported["metadata"]["generation"] - 1,
        "schedulerObservingAffinityName": "",
    }
    controlplane.client.patch(f"{web.binding_path}/status", {"status": before})
    controlplane.client.patch(f"{CLUSTERS}/{cordoned}", {"spec": {"taints": None}})
    start_scheduler()
    found = web.wait(is_settled, "reported")
    assert found["status"]["schedulerObservingAffinityName"] == "second"
    assert placed(found) == {"sim-a2": 2}


def test_karmada_accepts_a_selector_with_an_operator_that_nobody_knows_and_the_workload_stays(
    web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED), replicas=2)
    web.wait_placed({"sim-a1": 2, "sim-a2": 2})
    prefix = {"key": "kind", "operator": "Prefix", "values": ["sim"]}
    web.apply_policy(
        {
            "clusterAffinity": {"labelSelector": {"matchExpressions": [prefix]}},
            "replicaScheduling": DUPLICATED,
        }
    )
    found = web.wait(lambda found: condition(found).get("reason") == "SchedulerError", "an error")
    assert placed(found) == {"sim-a1": 2, "sim-a2": 2}
    assert "kind Prefix [sim] is no valid expression" in condition(found)["message"]
    web.apply_policy(named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED))
    assert placed(web.wait(is_settled, "a success")) == {"sim-a1": 2, "sim-a2": 2}
