"""StartedCapacity on members with kube-schedulers of their own: a slow image, nodes that are cordoned, and one that fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.conftest import StartScheduler, enabling
from tests.e2e.test_running_pods import ready
from tests.e2e.workload import DYNAMIC, Workload, named
from tools import manifests
from tools.controlplane import ControlPlane, Node, RealMember
from tools.controlplane.parallel import in_parallel

A, B = "started-a", "started-b"
ARGS = {"startSeconds": 2, "moveAfterSeconds": 2, "coolDownSeconds": 4, "trialSeconds": 8}
LEAVES_AT_ONCE = {
    "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1,
}  # fmt: skip

pytestmark = pytest.mark.in_members


@pytest.fixture
def members(controlplane: ControlPlane) -> Iterator[None]:
    """Run two members with two nodes of four cores each; a node of the second one is cordoned."""
    node = Node(cpu="4")
    nodes = {A: (node, node), B: (node, replace(node, unschedulable=True))}
    controlplane.add(*(RealMember(name, nodes=each, runs_pods=True) for name, each in nodes.items()))
    yield
    in_parallel(controlplane.remove, [A, B])


def deploy(web: Workload, replicas: int, cpu: str, *clusters: str, starts_after: str = "0s") -> None:
    """Create a Deployment whose Pods start so long after they are bound, and leave a node that fails."""
    web.apply_policy(named(*clusters, replicaScheduling=DYNAMIC))
    manifest = manifests.deployment(web.namespace, web.name, replicas, cpu=cpu)
    template = manifest["spec"]["template"]
    template["metadata"]["annotations"] = {"karmada-pyscheduler/starts-after": starts_after}
    template["spec"] |= {"tolerations": [LEAVES_AT_ONCE], "terminationGracePeriodSeconds": 0}
    web.plane.client.create(manifest)


def test_what_waits_for_a_node_moves_and_finds_a_node_that_is_not_cordoned_any_more(
    controlplane: ControlPlane, members: None, web: Workload, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    start_scheduler(enabling(tmp_path, StartedCapacity=ARGS))
    slow = replace(web, name="slow")
    deploy(slow, 1, "100m", A, starts_after="20s")  # else evidence that A takes no more
    deploy(web, 10, "1", A, B)
    web.wait(lambda found: ready(found) == 10, "all ready", timeout=40)
    assert (web.placed(), ready(slow.binding())) == ({A: 6, B: 4}, 0)

    controlplane.members[B].client.patch(f"/api/v1/nodes/{B}-node-2", {"spec": {"unschedulable": None}})
    controlplane.members[A].report_ready(f"{A}-node-2", ready=False)
    web.wait(lambda found: ready(found) < 10, "some not ready")
    web.wait(lambda found: ready(found) == 10, "all ready", timeout=60)
    assert web.placed()[B] >= 6
