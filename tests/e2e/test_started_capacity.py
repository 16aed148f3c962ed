"""StartedCapacity on members with kube-schedulers of their own: slow images, quotas, nodes that are cordoned, tainted or fail.

The situations after the first one are made with ``make check-state``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartScheduler, enabling
from tests.e2e.test_running_pods import ready
from tests.e2e.workload import DYNAMIC, Workload, named
from tools import manifests
from tools.controlplane import ControlPlane, Node, RealMember
from tools.controlplane.parallel import in_parallel

A, B = "started-a", "started-b"
ARGS = {"startSeconds": 2, "moveAfterSeconds": 2, "coolDownSeconds": 4, "trialSeconds": 8}
LONGER_THAN_REPORTS = {"startSeconds": 12, "moveAfterSeconds": 12, "coolDownSeconds": 30, "trialSeconds": 600}
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


@pytest.fixture
def web(members: None, web: Workload) -> Workload:
    """A workload that is deleted before the members are: Karmada keeps a Cluster that a binding names."""
    return web


@pytest.fixture
def start(start_scheduler: StartScheduler, tmp_path: Path) -> StartScheduler:
    """Starts the scheduler with these args of StartedCapacity."""
    return lambda args: start_scheduler(enabling(tmp_path, StartedCapacity=args))


def deploy(web: Workload, replicas: int, cpu: str, *clusters: str, starts_after: str = "0s") -> None:
    """Create a Deployment whose Pods start so long after they are bound, and leave a node that fails."""
    web.apply_policy(named(*clusters, replicaScheduling=DYNAMIC))
    manifest = manifests.deployment(web.namespace, web.name, replicas, cpu=cpu)
    template = manifest["spec"]["template"]
    template["metadata"]["annotations"] = {"karmada-pyscheduler/starts-after": starts_after}
    template["spec"] |= {"tolerations": [LEAVES_AT_ONCE], "terminationGracePeriodSeconds": 0}
    web.plane.client.create(manifest)


def test_what_waits_for_a_node_moves_and_finds_a_node_that_is_not_cordoned_any_more(
    controlplane: ControlPlane, web: Workload, start: StartScheduler
) -> None:
    start(ARGS)
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


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> None:
    """Skip what takes too long for every run, before members run for it."""
    if not request.config.getoption("--thorough"):
        pytest.skip("make check-state has it")


@pytest.fixture
def ask(controlplane: ControlPlane, web: Workload) -> Asking:
    """Asks about the workload's namespace."""
    return Asking(reader(controlplane), web.namespace)


def wait_for_moves(controlplane: ControlPlane, begun: float) -> None:
    """Wait until what waits since a moment would have moved: a cluster reports every ten seconds."""
    controlplane.wait_for(time.monotonic, "a move", until=lambda now: now > begun + 30, timeout=35)


@pytest.mark.usefixtures("thorough")
def test_pods_that_a_quota_of_the_member_refuses_are_no_evidence_and_do_not_move(
    controlplane: ControlPlane, web: Workload, ask: Asking, start: StartScheduler
) -> None:
    start(ARGS)
    quota = {"metadata": {"name": "pods", "namespace": web.namespace}, "spec": {"hard": {"pods": "1"}}}
    client = controlplane.members[A].client
    client.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    deploy(web, 6, "1", A, B)
    web.wait(lambda found: ready(found) == 4, "four ready", timeout=40)
    placed, begun = web.placed(), time.monotonic()
    said = ask.explain()
    assert (said.codes[0], said.evidence["running"]) == ("Unhealthy", {A: 1}), "no other Pod exists there"

    wait_for_moves(controlplane, begun)
    client.delete(f"/api/v1/namespaces/{web.namespace}/resourcequotas/pods")
    web.wait(lambda found: ready(found) == 6, "all ready", timeout=60)
    assert web.placed() == placed


@pytest.mark.usefixtures("thorough")
def test_what_a_member_cannot_start_after_half_of_its_nodes_have_failed_stays_if_no_other_has_capacity(
    controlplane: ControlPlane, web: Workload, ask: Asking, start: StartScheduler
) -> None:
    start(LONGER_THAN_REPORTS)
    deploy(web, 12, "1", A, B)
    web.wait(lambda found: ready(found) == 12, "all ready", timeout=60)
    assert web.placed() == {A: 8, B: 4}

    member, begun = controlplane.members[A], time.monotonic()
    member.report_ready(f"{A}-node-2", ready=False)
    web.wait(lambda found: ready(found) == 8, "eight ready", timeout=40)
    wait_for_moves(controlplane, begun)
    said = ask.explain()
    assert (said.codes[0], said.evidence["ready"]) == ("Unhealthy", {A: 4})
    assert web.placed() == {A: 8, B: 4}
    member.report_ready(f"{A}-node-2", ready=True)
    web.wait(lambda found: ready(found) == 12, "all ready again", timeout=60)


@pytest.mark.usefixtures("thorough")
def test_what_waits_behind_a_taint_starts_there_once_it_is_removed(
    controlplane: ControlPlane, web: Workload, ask: Asking, start: StartScheduler
) -> None:
    start(ARGS)
    node, client = f"/api/v1/nodes/{A}-node-2", controlplane.members[A].client
    client.patch(node, {"spec": {"taints": [{"key": "held", "effect": "NoSchedule"}]}})
    deploy(web, 10, "1", A, B)
    web.wait(lambda found: ready(found) == 8, "eight ready", timeout=40)
    said = ask.explain()
    assert (said.codes[0], said.evidence["ready"]) == ("Unhealthy", {A: 4, B: 4})

    client.patch(node, {"spec": {"taints": None}})
    web.wait(lambda found: ready(found) == 10, "all ready", timeout=60)
    assert web.placed() == {A: 6, B: 4}
