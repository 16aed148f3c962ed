"""What Karmada v1.18.2 does with graceful eviction tasks that a scheduler writes; PlacementGuard relies on it.

The tasks are written by hand on bindings of karmada-scheduler, which observes each generation at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.late_members import LateMembers, late_members
from tests.e2e.workload import (
    AGGREGATED,
    DUPLICATED,
    Workload,
    condition,
    is_reported,
    is_settled,
    named,
    placed,
    tasks,
)
from tools import manifests
from tools.controlplane import ControlPlane, Object

TASK: Object = {
    "fromCluster": "pin-a",
    "purgeMode": "Gracefully",
    "reason": "Rescheduled",
    "producer": "my-scheduler",
    "gracePeriodSeconds": 300,
}


@pytest.fixture(scope="module")
def members(controlplane: ControlPlane) -> Iterator[LateMembers]:
    with late_members(controlplane, "pin-a", "pin-b") as found:
        found.allow("pin-a")
        yield found


def move(web: Workload, targets: Any, **task: Any) -> int:
    """Write targets and a task in one merge patch with the resourceVersion; return the new generation.

    Karmada's controllers write to the binding at the same time, so a conflict is repeated.
    """

    def attempt() -> int:
        version = web.binding()["metadata"]["resourceVersion"]
        spec = {"clusters": targets, "gracefulEvictionTasks": [{**TASK, **task}]}
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        generation: int = web.plane.client.patch(web.binding_path, body)["metadata"]["generation"]
        return generation

    return web.plane.wait_for(attempt, "the move to be written")


def test_a_task_without_a_time_is_accepted_and_stamped_and_ends_by_health_once_the_generation_is_observed(
    web: Workload, members: LateMembers
) -> None:
    members.silence("pin-b")
    web.create(named("pin-a", "pin-b", replicaScheduling=AGGREGATED), replicas=2, scheduler=None)
    web.wait(is_settled, "scheduled")
    first, *_ = web.placed()
    members.allow(first)
    web.wait(lambda found: is_reported(found, first), "healthy")
    (other,) = {"pin-a", "pin-b"} - {first}
    members.silence(other)
    generation = move(web, [{"name": other, "replicas": 2}], fromCluster=first)
    found = web.wait(lambda found: tasks(found)[0].get("creationTimestamp"), "stamped")
    assert found["metadata"]["generation"] == generation + 1
    web.wait(is_settled, "observed")
    time.sleep(2)
    assert members.ready(web.key) == 2  # the old copy stays as long as the new one is not healthy
    members.allow(other)
    web.wait(lambda found: not tasks(found), "the end of the task")
    members.wait_gone(first, web.key)
    members.allow("pin-a")


def test_a_target_that_grows_ends_a_task_by_the_health_of_its_old_size(
    web: Workload, members: LateMembers
) -> None:
    members.allow("pin-b", most=2)
    static = manifests.static({("pin-a",): 1, ("pin-b",): 1})
    web.create(named("pin-a", "pin-b", replicaScheduling=static), replicas=4, scheduler=None)
    web.wait(
        lambda found: is_settled(found) and is_reported(found, "pin-a") and is_reported(found, "pin-b"),
        "healthy",
    )
    members.wait_ready(web.key, 4)
    since = time.monotonic()
    move(web, [{"name": "pin-b", "replicas": 4}])
    members.wait_gone("pin-a", web.key)
    assert members.least_ready(web.key, since=since) == 2


def test_without_targets_a_task_ends_by_its_time_only_and_the_workload_is_deleted(
    web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#7455: an eviction from the only cluster that fits."""
    web.create(named("pin-a", replicaScheduling=DUPLICATED), replicas=2, scheduler=None)
    web.wait(lambda found: is_settled(found) and is_reported(found, "pin-a"), "healthy")
    # Else the scheduler, which decides again when the task ends, is sometimes quicker than the deletion of the Work.
    members.taint("pin-a", {"key": "full", "effect": "NoSchedule"})
    began = time.monotonic()
    move(web, None, gracePeriodSeconds=6)
    found = web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "nothing fits")
    assert placed(found) == {}
    assert not is_settled(found)
    web.wait(lambda found: not tasks(found), "the end of the task", timeout=40)
    assert time.monotonic() - began > 5
    members.wait_gone("pin-a", web.key)
    members.taint("pin-a")
