"""Threads of Karmada's users about workloads that never return to their first affinity term.

Each test runs with karmada-scheduler, with ours, and with ours and FailBack, and has the numbers of its threads at
karmada-io/karmada. Karmada's own controllers are at work; the members become healthy when the test says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import StartScheduler
from tests.e2e.late_members import LateMembers, late_members
from tests.e2e.workload import AGGREGATED, Workload, is_settled, placed
from tools.controlplane import ControlPlane, Object

UPSTREAM, WITHOUT, WITH = "karmada-scheduler", "ours without FailBack", "ours with FailBack"
EACH = pytest.mark.parametrize("which", [UPSTREAM, WITHOUT, WITH])
FAIL_BACK = "pyscheduler.karmada.io/fail-back"
DOWN = {"key": "test/down", "effect": "NoSchedule"}
WAIT = 4.0
Start = Callable[..., None]


@pytest.fixture(scope="module")
def members(controlplane: ControlPlane) -> Iterator[LateMembers]:
    with late_members(controlplane, "home-a", "home-b") as found:
        yield found


@pytest.fixture(autouse=True)
def _both_answer(members: LateMembers) -> None:
    members.taint("home-a")
    members.allow("home-a", "home-b")


@pytest.fixture
def start_any(
    controlplane: ControlPlane, start_scheduler: StartScheduler, which: str, tmp_path: Path
) -> Iterator[Start]:
    """Start the scheduler of the test as my-scheduler; ours with FailBack takes its args."""
    upstream = []

    def start(**args: Any) -> None:
        if which == UPSTREAM:
            upstream.append(controlplane.start_karmada_scheduler("my-scheduler"))
        elif which == WITHOUT:
            start_scheduler()
        else:
            start_scheduler(config(tmp_path, **args))

    yield start
    for process in upstream:
        process.kill()
        controlplane.forget(process)


def config(folder: Path, **args: Any) -> str:
    """Return the flag of a configuration file that enables FailBack, and graceful moves."""
    path = folder / "config.yaml"
    args = {"stabilizationSeconds": int(WAIT), "checkSeconds": 1, **args}
    guard = {"graceful": {"enabled": True, "gracePeriodSeconds": 300}}
    profile = {
        "schedulerName": "my-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "PlacementGuard"}, {"name": "FailBack"}]}},
        "pluginConfig": [{"name": "PlacementGuard", "args": guard}, {"name": "FailBack", "args": args}],
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**kind, "profiles": [profile]}))
    return f"--config={path}"


def primary_and_backup(**strategy: Any) -> Object:
    return {
        "clusterAffinities": [
            {"affinityName": "primary", "clusterNames": ["home-a"]},
            {"affinityName": "backup", "clusterNames": ["home-b"]},
        ],
        "replicaScheduling": strategy or AGGREGATED,
    }


def term(binding: Object) -> str:
    found: str = binding.get("status", {}).get("schedulerObservingAffinityName", "")
    return found


def tasks(binding: Object) -> list[Object]:
    found: list[Object] = binding["spec"].get("gracefulEvictionTasks") or []
    return found


def record(binding: Object) -> Any:
    text = binding["metadata"].get("annotations", {}).get(FAIL_BACK)
    return None if text is None else json.loads(text)


def workload_of(web: Workload) -> str:
    return f"{web.namespace}/{web.name}"


def is_reported(binding: Object, cluster: str) -> bool:
    """Whether the status of a binding has a healthy workload on a cluster."""
    items = binding.get("status", {}).get("aggregatedStatus") or []
    return any(each["clusterName"] == cluster and each.get("health") == "Healthy" for each in items)


def at_home(web: Workload, **fields: Any) -> None:
    """Create a workload that is ready in its first term."""
    web.create(primary_and_backup(), **fields)
    web.wait(lambda found: is_settled(found) and is_reported(found, "home-a"), "healthy on home-a")


def fail_over(web: Workload, members: LateMembers) -> None:
    """Taint the first cluster, evict the workload as the taint manager does, and wait until the eviction is over."""
    members.taint("home-a", DOWN)
    task = {"fromCluster": "home-a", "producer": "TaintManager", "reason": "TaintUntolerated"}
    web.plane.client.patch(web.binding_path, {"spec": {"clusters": None, "gracefulEvictionTasks": [task]}})
    web.wait(
        lambda found: (
            placed(found) == {"home-b": 2}
            and term(found) == "backup"
            and not tasks(found)
            and is_settled(found)
        ),
        "the failover to home-b",
    )


def stays(web: Workload, seconds: float) -> None:
    """Check that a workload stays on the backup."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = web.binding()
        assert (placed(found), term(found)) == ({"home-b": 2}, "backup")
        time.sleep(0.5)


@EACH
def test_4990_a_workload_returns_when_its_first_cluster_is_back(
    which: str, start_any: Start, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#4990, #7441: after a failover a workload stays in the backup term for ever."""
    start_any()
    at_home(web, replicas=2)
    fail_over(web, members)
    members.silence("home-a")  # the new copy is slow
    since = time.monotonic()
    members.taint("home-a")
    if which != WITH:
        stays(web, 2 * WAIT)
        return
    found = web.wait(lambda found: placed(found) == {"home-a": 2}, "returned")
    assert time.monotonic() - since >= WAIT - 1
    assert [(task["fromCluster"], task["reason"]) for task in tasks(found)] == [("home-b", "FailedBack")]
    web.wait(lambda found: term(found) == "primary", "the name of the term")
    time.sleep(2)
    assert members.uid_of("home-b", workload_of(web)) is not None
    members.allow("home-a")
    found = web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
    assert members.least_ready(workload_of(web), since=since) == 2
    assert record(found)["n"] == 1
    web.plane.wait_for(lambda: web.events("FailedBack"), "the Event")
    web.plane.wait_for(lambda: web.events("FailBackWaits"), "the Event about the wait")
