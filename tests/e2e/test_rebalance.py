"""A proposal that is executed on the real control plane: its placements come true, and its bounds hold."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.commands import run
from tests.e2e.asking import BINDINGS, LEASES, POLICIES, reader
from tests.e2e.asking import CLUSTERS as CLUSTERS_READ
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, Workload, is_settled, labelled, placed
from tools.controlplane import ControlPlane, Object
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.simulated import SimulatedMember

NAMES = ("reb-1", "reb-2", "reb-3")
CORDON = {"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}
COUNT, REPLICAS, BOUND = 12, 8, 30


def report(plane: ControlPlane, workloads: list[Workload]) -> None:
    """Let the members report the cores of the replicas that run there."""
    used = Counter[str]()
    for each in workloads:
        used.update(each.placed())
    for name in NAMES:
        allocated = {"cpu": str(used[name]), "memory": f"{64 * used[name]}Mi", "pods": str(used[name])}
        status = {"status": {"resourceSummary": {"allocated": allocated}}}
        plane.client.patch(f"{CLUSTERS}/{name}/status", status)


def proposal(config: Path, folder: Path, namespace: str) -> dict[str, Any]:
    """Run the command as a user who may get and list."""
    flags = f"-n {namespace} --max-moves {BOUND} --batch-size 3 --scheduler-name my-scheduler -o json".split()
    done = run("rebalance", *flags, f"--kubeconfig={config}", f"--write-to={folder}")
    assert (done.status, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def is_rescheduled(binding: Object) -> bool:
    """Whether the scheduler has acted on the last request."""
    requested = binding["spec"].get("rescheduleTriggeredAt", "")
    return bool(requested) and is_settled(binding) and binding["status"]["lastScheduledTime"] >= requested


def test_an_executed_proposal_comes_true_and_keeps_its_bounds(
    controlplane: ControlPlane, start_scheduler: StartScheduler, namespace: str, tmp_path: Path
) -> None:
    controlplane.add(*(SimulatedMember(name, labels={"kind": "reb"}, cpu="100") for name in NAMES))
    controlplane.client.patch(f"{CLUSTERS}/reb-3", {"spec": {"taints": [CORDON]}})
    start_scheduler()
    workloads = [Workload(controlplane, namespace, f"web-{number:02}") for number in range(COUNT)]
    for each in workloads:
        each.create(labelled("reb", replicaScheduling=DYNAMIC), replicas=REPLICAS, cpu="1")
    for each in workloads:
        found = each.wait(lambda found: is_settled(found) and bool(placed(found)), "placed")
        assert set(placed(found)) == {"reb-1", "reb-2"}
    report(controlplane, workloads)
    controlplane.client.patch(f"{CLUSTERS}/reb-3", {"spec": {"taints": None}})

    found = proposal(
        reader(controlplane, "rebalance-reader", CLUSTERS_READ, BINDINGS, POLICIES, LEASES),
        tmp_path / "batches",
        namespace,
    )

    moved = 0
    assert len(found["batches"]) > 1
    for batch in found["batches"]:
        moved += execute(
            batch, tmp_path / "batches" / f"batch-{batch['number']}.yaml", controlplane, namespace
        )
        report(controlplane, workloads)
    assert 0 < moved == found["stops"] <= BOUND
    for each in found["shares"]:
        on = sum(workload.placed().get(each["name"], 0) for workload in workloads)
        assert on == each["replicasAfter"]


def execute(batch: dict[str, Any], manifest: Path, plane: ControlPlane, namespace: str) -> int:
    """Create the WorkloadRebalancer of a batch; return the replicas that stopped."""
    workloads = {
        each["name"]: Workload(plane, namespace, each["workload"]["name"]) for each in batch["moves"]
    }
    before = {name: each.placed() for name, each in workloads.items()}
    last = max(each.binding()["status"]["lastScheduledTime"] for each in workloads.values())
    plane.wait_for(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > last, "a later second")
    plane.client.create(yaml.safe_load(manifest.read_text()))
    stopped = 0
    for move in batch["moves"]:
        done = workloads[move["name"]].wait(is_rescheduled, "rebalanced")
        assert placed(done) == {each["name"]: each["replicas"] for each in move["after"]}
        was = before[move["name"]]
        stops = sum(max(0, replicas - placed(done).get(name, 0)) for name, replicas in was.items())
        assert stops == move["stops"] <= REPLICAS / 2
        stopped += stops
    return stopped
