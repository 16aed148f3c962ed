"""One fleet on a control plane of its own, with one scheduler after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools import manifests
from tools.bench.running.fleets import Fleet, Workload
from tools.bench.running.packing import Demand, demand_of, free_nodes, packed
from tools.bench.running.records import BINDINGS, Records, is_running, reported
from tools.controlplane import ControlPlane, Object, Process
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.ours import start_scheduler
from tools.controlplane.parallel import in_parallel

SCHEDULER: Final = "bench"
GATES: Final = {"CustomizedClusterResourceModeling": True}
"""Karmada's default, which the harness changes."""
_DESCHEDULE_SECONDS: Final = 30
KARMADA, OURS = "karmada-scheduler", "this scheduler"


@dataclass(frozen=True, slots=True)
class Setting:
    """A scheduler as it is run: with estimators or without, with the descheduler, and with further flags."""

    scheduler: str
    estimators: bool = False
    flags: tuple[str, ...] = ()
    descheduler: bool = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        with_ = {"+ estimators": self.estimators, "+ descheduler": self.descheduler}
        return " ".join([self.scheduler, *(name for name, has in with_.items() if has), *self.flags])


@dataclass(frozen=True, slots=True)
class Result:
    """What one scheduler has reached with one fleet.

    Attributes:
        wanted: Replicas of all workloads.
        placed: Replicas that bindings give to clusters.
        running: Pods that are ready.
        pending: Pods without a node.
        lost: Replicas that bindings give to clusters and that have no Pod there.
        elsewhere: Replicas that wait or are unplaced, and would fit on a node of a member where they do not wait.
        reported: Ready replicas that the statuses of bindings have.
        bindings: With a placement.
        waiting: Workloads with a Pod without a node.
        writes: Of placements.
        late: Writes of placements in the second half of the time.
        moved: Replicas taken from a cluster that had them.
        seconds: From the first creation to the last change of a placement or a Pod.
    """

    wanted: int
    placed: int
    running: int
    pending: int
    lost: int
    elsewhere: int
    reported: int
    bindings: int
    waiting: int
    writes: int
    late: int
    moved: int
    seconds: float


@contextlib.contextmanager
def started(fleet: Fleet, folder: Path, *, estimators: bool) -> Iterator[ControlPlane]:
    """Start a control plane with the members of a fleet and the Pods that they have by themselves."""
    with ControlPlane(folder, feature_gates=GATES) as plane:
        plane.add(*fleet.members)
        for name, own in fleet.own.items():
            plane.members[name].client.create(own.manifest("default"))
        plane.wait_for(
            lambda: [_pods(plane, name, "default") for name in fleet.own],
            "the members' own Pods to run",
            until=lambda found: (
                [len(pods) for pods in found] == [own.replicas for own in fleet.own.values()]
                and all(is_running(pod) for pods in found for pod in pods)
            ),
        )
        if estimators:
            in_parallel(plane.start_estimator, list(plane.members))
        plane.wait_for(
            lambda: _allocated(plane),
            "summaries with the own Pods",
            until=lambda found: all(
                int(found[name].get("pods", 0)) == own.replicas for name, own in fleet.own.items()
            ),
        )
        yield plane


def measure(plane: ControlPlane, fleet: Fleet, setting: Setting, space: str, seconds: float) -> Result:
    """Run one scheduler for so many seconds after the last creation, and as long after a loss of nodes; clear up."""
    before = _allocated(plane)
    records = Records(plane, space)
    processes = [_start(plane, setting)]
    began = time.monotonic()
    try:
        _create(plane, fleet, space)
        if setting.descheduler:
            processes.append(plane.start_descheduler(_DESCHEDULE_SECONDS))
        _wait(plane, seconds)
        if fleet.loses:
            _report_half(plane, fleet.loses, ready=False)
            _wait(plane, seconds)
        return _result(plane, fleet, space, records, began)
    finally:
        records.stop()
        if fleet.loses:
            _report_half(plane, fleet.loses, ready=True)
        _clear(plane, space, before)
        for process in processes:
            process.stop()
            plane.forget(process)


