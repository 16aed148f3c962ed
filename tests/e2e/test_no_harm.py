"""Threads of Karmada's users about workloads that were removed or moved at once.

Each test runs with karmada-scheduler and with ours and PlacementGuard, and has the numbers of its threads at
karmada-io/karmada. `make fuzz` and `tests/e2e/test_fuzz_loop.py` compare decisions of ours alone with karmada-scheduler's.
Karmada's own controllers are at work; the members become healthy when the test says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import UPSTREAM, StartAny, StartScheduler, enabling
from tests.e2e.late_members import LateMembers, late_members
from tests.e2e.workload import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
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
from tools.controlplane.karmada import CLUSTERS

WITH = "ours with PlacementGuard"
BOTH = pytest.mark.parametrize("which", [UPSTREAM, WITH])
GUARDED = pytest.mark.parametrize("which", [WITH])
GRACEFUL = {"graceful": {"enabled": True, "gracePeriodSeconds": 300}}
ONE = [manifests.spread("cluster", 1, 1)]
APPLIED = "policy.karmada.io/applied-placement"


@pytest.fixture(scope="module")
def members(controlplane: ControlPlane) -> Iterator[LateMembers]:
    with late_members(controlplane, "late-a", "late-b") as found:
        yield found


@pytest.fixture(scope="module")
def large(controlplane: ControlPlane) -> Iterator[LateMembers]:
    """A member with forty times the cores of the others."""
    with late_members(controlplane, "late-large", cpu="640") as found:
        yield found


@pytest.fixture(autouse=True)
def _only_a_answers(members: LateMembers) -> None:
    members.silence("late-b")
    members.allow("late-a")


def on_a(web: Workload, members: LateMembers, placement: Object | None = None, **fields: Any) -> None:
    """Create a workload that is ready on late-a, and reported so."""
    web.create(placement or named("late-a", replicaScheduling=AGGREGATED), **fields)
    web.wait(lambda found: is_settled(found) and is_reported(found, "late-a"), "healthy on late-a")


def wait_template_ready(web: Workload, count: int) -> None:
    """Wait until the status of the template has a number of ready replicas."""
    web.plane.wait_for(
        lambda: web.plane.client.get(web.deployment_path).get("status", {}).get("readyReplicas", 0),
        f"{count} ready replicas in the template",
        until=lambda ready: ready == count,
    )


# --- nothing fits ---


@BOTH
def test_7455_the_only_cluster_that_matches_loses_its_label(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#7455: the result is emptied, and Karmada deletes a running workload."""
    members.label("late-a", role="only")
    start_any(PlacementGuard={})
    affinity = {"clusterAffinity": {"labelSelector": {"matchLabels": {"role": "only"}}}}
    on_a(web, members, {**affinity, "replicaScheduling": DUPLICATED}, replicas=2)
    uid = members.uid_of("late-a", web.key)
    members.label("late-a", role=None)
    found = web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "nothing fits")
    if which != WITH:
        members.wait_gone("late-a", web.key)
        assert web.placed() == {}
        return
    assert placed(found) == {"late-a": 2}
    assert (
        "Kept at Guard by PlacementGuard: nothingFits is keep; stays on late-a:2"
        in condition(found)["message"]
    )
    web.plane.wait_for(lambda: web.events("PlacementKept"), "the Event, which comes after the condition")
    members.label("late-a", role="only")
    found = web.wait(lambda found: condition(found)["status"] == "True", "scheduled again")
    assert placed(found) == {"late-a": 2}
    assert members.uid_of("late-a", web.key) == uid


@GUARDED
def test_7455_a_kept_placement_does_not_keep_a_cluster_that_is_deleted(
    which: str, start_any: StartAny, web: Workload, members: LateMembers, controlplane: ControlPlane
) -> None:
    """A member that leaves with karmadactl unjoin goes, although no other cluster fits."""
    with late_members(controlplane, "late-c") as more:
        (extra,) = more.names
        more.allow(extra)
        start_any(PlacementGuard={})
        web.create(named("late-a", extra, replicaScheduling=DUPLICATED), replicas=1)
        web.wait(lambda found: is_settled(found) and is_reported(found, extra), "healthy on both")
        web.apply_policy(named("nowhere", replicaScheduling=DUPLICATED))
        web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "nothing fits")
        assert web.placed() == {"late-a": 1, extra: 1}
        more.remove(extra)
        assert web.plane.client.find(f"{CLUSTERS}/{extra}") is None
        web.wait(lambda found: placed(found) == {"late-a": 1}, "without the deleted cluster")
        assert members.uid_of("late-a", web.key) is not None


