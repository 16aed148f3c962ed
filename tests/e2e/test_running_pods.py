"""A member that runs Pods: its own kube-scheduler binds them to nodes, and leaves those pending that fit on none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import Workload, labelled
from tools.controlplane import ControlPlane, Node, Object, RealMember

NAME = "running1"
HELD = {"key": "maintenance", "value": "true", "effect": "NoSchedule"}
NODES = (Node(cpu="4"), Node(cpu="4"), Node(cpu="4", taints=(HELD,)))

pytestmark = pytest.mark.in_members


@pytest.fixture
def member(controlplane: ControlPlane) -> Iterator[str]:
    """Run a member with three nodes of four cores, one of which is tainted."""
    controlplane.add(RealMember(NAME, nodes=NODES, labels={"kind": "running"}, runs_pods=True))
    yield NAME
    controlplane.remove(NAME)


def test_pods_run_where_nodes_have_capacity_and_the_others_stay_pending_until_it_is_there(
    controlplane: ControlPlane, member: str, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    web.create(labelled("running"), replicas=10, cpu="1")

    # The summary has the cores of the tainted node, too.
    web.wait_placed({member: 10})
    web.wait(lambda found: ready(found) == 8, "8 of 10 ready")
    client = controlplane.members[member].client
    pods = client.list(f"/api/v1/namespaces/{web.namespace}/pods")
    by_node = [pod["spec"].get("nodeName") for pod in pods]
    assert sorted(map(by_node.count, {f"{member}-node-{number}" for number in (1, 2, 3)})) == [0, 4, 4]
    [reason] = {
        condition["reason"]
        for pod in pods
        if not pod["spec"].get("nodeName")
        for condition in pod["status"]["conditions"]
    }
    assert (by_node.count(None), reason) == (2, "Unschedulable")

    client.patch(f"/api/v1/nodes/{member}-node-3", {"spec": {"taints": None}})
    web.wait(lambda found: ready(found) == 10, "all ready")


def ready(binding: Object) -> int:
    """Return the ready replicas that the status of a binding has."""
    reports = binding["status"].get("aggregatedStatus") or ()
    return sum((report.get("status") or {}).get("readyReplicas", 0) for report in reports)
