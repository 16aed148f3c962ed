"""Placement tests say what a real control plane does: the steps are made there, and then expected in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import run
from tests.e2e.workload import DUPLICATED, Workload, is_settled, named, placed
from tools.controlplane import ControlPlane, Object, SimulatedMember

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
CORDON: Object = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}
DIVIDED: Object = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
THREE = ("sim-a1", "sim-a2", "sim-b1")
LEAVING = "leaves"


@pytest.fixture
def cordoned(controlplane: ControlPlane) -> Iterator[str]:
    """The name of a cluster that a test may cordon; it is uncordoned at the end."""
    yield "sim-a1"
    controlplane.client.patch(f"{CLUSTERS}/sim-a1", {"spec": {"taints": None}})


@pytest.fixture
def unjoined(controlplane: ControlPlane) -> str:
    """The name of a cluster that a test removes."""
    controlplane.add(SimulatedMember(LEAVING))
    return LEAVING


def unjoin(plane: ControlPlane, name: str) -> None:
    """Delete a cluster, and wait until Karmada has let it go."""
    plane.client.delete(f"{CLUSTERS}/{name}")
    plane.wait_for(lambda: plane.client.find(f"{CLUSTERS}/{name}") is None, f"{name} to be gone")


def expected(workload: Workload) -> Object:
    """Return what a test expects if the workload is where it is now."""
    return {f"{workload.namespace}/{workload.name}": {"clusters": workload.placed()}}


def written(
    folder: Path, created: list[tuple[Object, Object]], fleet: list[Any], cases: list[Object]
) -> Path:
    """Write the policies and workloads as they were created, and the cases."""
    folder.mkdir()
    (folder / "fleet.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": fleet}))
    (folder / "policies.yaml").write_text(yaml.safe_dump_all(policy for policy, _ in created))
    (folder / "workloads.yaml").write_text(yaml.safe_dump_all(template for _, template in created))
    path = folder / "truth_test.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "test.pyscheduler.karmada.io/v1alpha1",
                "kind": "PlacementTest",
                "fleet": {"files": ["fleet.yaml"]},
                "policies": ["policies.yaml"],
                "workloads": ["workloads.yaml"],
                "cases": cases,
            },
            sort_keys=False,
        )
    )
    return path


def case(name: str, first: Object, *then: Object) -> Object:
    """Return a case with what is expected of the first decisions, and its steps."""
    return {"name": name, "expect": first, "then": list(then)}


def create(workload: Workload, placement: Object, replicas: int) -> tuple[Object, Object]:
    """Create a workload of karmada-scheduler, and wait until it is placed; return its policy and its template."""
    workload.create(placement, replicas=replicas, scheduler=None)
    workload.wait_settled(replicas=replicas)
    client = workload.plane.client
    policy, template = client.get(workload.policy_path), client.get(workload.deployment_path)
    for each in (policy, template):
        each.pop("status", None)
        kept = ("name", "namespace", "uid") if each is template else ("name", "namespace")
        each["metadata"] = {name: each["metadata"][name] for name in kept}
    return policy, template


def test_what_happens_on_a_control_plane_is_what_its_placement_tests_expect(
    controlplane: ControlPlane, namespace: str, cordoned: str, unjoined: str, tmp_path: Path
) -> None:
    client = controlplane.client
    fleet = client.get(CLUSTERS)["items"]
    fleet = [{"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **each} for each in fleet]
    names = ("divided", "copies", "down", "moved", "late", "spread")
    divided, copies, down, moved, late, spread = (Workload(controlplane, namespace, name) for name in names)
    cases: list[Object] = []
    created: list[tuple[Object, Object]] = []

    created.append(create(divided, named(*THREE, replicaScheduling=DIVIDED), 7))
    first = expected(divided)
    divided.scale(11)
    divided.wait_settled(replicas=11)
    cases.append(
        case("it grows", first, {"scale": {f"{namespace}/divided": 11}, "expect": expected(divided)})
    )

    created.append(create(copies, named(*THREE, replicaScheduling=DUPLICATED), 2))
    first = expected(copies)
    copies.apply_policy(named("sim-a2", "sim-c1", replicaScheduling=DUPLICATED), scheduler=None)
    copies.wait_placed({"sim-a2": 2, "sim-c1": 2})
    patch = {"spec": {"placement": {"clusterAffinity": {"clusterNames": ["sim-a2", "sim-c1"]}}}}
    edit = {f"PropagationPolicy/{namespace}/copies": patch}
    cases.append(case("its policy is edited", first, {"edit": edit, "expect": expected(copies)}))

    created.append(create(down, named(*THREE, replicaScheduling=DIVIDED), 9))
    first = expected(down)
    down.scale(4)
    down.wait_settled(replicas=4)
    cases.append(case("it shrinks", first, {"scale": {f"{namespace}/down": 4}, "expect": expected(down)}))

    created.append(create(moved, named(*THREE, replicaScheduling=DIVIDED), 6))
    first = expected(moved)
    client.patch(f"{CLUSTERS}/{cordoned}", {"spec": {"taints": [CORDON]}})
    moved.scale(9)
    moved.wait_settled(replicas=9)
    scaled = expected(moved)
    before = moved.binding()["status"]["lastScheduledTime"]
    moved.rebalance()
    moved.wait(
        lambda found: is_settled(found) and found["status"]["lastScheduledTime"] > before, "rescheduled"
    )
    cases.append(
        case(
            "one of its clusters is cordoned",
            first,
            {"cordon": cordoned, "expect": first},
            {"scale": {f"{namespace}/moved": 9}, "expect": scaled},
            {"rebalance": [f"{namespace}/moved"], "expect": expected(moved)},
        )
    )

    created.append(create(late, named(*THREE, replicaScheduling=DIVIDED), 4))
    assert cordoned not in late.placed()
    cases.append(
        {"name": "it is new on a cordoned fleet", "given": {"cordon": cordoned}, "expect": expected(late)}
    )

    created.append(create(spread, named("sim-a2", "sim-b1", unjoined, replicaScheduling=DIVIDED), 6))
    first = expected(spread)
    assert unjoined in spread.placed()
    unjoin(controlplane, unjoined)
    spread.wait(lambda found: is_settled(found) and unjoined not in placed(found), "moved")
    cases.append(
        case("one of its clusters is unjoined", first, {"without": unjoined, "expect": expected(spread)})
    )

    path = written(tmp_path / "tests", created, fleet, cases)
    found = run("test", str(path), "-v")
    assert found.status == 0, found.out
    assert found.out.count("  passed  ") == 6
    assert placed(moved.binding()), "the last case had replicas to move"
