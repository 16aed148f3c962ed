"""The loop with estimators that take their time, and with placements that count before they are reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from karmada_scheduler.api.binding import AssumedWorkload, Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.binding_cycle.writer import DONE, Outcome
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.available_replicas import EstimationError
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduling_queue.work_queue import RetryLimits, SchedulingQueue, WaitingQueue
from karmada_scheduler.testing import binding, cluster, framework, gates

PROTECTED = gates(SchedulingOvercommitProtection=True)


class Session:
    """One decision's questions; the answer comes when the test says so."""

    name = "scheduler-estimator"

    def __init__(self, name: str, estimators: Estimators) -> None:
        self.fallbacks: dict[str, str] = {}
        self.clusters: set[str] = set()
        self._name = name
        self._estimators = estimators

    async def max_available_replicas(
        self, clusters: Sequence[Cluster], _: object, assumed: Mapping[str, Sequence[AssumedWorkload]]
    ) -> list[int]:
        estimators = self._estimators
        self.clusters |= {each.name for each in clusters}
        estimators.asked.append(self._name)
        await estimators.release(self._name).wait()
        self.fallbacks |= estimators.fallbacks
        if estimators.is_void:
            raise EstimationError("void")
        taken = {
            name: sum(each.components[0].replicas for each in workloads)
            for name, workloads in assumed.items()
        }
        return [estimators.room - taken.get(each.name, 0) for each in clusters]


class Estimators:
    """Stands for ``estimator.accurate.AccurateEstimator``: two clusters with the same room."""

    def __init__(self) -> None:
        self.room = 5
        self.fallbacks: dict[str, str] = {}
        self.is_void = False
        self.asked: list[str] = []
        self.held: set[str] = set()
        self._releases: dict[str, asyncio.Event] = {}

    def session(self, bound: Binding) -> Session:
        return Session(bound.key.name, self)

    def release(self, name: str) -> asyncio.Event:
        """What a decision waits for; set already unless the test holds it back."""
        event = self._releases.setdefault(name, asyncio.Event())
        if name not in self.held:
            event.set()
        return event


class Cycle:
    """Writes into the cache, or fails to."""

    def __init__(self, bindings: BindingCache) -> None:
        self._bindings = bindings
        self.bound: dict[str, dict[str, int]] = {}
        self.failing: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def has_work(self, _: Binding, decision: Decision) -> bool:
        return True

    def changes_result(self, bound: Binding, decision: Decision) -> bool:
        return decision.targets is not None and decision.targets != bound.spec.clusters

    def passage(self, *_: object) -> None:
        return None

    def is_observed(self, _: Binding) -> bool:
        return True

    async def bind(
        self,
        bound: Binding,
        decision: Decision,
        passage: BindingTransaction | None,
        *,
        stored: Callable[[], None],
    ) -> Outcome:
        await self.gate.wait()
        if bound.key.name in self.failing:
            return Outcome(RuntimeError("not written"))
        targets = decision.targets or ()
        self.bound[bound.key.name] = {each.name: each.replicas for each in targets}
        before = self._bindings.get(bound.key)
        assert before is not None
        version = str(int(before.resource_version) + 1)
        self._bindings.put(
            replace(before, resource_version=version, spec=replace(before.spec, clusters=targets))
        )
        stored()
        return DONE if decision.error is None else Outcome(decision.error)


class World:
    """A running loop over caches that a test fills."""

    def __init__(self, feature_gates: FeatureGates | None = None) -> None:
        on = feature_gates or gates()
        self.queue: SchedulingQueue[BindingKey] = SchedulingQueue(limits=RetryLimits(), clock=lambda: 0.0)
        self.bindings, self.clusters = BindingCache(), ClusterCache()
        for name in ("m1", "m2"):
            self.clusters.put(replace(cluster(name).build(), resource_version="1"))
        self.metrics = Metrics()
        self.cycle = Cycle(self.bindings)
        self.estimators = Estimators()
        self.assumed = (
            AssumedPlacements(clock=lambda: 0.0) if on.enabled("SchedulingOvercommitProtection") else None
        )
        self.scheduler = Scheduler(
            options=Options(scheduler_name="ours", feature_gates=on),
            queue=WaitingQueue(self.queue),
            bindings=self.bindings,
            clusters=self.clusters,
            look_up=lambda _: WorkloadAnswer(problem="nobody asks"),
            profiles=Profiles({"ours": framework(select=["ClusterAffinity"])}),
            waiting=WaitingBindings(),
            estimators=[GeneralEstimator(on)],
            metrics=self.metrics,
            clock=lambda: 0.0,
            accurate=self.estimators,  # type: ignore[arg-type]
            assumed=self.assumed,
        )

    def put(self, name: str, *, replicas: int = 2, on: Mapping[str, int] | None = None) -> Binding:
        builder = binding(name).replicas(replicas, cpu=1).dynamic_weight().scheduler("ours")
        made = builder.on(**(on or {})).resource_version("1").build()
        made = replace(made, key=made.key._replace(name=name))
        self.bindings.put(made)
        self.queue.add(made.key)
        return made

    async def run(self, until: Callable[[], object]) -> None:
        """Let the loop run until something is so, and then until it waits."""
        task = asyncio.create_task(self.scheduler.run(self.cycle))  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(10):
                while not until():
                    await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def end(self) -> None:
        for name in list(self.estimators.held):
            self.estimators.held.discard(name)
            self.estimators.release(name)
        self.cycle.gate.set()
        await self.scheduler.drain(timeout=5)

    def taken(self) -> dict[str, int]:
        assert self.assumed is not None
        return {
            name: sum(each.components[0].replicas for each in workloads)
            for name, workloads in self.assumed.by_cluster().items()
        }

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karmada_scheduler_{name}", labels) or 0.0


