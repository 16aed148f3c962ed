"""The scheduling loop with estimators that wait, and with assumed placements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import pytest

from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.estimator.session import WithoutSlot
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.scheduler import Scheduler
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.api.binding import AssumedWorkload, Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.binding_cycle.result import AttemptOutcome, TransactionResult
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.options import Options, RetryLimits
from karmada_scheduler.core.available_replicas import EstimationError
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster, framework, gates
from tests.unit.scheduler.fakes import FakeTransaction

PROTECTED = gates(SchedulingOvercommitProtection=True)


class FakeSession:
    """The estimation session of one decision; it returns when the test releases it."""

    name = "scheduler-estimator"

    def __init__(self, name: str, estimators: FakeEstimators, without_slot: WithoutSlot) -> None:
        self._without_slot = without_slot
        self.fallbacks: dict[str, str] = {}
        self.clusters: set[str] = set()
        self._name = name
        self._estimators = estimators

    async def max_available_replicas(
        self, clusters: Sequence[Cluster], _: object, assumed: Mapping[str, Sequence[AssumedWorkload]]
    ) -> list[int]:
        estimators = self._estimators
        self.clusters |= {each.name for each in clusters}
        estimators.requested.append(self._name)
        release = estimators.release(self._name)
        if not release.is_set() and self._name in estimators.silent:
            async with self._without_slot():
                await release.wait()
        await release.wait()
        self.fallbacks |= estimators.fallbacks
        if estimators.is_void:
            raise EstimationError("void")
        taken = {
            name: sum(each.components[0].replicas for each in workloads)
            for name, workloads in assumed.items()
        }
        return [estimators.available - taken.get(each.name, 0) for each in clusters]


class FakeEstimators:
    """Replaces ``estimator.accurate.AccurateEstimator``: two clusters with the same available replicas."""

    def __init__(self) -> None:
        self.available = 5
        self.fallbacks: dict[str, str] = {}
        self.is_void = False
        self.requested: list[str] = []
        self.held: set[str] = set()
        self.silent: set[str] = set()
        self._releases: dict[str, asyncio.Event] = {}

    def session(self, bound: Binding, without_slot: WithoutSlot) -> FakeSession:
        return FakeSession(bound.key.name, self, without_slot)

    def release(self, name: str) -> asyncio.Event:
        """Return the event that a decision waits for; it is set unless the test holds it."""
        event = self._releases.setdefault(name, asyncio.Event())
        if name not in self.held:
            event.set()
        return event


class WritingCycle:
    """A binding cycle that writes decisions into the cache, or fails to."""

    def __init__(self, bindings: BindingCache) -> None:
        self._bindings = bindings
        self.bound: dict[str, dict[str, int]] = {}
        self.failing: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def begin(self, bound: Binding, decision: Decision, _plugins: object) -> FakeTransaction:
        changes = decision.targets is not None and decision.targets != bound.spec.clusters
        return FakeTransaction(bound, decision, decision.targets if changes else None, self.write)

    def is_observed(self, _: Binding) -> bool:
        return True

    def record_failed_terms(self, _bound: Binding, _decision: Decision) -> None: ...

    async def write(self, transaction: FakeTransaction) -> TransactionResult:
        await self.gate.wait()
        key = transaction.binding.key
        if key.name in self.failing:
            return TransactionResult(transaction.binding, error=RuntimeError("not written"))
        targets = transaction.decision.targets or ()
        self.bound[key.name] = {each.name: each.replicas for each in targets}
        before = self._bindings.get(key)
        assert before is not None
        version = str(int(before.resource_version) + 1)
        after = replace(before, resource_version=version, spec=replace(before.spec, clusters=targets))
        self._bindings.put(after)
        return TransactionResult(after, was_written=True)

    async def report(
        self, transaction: FakeTransaction, result: TransactionResult, _framework: object
    ) -> AttemptOutcome:
        return AttemptOutcome(error=result.error or transaction.decision.error)


class EstimatingLoopHarness:
    """A scheduler with fake estimators and a fake binding cycle, and the caches that a test fills."""

    def __init__(self, feature_gates: FeatureGates | None = None, *, max_in_flight: int = 32) -> None:
        on = feature_gates or gates()
        self.queue: WorkQueue[BindingKey] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0)
        self.bindings, self.clusters = BindingCache(), ClusterCache()
        for name in ("m1", "m2"):
            self.clusters.put(replace(cluster(name).build(), resource_version="1"))
        self.metrics = Metrics()
        self.cycle = WritingCycle(self.bindings)
        self.estimators = FakeEstimators()
        self.assumed = (
            AssumedPlacements(clock=lambda: 0.0, ttl=300.0)
            if on.enabled("SchedulingOvercommitProtection")
            else None
        )
        state = SchedulerState(
            self.queue,
            bindings=self.bindings,
            clusters=self.clusters,
            waiting=WaitingBindings(),
            profiles=Profiles({"ours": framework(select=["ClusterAffinity"])}),
            metrics=self.metrics,
            clock=lambda: 0.0,
            assumed=self.assumed,
        )
        self.scheduler = Scheduler(
            Options(scheduler_name="ours", feature_gates=on, max_in_flight=max_in_flight),
            state,
            algorithm=SchedulingAlgorithm(on, [GeneralEstimator(on)], stored=self.bindings.get),
            cycle=self.cycle,  # type: ignore[arg-type]
            find_workload=lambda _: WorkloadAnswer(problem="not needed"),
            accurate=self.estimators,  # type: ignore[arg-type]
        )

    def put(self, name: str, *, replicas: int = 2, on: Mapping[str, int] | None = None) -> Binding:
        builder = binding(name).replicas(replicas, cpu=1).dynamic_weight().scheduler("ours")
        made = builder.on(**(on or {})).resource_version("1").build()
        made = replace(made, key=made.key._replace(name=name))
        self.bindings.put(made)
        self.queue.add(made.key)
        return made

    async def run(self, until: Callable[[], object]) -> None:
        """Run the loop until a condition holds, and then until it waits."""
        task = asyncio.create_task(self.scheduler.run())
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


async def test_the_smaller_of_resource_summary_and_estimate_counts() -> None:
    loop = EstimatingLoopHarness()
    loop.put("web", replicas=10)
    await loop.run(lambda: "web" in loop.cycle.bound)
    assert loop.cycle.bound["web"] == {"m1": 5, "m2": 5}


async def test_other_bindings_are_decided_while_one_waits_for_estimates() -> None:
    loop = EstimatingLoopHarness()
    loop.estimators.held.add("slow")
    loop.put("slow")
    loop.put("quick")
    await loop.run(lambda: "quick" in loop.cycle.bound)
    assert list(loop.cycle.bound) == ["quick"]
    await loop.end()
    assert list(loop.cycle.bound) == ["quick", "slow"]


class TestSilentEstimators:
    async def test_a_decision_that_waits_for_them_takes_no_slot(self) -> None:
        loop = EstimatingLoopHarness(max_in_flight=1)
        loop.estimators.held = loop.estimators.silent = {"slow"}
        loop.put("slow")
        loop.put("quick")
        loop.put("also-quick")
        await loop.run(lambda: len(loop.cycle.bound) == 2)
        assert list(loop.cycle.bound) == ["quick", "also-quick"]
        assert loop.sample("decisions_waiting_for_estimators") == 1
        await loop.end()
        assert loop.cycle.bound["slow"] == {"m1": 1, "m2": 1}
        assert loop.sample("decisions_waiting_for_estimators") == 0

    async def test_a_decision_that_waits_for_others_keeps_its_slot(self) -> None:
        loop = EstimatingLoopHarness(max_in_flight=1)
        loop.estimators.held = {"slow"}
        loop.put("slow")
        loop.put("quick")
        await loop.run(lambda: loop.estimators.requested)
        assert loop.cycle.bound == {}
        await loop.end()

    async def test_with_overcommit_protection_a_decision_keeps_its_slot(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED, max_in_flight=1)
        loop.estimators.held, loop.estimators.silent = {"slow"}, {"slow"}
        loop.put("slow")
        loop.put("next")
        await loop.run(lambda: loop.estimators.requested)
        assert loop.estimators.requested == ["slow"]

        async def release() -> None:
            loop.estimators.held.clear()
            loop.estimators.release("slow")

        task = asyncio.create_task(loop.run(lambda: len(loop.cycle.bound) == 2))
        await release()
        await task
        assert list(loop.cycle.bound) == ["slow", "next"]


async def test_a_binding_without_replicas_needs_no_estimates() -> None:
    loop = EstimatingLoopHarness()
    made = binding("configmap").scheduler("ours").resource_version("1").build()
    loop.bindings.put(made)
    loop.queue.add(made.key)
    await loop.run(lambda: loop.cycle.bound)
    assert loop.estimators.requested == []


@pytest.mark.parametrize(
    ("fallbacks", "is_void", "extent"),
    [({"m2": "unresponsive"}, False, "some"), ({"m1": "void", "m2": "void"}, True, "all")],
)
async def test_a_fallback_to_the_resource_summary_is_logged_and_counted(
    caplog: pytest.LogCaptureFixture, fallbacks: dict[str, str], is_void: bool, extent: str
) -> None:
    caplog.set_level(logging.INFO)
    loop = EstimatingLoopHarness()
    loop.estimators.fallbacks, loop.estimators.is_void = fallbacks, is_void
    loop.put("web")
    await loop.run(lambda: loop.cycle.bound)
    (record,) = [each for each in caplog.records if "fell back to the resource summary" in each.message]
    assert next(iter(fallbacks)) in record.message
    assert record.__dict__["count"] == len(fallbacks)
    assert loop.sample("estimate_fallbacks_total", extent=extent) == 1


async def test_a_decision_with_all_estimates_logs_no_fallback(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop = EstimatingLoopHarness()
    loop.put("web")
    await loop.run(lambda: loop.cycle.bound)
    assert not [each for each in caplog.records if "fell back to the resource summary" in each.message]
    assert loop.sample("estimate_fallbacks_total", extent="some") == 0


class TestProtection:
    async def test_decisions_run_one_at_a_time(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        loop.estimators.held.add("first")
        loop.put("first")
        loop.put("second")
        await loop.run(lambda: loop.estimators.requested)
        assert loop.estimators.requested == ["first"]
        await loop.end()
        assert list(loop.cycle.bound) == ["first", "second"]

    async def test_the_next_decision_counts_a_placement_that_is_not_written_yet(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        loop.cycle.gate.clear()
        loop.put("first", replicas=6)
        loop.put("second", replicas=6)
        await loop.run(lambda: "second" in loop.estimators.requested)
        assert loop.cycle.bound == {}
        assert loop.taken() == {"m1": 3, "m2": 3}  # nothing is left of 5 and 5 for six more
        await loop.end()

    async def test_a_burst_of_bindings_takes_no_more_than_the_available_replicas(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        for number in range(20):
            loop.put(f"web-{number}", replicas=1)
        await loop.run(lambda: len(loop.estimators.requested) >= 20)
        await loop.end()
        total = [sum(placed.get(name, 0) for placed in loop.cycle.bound.values()) for name in ("m1", "m2")]
        assert total == [5, 5]

    async def test_a_failed_write_releases_its_assumed_replicas(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        loop.cycle.failing.add("web")
        loop.put("web", replicas=4)
        await loop.run(lambda: not loop.queue.processing and loop.estimators.requested)
        await loop.end()
        assert loop.taken() == {}

    async def test_a_failed_write_restores_the_previous_assumption_about_the_binding(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        made = loop.put("web", replicas=4, on={"m1": 2})
        assert loop.assumed is not None
        loop.assumed.assume(made, (TargetCluster("m1", 2),))
        loop.assumed.confirm(made.key)
        loop.cycle.failing.add("web")
        await loop.run(lambda: not loop.queue.processing and loop.estimators.requested)
        await loop.end()
        assert loop.taken() == {"m1": 2}

    async def test_a_written_placement_stays_assumed(self) -> None:
        loop = EstimatingLoopHarness(PROTECTED)
        loop.put("web", replicas=4)
        await loop.run(lambda: loop.cycle.bound)
        await loop.end()
        assert loop.taken() == {"m1": 2, "m2": 2}


async def test_without_the_gate_nothing_is_assumed() -> None:
    loop = EstimatingLoopHarness()
    for name in ("first", "second"):
        loop.put(name, replicas=10)
    await loop.run(lambda: len(loop.cycle.bound) == 2)
    assert loop.cycle.bound == {name: {"m1": 5, "m2": 5} for name in ("first", "second")}
