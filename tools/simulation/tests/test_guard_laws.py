"""Each law of PlacementGuard and FailBack has a history that breaks it alone, and a similar one that breaks none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from karmada_scheduler.api.own_annotations import FAIL_BACK, HELD, LAST_MOVE
from tools.simulation.bindings import id_of_policy
from tools.simulation.environment import START
from tools.simulation.guard_history import Written
from tools.simulation.guard_laws import UNSEEN_SECONDS, GuardLaws

Object = dict[str, Any]

PROFILE = "my-scheduler"
FAIL_BACK_ARGS = {"stabilizationSeconds": 30, "checkSeconds": 10, "maxSeconds": 120, "atOnce": 1}


def text_of(at: float) -> str:
    return (START + timedelta(seconds=at)).isoformat()


class GuardPast:
    """A history that a test tells: bindings with four replicas on m1, where they are healthy, and clusters m1 to m4.

    m1 and m2 are in the first region.
    """

    def __init__(
        self,
        fail_back: Object | None = None,
        *,
        nothing_fits: str = "keep",
        graceful: bool = False,
        **budget: Any,
    ) -> None:
        self.broken: list[str] = []
        args: Object = {
            "nothingFits": nothing_fits,
            "graceful": {"enabled": graceful},
            "lastHealthyCopy": {"enabled": False},
            "budgets": [{"scope": "profile", "window": "20s", **budget}] if budget else [],
        }
        self.args = args
        self.laws = GuardLaws(
            args, fail_back, PROFILE, lambda law, _: self.broken.append(law), late_seconds=UNSEEN_SECONDS
        )
        self.stored: dict[str, Object] = {}
        for number in range(1, 5):
            self.cluster(f"m{number}", 0.0)

    def cluster(
        self, name: str, at: float, *, closed: bool = False, gone: bool = False, ready: bool = True
    ) -> None:
        labels = {"region": "first" if name in ("m1", "m2") else "second"}
        spec = {"taints": [{"key": "down"}] if closed else []}
        status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        after = {"metadata": {"labels": labels}, "spec": spec, "status": status}
        self.laws.on_cluster(at, name, None if gone else after)

    def binding(
        self, name: str, *, replicas: int = 4, terms: bool = False, policy: str = "p", healthy: bool = True
    ) -> None:
        placement: Object = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
        if terms:
            placement["clusterAffinities"] = [{"affinityName": "first"}, {"affinityName": "second"}]
        label, value = id_of_policy(policy)
        manifest = {
            "metadata": {"generation": 1, "labels": {label: value}, "annotations": {}},
            "spec": {
                "replicas": replicas,
                "placement": placement,
                "clusters": [{"name": "m1", "replicas": replicas}],
            },
            "status": {"schedulerObservedGeneration": 1},
        }
        self.store(name, 1.0, manifest)
        if healthy:
            self.report(name, 2.0)

    def store(self, name: str, at: float, after: Object, *, sent: float | None = None, by: str = "a") -> None:
        before = self.stored.get(name)
        self.stored[name] = after
        self.laws.on_write(Written(at, ("ResourceBinding", "default", name), before, after, sent, by))

    def report(self, name: str, at: float, *, health: str = "Healthy") -> None:
        found = json.loads(json.dumps(self.stored[name]))
        found["status"]["aggregatedStatus"] = [
            {
                "clusterName": each["name"],
                "health": health,
                "status": {"readyReplicas": each["replicas"] if health == "Healthy" else 0},
            }
            for each in found["spec"]["clusters"]
        ]
        self.store(name, at, found)

    def change(self, name: str, at: float, change: Callable[[Object], object]) -> None:
        found = json.loads(json.dumps(self.stored[name]))
        change(found)
        self.store(name, at, found)

    def move(
        self,
        name: str,
        at: float,
        targets: Mapping[str, int],
        *,
        accepted: float | None = None,
        tasks: Sequence[str] = (),
        by: str = "a",
        returns: bool = False,
        recorded: bool = True,
    ) -> None:
        """Let a scheduler move a binding; ``at`` is when it decided, and without a record the move uses up no budget."""
        found = json.loads(json.dumps(self.stored[name]))
        found["spec"]["clusters"] = [{"name": each, "replicas": count} for each, count in targets.items()]
        found["spec"]["gracefulEvictionTasks"] = [
            {"fromCluster": each, "producer": PROFILE} for each in tasks
        ]
        found["metadata"]["generation"] += 1
        if recorded:
            record = {"moves": [{"at": text_of(at), "replicas": 4}]}
            found["metadata"]["annotations"][LAST_MOVE] = json.dumps(record)
        if returns:
            found["metadata"]["annotations"][FAIL_BACK] = json.dumps({"at": text_of(at)})
        self.store(name, at + 0.1 if accepted is None else accepted, found, sent=at, by=by)

    def observe(self, name: str, at: float) -> None:
        found = json.loads(json.dumps(self.stored[name]))
        found["status"]["schedulerObservedGeneration"] = found["metadata"]["generation"]
        self.store(name, at, found, sent=at)


def emptied(*, gone: bool) -> GuardPast:
    past = GuardPast()
    past.binding("w")
    if gone:
        past.cluster("m1", 30.0, gone=True)
    past.move("w", 40.0, {})
    return past


def moves(*times: float, **budget: Any) -> GuardPast:
    past = GuardPast(**budget)
    for number, at in enumerate(times):
        past.binding(f"w{number}")
        past.move(f"w{number}", at, {"m3": 4})
    return past


def slow_write(*, seconds: float) -> GuardPast:
    """The first move is stored 25 s after it was decided; the window is 20 s."""
    past = GuardPast(bindings=1)
    past.binding("a")
    past.binding("b")
    if seconds < 25:
        past.move("b", 100.0 + seconds, {"m3": 4})
    past.move("a", 100.0, {"m3": 4}, accepted=125.0)
    if seconds > 25:
        past.move("b", 100.0 + seconds, {"m3": 4})
    return past


def leaving(*, ended: bool) -> GuardPast:
    past = GuardPast(graceful=True, atOnce=1)
    for name in ("a", "b"):
        past.binding(name)
    past.move("a", 40.0, {"m3": 4}, tasks=["m1"])
    if ended:
        past.change("a", 60.0, lambda found: found["spec"].pop("gracefulEvictionTasks"))
    past.move("b", 70.0, {"m3": 4}, tasks=["m1"])
    return past


def graceful(*tasks: str, purge_mode: str = "") -> GuardPast:
    past = GuardPast(graceful=True)
    past.binding("w")
    past.change("w", 3.0, lambda found: found["spec"].update(failover={"cluster": {"purgeMode": purge_mode}}))
    past.move("w", 40.0, {"m3": 4}, tasks=tasks)
    return past


def observed(*, ready: bool) -> GuardPast:
    past = graceful("m1")
    if ready:
        past.report("w", 43.0)
    past.observe("w", 44.0)
    return past


def last_copy(*, held: float) -> GuardPast:
    past = GuardPast()
    past.args["lastHealthyCopy"] = {"enabled": True, "maxWaitSeconds": 20}
    past.binding("w")
    since = json.dumps({"since": text_of(60.0 - held), "cause": "LastHealthyCopy"})
    past.change("w", 60.5 - held, lambda found: found["metadata"]["annotations"].update({HELD: since}))
    past.move("w", 60.0, {"m3": 4})
    return past


def unjoined(*, graceful: bool = False, waits: bool = False, **budget: Any) -> GuardPast:
    """Two bindings leave m1 while m2, where they are as well, is gone."""
    past = GuardPast(graceful=graceful, **budget)
    if waits:
        past.args["lastHealthyCopy"] = {"enabled": True, "maxWaitSeconds": 20}
    both = [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}]
    for name in ("a", "b"):
        past.binding(name)
        past.change(name, 3.0, lambda found: found["spec"].update(clusters=both))
        past.report(name, 4.0)
    past.cluster("m2", 39.0, gone=True)
    for name in ("a", "b"):
        past.move(name, 40.0, {"m3": 4})
    return past


def divided(*, gone: bool) -> GuardPast:
    """A policy divides the replicas of a binding that was Duplicated, and another one moves."""
    past = GuardPast(replicas=4)
    past.binding("a")
    past.binding("b", replicas=2)
    both = [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}]
    past.change("b", 3.0, lambda found: found["spec"].update(clusters=both))
    past.report("b", 4.0)
    if gone:
        past.cluster("m2", 39.0, gone=True)
    past.move("b", 40.0, {"m1": 1, "m2": 1}, recorded=False)
    past.move("a", 41.0, {"m3": 4})
    return past


def not_ready(*, since: float) -> GuardPast:
    """The cluster that two bindings leave is not Ready."""
    past = GuardPast(bindings=1)
    for name in ("a", "b"):
        past.binding(name)
    past.cluster("m1", 100.0 - since, ready=False)
    past.move("a", 100.0, {"m3": 4}, recorded=False)
    past.move("b", 101.0, {"m3": 4}, recorded=False)
    return past


def sick(*, recorded: bool) -> GuardPast:
    """A binding that is healthy nowhere moves before another one."""
    past = GuardPast(bindings=1)
    past.binding("sick", healthy=False)
    past.binding("b")
    past.move("sick", 40.0, {"m3": 4}, recorded=recorded)
    past.move("b", 61.0 if recorded else 41.0, {"m3": 4})
    return past


def returns(
    *waits: float, closed: tuple[float, float] | None = None, tolerates: Object | None = None
) -> GuardPast:
    """The binding leaves the first term, and returns after each wait."""
    past = GuardPast(FAIL_BACK_ARGS)
    past.binding("w", terms=True)
    if tolerates is not None:
        past.change("w", 3.0, lambda found: found["spec"]["placement"].update(clusterTolerations=[tolerates]))
    at = 40.0
    for wait in waits:
        past.move("w", at, {"m3": 4}, accepted=at)
        past.report("w", at + 3)
        if closed is not None:
            for moment, is_closed in zip(closed, (True, False), strict=True):
                for name in ("m1", "m2"):
                    past.cluster(name, at + moment, closed=is_closed)
        past.move("w", at + wait, {"m1": 4}, returns=True)
        past.report("w", at + wait + 3)
        at += wait + 50
    return past


def two_return(*, healthy: bool) -> GuardPast:
    past = GuardPast(FAIL_BACK_ARGS)
    for name in ("a", "b"):
        past.binding(name, terms=True)
        past.move(name, 40.0, {"m3": 4})
        past.report(name, 43.0)
    past.move("a", 80.0, {"m1": 4}, returns=True)
    past.report("a", 83.0, health="Healthy" if healthy else "Unknown")
    past.move("b", 90.0, {"m1": 4}, returns=True)
    return past


CASES: dict[str, tuple[Callable[[], GuardPast], list[str]]] = {
    "a placement is emptied": (lambda: emptied(gone=False), ["kept"]),
    "its only cluster is gone": (lambda: emptied(gone=True), []),
    "a second binding within the window": (lambda: moves(40.0, 59.0, bindings=1), ["within budget"]),
    "a second binding after the window": (lambda: moves(40.0, 60.5, bindings=1), []),
    "more replicas than the budget has": (lambda: moves(40.0, 50.0, replicas=7), ["within budget"]),
    "as many replicas as the budget has": (lambda: moves(40.0, 50.0, replicas=8), []),
    "others are left while a cluster goes": (lambda: unjoined(bindings=1), ["within budget"]),
    "two may be left while a cluster goes": (lambda: unjoined(bindings=2), []),
    "another is left at once while a cluster goes": (
        lambda: unjoined(graceful=True),
        ["graceful", "graceful"],
    ),
    "the last copy is left while a cluster goes": (lambda: unjoined(waits=True), ["last copy", "last copy"]),
    "replicas end on each of two clusters": (lambda: divided(gone=False), []),
    "replicas end on each of two clusters of which one is gone": (lambda: divided(gone=True), []),
    "a cluster is not Ready for a moment": (lambda: not_ready(since=1.0), ["within budget"]),
    "a cluster is not Ready for long": (lambda: not_ready(since=61.0), []),
    "what is exempt counts": (lambda: sick(recorded=True), ["exempt"]),
    "what is exempt does not count": (lambda: sick(recorded=False), []),
    "one move is larger than the budget": (lambda: moves(40.0, replicas=1), []),
    "a larger share than the budget has": (lambda: moves(40.0, 50.0, percent=75), ["within budget"]),
    "the whole share of the budget": (lambda: moves(40.0, 50.0, percent=100), []),
    "a move while an older one is being written": (lambda: slow_write(seconds=22.0), ["within budget"]),
    "a move after an older one was written": (lambda: slow_write(seconds=26.0), []),
    "a second one leaves at once": (lambda: leaving(ended=False), ["within budget"]),
    "a second one leaves afterwards": (lambda: leaving(ended=True), []),
    "a cluster is left without a task": (graceful, ["graceful"]),
    "a cluster is left with a task": (lambda: graceful("m1"), []),
    "an exclusive workload is left with a task": (
        lambda: graceful("m1", purge_mode="Directly"),
        ["graceful"],
    ),
    "an exclusive workload is left without a task": (lambda: graceful(purge_mode="Directly"), []),
    "a generation is observed too early": (lambda: observed(ready=False), ["ready first"]),
    "a generation is observed when all is ready": (lambda: observed(ready=True), []),
    "the last copy is left too early": (lambda: last_copy(held=19.0), ["last copy"]),
    "the last copy is left after the wait": (lambda: last_copy(held=20.0), []),
    "a return after half the wait": (lambda: returns(15.0), ["no early return"]),
    "a return after the wait": (lambda: returns(30.0), []),
    "a return after a miss": (lambda: returns(60.0, closed=(32.0, 52.0)), ["no early return"]),
    "a return to a taint that is tolerated for a while": (
        lambda: returns(60.0, closed=(32.0, 52.0), tolerates={"tolerationSeconds": 15}),
        ["no early return"],
    ),
    "a return to a taint that is tolerated for ever": (
        lambda: returns(60.0, closed=(32.0, 52.0), tolerates={}),
        [],
    ),
    "a return after an old miss": (lambda: returns(60.0, closed=(2.0, 22.0)), []),
    "a second return after the first wait": (lambda: returns(30.0, 31.0), ["no flapping"]),
    "a second return after twice the wait": (lambda: returns(30.0, 60.0), []),
    "a second one returns at once": (lambda: two_return(healthy=False), ["returns at once"]),
    "a second one returns afterwards": (lambda: two_return(healthy=True), []),
}


@pytest.mark.parametrize("past", CASES)
def test_a_history_breaks_the_law_that_it_tells_of_and_no_other(past: str) -> None:
    tell, laws = CASES[past]
    assert tell().broken == laws


def test_a_cluster_that_is_gone_is_left_without_a_move() -> None:
    past = GuardPast(bindings=1)
    for name in ("a", "b"):
        past.binding(name)
    past.cluster("m1", 30.0, gone=True)
    past.move("a", 40.0, {"m3": 4})
    past.move("b", 41.0, {"m3": 4})
    past.report("b", 44.0)
    past.move("b", 55.0, {"m4": 4})
    assert past.broken == []


def test_a_move_that_needs_no_budget_is_not_judged() -> None:
    past = GuardPast(bindings=1)
    for name, at in (("a", 40.0), ("sick", 41.0), ("evicted", 42.0)):
        past.binding(name, healthy=name != "sick")
        if name == "evicted":
            past.change(name, at, lambda found: found["spec"].update(clusters=[]))
        else:
            past.move(name, at, {"m3": 4}, recorded=name != "sick")
    assert past.broken == []


def test_a_budget_counts_the_moves_of_its_scope_only() -> None:
    for scope, broken in (("policy", []), ("namespace", ["within budget"])):
        past = GuardPast(bindings=1)
        past.args["budgets"][0]["scope"] = scope
        for name, policy in (("a", "p"), ("b", "q")):
            past.binding(name, policy=policy)
            past.move(name, 40.0, {"m3": 4})
        assert past.broken == broken
