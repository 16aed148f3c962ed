"""Moves that a guard holds, returns that wait, and moves that are under way."""

from __future__ import annotations

from tests.e2e.state.model import Expected, situation
from tests.e2e.state.plane import GUARDED
from tests.e2e.state.scene import Scene
from tests.e2e.workload import AGGREGATED, condition, is_settled, named, placed
from tools.manifests import spread

FROM_MINE = ("--from={from west-scheduler}",)


_HELD = Expected(
    "held", "all", headline=r"\w+ 2.*budget", cause=r"^HeldAtGuard: .*budget", remedy=r"^$|budget"
)


@situation(
    _HELD,
    name="guard-budget-without-the-process",
    source="A move is held by the budget, and only the control plane is read.",
    applies=False,
)
@situation(_HELD, flags=FROM_MINE, applies=False, page="held")
def guard_budget(scene: Scene) -> None:
    """A move is held by the budget of one move per hour.

    Two workloads want to move.
    """
    old, new = scene.cluster(), scene.cluster()
    for name in ("web", "api"):
        placement = named(old, replicaScheduling=AGGREGATED)
        scene.policy(placement, name=name, selector={"name": name}, scheduler=GUARDED)
        scene.deployment(name=name, replicas=2)
        scene.wait_applied(name=f"{name}-deployment")
    for name in ("api", "web"):
        placement = named(new, replicaScheduling=AGGREGATED)
        scene.policy(placement, name=name, selector={"name": name}, scheduler=GUARDED)
        if name == "api":
            scene.wait_placed({new: 2}, name="api-deployment")
    scene.wait(lambda found: condition(found).get("status") == "False", "held")
    scene.notes |= {"old": old, "new": new}


@situation(
    Expected(
        "held",
        "part",
        headline=r"2 of 5.*\w+ 2.*(kept|keep|stays)",
        cause=r"^KeptAtGuard: ",
        remedy=r"label|tier",
    ),
    flags=FROM_MINE,
)
def guard_keeps(scene: Scene) -> None:
    """No cluster fits any more, and the guard keeps 2 of 5 replicas."""
    name = scene.cluster(labels={"tier": scene.namespace})
    affinity = {"labelSelector": {"matchLabels": {"tier": scene.namespace}}}
    scene.web_applied(
        {"clusterAffinity": affinity, "replicaScheduling": AGGREGATED}, scheduler=GUARDED, replicas=2
    )
    path = f"/apis/cluster.karmada.io/v1alpha1/clusters/{name}"
    scene.client.patch(path, {"metadata": {"labels": {"tier": None}}})
    scene.scale(5)
    scene.wait(lambda found: condition(found).get("status") == "False", "kept")


@situation(
    Expected(
        "placed",
        "all",
        headline=r"\w+ 2",
        cause=r"^(TermBehind|FailBack\w*): .*(returns|FailBack)",
        remedy="^$|.",
    ),
    flags=FROM_MINE,
    applies=False,
)
def return_waits(scene: Scene) -> None:
    """The first term is well again, and FailBack waits an hour before the return.

    It left its first term when the cluster was tainted, the taint is gone, and FailBack waits an hour.
    """
    home, away = scene.cluster(), scene.cluster()
    terms = [
        {"affinityName": "primary", "clusterNames": [home]},
        {"affinityName": "backup", "clusterNames": [away]},
    ]
    scene.web_applied(
        {"clusterAffinities": terms, "replicaScheduling": AGGREGATED}, scheduler=GUARDED, replicas=2
    )
    scene.taint(home, {"key": "test/down", "effect": "NoSchedule"})
    task = {"fromCluster": home, "producer": "TaintManager", "reason": "TaintUntolerated"}
    scene.patch_binding({"clusters": None, "gracefulEvictionTasks": [task]})
    scene.wait(
        lambda found: (
            placed(found) == {away: 2}
            and is_settled(found)
            and not found["spec"].get("gracefulEvictionTasks")
        ),
        "on the second cluster",
        timeout=90,
    )
    scene.taint(home)
    scene.karmada.wait_for(
        lambda: [
            event["reason"]
            for event in scene.client.list(f"/api/v1/namespaces/{scene.namespace}/events")
            if event["involvedObject"].get("name") == "web-deployment"
        ],
        "the Event that the return waits",
        until=lambda reasons: "FailBackWaits" in reasons,
        timeout=30,
    )
    scene.notes |= {"home": home, "away": away}


@situation(
    Expected(
        "moving",
        "all",
        headline=r"\w+ 3.*still runs on \w+",
        cause=r"^\w+: .*(still|until|evict)",
        remedy="^$|.",
    ),
    applies=False,
    page="moving",
)
def moving(scene: Scene) -> None:
    """The taint manager evicts, and the new copy is not healthy yet.

    The taint manager evicts; the new copy is not reported yet.
    """
    old, new = scene.cluster(), scene.cluster(agents=False)
    one = named(old, new, replicaScheduling=AGGREGATED, spreadConstraints=[spread("cluster", 1, 1)])
    scene.taint(new, {"key": "test/later", "effect": "NoSchedule"})
    scene.web_applied(one, replicas=3)
    scene.taint(new)
    scene.taint(old, {"key": "test/down", "effect": "NoSchedule"})
    task = {
        "fromCluster": old,
        "producer": "TaintManager",
        "reason": "TaintUntolerated",
        "gracePeriodSeconds": 600,
    }
    scene.patch_binding({"clusters": None, "gracefulEvictionTasks": [task]})
    scene.wait(
        lambda found: (
            placed(found) == {new: 3}
            and (found["spec"].get("gracefulEvictionTasks") or [{}])[0].get("creationTimestamp")
        ),
        "on its way",
    )
    scene.notes |= {"old": old, "new": new}
