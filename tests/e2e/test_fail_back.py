"""Threads of Karmada's users about workloads that never return to their first affinity term.

Each test runs with karmada-scheduler and with ours and FailBack, and has the numbers of its threads at karmada-io/karmada. What others repeat is left out. Karmada's own controllers are at work; the members become healthy when the test says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import UPSTREAM, StartAny, StartScheduler, enabling
from tests.e2e.late_members import LateMembers, late_members
from tests.e2e.workload import AGGREGATED, DUPLICATED, Workload, is_reported, is_settled, placed, tasks
from tools.controlplane import ControlPlane, Object
from tools.controlplane.karmada import CLUSTERS

WITH = "ours with FailBack"
FROM_FIRST = "ours with rebalanceFromFirst"
BOTH = pytest.mark.parametrize("which", [UPSTREAM, WITH])
FAIL_BACK = "pyscheduler.karmada.io/fail-back"
DOWN = {"key": "test/down", "effect": "NoSchedule"}
WAIT = 4.0


@pytest.fixture(scope="module")
def members(controlplane: ControlPlane) -> Iterator[LateMembers]:
    with late_members(controlplane, "home-a", "home-b") as found:
        yield found


@pytest.fixture(autouse=True)
def _both_answer(members: LateMembers) -> None:
    members.taint("home-a")
    members.allow("home-a", "home-b")


def with_fail_back(**args: Any) -> dict[str, Any]:
    """Return the args of FailBack, and of PlacementGuard with graceful moves."""
    return {
        "PlacementGuard": {"graceful": {"enabled": True, "gracePeriodSeconds": 300}},
        "FailBack": {"stabilizationSeconds": int(WAIT), "checkSeconds": 1, **args},
    }


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


def record(binding: Object) -> Any:
    text = binding["metadata"].get("annotations", {}).get(FAIL_BACK)
    return None if text is None else json.loads(text)


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


def use_cpus(plane: ControlPlane, name: str, count: int) -> None:
    """Let a member with 16 CPUs report that so many are in use."""
    status = {"resourceSummary": {"allocated": {"cpu": str(count)}}}
    plane.client.patch(f"{CLUSTERS}/{name}/status", {"status": status})


def stays(web: Workload, seconds: float) -> None:
    """Check that a workload stays on the backup."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = web.binding()
        assert (placed(found), term(found)) == ({"home-b": 2}, "backup")
        time.sleep(0.5)


@BOTH
def test_4990_a_workload_returns_when_its_first_cluster_is_back(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#4990, #7441: after a failover a workload stays in the backup term for ever."""
    start_any(**with_fail_back())
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
    assert members.uid_of("home-b", web.key) is not None
    members.allow("home-a")
    found = web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
    assert members.least_ready(web.key, since=since) == 2
    assert record(found)["n"] == 1
    web.plane.wait_for(lambda: web.events("FailedBack"), "the Event")
    web.plane.wait_for(lambda: web.events("FailBackWaits"), "the Event about the wait")


@pytest.mark.parametrize("which", [WITH])
def test_4990_a_duplicated_workload_returns_once_and_stays(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """A Duplicated binding is decided again at each event, also with the task and after it."""
    start_any(**with_fail_back())
    web.create(primary_and_backup(**DUPLICATED), replicas=2)
    web.wait(lambda found: is_settled(found) and is_reported(found, "home-a"), "healthy on home-a")
    fail_over(web, members)
    since = time.monotonic()
    members.taint("home-a")
    web.wait(
        lambda found: placed(found) == {"home-a": 2} and not tasks(found) and is_settled(found), "returned"
    )
    assert members.least_ready(web.key, since=since) == 2
    changes = web.binding()["metadata"]["generation"]
    time.sleep(2 * WAIT)
    found = web.binding()
    assert (placed(found), term(found)) == ({"home-a": 2}, "primary")
    assert found["metadata"]["generation"] == changes


@pytest.mark.parametrize("which", [WITH])
def test_7441_a_new_leader_waits_as_long_as_the_one_before(
    which: str,
    start_scheduler: StartScheduler,
    controlplane: ControlPlane,
    web: Workload,
    members: LateMembers,
    tmp_path: Path,
) -> None:
    lease = "fail-back"
    first = start_scheduler(enabling(tmp_path, **with_fail_back()), lease=lease)
    at_home(web, replicas=2)
    fail_over(web, members)
    members.taint("home-a")
    web.wait(lambda found: term(found) == "primary" and not tasks(found) and is_settled(found), "returned")
    fail_over(web, members)
    members.taint("home-a")
    time.sleep(WAIT)
    first.process.stop()
    controlplane.forget(first.process)
    began = time.monotonic()
    start_scheduler(enabling(tmp_path, **with_fail_back()), lease=lease)
    found = web.wait(lambda found: placed(found) == {"home-a": 2}, "returned again", timeout=60)
    assert time.monotonic() - began >= 2 * WAIT - 1
    assert record(found)["n"] == 2


@pytest.mark.parametrize("which", [UPSTREAM, WITH, FROM_FIRST])
def test_7717_a_rebalance_of_a_workload_in_the_backup_term(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#7717, #5425: a WorkloadRebalancer decides again in the term in force, unless asked otherwise."""
    start_any(**with_fail_back(stabilizationSeconds=3600, rebalanceFromFirst=which == FROM_FIRST))
    at_home(web, replicas=2)
    fail_over(web, members)
    members.taint("home-a")
    since = time.monotonic()
    before = web.binding()["status"]["lastScheduledTime"]
    web.rebalance()
    web.wait(lambda found: found["spec"].get("rescheduleTriggeredAt", "") > before, "the request")
    found = web.wait(
        lambda found: (
            found["status"]["lastScheduledTime"] >= found["spec"]["rescheduleTriggeredAt"]
            and is_settled(found)
            and not tasks(found)
        ),
        "the rebalance",
    )
    if which == FROM_FIRST:
        assert (placed(found), term(found)) == ({"home-a": 2}, "primary")
        assert members.least_ready(web.key, since=since) == 2
    else:
        assert (placed(found), term(found)) == ({"home-b": 2}, "backup")


@BOTH
def test_5997_replicas_return_from_an_overflow_tier(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#5997: first cluster A, then B; replicas that overflowed stay in B when A has capacity again."""
    term = {
        "affinityName": "tiers",
        "clusterNames": ["home-a"],
        "overflowAffinities": [{"affinityName": "more", "clusterNames": ["home-b"]}],
    }
    use_cpus(web.plane, "home-a", 14)
    try:
        start_any(
            **with_fail_back(overflow=True)
        )  # afterwards, so that no decision is made with the capacity of before
        web.create({"clusterAffinities": [term], "replicaScheduling": AGGREGATED}, replicas=4, cpu="1")
        web.wait_placed({"home-a": 2, "home-b": 2})
        web.wait(lambda found: is_reported(found, "home-a") and is_reported(found, "home-b"), "healthy")
        web.plane.wait_for(lambda: members.ready(web.key) == 4, "ready")
    finally:
        use_cpus(web.plane, "home-a", 1)
    since = time.monotonic()
    if which != WITH:
        time.sleep(2 * WAIT)
        assert web.placed() == {"home-a": 2, "home-b": 2}
        return
    found = web.wait(lambda found: placed(found) == {"home-a": 4}, "returned")
    assert time.monotonic() - since >= WAIT - 1
    assert [(task["fromCluster"], task["reason"]) for task in tasks(found)] in (
        [("home-b", "SpreadBack")],
        [],
    )
    web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
    assert members.least_ready(web.key, since=since) == 4
