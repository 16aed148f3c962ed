"""Schedulers that have ended, and schedulers that have not come to a binding."""

from __future__ import annotations

import os
import signal
import time

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.plane import STOCK
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import nobody_decides
from tests.e2e.workload import DYNAMIC, condition, named
from tools.controlplane import Object

LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
EXPIRED = r"[Ll]ease.*(expired|ran out|run out|not renewed|released)|ended|is down"


def _started(scene: Scene, *flags: str) -> str:
    """Start a scheduler for this situation alone, and wait until it leads; returns its name."""
    name = f"{scene.namespace}-scheduler"
    scene.plane.start_ours(name, *flags)
    scene.karmada.wait_for(
        lambda: (scene.client.find(f"{LEASES}/{name}") or {"spec": {}})["spec"].get("holderIdentity"),
        f"{name} to lead",
    )
    scene.notes["scheduler"] = name
    return name


def end(scene: Scene, name: str, *, at_once: bool) -> None:
    """End a scheduler; with ``at_once`` it has no time to give its Lease back, and the Lease runs out."""
    process = scene.plane.schedulers[name].process
    if at_once:
        process.kill()
    else:
        process.stop()
    scene.karmada.forget(process)


def wait_expired(scene: Scene, lease: str) -> None:
    """Wait until a Lease has run out by more than a second."""

    def age() -> bool:
        spec: Object = scene.client.get(f"{LEASES}/{lease}")["spec"]
        renewed = time.mktime(time.strptime(spec["renewTime"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        return bool(time.time() > renewed + spec["leaseDurationSeconds"] + 2)

    scene.karmada.wait_for(age, f"the Lease {lease} to run out", timeout=60)


def _placed_by(scene: Scene, name: str, *, replicas: int = 3) -> None:
    scene.web_applied(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=name, replicas=replicas)


def _paused(scene: Scene) -> str:
    """Start a scheduler with a long Lease; the caller pauses it."""
    return _started(
        scene,
        "--leader-elect-lease-duration=600s",
        "--leader-elect-renew-deadline=500s",
        "--leader-elect-retry-period=100s",
    )


def _kill_stock(scene: Scene) -> None:
    process = next(
        (each for each in scene.karmada.processes if each.name == f"karmada-scheduler-{STOCK}"), None
    )
    if process is not None:
        process.kill()
        scene.karmada.forget(process)
    wait_expired(scene, "karmada-scheduler")


@situation(
    nobody_decides(
        headline=EXPIRED,
        cause=rf"^\w+: .*({EXPIRED})",
        remedy=r"^$|start|scheduler",
        would_be="sim-b1",
    ),
    also=(Also(["plan", "--cordon=sim-c1", "--fail-on=none"], 0, effect="^(unchanged|undecided)$"),),
    applies=False,
    page="nobody decides",
)
def scheduler_ended_before(scene: Scene) -> None:
    """The scheduler was killed before the policy was created."""
    name = _started(scene)
    end(scene, name, at_once=True)
    scene.web(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=name, replicas=3)
    scene.wait_binding()
    wait_expired(scene, name)


@situation(
    Expected("placed", "all", headline="sim-b1 3", cause="^$|.", fields={"state.scheduler.status": "down"}),
    applies=False,
)
def scheduler_ended_after_placing(scene: Scene) -> None:
    """The scheduler was killed, and the workload is placed as it should be."""
    name = _started(scene)
    _placed_by(scene, name)
    end(scene, name, at_once=True)
    wait_expired(scene, name)


@situation(
    Expected(
        "nobody decides",
        "part",
        headline=rf"3 of 7.*sim-b1 3.*({EXPIRED})",
        cause=rf"^\w+: .*({EXPIRED})",
        remedy=r"^$|start|scheduler",
        would_be='"replicas": 7',
        fields={"state.wanted": 7},
    ),
    applies=False,
)
def scheduler_killed_then_scaled(scene: Scene) -> None:
    """3 replicas are placed, the scheduler is killed, scaled to 7."""
    name = _started(scene)
    _placed_by(scene, name)
    end(scene, name, at_once=True)
    scene.scale(7)
    scene.wait(lambda found: found["spec"]["replicas"] == 7, "scaled")
    wait_expired(scene, name)


@situation(
    Expected(
        "nobody decides",
        "part",
        headline=rf"3 of 7.*sim-b1 3.*({EXPIRED}|Lease)",
        cause=rf"^\w+: .*({EXPIRED}|Lease)",
        remedy=r"^$|start|scheduler",
        would_be='"replicas": 7',
    ),
    applies=False,
)
def scheduler_stopped_then_scaled(scene: Scene) -> None:
    """3 replicas are placed, the scheduler gives its Lease back and ends, scaled to 7."""
    name = _started(scene)
    _placed_by(scene, name)
    end(scene, name, at_once=False)
    scene.scale(7)
    scene.wait(lambda found: found["spec"]["replicas"] == 7, "scaled")


@situation(Expected("not decided yet", "none", headline="", cause=r"^$|.", would_be="sim-b1"))
def not_decided_yet(scene: Scene) -> None:
    """The scheduler leads and has not come to a new binding."""
    name = _paused(scene)
    os.kill(scene.plane.schedulers[name].process.pid, signal.SIGSTOP)
    scene.web(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=name)
    scene.wait_binding()


@situation(
    Expected(
        "out of date",
        "part",
        headline=r"3 of 7.*sim-b1 3.*(changed|decision)",
        cause=r"^$|.",
        would_be='"replicas": 7',
    )
)
def scaled_and_not_decided(scene: Scene) -> None:
    """3 replicas are placed and scaled to 7, and the scheduler has not come to it."""
    name = _paused(scene)
    _placed_by(scene, name)
    os.kill(scene.plane.schedulers[name].process.pid, signal.SIGSTOP)
    scene.scale(7)
    scene.wait(lambda found: found["spec"]["replicas"] == 7, "scaled")


@situation(
    Expected(
        "nobody decides",
        "part",
        headline=rf"3 of 7.*sim-b1 3.*({EXPIRED})",
        cause=rf"^\w+: .*({EXPIRED})",
        remedy=r"^$|start|scheduler",
    ),
    applies=False,
    alone=True,
)
def stock_scheduler_ended_then_scaled(scene: Scene) -> None:
    """3 replicas are placed by the stock scheduler, it is killed, scaled to 7."""
    scene.web_applied(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=None, replicas=3)
    _kill_stock(scene)
    scene.scale(7)
    scene.wait(lambda found: found["spec"]["replicas"] == 7, "scaled")


@situation(
    nobody_decides(
        headline=rf"(karmada-scheduler|default-scheduler).*({EXPIRED})|({EXPIRED})",
        cause=rf"^\w+: .*({EXPIRED})",
        remedy=r"^$|start|scheduler",
        would_be="sim-b1",
    ),
    applies=False,
    alone=True,
)
def stock_scheduler_ended_before(scene: Scene) -> None:
    """The stock scheduler was killed before the policy was created."""
    _kill_stock(scene)
    scene.web(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=None, replicas=3)
    found = scene.wait_binding()
    assert not condition(found)