async def test_the_smaller_of_summary_and_estimate_counts() -> None:
    world = World()
    world.put("web", replicas=10)
    await world.run(lambda: "web" in world.cycle.bound)
    assert world.cycle.bound["web"] == {"m1": 5, "m2": 5}


async def test_while_one_decision_waits_others_go_on() -> None:
    world = World()
    world.estimators.held.add("slow")
    world.put("slow")
    world.put("quick")
    await world.run(lambda: "quick" in world.cycle.bound)
    assert list(world.cycle.bound) == ["quick"]
    await world.end()
    assert list(world.cycle.bound) == ["quick", "slow"]


async def test_what_has_no_replicas_asks_nobody() -> None:
    world = World()
    made = binding("configmap").scheduler("ours").resource_version("1").build()
    world.bindings.put(made)
    world.queue.add(made.key)
    await world.run(lambda: world.cycle.bound)
    assert world.estimators.asked == []


@pytest.mark.parametrize(
    ("fallbacks", "is_void", "extent"),
    [({"m2": "silent"}, False, "some"), ({"m1": "void", "m2": "void"}, True, "all")],
)
async def test_a_decision_that_went_by_summaries_says_so(
    caplog: pytest.LogCaptureFixture, fallbacks: dict[str, str], is_void: bool, extent: str
) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    world.estimators.fallbacks, world.estimators.is_void = fallbacks, is_void
    world.put("web")
    await world.run(lambda: world.cycle.bound)
    (told,) = [record for record in caplog.records if "went by summaries" in record.message]
    assert next(iter(fallbacks)) in told.message
    assert told.__dict__["count"] == len(fallbacks)
    assert world.sample("estimate_fallbacks_total", extent=extent) == 1


async def test_a_decision_that_heard_everybody_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    world.put("web")
    await world.run(lambda: world.cycle.bound)
    assert not [record for record in caplog.records if "went by summaries" in record.message]
    assert world.sample("estimate_fallbacks_total", extent="some") == 0


class TestProtection:
    async def test_decisions_take_turns(self) -> None:
        world = World(PROTECTED)
        world.estimators.held.add("first")
        world.put("first")
        world.put("second")
        await world.run(lambda: world.estimators.asked)
        assert world.estimators.asked == ["first"]
        await world.end()
        assert list(world.cycle.bound) == ["first", "second"]

    async def test_the_next_decision_knows_of_one_that_is_not_written_yet(self) -> None:
        world = World(PROTECTED)
        world.cycle.gate.clear()
        world.put("first", replicas=6)
        world.put("second", replicas=6)
        await world.run(lambda: "second" in world.estimators.asked)
        assert world.cycle.bound == {}
        assert world.taken() == {"m1": 3, "m2": 3}  # nothing is left of 5 and 5 for six more
        await world.end()

    async def test_a_burst_takes_no_more_than_there_is(self) -> None:
        world = World(PROTECTED)
        for number in range(20):
            world.put(f"web-{number}", replicas=1)
        await world.run(lambda: len(world.estimators.asked) >= 20)
        await world.end()
        total = [sum(placed.get(name, 0) for placed in world.cycle.bound.values()) for name in ("m1", "m2")]
        assert total == [5, 5]

    async def test_a_write_that_fails_gives_its_room_back(self) -> None:
        world = World(PROTECTED)
        world.cycle.failing.add("web")
        world.put("web", replicas=4)
        await world.run(lambda: not world.queue.in_progress and world.estimators.asked)
        await world.end()
        assert world.taken() == {}

    async def test_a_write_that_fails_leaves_what_was_assumed_of_the_same_binding(self) -> None:
        world = World(PROTECTED)
        made = world.put("web", replicas=4, on={"m1": 2})
        assert world.assumed is not None
        world.assumed.assume(made, (TargetCluster("m1", 2),))
        world.assumed.confirm(made.key)
        world.cycle.failing.add("web")
        await world.run(lambda: not world.queue.in_progress and world.estimators.asked)
        await world.end()
        assert world.taken() == {"m1": 2}

    async def test_a_written_placement_stays_assumed(self) -> None:
        world = World(PROTECTED)
        world.put("web", replicas=4)
        await world.run(lambda: world.cycle.bound)
        await world.end()
        assert world.taken() == {"m1": 2, "m2": 2}


async def test_without_the_gate_nothing_is_assumed() -> None:
    world = World()
    for name in ("first", "second"):
        world.put(name, replicas=10)
    await world.run(lambda: len(world.cycle.bound) == 2)
    assert world.cycle.bound == {name: {"m1": 5, "m2": 5} for name in ("first", "second")}
