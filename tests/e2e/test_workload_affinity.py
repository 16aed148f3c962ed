"""Groups of workloads, behind the gate WorkloadAffinity: together or apart, with either scheduler."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import StartEither
from tests.e2e.workload import DUPLICATED, Workload, condition, labelled
from tools.controlplane import ControlPlane, Object

pytestmark = pytest.mark.needs("1.17", reason="R11: there are no groups of workloads before")

GATE = "--feature-gates=WorkloadAffinity=true"


def grouped(kind: str, clusters: int) -> Object:
    """A placement on so many of the simulated members, in the group that the label `team` names."""
    return labelled(
        "sim",
        replicaScheduling=DUPLICATED,
        spreadConstraints=[{"spreadByField": "cluster", "minGroups": clusters, "maxGroups": clusters}],
        workloadAffinity={kind: {"groupByLabelKey": "team"}},
    )


def create(plane: ControlPlane, namespace: str, name: str, placement: Object) -> Workload:
    """Create a workload of the team `red`."""
    workload = Workload(plane, namespace, name)
    return workload.create(placement, replicas=1, scheduler="groups", labels={"team": "red"})


def test_workloads_of_an_anti_affinity_group_share_no_cluster_even_if_they_waited_together(
    controlplane: ControlPlane, namespace: str, start_either: StartEither
) -> None:
    """A decision counts the clusters of earlier ones before any watch event; a fourth binding fits nowhere."""
    apart = grouped("antiAffinity", 2)
    first = [create(controlplane, namespace, name, apart) for name in ("one", "two", "three")]
    paths = [workload.binding_path for workload in first]
    controlplane.wait_for(lambda: all(map(controlplane.client.find, paths)), "the bindings of all three")
    start_either("groups", GATE)
    taken = [cluster for workload in first for cluster in workload.wait_settled(replicas=1)]
    assert len(taken) == len(set(taken)) == 6

    fourth = create(controlplane, namespace, "four", apart)
    refused = fourth.wait(lambda found: condition(found).get("status") == "False", "refused")
    assert condition(refused)["reason"] == "NoClusterFit"
    assert "6 cluster already has workload with the same anti-affinity group" in condition(refused)["message"]

    freed = set(first[0].wait_settled(replicas=1))
    controlplane.client.delete(first[0].deployment_path)
    controlplane.wait_for(
        lambda: controlplane.client.find(first[0].binding_path) is None, "the binding of one to be gone"
    )
    fourth.scale(2)
    assert set(fourth.wait_settled(replicas=2)) == freed


def test_workloads_of_an_affinity_group_follow_the_one_that_was_placed_first(
    controlplane: ControlPlane, namespace: str, start_either: StartEither
) -> None:
    start_either("groups", GATE)
    together = grouped("affinity", 1)
    # All six are equally good, and among equals the first name wins: left alone, the second would go to sim-a1.
    last = {**together, "clusterAffinity": {"clusterNames": ["sim-c2"]}}
    first = create(controlplane, namespace, "first", last)
    assert first.wait_settled(replicas=1) == {"sim-c2": 1}
    assert create(controlplane, namespace, "second", together).wait_settled(replicas=1) == {"sim-c2": 1}
