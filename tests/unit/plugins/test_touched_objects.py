"""No call of an in-tree plugin looks at more bindings in a large fleet than in a small one, however many have moved before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

import pytest

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import NoTimeout
from karmada_scheduler.testing import make
from karmada_scheduler_plugins.fail_back import FailBack
from karmada_scheduler_plugins.fair_share import FairShare
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from karmada_scheduler_plugins.registry import IN_TREE, MANDATORY, OPT_IN
from karmada_scheduler_plugins.started_capacity import StartedCapacity
from karmada_scheduler_plugins.strict_priority import StrictPriority
from karmada_scheduler_plugins.workload_affinity import WorkloadAffinity, WorkloadAntiAffinity
from tests.unit.framework import scheduler_harness
from tests.unit.plugins.fail_back_fleet import CHECK, FAIL_BACK, WAIT, Fleet, terms
from tests.unit.plugins.test_placement_guard import APPLIED, LAST_MOVE

GUARD = {
    "graceful": {"enabled": True},
    "budgets": [
        {"scope": scope, "bindings": 1000, "percent": 100, "atOnce": 2, "window": window}
        for scope, window in (("profile", "10m"), ("namespace", "1h"), ("policy", "24h"))
    ],
}

TENANTS = {"tenants": [{"name": "demo", "namespaces": ["demo"], "borrowingLimit": {"cpu": 10_000}}]}


class Touched:
    """Counts the bindings that each call of a plugin takes from the cache.

    Attributes:
        most: The number of the call with most of them.
        calls: How many calls there were.
    """

    def __init__(self) -> None:
        self.most = self.calls = 0
        self._now = self._depth = 0

    def touch(self, count: int) -> None:
        if self._depth:
            self._now += count

    def begin(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self.calls += 1
            self._now = 0

    def end(self) -> None:
        self._depth -= 1
        self.most = max(self.most, self._now)


class Watched(BindingCache):
    """A cache that tells which of its bindings are looked at."""

    touched: Touched

    def get(self, key: BindingKey) -> Binding | None:
        self.touched.touch(1)
        return super().get(key)

    def __iter__(self) -> Iterator[Binding]:
        for each in super().__iter__():
            self.touched.touch(1)
            yield each

    def keys(self) -> list[BindingKey]:
        self.touched.touch(len(self))
        return super().keys()

    def _members(self, index: str, group: str) -> list[Binding]:
        found = super()._members(index, group)
        self.touched.touch(len(found))
        return found


class InPlugin(NoTimeout):
    """Takes the place of the timeout of plugins, and so is entered for each call."""

    def __init__(self, touched: Touched) -> None:
        super().__init__()
        self._touched = touched

    def __enter__(self) -> None:
        self._touched.begin()

    def __exit__(self, *_: object) -> None:
        self._touched.end()

    def part(self, share: float, *, adds_up: bool = False) -> Self:
        return self


def history(number: int) -> dict[str, str]:
    """Return the annotations of a binding that moved and returned a month or a minute ago."""
    at = "2026-01-01T23:59:00.000Z" if number % 2 else "2025-12-01T00:00:00.000Z"
    moves = {"moves": [{"at": at, "replicas": 2}], "from": ["m9"], "cause": "x"}
    change = {"n": 1, "at": at, "from": "on-m2", "to": "on-m1"}
    return {LAST_MOVE: json.dumps(moves), FAIL_BACK: json.dumps(change)}


async def fleet_of(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Fleet, Touched]:
    """Return a scheduler with all plugins, and so many settled bindings."""
    touched = Touched()
    monkeypatch.setattr(Watched, "touched", touched, raising=False)
    monkeypatch.setattr(scheduler_harness, "BindingCache", Watched)

    class Everything(Fleet):
        def __init__(self) -> None:
            chosen = {"checkSeconds": CHECK, "stabilizationSeconds": WAIT, "atOnce": 2, "overflow": True}

            def made(handle: Any) -> list[Any]:
                return [
                    make(PlacementGuard, GUARD, handle=handle),
                    make(FailBack, chosen, handle=handle),
                    # It looks at bindings that wait for nodes; here none do.
                    make(StartedCapacity, {}, handle=handle),
                    # Here no binding waits for capacity.
                    make(StrictPriority, {}, handle=handle),
                    make(FairShare, TENANTS, handle=handle),
                    WorkloadAffinity(),
                    WorkloadAntiAffinity(),
                ]

            scheduler_harness.SchedulerHarness.__init__(
                self,
                made=made,
                caller=PluginCaller(timeout=InPlugin(touched)),
                feature_gates=FeatureGates({"WorkloadAffinity": True}),
            )
            self.reconsiderations.start()
            self.versions = 1
            self.change("m3")

    fleet = Everything()
    for number in range(count):
        add(fleet, f"old{number}-deployment", on="m1", annotations=history(number))
    for _ in range(1 + count // 10):
        await fleet.run()
    return fleet, touched


def in_groups(name: str) -> dict[str, Any]:
    """Return the fields of a binding that is alone in its groups."""
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "demo"}
    return {
        "resource": {**resource, "name": name.removesuffix("-deployment")},
        "workloadAffinityGroups": {"affinityGroup": f"a={name}", "antiAffinityGroup": f"b={name}"},
    }


def add(fleet: Fleet, name: str, *, on: str, annotations: dict[str, str] | None = None) -> None:
    """Add a binding that is scheduled on a cluster, and healthy there."""
    clusters = [{"name": on, "replicas": 2}]
    fleet.put(name, placement=terms("m1", "m2", "m3"), clusters=clusters, **in_groups(name))
    placement = Binding.from_manifest(fleet.server.stored[name]).spec.placement
    assert placement is not None
    fleet.server.change(name, annotations={APPLIED: placement.to_json(), **(annotations or {})})
    status = {
        "schedulerObservedGeneration": fleet.server.stored[name]["metadata"]["generation"],
        "schedulerObservingAffinityName": f"on-{on}",
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success"}],
        "aggregatedStatus": [
            {"clusterName": on, "applied": True, "health": "Healthy", "status": {"readyReplicas": 2}}
        ],
    }
    fleet.server.change(name, status=True, **status)


async def everything(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, Counter[str]]:
    """Let bindings be placed, move, be held and return, next to so many others; return the most that a call has looked at."""
    fleet, touched = await fleet_of(count, monkeypatch)
    touched.most = touched.calls = 0
    reasons: Counter[str] = Counter()
    movers = [f"mover{number}-deployment" for number in range(4)]
    for name in movers:
        await fleet.start(name.replace("mover", "new"), **in_groups(name.replace("mover", "new")))
        add(fleet, name, on="m1")
    await fleet.run()
    for name in movers:  # two move, and two are held
        fleet.server.change(name, placement=terms("m2"))
    await fleet.run()
    reasons.update(fleet.condition(name)[0] for name in movers)
    add(fleet, "away-deployment", on="m2")
    for seconds in (86_500, 60, 60):
        for name in movers:
            fleet.server.change(name, gracefulEvictionTasks=[])
        await fleet.run(after=seconds)
    await fleet.check(2 * WAIT)
    reasons[fleet.term("away-deployment")] += 1
    fleet.time_of_day = fleet.time_of_day.replace(year=2025)  # the clock is set back
    fleet.server.change(movers[0], placement=terms("m3"))
    await fleet.run()
    assert touched.calls > 100
    return touched.most, reasons


async def test_no_call_looks_at_more_bindings_in_a_larger_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = [await everything(count, monkeypatch) for count in (20, 100)]
    assert small == large
    assert large[1] == {"Success": 2, "Unschedulable": 2, "on-m1": 1}


def test_the_test_has_all_plugins() -> None:
    known = {**IN_TREE, **MANDATORY, **OPT_IN}
    assert len(known) == 18  # FreshFirst and PrioritySort get a binding, and no handle
