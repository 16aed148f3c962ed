"""The scheduling loop: how each key is processed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.informer.workloads import NotSynced
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.scheduler import Scheduler
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome, TransactionResult
from karmada_scheduler.config.options import Options, RetryLimits
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.framework import SUCCESS, FilterContext, Plugin, PluginError, PreEnqueueContext, Result
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, OverBudgetError, SchedulingError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.testing import cluster, framework, gates
from tests import manifests
from tests.unit.scheduler.fakes import FakeTransaction


class RecordingCycle:
    """A binding cycle that records decisions, and returns the results that a test prepares."""

    def __init__(self) -> None:
        self.bound: list[Decision] = []
        self.observed: list[str] = []
        self.resynced: list[tuple[str, tuple[str, ...]]] = []
        self.deleting: list[str] = []
        self.forgotten: list[str] = []
        self.results: list[AttemptOutcome | BaseException] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.status_gate = asyncio.Event()
        self.status_gate.set()
        self.writes_result = True
        self.under_way = 0
        self.most_under_way = 0
        self.on_bind: Callable[[Decision], None] = lambda _: None

    def begin(self, binding: Binding, decision: Decision, _plugins: object) -> FakeTransaction | None:
        if decision.targets == binding.spec.clusters and decision.error is None:
            return None
        return FakeTransaction(binding, decision, decision.targets, self.write)

    async def write(self, transaction: FakeTransaction) -> TransactionResult:
        self.bound.append(transaction.decision)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.gate.wait()
        self.under_way -= 1
        self.on_bind(transaction.decision)
        return TransactionResult(transaction.binding, was_written=self.writes_result)

    async def report(
        self, _transaction: object, _result: TransactionResult, _framework: object
    ) -> AttemptOutcome:
        await self.status_gate.wait()
        result = self.results.pop(0) if self.results else DONE
        if isinstance(result, BaseException):
            raise result
        return result

    def is_observed(self, binding: Binding, *, observes: bool = True) -> bool:
        return False

    async def observe(self, binding: Binding, *, term: str = "", observes: bool = True) -> AttemptOutcome:
        self.observed.append(f"{binding.key.name} {term}".strip())
        return DONE

    async def resync(self, binding: Binding, clusters: tuple[str, ...], _framework: object) -> AttemptOutcome:
        self.resynced.append((binding.key.name, clusters))
        return DONE

    def forget(self, key: BindingKey) -> None:
        self.forgotten.append(key.name)

    def record_deleting(self, binding: Binding) -> None:
        self.deleting.append(binding.key.name)

    def record_failed_terms(self, _binding: Binding, _decision: Decision) -> None: ...


DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}


class LoopHarness:
    """A scheduler with a fake binding cycle, and the caches that a test fills."""

    def __init__(
        self,
        *plugins: Plugin,
        clock: Callable[[], float] = lambda: 0.0,
        assumed: AssumedPlacements | None = None,
        find_workload: Callable[[Binding], WorkloadAnswer | NotSynced] = lambda _: WorkloadAnswer(
            problem="unknown"
        ),
        **options: Any,
    ) -> None:
        self.now = 0.0
        self.waiting = WaitingBindings()
        self.queue: WorkQueue[BindingKey] = WorkQueue(limits=RetryLimits(), clock=lambda: self.now)
        self.bindings = BindingCache()
        self.clusters = ClusterCache()
        for name in ("m1", "m2"):
            manifest = cluster(name).manifest()
            self.clusters.put(type(cluster(name).build()).from_manifest(_versioned(manifest)))
        self.metrics = Metrics()
        self.cycle = RecordingCycle()
        self.profiles = Profiles({"ours": framework(*plugins, select=["ClusterAffinity"])})
        chosen = Options(scheduler_name="ours", **options)
        state = SchedulerState(
            self.queue,
            bindings=self.bindings,
            clusters=self.clusters,
            waiting=self.waiting,
            profiles=self.profiles,
            metrics=self.metrics,
            clock=lambda: self.now,
            assumed=assumed,
        )
        self.state = state
        self.gate = state.gate
        self.scheduler = Scheduler(
            chosen,
            state,
            cycle=self.cycle,  # type: ignore[arg-type]
            algorithm=SchedulingAlgorithm(
                chosen.feature_gates,
                [],
                peers=self.bindings if chosen.feature_gates.enabled("WorkloadAffinity") else None,
                stored=self.bindings.get,
            ),
            new_budget=lambda: Budget(clock, clock),
            find_workload=find_workload,
        )

    def put(self, name: str = "web", **fields: Any) -> BindingKey:
        binding = Binding.from_manifest(manifests.binding(name, **fields))
        self.bindings.put(binding)
        self.queue.add(binding.key)
        return binding.key

    async def decide(self, manifest: dict[str, Any]) -> None:
        """Store and enqueue the binding of a manifest, and let the loop run until it waits."""
        binding = Binding.from_manifest(manifest)
        self.bindings.put(binding)
        self.queue.add(binding.key)
        await self.run()

    async def put_and_run(self, name: str = "web", **fields: Any) -> BindingKey:
        key = self.put(name, **fields)
        await self.run()
        return key

    async def run(self) -> None:
        """Let the loop run until it waits."""
        task = asyncio.create_task(self.scheduler.run())
        await _run_pending_tasks()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karmada_scheduler_{name}", labels) or 0.0


async def _run_pending_tasks() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def _versioned(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "1"}}


async def test_a_decision_is_written_and_counted() -> None:
    loop = LoopHarness()
    await loop.put_and_run()
    [decision] = loop.cycle.bound
    assert [target.name for target in decision.targets or ()] == ["m1", "m2"]
    assert loop.sample("classified_bindings_total", schedule_class="First") == 1
    assert loop.sample("queue_wait_seconds_count") == 1
    assert loop.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1
    assert loop.queue.processing == 0


async def test_a_decision_that_changes_nothing_is_counted_and_not_written() -> None:
    loop = LoopHarness()
    await loop.put_and_run(clusters=[{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}])
    assert loop.cycle.bound == []
    assert loop.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_deleted_binding_and_one_of_another_scheduler_are_skipped(*, is_on: bool) -> None:
    loop = LoopHarness(feature_gates=gates(WorkloadAffinity=is_on))
    loop.queue.add(BindingKey("ResourceBinding", "demo", "gone"))
    await loop.put_and_run(schedulerName="theirs")
    assert loop.cycle.bound == []
    assert loop.queue.processing == 0


async def test_an_enqueued_binding_is_scheduled_although_no_policy_claims_it_any_more() -> None:
    loop = LoopHarness()
    manifest = manifests.binding()
    del manifest["metadata"]["labels"]
    await loop.decide(manifest)
    assert len(loop.cycle.bound) == 1


@pytest.mark.parametrize(("claimed", "passes"), [(True, 2), (False, 1)])
async def test_a_decision_is_made_stable_if_its_own_write_would_enqueue_the_binding(
    *, claimed: bool, passes: int
) -> None:
    """Upstream needs as many attempts until nothing changes; the order of clusters depends on it (fuzz-loop, seed 17)."""
    loop = LoopHarness()
    manifest = manifests.binding(
        placement={"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, clusters=[{"name": "m2"}]
    )
    if not claimed:
        del manifest["metadata"]["labels"]
    await loop.decide(manifest)
    [decision] = loop.cycle.bound
    assert len(decision.attempts) == passes


async def test_a_binding_that_is_being_deleted_gets_an_event_and_is_not_scheduled() -> None:
    loop = LoopHarness()
    manifest = manifests.binding()
    manifest["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    await loop.decide(manifest)
    assert loop.cycle.deleting == ["web-deployment"]
    assert loop.cycle.bound == []


async def test_a_binding_without_a_placement_is_not_scheduled_until_it_has_one() -> None:
    loop = LoopHarness()
    await loop.put_and_run(placement=None)
    await loop.put_and_run(version=2, generation=2)
    assert len(loop.cycle.bound) == 1


async def test_a_binding_without_a_placement_is_logged_once_and_again_under_a_reused_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = LoopHarness()
    for version in (1, 2):
        await loop.put_and_run(placement=None, version=version)
    assert len(caplog.records) == 1
    manifest = manifests.binding("web", placement=None, version=3)
    manifest["metadata"]["uid"] = "another"
    await loop.decide(manifest)
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("placement", "reason"),
    [
        (DIVIDED, "Don't need to schedule"),
        ({}, "Start to schedule"),
    ],
    ids=["divided", "duplicated"],
)
async def test_a_binding_that_needs_no_change_is_logged_at_verbosity_3_only(
    placement: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}, **placement}
    manifest = manifests.binding("web", placement=placement, clusters=[{"name": "m1", "replicas": 2}])
    manifest["metadata"]["annotations"] = {APPLIED_PLACEMENT_ANNOTATION: json.dumps(placement)}
    for level, logged in ((logging.INFO, 0), (logs.V3, 1)):
        loop = LoopHarness()
        loop.bindings.put(Binding.from_manifest(manifest))
        loop.queue.add(BindingKey("ResourceBinding", "demo", "web"))
        caplog.clear()
        caplog.set_level(level, "karmada_pyscheduler.scheduler")
        await loop.run()
        assert [reason in each.message for each in caplog.records].count(True) == logged


async def test_deleted_bindings_without_a_placement_do_not_accumulate() -> None:
    loop = LoopHarness()
    for number in range(20):
        key = await loop.put_and_run(f"web-{number}", placement=None)
        loop.bindings.discard(key)
    assert len(loop.scheduler._missing_placements) <= 2


async def test_a_deleted_binding_without_a_placement_is_forgotten() -> None:
    loop = LoopHarness()
    key = await loop.put_and_run(placement=None)
    loop.bindings.discard(key)
    loop.queue.add(key)
    await loop.run()
    assert len(loop.scheduler._missing_placements) == 0


async def test_a_deleted_binding_is_forgotten_by_the_binding_cycle() -> None:
    loop = LoopHarness()
    key = loop.put()
    loop.bindings.discard(key)
    await loop.run()
    assert loop.cycle.forgotten == ["web"]


async def test_a_failed_binding_is_retried_after_its_delay() -> None:
    loop = LoopHarness()
    loop.cycle.results = [AttemptOutcome(Action.RETRY, SchedulingError("no"))]
    key = await loop.put_and_run()
    assert loop.queue.delayed == 1
    assert loop.queue._requeues.get(key, 0) == 1
    assert loop.sample("schedule_attempts_total", result="error", schedule_type="ReconcileSchedule") == 1
    assert loop.sample("queue_incoming_bindings_total", event="ScheduleAttemptFailure") == 1
    loop.now += 1
    await loop.run()
    assert len(loop.cycle.bound) == 2
    assert loop.queue._requeues.get(key, 0) == 0


async def test_a_binding_that_is_only_to_be_checked_later_has_no_backoff_from_earlier_failures() -> None:
    loop = LoopHarness()
    later = AttemptOutcome(Action.CHECK_LATER, delay=5.0)
    loop.cycle.results = [AttemptOutcome(Action.RETRY, SchedulingError("no")), later]
    key = await loop.put_and_run()
    assert loop.queue._requeues.get(key, 0) == 1
    loop.now += 1
    await loop.run()
    assert loop.queue._requeues.get(key, 0) == 0
    assert loop.queue.seconds_to_next() == 5.0


async def test_a_binding_that_no_cluster_fits_counts_as_scheduled_as_upstream() -> None:
    loop = LoopHarness()
    loop.clusters.discard("m1")
    loop.clusters.discard("m2")
    loop.put()
    loop.cycle.results = [AttemptOutcome(error=FitError(0, Diagnosis()))]
    await loop.run()
    assert isinstance(loop.cycle.bound[0].error, FitError)
    assert loop.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1
    assert loop.queue.delayed == 0


async def test_a_write_that_ends_without_an_outcome_is_tried_again() -> None:
    loop = LoopHarness()
    loop.cycle.results = [GeneratorExit()]  # no Exception, as a plugin may raise
    key = await loop.put_and_run()
    assert loop.queue.processing == 0
    assert loop.queue.holds(key)


async def test_a_delay_that_the_server_requested_is_kept() -> None:
    loop = LoopHarness()
    loop.cycle.results = [AttemptOutcome(Action.RETRY, SchedulingError("later"), 30.0)]
    await loop.put_and_run()
    assert loop.queue.seconds_to_next() == 30.0


async def test_a_binding_that_changed_is_decided_again_at_once() -> None:
    loop = LoopHarness()
    loop.cycle.results = [AttemptOutcome(Action.DECIDE_AGAIN)]
    await loop.put_and_run()
    assert len(loop.cycle.bound) == 2
    assert loop.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1


async def test_further_conflicts_in_a_row_are_followed_by_a_backoff(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    loop = LoopHarness()
    loop.cycle.results = [AttemptOutcome(Action.DECIDE_AGAIN)] * 3
    key = await loop.put_and_run()
    assert (len(loop.cycle.bound), loop.queue.delayed) == (2, 1)
    assert loop.queue._requeues.get(key, 0) == 1
    assert "conflicts again" not in caplog.text
    for bound in (3, 4):
        loop.now += 1
        await loop.run()
        assert len(loop.cycle.bound) == bound
    assert caplog.text.count("conflicts again") == 1
    assert loop.queue._requeues.get(key, 0) == 0
    loop.cycle.results = [AttemptOutcome(Action.DECIDE_AGAIN)]
    await loop.put_and_run(version=2)
    assert len(loop.cycle.bound) == 6


@pytest.mark.parametrize("limit", [1, 3])
async def test_writes_of_different_bindings_overlap_up_to_max_in_flight(limit: int) -> None:
    loop = LoopHarness(max_in_flight=limit)
    loop.cycle.gate.clear()
    for name in "abcde":
        loop.put(name)
    await loop.run()
    assert loop.cycle.most_under_way == limit
    loop.cycle.gate.set()
    await loop.scheduler.drain(timeout=1)
    await loop.run()
    assert len(loop.cycle.bound) == 5
    assert loop.cycle.most_under_way == limit


async def test_a_binding_that_waits_for_its_status_has_no_slot() -> None:
    loop = LoopHarness(max_in_flight=1)
    loop.cycle.status_gate.clear()
    for name in "abc":
        loop.put(name)
    await loop.run()
    assert len(loop.cycle.bound) == 3
    assert loop.cycle.most_under_way == 1
    assert loop.queue.processing == 3
    loop.now = 7.0
    loop.cycle.status_gate.set()
    await loop.run()
    assert loop.queue.processing == 0
    labels = {"result": "scheduled", "schedule_type": "ReconcileSchedule"}
    assert loop.sample("e2e_scheduling_duration_seconds_count", **labels) == 3
    assert loop.sample("e2e_scheduling_duration_seconds_sum", **labels) == 0


async def test_an_attempt_without_a_result_keeps_its_slot_until_its_status_is_written() -> None:
    loop = LoopHarness(max_in_flight=1)
    loop.cycle.writes_result = False
    loop.cycle.status_gate.clear()
    for name in "ab":
        loop.put(name)
    await loop.run()
    assert [decision.key.name for decision in loop.cycle.bound] == ["a"]
    loop.cycle.status_gate.set()
    await loop.run()
    assert [decision.key.name for decision in loop.cycle.bound] == ["a", "b"]


async def test_a_member_of_a_workload_group_waits_for_results_and_not_for_statuses() -> None:
    loop = LoopHarness(feature_gates=gates(WorkloadAffinity=True))
    loop.cycle.gate.clear()
    loop.cycle.status_gate.clear()
    loop.put("a")
    loop.put("b", workloadAffinityGroups={"affinityGroup": "g"})
    running = asyncio.create_task(loop.scheduler.run())
    await _run_pending_tasks()
    assert len(loop.cycle.bound) == 1
    loop.cycle.gate.set()
    await _run_pending_tasks()
    assert len(loop.cycle.bound) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_binding_without_a_workload_group_waits_for_no_results() -> None:
    loop = LoopHarness(feature_gates=gates(WorkloadAffinity=True))
    loop.cycle.gate.clear()
    loop.put("a")
    await loop.put_and_run("b")
    assert len(loop.cycle.bound) == 2


async def test_a_member_of_a_workload_group_that_waits_at_the_stop_stays_queued() -> None:
    loop = LoopHarness(feature_gates=gates(WorkloadAffinity=True))
    loop.cycle.gate.clear()
    loop.put("a")
    key = await loop.put_and_run("b", workloadAffinityGroups={"affinityGroup": "g"})
    assert loop.queue.processing == 1
    assert loop.queue.pop() == (key, 0.0)


async def test_two_writes_of_one_binding_never_overlap() -> None:
    loop = LoopHarness()
    loop.cycle.gate.clear()
    key = await loop.put_and_run()
    loop.queue.add(key)
    await loop.run()
    assert len(loop.cycle.bound) == 1
    loop.cycle.gate.set()
    await loop.run()
    assert len(loop.cycle.bound) == 2


async def test_an_unexpected_error_retries_its_binding_and_affects_no_other() -> None:
    loop = LoopHarness()
    loop.cycle.results = [ValueError("a bug")]
    loop.put("a")
    await loop.put_and_run("b")
    assert [str(decision.key) for decision in loop.cycle.bound] == ["demo/a", "demo/b"]
    assert loop.queue.delayed == 1
    assert loop.queue.processing == 0


async def test_a_stop_waits_for_writes_and_cancels_those_that_hang() -> None:
    loop = LoopHarness()
    loop.cycle.gate.clear()
    await loop.put_and_run()
    await loop.scheduler.drain(timeout=0.01)
    await _run_pending_tasks()
    assert loop.queue.processing == 0


class Slow:
    """A filter that takes some seconds at its first call for each binding."""

    name = "Slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.loop: LoopHarness
        self._met: set[BindingKey] = set()

    def filter(self, context: FilterContext, /) -> Result:
        key = context.cycle.binding.key
        if key not in self._met:
            self._met.add(key)
            self.loop.now += self.seconds
        return SUCCESS


@pytest.mark.parametrize(
    ("blocked", "pauses"),
    [(0.001, []), (0.1, [0.0, 0.0]), (0.3, [0.25, 0.25]), (30.0, [0.25, 0.25])],
)
async def test_a_decision_that_blocked_the_event_loop_is_followed_by_a_pause(
    blocked: float, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    yield_once = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await yield_once(0)

    monkeypatch.setattr("karmada_pyscheduler.scheduler.scheduler.asyncio.sleep", sleep)
    slow = Slow(blocked)
    loop = slow.loop = LoopHarness(slow)
    for name in ("a", "b"):
        loop.put(name)
    task = asyncio.create_task(loop.scheduler.run())
    for _ in range(50):
        await yield_once(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert slept == pytest.approx(pauses)


async def test_a_delay_that_a_plugin_requested_is_kept_unless_the_plugin_was_replaced() -> None:
    loop = LoopHarness()
    error = PluginError("it took too long", retry_after=30.0)
    loop.cycle.results = [AttemptOutcome(Action.RETRY, error, 30.0)]
    await loop.put_and_run()
    assert loop.queue.delayed == 1
    assert loop.queue.seconds_to_next() == 30.0

    loop.cycle.on_bind = lambda _: loop.profiles.replace({"ours": framework()})
    loop.cycle.results = [AttemptOutcome(Action.RETRY, SchedulingError("busy"), 20.0)]
    await loop.put_and_run("refused by the server")
    assert loop.queue.seconds_to_next() == 20.0

    loop.cycle.results = [AttemptOutcome(Action.RETRY, error, 30.0)]
    await loop.put_and_run("other")
    assert loop.queue.delayed == 3
    assert loop.queue.seconds_to_next() == pytest.approx(0.005)


async def test_events_wait_until_the_queue_is_empty() -> None:
    loop = LoopHarness(max_in_flight=1)
    loop.cycle.gate.clear()
    for name in "abc":
        loop.put(name)
    running = asyncio.create_task(loop.scheduler.run())
    for _ in range(20):
        await asyncio.sleep(0)
    idle = asyncio.create_task(loop.queue.wait_idle(timeout=5))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not idle.done()
    loop.cycle.gate.set()
    await idle
    assert len(loop.cycle.bound) == 3
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class _Expensive:
    """A filter that takes CPU time in each named affinity term."""

    name = "Expensive"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def filter(self, context: FilterContext, /) -> Result:
        if context.cycle.affinity_name:
            self.now += self.seconds
            return Result.unschedulable("expensive")
        return SUCCESS


_TERMS = {"clusterAffinities": [{"affinityName": f"t{number}"} for number in range(150)]}


async def test_other_bindings_are_decided_during_a_long_decision() -> None:
    thinks = _Expensive(0.03)
    loop = LoopHarness(thinks, clock=thinks.clock)
    loop.put("long", placement=_TERMS)
    await loop.put_and_run("short")
    assert [decision.key.name for decision in loop.cycle.bound] == ["short"]
    await loop.scheduler.drain(timeout=5)
    assert [decision.key.name for decision in loop.cycle.bound] == ["short", "long"]
    assert isinstance(loop.cycle.bound[1].error, FitError)


async def test_a_decision_that_exceeds_its_budget_is_retried_after_growing_delays() -> None:
    thinks = _Expensive(0.5)
    loop = LoopHarness(thinks, clock=thinks.clock)
    late = OverBudgetError("the decision took longer")
    loop.cycle.results = [AttemptOutcome(Action.RETRY, late), AttemptOutcome(Action.RETRY, late), DONE]
    loop.put("long", placement=_TERMS)
    pauses = []
    for _ in range(2):
        await loop.run()
        await loop.scheduler.drain(timeout=5)
        pauses.append(loop.queue.seconds_to_next())
        loop.now += pauses[-1] or 0.0
    assert pauses == [10.0, 20.0]
    assert all(isinstance(decision.error, OverBudgetError) for decision in loop.cycle.bound)
    assert all(decision.targets is None for decision in loop.cycle.bound)
    await loop.run()
    await loop.scheduler.drain(timeout=5)
    assert loop.scheduler._failure_handler._over_budget_delays == {}


async def test_with_overcommit_protection_no_binding_is_decided_during_a_long_decision() -> None:
    on = gates(SchedulingOvercommitProtection=True)
    thinks = _Expensive(0.03)
    loop = LoopHarness(
        thinks, clock=thinks.clock, feature_gates=on, assumed=AssumedPlacements(clock=lambda: 0.0, ttl=300.0)
    )
    await loop.put_and_run("long", placement=_TERMS)
    await loop.put_and_run("short")
    assert loop.cycle.bound == []
    await loop.scheduler.drain(timeout=5)
    assert [decision.key.name for decision in loop.cycle.bound] == ["long", "short"]


class OnlySpace:
    """Accepts workloads of type space; reads the workload at PreEnqueue and Filter."""

    name = "OnlySpace"
    needs_workload = True

    def __init__(self) -> None:
        self.gated: list[str] = []

    def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
        self.gated.append(context.workload_problem or (context.workload or _NO_WORKLOAD).name)
        return SUCCESS

    def filter(self, context: FilterContext, /) -> Result:
        workload = context.workload
        if workload is None:
            return Result.error(context.workload_problem)
        is_space = workload.annotations.get("type") == "space"
        return SUCCESS if is_space else Result.unschedulable("not of type space")


_NO_WORKLOAD = Workload("", "", "", "")
_SATELLITE = Workload("apps/v1", "Deployment", "demo", "sat", annotations={"type": "space"})


async def test_plugins_see_the_workload_at_pre_enqueue_and_at_filter() -> None:
    plugin = OnlySpace()
    loop = LoopHarness(plugin, find_workload=lambda _: WorkloadAnswer(_SATELLITE))
    await loop.put_and_run()
    [decision] = loop.cycle.bound
    assert (decision.error, plugin.gated) == (None, ["sat"])


async def test_a_binding_whose_workload_is_unknown_is_checked_later_and_blocks_no_other() -> None:
    found: dict[str, WorkloadAnswer | NotSynced] = {"web": NotSynced(3.0), "api": WorkloadAnswer(_SATELLITE)}
    loop = LoopHarness(OnlySpace(), find_workload=lambda binding: found[binding.key.name], max_in_flight=1)
    loop.put("web")
    await loop.put_and_run("api")
    assert [each.key.name for each in loop.cycle.bound] == ["api"]
    assert (loop.queue.processing, loop.queue.delayed) == (0, 1)
    loop.now = 3.1
    found["web"] = WorkloadAnswer(problem="it was not read in time")
    await loop.run()
    assert "it was not read in time" in str(loop.cycle.bound[1].error)


async def test_an_activation_is_kept_until_the_workload_is_known() -> None:
    class Gate(OnlySpace):
        def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
            return Result.unschedulable("not yet")

    found: list[WorkloadAnswer | NotSynced] = [NotSynced(3.0), WorkloadAnswer(_SATELLITE)]
    loop = LoopHarness(Gate(), find_workload=lambda _: found.pop(0))
    key = loop.put()
    loop.gate.activate(key)
    await loop.run()
    loop.now = 3.1
    await loop.run()
    assert [each.error for each in loop.cycle.bound] == [None]


async def test_workloads_are_not_read_if_no_plugin_needs_them() -> None:
    class WithoutWorkload(OnlySpace):
        needs_workload = False

        def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
            return SUCCESS

    looked_up: list[Binding] = []

    def find_workload(binding: Binding) -> WorkloadAnswer:
        looked_up.append(binding)
        return WorkloadAnswer(_SATELLITE)

    loop = LoopHarness(WithoutWorkload(), find_workload=find_workload)
    await loop.put_and_run()
    [decision] = loop.cycle.bound
    assert looked_up == []
    assert (
        "UndeclaredWorkloadError: the workload is not read: no plugin of this profile has needs_workload"
        in str(decision.error)
    )


def settled(**fields: Any) -> dict[str, Any]:
    """Return a Divided binding for which nothing asks for a decision."""
    placement = fields.pop("placement", DIVIDED)
    manifest = manifests.binding("web", placement=placement, **fields)
    manifest["metadata"]["annotations"] = {
        APPLIED_PLACEMENT_ANNOTATION: Placement.from_manifest(placement).to_json()
    }
    return manifest


async def test_a_cluster_that_is_listed_twice_is_written_once_with_the_sum_of_its_replicas() -> None:
    loop = LoopHarness()
    twice = [{"name": "m2", "replicas": 1}, {"name": "m1", "replicas": 1}, {"name": "m2", "replicas": 2}]
    manifest = settled(replicas=4, clusters=twice)
    await loop.decide(manifest)
    (decision,) = loop.cycle.bound
    assert decision.targets == (TargetCluster("m2", 3), TargetCluster("m1", 1))
    assert (decision.applied_placement, decision.error) == (
        Binding.from_manifest(manifest).applied_placement_json,
        None,
    )
    assert loop.cycle.observed == []
    assert loop.sample("schedule_attempts_total", result="scheduled", schedule_type="ScaleSchedule") == 1


@pytest.mark.parametrize(
    ("conditions", "decided"),
    [([], 1), ([{"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}], 0)],
)
async def test_a_binding_that_was_decided_and_has_no_condition_is_decided_again(
    conditions: list[dict[str, str]], decided: int
) -> None:
    loop = LoopHarness()
    manifest = settled(replicas=0, replicaRequirements={"resourceRequest": {"cpu": "1"}})
    manifest["status"] = {"conditions": conditions}
    await loop.decide(manifest)
    assert len(loop.cycle.bound) == decided
    assert loop.cycle.observed == ["web"] * (1 - decided)


async def test_the_affinity_term_of_a_result_is_reported_with_its_generation() -> None:
    loop = LoopHarness()
    terms = [{"affinityName": "one", "clusterNames": ["m1"]}, {"affinityName": "two", "clusterNames": ["m2"]}]
    manifest = settled(
        placement={"clusterAffinities": terms, **DIVIDED}, clusters=[{"name": "m2", "replicas": 2}]
    )
    manifest["status"] = {"schedulerObservingAffinityName": "one"}
    await loop.decide(manifest)
    assert loop.cycle.observed == ["web two"]


@pytest.mark.parametrize("gone", [False, True])
async def test_a_binding_whose_cluster_was_deleted_during_the_write_is_decided_again(*, gone: bool) -> None:
    loop = LoopHarness()
    key = loop.put(placement=DIVIDED, clusters=[{"name": "m1", "replicas": 1}])
    loop.cycle.gate.clear()
    await loop.run()
    assert len(loop.cycle.bound) == 1
    if gone:
        loop.clusters.remove("m1", 99)
    loop.cycle.gate.set()
    await _run_pending_tasks()
    assert loop.queue.holds(key) == gone