# --- graceful moves ---


@BOTH
def test_3272_a_policy_edit_moves_a_workload_to_a_slow_cluster(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#3272: the old copy is deleted before the new one is ready."""
    start_any(PlacementGuard=GRACEFUL)
    on_a(web, members, replicas=2)
    members.wait_ready(web.key, 2)
    since = time.monotonic()
    web.apply_policy(named("late-b", replicaScheduling=AGGREGATED))
    found = web.wait(lambda found: placed(found) == {"late-b": 2}, "moved")
    if which != WITH:
        members.wait_gone("late-a", web.key)
        assert members.least_ready(web.key, since=since) == 0
        return
    (task,) = tasks(found)
    assert {name: task[name] for name in ("fromCluster", "producer", "reason", "purgeMode")} == {
        "fromCluster": "late-a",
        "producer": "my-scheduler",
        "reason": "PlacementChanged",
        "purgeMode": "Gracefully",
    }
    found = web.wait(lambda found: tasks(found)[0].get("creationTimestamp"), "stamped by Karmada")
    time.sleep(
        3
    )  # Karmada's controller looks at the binding at each change of a status, none of which must end it
    assert members.ready(web.key) == 2
    members.allow("late-b")
    web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
    members.wait_gone("late-a", web.key)
    assert members.ready(web.key) == 2
    assert members.least_ready(web.key, since=since) == 2


@GUARDED
def test_3272_a_cluster_that_is_never_healthy_ends_a_move_by_its_time(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    graceful = {"enabled": True, "gracePeriodSeconds": 5}
    start_any(PlacementGuard={"graceful": graceful, "lastHealthyCopy": {"maxWaitSeconds": 5}})
    on_a(web, members, replicas=2)
    web.apply_policy(named("late-b", replicaScheduling=AGGREGATED))
    found = web.wait(tasks, "a task")
    assert tasks(found)[0]["gracePeriodSeconds"] == 5
    web.wait(lambda found: not tasks(found) and is_settled(found), "the time to be over", timeout=40)
    assert web.placed() == {"late-b": 2}


@BOTH
def test_6735_a_cluster_that_grows_is_not_ready_with_its_old_size(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#6735: replicas move to a running copy, which reports Healthy for its old size."""
    members.allow("late-b", most=2)
    start_any(PlacementGuard=GRACEFUL)
    static = manifests.static({("late-a",): 1, ("late-b",): 1})
    on_a(web, members, named("late-a", "late-b", replicaScheduling=static), replicas=4)
    members.wait_ready(web.key, 4)
    since = time.monotonic()
    web.apply_policy(named("late-b", replicaScheduling=static))
    web.wait(lambda found: placed(found) == {"late-b": 4}, "all on late-b")
    if which != WITH:
        members.wait_gone("late-a", web.key)
        assert members.least_ready(web.key, since=since) == 2
        return
    web.wait(lambda found: tasks(found) and tasks(found)[0].get("creationTimestamp"), "stamped")
    time.sleep(5)
    assert members.uid_of("late-a", web.key) is not None
    members.allow("late-b")
    web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
    members.wait_gone("late-a", web.key)
    assert members.least_ready(web.key, since=since) == 4


@BOTH
def test_5664_a_duplicated_workload_moves_once_and_stays(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """A Duplicated binding is decided again at each event, also when its eviction task ends."""
    start_any(PlacementGuard=GRACEFUL)
    on_a(web, members, named("late-a", replicaScheduling=DUPLICATED, spreadConstraints=ONE), replicas=2)
    members.wait_ready(web.key, 2)
    since = time.monotonic()
    web.apply_policy(named("late-b", replicaScheduling=DUPLICATED, spreadConstraints=ONE))
    web.wait(lambda found: placed(found) == {"late-b": 2}, "moved")
    if which == WITH:
        web.wait(lambda found: tasks(found) and tasks(found)[0].get("creationTimestamp"), "stamped")
    members.allow("late-b")
    web.wait(lambda found: not tasks(found) and is_settled(found), "settled")
    members.wait_gone("late-a", web.key)
    members.wait_ready(web.key, 2)
    assert web.placed() == {"late-b": 2}
    assert members.least_ready(web.key, since=since) == (2 if which == WITH else 0)


@BOTH
def test_1640_the_new_home_of_a_move_is_evicted(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#1640, #5150: an eviction deletes a workload that runs, because it has nowhere else to go."""
    start_any(PlacementGuard=GRACEFUL)
    on_a(web, members, named("late-a", replicaScheduling=AGGREGATED, spreadConstraints=ONE), replicas=2)
    uid = members.uid_of("late-a", web.key)
    since = time.monotonic()
    web.apply_policy(named("late-b", replicaScheduling=AGGREGATED, spreadConstraints=ONE))
    web.wait(lambda found: placed(found) == {"late-b": 2}, "on its way to late-b")
    web.apply_policy(named("late-a", "late-b", replicaScheduling=AGGREGATED, spreadConstraints=ONE))
    found = web.wait(
        lambda found: (
            len(found["spec"]["placement"]["clusterAffinity"]["clusterNames"]) == 2
            and condition(found)["status"] == "True"
            and len(json.loads(found["metadata"]["annotations"][APPLIED])["clusterAffinity"]["clusterNames"])
            == 2
        ),
        "the edit to be applied",
    )
    evicted = {"fromCluster": "late-b", "producer": "TaintManager", "reason": "TaintUntolerated"}
    spec = {"clusters": None, "gracefulEvictionTasks": [*tasks(found), evicted]}
    web.plane.client.patch(web.binding_path, {"spec": spec})
    web.wait(lambda found: placed(found) == {"late-a": 2}, "back on late-a")
    if which != WITH:
        assert members.uid_of("late-a", web.key) != uid
        assert members.least_ready(web.key, since=since) == 0
        return
    assert members.uid_of("late-a", web.key) == uid
    assert members.least_ready(web.key, since=since) == 2
    # The task from late-b ends as soon as late-a is reported healthy.
    assert [task["fromCluster"] for task in tasks(web.binding())] in (["late-b"], [])


@BOTH
def test_3167_the_template_counts_both_copies_until_the_new_one_is_healthy(
    which: str, start_any: StartAny, web: Workload, members: LateMembers
) -> None:
    """karmada-io/karmada#3167, #2769: during a failover a template has more ready replicas than it wants.

    That is Karmada's sum over all copies. It ends with the eviction, whichever scheduler moves the workload, and an HPA
    on the template sees it.
    """
    start_any(PlacementGuard=GRACEFUL)
    one = named("late-a", "late-b", replicaScheduling=AGGREGATED, spreadConstraints=ONE)
    on_a(web, members, one, replicas=2)
    wait_template_ready(web, 2)
    # Karmada does not end a task with suppressDeletion, so both copies are there for as long as the test looks.
    task = {"fromCluster": "late-a", "producer": "TaintManager", "reason": "TaintUntolerated"}
    evicted = {"clusters": None, "gracefulEvictionTasks": [{**task, "suppressDeletion": True}]}
    web.plane.client.patch(web.binding_path, {"spec": evicted})
    web.wait(lambda found: placed(found) == {"late-b": 2}, "on late-b")
    members.allow("late-b")
    wait_template_ready(web, 4)
    web.plane.client.patch(web.binding_path, {"spec": {"gracefulEvictionTasks": [task]}})
    web.wait(lambda found: not tasks(found) and is_settled(found), "the eviction to end")
    wait_template_ready(web, 2)
    assert web.placed() == {"late-b": 2}


@BOTH
def test_6774_a_rebalance_moves_a_workload_to_a_larger_cluster_that_is_slow(
    which: str, start_any: StartAny, web: Workload, members: LateMembers, large: LateMembers
) -> None:
    """karmada-io/karmada#6774: a WorkloadRebalancer deletes the old copy before the new one is ready."""
    start_any(PlacementGuard=GRACEFUL)
    on_a(web, members, named("late-a", replicaScheduling=DYNAMIC), replicas=1)
    uid = members.uid_of("late-a", web.key)
    web.apply_policy(named("late-a", "late-large", replicaScheduling=DYNAMIC))
    web.wait(
        lambda found: is_settled(found) and "late-large" in found["metadata"]["annotations"][APPLIED],
        "decided again with the larger cluster",
    )
    assert web.placed() == {"late-a": 1}
    since = time.monotonic()
    web.rebalance()
    found = web.wait(lambda found: placed(found) == {"late-large": 1}, "rebalanced")
    if which != WITH:
        members.wait_gone("late-a", web.key)
        assert members.least_ready(web.key, since=since) == 0
    else:
        assert [each["reason"] for each in tasks(found)] == ["Rebalanced"]
        assert members.uid_of("late-a", web.key) == uid
        large.allow("late-large")
        web.wait(lambda found: not tasks(found) and is_settled(found), "the move to end")
        assert large.ready(web.key) == 1
        both = [each.least_ready(web.key, since=since) for each in (members, large)]
        assert members.ready(web.key) + large.ready(web.key) >= 1, both


# --- budgets ---


@BOTH
def test_4288_an_edit_moves_no_more_workloads_at_a_time_than_the_budget_allows(
    which: str,
    start_any: StartAny,
    start_scheduler: StartScheduler,
    controlplane: ControlPlane,
    namespace: str,
    members: LateMembers,
    tmp_path: Path,
) -> None:
    """karmada-io/karmada#4288, #7253: an edit of policies moves everything at once."""
    members.allow("late-b")
    window = 10.0
    args = {
        "lastHealthyCopy": {"enabled": False},
        "budgets": [{"scope": "namespace", "window": "10s", "bindings": 2}],
    }
    webs = [Workload(controlplane, namespace, f"web-{number}") for number in range(4)]
    lease = "no-harm-budget"
    if which == WITH:
        first = start_scheduler(enabling(tmp_path, PlacementGuard=args), lease=lease)
    else:
        start_any(PlacementGuard={})
    for web in webs:
        web.create(named("late-a", replicaScheduling=AGGREGATED), replicas=1)
    for web in webs:
        web.wait(lambda found: is_settled(found) and is_reported(found, "late-a"), "healthy on late-a")
    for web in webs:
        web.apply_policy(named("late-b", replicaScheduling=AGGREGATED))
    if which != WITH:
        for web in webs:
            web.wait(lambda found: placed(found) == {"late-b": 1}, "moved", timeout=8)
        return
    controlplane.wait_for(
        lambda: sum(web.placed() == {"late-b": 1} for web in webs) == 2, "two to have moved"
    )
    first.process.stop()  # the next leader knows from the bindings what has moved
    controlplane.forget(first.process)
    start_scheduler(enabling(tmp_path, PlacementGuard=args), lease=lease)
    for web in webs:
        web.wait(lambda found: placed(found) == {"late-b": 1}, "moved in the end", timeout=90)
    moves = sorted(_moved_at(web.binding()) for web in webs)
    assert len(moves) == 4
    for start in moves:
        assert sum(start <= at < start + window for at in moves) <= 2


@GUARDED
def test_4288_an_unjoin_in_the_middle_of_moves_lets_no_other_workload_move(
    which: str, start_any: StartAny, controlplane: ControlPlane, namespace: str, members: LateMembers
) -> None:
    """Workloads leave a member that is unjoined, and what the budget holds stays on their other one."""
    members.allow("late-b")
    budget = {"scope": "namespace", "window": "10m", "bindings": 1}
    with late_members(controlplane, "late-c") as more:
        more.allow("late-c")
        start_any(PlacementGuard={"lastHealthyCopy": {"enabled": False}, "budgets": [budget]})
        webs = [Workload(controlplane, namespace, f"web-{number}") for number in range(3)]
        for web in webs:
            web.create(named("late-a", "late-c", replicaScheduling=DUPLICATED), replicas=1)
        for web in webs:
            for name in ("late-a", "late-c"):
                web.wait(lambda found: is_settled(found) and is_reported(found, name), f"healthy on {name}")  # noqa: B023
        uids = {web.key: members.uid_of("late-a", web.key) for web in webs}
        for web in webs:
            web.apply_policy(named("late-b", replicaScheduling=DUPLICATED))
        for web in webs:
            web.wait(
                lambda found: (
                    placed(found) == {"late-b": 1} or "held by the budget" in condition(found)["message"]
                ),
                "moved or held",
            )
        held = [web for web in webs if web.placed() != {"late-b": 1}]
        assert len(held) == 2
        more.remove("late-c")
        for web in held:
            web.wait(lambda found: placed(found) == {"late-a": 1}, "without the member that is unjoined")
        time.sleep(2)
        for web in held:
            assert "held by the budget" in condition(web.binding())["message"]
            assert web.placed() == {"late-a": 1}
            assert members.uid_of("late-a", web.key) == uids[web.key]


def _moved_at(binding: Object) -> float:
    record = json.loads(binding["metadata"]["annotations"]["pyscheduler.karmada.io/last-move"])
    (move,) = record["moves"]
    return datetime.fromisoformat(move["at"]).timestamp()