def _start(plane: ControlPlane, setting: Setting) -> Process:
    if setting.scheduler == KARMADA:
        return plane.start_karmada_scheduler(SCHEDULER, *setting.flags, with_estimators=setting.estimators)
    flags = plane.estimator_client_flags() if setting.estimators else []
    return start_scheduler(plane, *flags, *setting.flags, name=SCHEDULER).process


def _create(plane: ControlPlane, fleet: Fleet, space: str) -> None:
    plane.client.create(manifests.namespace(space))

    def policy(workload: Workload) -> None:
        plane.client.create(manifests.policy(space, workload.name, workload.placement, scheduler=SCHEDULER))

    def deployment(workload: Workload) -> None:
        plane.client.create(workload.manifest(space))

    in_parallel(policy, fleet.workloads)
    if not fleet.interval:
        in_parallel(deployment, fleet.workloads)
        return
    for workload in fleet.workloads:
        deployment(workload)
        time.sleep(fleet.interval)


def _wait(plane: ControlPlane, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        plane.check()
        time.sleep(1)


def _report_half(plane: ControlPlane, name: str, *, ready: bool) -> None:
    """Write the condition of every second node: of a member that has lost 55 % of its nodes, no Pod is evicted."""
    member = plane.members[name]
    for number in range(2, len(member.spec.nodes) + 1, 2):
        member.report_ready(f"{name}-node-{number}", ready=ready)


def _result(plane: ControlPlane, fleet: Fleet, space: str, records: Records, began: float) -> Result:
    bindings = plane.client.list(BINDINGS.format(space))
    placements = {item["spec"]["resource"]["name"]: manifests.targets_of(item) for item in bindings}
    nodes, waiting, mine = [], list[Demand](), list[Object]()
    for name, member in plane.members.items():
        everything = member.client.list("/api/v1/pods")
        nodes += free_nodes(name, member.client.list("/api/v1/nodes"), everything)
        pods = [pod for pod in everything if pod["metadata"]["namespace"] == space]
        waiting += [demand_of(pod, name) for pod in pods if not pod["spec"].get("nodeName")]
        mine += pods
    stuck = {pod["metadata"]["name"].rsplit("-", 2)[0] for pod in mine if not pod["spec"].get("nodeName")}
    pending, placed = len(waiting), sum(sum(each.values()) for each in placements.values())
    for workload in fleet.workloads:
        missing = workload.replicas - sum(placements.get(workload.name, {}).values())
        waiting += [demand_of(workload.manifest(space)["spec"]["template"], "")] * max(0, missing)
    return Result(
        wanted=sum(workload.replicas for workload in fleet.workloads),
        placed=placed,
        running=sum(map(is_running, mine)),
        pending=pending,
        lost=placed - len(mine),
        elsewhere=packed(waiting, nodes),
        reported=sum(reported(bindings)),
        bindings=sum(1 for each in placements.values() if each),
        waiting=len(stuck),
        writes=records.writes,
        late=records.writes_after((began + time.monotonic()) / 2),
        moved=records.moved,
        seconds=records.last - began,
    )


def _clear(plane: ControlPlane, space: str, before: dict[str, Any]) -> None:
    """Delete everything, and wait until the members have reported that nothing of it is left."""
    plane.client.delete(f"/api/v1/namespaces/{space}")
    plane.wait_for(
        lambda: [
            plane.client.list(BINDINGS.format(space)),
            *(_pods(plane, name, space) for name in plane.members),
        ],
        "no bindings and Pods",
        until=lambda found: not any(found),
    )
    plane.wait_for(lambda: _allocated(plane), "summaries as before", until=lambda now: now == before)


def _pods(plane: ControlPlane, member: str, space: str) -> list[Object]:
    return plane.members[member].client.list(f"/api/v1/namespaces/{space}/pods")


def _allocated(plane: ControlPlane) -> dict[str, Any]:
    """Return what each cluster's summary has as allocated and waiting, and its nodes."""
    found = {}
    for cluster in plane.client.list(CLUSTERS):
        summary = cluster["status"]["resourceSummary"]
        found[cluster["metadata"]["name"]] = {
            **summary.get("allocated", {}),
            "waiting": summary.get("allocating"),
            **cluster["status"]["nodeSummary"],
        }
    return found
