"""The loop: what becomes of a key."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.binding_cycle.writer import DONE, Outcome
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import SUCCESS, FilterContext, Plugin, PluginError, PreEnqueueContext, Result
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, OverBudgetError, SchedulingError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduling_queue.work_queue import RetryLimits, SchedulingQueue, WaitingQueue
from karmada_scheduler.testing import cluster, framework, gates
from tests import manifests


class Cycle:
    """Writes nothing; answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.bound: list[Decision] = []
        self.observed: list[str] = []
        self.deleting: list[str] = []
        self.forgotten: list[str] = []
        self.observations: list[Outcome] = []
        self.outcomes: list[Outcome | Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.status_gate = asyncio.Event()
        self.status_gate.set()
        self.at_once = 0
        self.most_at_once = 0
        self.on_bind: Callable[[Decision], None] = lambda _: None

    def has_work(self, binding: Binding, decision: Decision) -> bool:
        return decision.targets != binding.spec.clusters or decision.error is not None

    def changes_result(self, binding: Binding, decision: Decision) -> bool:
        return decision.targets is not None

    def is_observed(self, binding: Binding) -> bool:
        return False

    def passage(self, *_: object) -> None:
        return None

    async def bind(
        self,
        binding: Binding,
        decision: Decision,
        passage: BindingTransaction | None,
        *,
        stored: Callable[[], None],
    ) -> Outcome:
        self.bound.append(decision)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        self.on_bind(decision)
        stored()
        await self.status_gate.wait()
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def observe(self, binding: Binding) -> Outcome:
        self.observed.append(binding.key.name)
        return self.observations.pop(0) if self.observations else DONE

    def forget(self, key: BindingKey) -> None:
        self.forgotten.append(key.name)

    def warn_deleting(self, binding: Binding) -> None:
        self.deleting.append(binding.key.name)


class World:
    """A running loop over caches that a test fills."""

    def __init__(
        self,
        *plugins: Plugin,
        clock: Callable[[], float] = lambda: 0.0,
        assumed: AssumedPlacements | None = None,
        look_up: Callable[[Binding], WorkloadAnswer | NotSynced] = lambda _: WorkloadAnswer(
            problem="unknown"
        ),
        **options: Any,
    ) -> None:
        self.now = 0.0
        self.waiting = WaitingBindings()
        self.queue: SchedulingQueue[BindingKey] = SchedulingQueue(
            limits=RetryLimits(), clock=lambda: self.now
        )
        self.bindings = BindingCache()
        self.clusters = ClusterCache()
        for name in ("m1", "m2"):
            manifest = cluster(name).manifest()
            self.clusters.put(type(cluster(name).build()).from_manifest(_versioned(manifest)))
        self.metrics = Metrics()
        self.cycle = Cycle()
        self.profiles = Profiles({"ours": framework(*plugins, select=["ClusterAffinity"])})
        self.scheduler = Scheduler(
            options=Options(scheduler_name="ours", **options),
            queue=WaitingQueue(self.queue),
            bindings=self.bindings,
            clusters=self.clusters,
            profiles=self.profiles,
            waiting=self.waiting,
            estimators=[],
            metrics=self.metrics,
            clock=lambda: self.now,
            new_budget=lambda: Budget(clock, clock),
            assumed=assumed,
            look_up=look_up,
        )

    def put(self, name: str = "web", **fields: Any) -> BindingKey:
        binding = Binding.from_manifest(manifests.binding(name, **fields))
        self.bindings.put(binding)
        self.queue.add(binding.key)
        return binding.key

    async def run(self) -> None:
        """Let the loop run until it waits."""
        task = asyncio.create_task(self.scheduler.run(self.cycle))  # type: ignore[arg-type]
        await _a_while()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"karmada_scheduler_{name}", labels) or 0.0


async def _a_while() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def _versioned(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "1"}}


async def test_a_binding_is_decided_and_handed_to_the_cycle() -> None:
    world = World()
    world.put()
    await world.run()
    [decision] = world.cycle.bound
    assert [target.name for target in decision.targets or ()] == ["m1", "m2"]
    assert world.sample("classified_bindings_total", schedule_class="First") == 1
    assert world.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1
    assert world.queue.in_progress == 0


async def test_a_binding_that_is_gone_or_not_ours_is_forgotten() -> None:
    world = World()
    world.queue.add(BindingKey("ResourceBinding", "demo", "gone"))
    world.put(schedulerName="theirs")
    await world.run()
    assert world.cycle.bound == []
    assert world.queue.in_progress == 0


async def test_a_binding_that_no_policy_claims_any_more_is_decided_when_something_woke_it() -> None:
    world = World()
    manifest = manifests.binding()
    del manifest["metadata"]["labels"]
    world.bindings.put(Binding.from_manifest(manifest))
    world.queue.add(BindingKey("ResourceBinding", "demo", "web-deployment"))
    await world.run()
    assert len(world.cycle.bound) == 1


@pytest.mark.parametrize(("claimed", "passes"), [(True, 2), (False, 1)])
async def test_a_decision_is_settled_if_its_own_write_would_wake_the_binding(
    *, claimed: bool, passes: int
) -> None:
    """As upstream, which comes to rest in as many steps; the order of clusters shows it (fuzz-loop, seed 17)."""
    world = World()
    manifest = manifests.binding(
        placement={"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, clusters=[{"name": "m2"}]
    )
    if not claimed:
        del manifest["metadata"]["labels"]
    world.bindings.put(Binding.from_manifest(manifest))
    world.queue.add(BindingKey("ResourceBinding", "demo", "web-deployment"))
    await world.run()
    [decision] = world.cycle.bound
    assert len(decision.attempts) == passes


async def test_a_binding_that_is_being_deleted_is_told_of_and_left_alone() -> None:
    world = World()
    manifest = manifests.binding()
    manifest["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    world.bindings.put(Binding.from_manifest(manifest))
    world.queue.add(BindingKey("ResourceBinding", "demo", "web-deployment"))
    await world.run()
    assert world.cycle.deleting == ["web-deployment"]
    assert world.cycle.bound == []


async def test_a_claimed_binding_without_placement_is_left_alone_until_it_has_one() -> None:
    world = World()
    world.put(placement=None)
    await world.run()
    world.put(version=2, generation=2)
    await world.run()
    assert len(world.cycle.bound) == 1


async def test_each_binding_without_placement_is_told_of_once_also_one_that_takes_the_name_of_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    for version in (1, 2):
        world.put(placement=None, version=version)
        await world.run()
    assert len(caplog.records) == 1
    manifest = manifests.binding("web", placement=None, version=3)
    manifest["metadata"]["uid"] = "another"
    world.bindings.put(Binding.from_manifest(manifest))
    world.queue.add(BindingKey("ResourceBinding", "demo", "web"))
    await world.run()
    assert len(caplog.records) == 2


async def test_what_was_told_of_bindings_that_are_gone_is_forgotten() -> None:
    world = World()
    for number in range(20):
        key = world.put(f"web-{number}", placement=None)
        await world.run()
        world.bindings.discard(key)
    assert len(world.scheduler._complained) <= 2


async def test_a_binding_that_is_gone_is_forgotten_by_the_cycle() -> None:
    world = World()
    key = world.put()
    world.bindings.discard(key)
    await world.run()
    assert world.cycle.forgotten == ["web"]


async def test_a_failed_binding_is_retried_after_its_delay() -> None:
    world = World()
    world.cycle.outcomes = [Outcome(SchedulingError("no"), retry=True)]
    key = world.put()
    await world.run()
    assert world.queue.delayed == 1
    assert world.queue.failures(key) == 1
    assert world.sample("schedule_attempts_total", result="error", schedule_type="ReconcileSchedule") == 1
    assert world.sample("queue_incoming_bindings_total", event="ScheduleAttemptFailure") == 1
    world.now += 1
    await world.run()
    assert len(world.cycle.bound) == 2
    assert world.queue.failures(key) == 0


async def test_finding_no_cluster_counts_as_scheduled_as_upstream() -> None:
    world = World()
    world.clusters.discard("m1")
    world.clusters.discard("m2")
    world.put()
    world.cycle.outcomes = [Outcome(FitError(0, Diagnosis()))]
    await world.run()
    assert isinstance(world.cycle.bound[0].error, FitError)
    assert world.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1
    assert world.queue.delayed == 0


@pytest.mark.parametrize(
    ("replicas", "claimed", "observed"),
    [
        pytest.param(0, True, ["web"], id="nothing is left to do"),
        pytest.param(2, True, [], id="replicas are missing"),
        pytest.param(0, False, [], id="no change of its own wakes it"),
    ],
)
async def test_a_binding_without_replicas_that_loses_its_clusters_needs_nothing_after_that(
    replicas: int, *, claimed: bool, observed: list[str]
) -> None:
    """As upstream, which is woken by its own write."""
    world = World()
    manifest = manifests.binding(
        "web",
        replicas=replicas,
        replicaRequirements={"resourceRequest": {"cpu": "1"}},
        clusters=[{"name": "m1"}],
        placement={
            "clusterAffinity": {"clusterNames": ["nowhere"]},
            "replicaScheduling": {"replicaSchedulingType": "Divided"},
        },
    )
    if not claimed:
        del manifest["metadata"]["labels"]
    before = Binding.from_manifest(manifest)
    world.bindings.put(before)
    world.queue.add(before.key)

    def written(decision: Decision) -> None:
        cleared = {**manifest["spec"], "clusters": []}
        metadata = {
            **manifest["metadata"],
            "generation": before.generation + 1,
            "resourceVersion": "99",
            "annotations": {APPLIED_PLACEMENT_ANNOTATION: decision.applied_placement},
        }
        world.bindings.put_written(Binding.from_manifest({**manifest, "metadata": metadata, "spec": cleared}))

    world.cycle.on_bind = written
    world.cycle.outcomes.append(Outcome(FitError(2, Diagnosis())))
    world.cycle.observations.append(Outcome(SchedulingError("not answered"), retry=True))
    await world.run()
    assert world.cycle.observed == observed
    assert world.queue.delayed == len(observed), "what could not be noted is tried again"


async def test_a_pause_that_the_server_asked_for_is_kept() -> None:
    world = World()
    world.cycle.outcomes = [Outcome(SchedulingError("later"), retry=True, pause=30.0)]
    world.put()
    await world.run()
    assert world.queue.seconds_to_next() == 30.0


async def test_a_decision_on_an_outdated_binding_is_taken_again_at_once() -> None:
    world = World()
    world.cycle.outcomes = [Outcome(again=True)]
    world.put()
    await world.run()
    assert len(world.cycle.bound) == 2
    assert world.sample("schedule_attempts_total", result="scheduled", schedule_type="ReconcileSchedule") == 1


async def test_only_the_first_conflict_in_a_row_is_followed_by_another_decision_at_once() -> None:
    world = World()
    world.cycle.outcomes = [Outcome(again=True)] * 3
    key = world.put()
    await world.run()
    assert (len(world.cycle.bound), world.queue.delayed) == (2, 1)
    for bound in (3, 4):
        world.now += 1
        await world.run()
        assert len(world.cycle.bound) == bound
    assert world.queue.failures(key) == 0
    world.cycle.outcomes = [Outcome(again=True)]
    world.put(version=2)
    await world.run()
    assert len(world.cycle.bound) == 6


@pytest.mark.parametrize("limit", [1, 3])
async def test_writes_of_different_bindings_overlap_up_to_the_limit(limit: int) -> None:
    world = World(max_in_flight=limit)
    world.cycle.gate.clear()
    for name in "abcde":
        world.put(name)
    await world.run()
    assert world.cycle.most_at_once == limit
    world.cycle.gate.set()
    await world.scheduler.drain(timeout=1)
    await world.run()
    assert len(world.cycle.bound) == 5
    assert world.cycle.most_at_once == limit


async def test_what_waits_for_its_status_holds_up_no_other_binding() -> None:
    world = World(max_in_flight=1)
    world.cycle.status_gate.clear()
    for name in "abc":
        world.put(name)
    await world.run()
    assert len(world.cycle.bound) == 3
    assert world.cycle.most_at_once == 1
    assert world.queue.in_progress == 3
    world.now = 7.0
    world.cycle.status_gate.set()
    await world.run()
    assert world.queue.in_progress == 0
    labels = {"result": "scheduled", "schedule_type": "ReconcileSchedule"}
    assert world.sample("e2e_scheduling_duration_seconds_count", **labels) == 3
    assert world.sample("e2e_scheduling_duration_seconds_sum", **labels) == 0


async def test_a_member_of_a_group_waits_for_the_results_under_way_and_for_no_status() -> None:
    world = World(feature_gates=gates(WorkloadAffinity=True))
    world.cycle.gate.clear()
    world.cycle.status_gate.clear()
    world.put("a")
    world.put("b", workloadAffinityGroups={"affinityGroup": "g"})
    running = asyncio.create_task(world.scheduler.run(world.cycle))  # type: ignore[arg-type]
    await _a_while()
    assert len(world.cycle.bound) == 1
    world.cycle.gate.set()
    await _a_while()
    assert len(world.cycle.bound) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_stop_loses_no_member_of_a_group_that_waits() -> None:
    world = World(feature_gates=gates(WorkloadAffinity=True))
    world.cycle.gate.clear()
    world.put("a")
    key = world.put("b", workloadAffinityGroups={"affinityGroup": "g"})
    await world.run()
    assert world.queue.in_progress == 1
    assert world.queue.pop() == (key, 0.0)


async def test_two_writes_of_one_binding_never_overlap() -> None:
    world = World()
    world.cycle.gate.clear()
    key = world.put()
    await world.run()
    world.queue.add(key)
    await world.run()
    assert len(world.cycle.bound) == 1
    world.cycle.gate.set()
    await world.run()
    assert len(world.cycle.bound) == 2


async def test_a_cycle_that_fails_unexpectedly_costs_its_own_binding_a_retry_and_nothing_else() -> None:
    world = World()
    world.cycle.outcomes = [ValueError("a bug")]
    world.put("a")
    world.put("b")
    await world.run()
    assert [str(decision.key) for decision in world.cycle.bound] == ["demo/a", "demo/b"]
    assert world.queue.delayed == 1
    assert world.queue.in_progress == 0


async def test_a_stop_waits_for_writes_and_gives_up_on_those_that_hang() -> None:
    world = World()
    world.cycle.gate.clear()
    world.put()
    await world.run()
    await world.scheduler.drain(timeout=0.01)
    await asyncio.sleep(0)
    assert world.queue.in_progress == 0


class Stands:
    """A filter that stands for some seconds once for each binding."""

    name = "Stands"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.world: World
        self._met: set[BindingKey] = set()

    def filter(self, context: FilterContext, /) -> Result:
        key = context.cycle.binding.key
        if key not in self._met:
            self._met.add(key)
            self.world.now += self.seconds
        return SUCCESS


@pytest.mark.parametrize(
    ("stood", "rests"),
    [(0.001, []), (0.1, [0.0, 0.0]), (0.4, [0.4, 0.4]), (30.0, [1.0, 1.0])],
)
async def test_after_a_decision_that_held_up_the_loop_everybody_else_has_a_turn(
    stood: float, rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    turn = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await turn(0)

    monkeypatch.setattr("karmada_scheduler.scheduler.scheduler.asyncio.sleep", sleep)
    stands = Stands(stood)
    world = stands.world = World(stands)
    for name in ("a", "b"):
        world.put(name)
    task = asyncio.create_task(world.scheduler.run(world.cycle))  # type: ignore[arg-type]
    for _ in range(50):
        await turn(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert slept == pytest.approx(rests)


async def test_what_a_plugin_asks_to_wait_is_waited_unless_the_plugin_was_replaced() -> None:
    world = World()
    error = PluginError("it took too long", retry_after=30.0)
    world.cycle.outcomes = [Outcome(error, retry=True, pause=30.0)]
    world.put()
    await world.run()
    assert world.queue.delayed == 1
    assert world.queue.seconds_to_next() == 30.0

    world.cycle.outcomes = [Outcome(error, retry=True, pause=30.0)]
    world.cycle.on_bind = lambda _: world.profiles.replace({"ours": framework()})
    world.put("other")
    await world.run()
    assert world.queue.delayed == 2
    assert world.queue.seconds_to_next() == pytest.approx(0.005)


async def test_events_wait_until_no_binding_does() -> None:
    world = World(max_in_flight=1)
    world.cycle.gate.clear()
    for name in "abc":
        world.put(name)
    running = asyncio.create_task(world.scheduler.run(world.cycle))  # type: ignore[arg-type]
    for _ in range(20):
        await asyncio.sleep(0)
    moment = asyncio.create_task(world.scheduler.spare_moment())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not moment.done()
    world.cycle.gate.set()
    await moment
    assert len(world.cycle.bound) == 3
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class _Thinks:
    """A filter that takes CPU time for some bindings, in each affinity term."""

    name = "Thinks"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def filter(self, context: FilterContext, /) -> Result:
        if context.cycle.affinity_name:
            self.now += self.seconds
            return Result.unschedulable("thinks")
        return SUCCESS


_TERMS = {"clusterAffinities": [{"affinityName": f"t{number}"} for number in range(150)]}


async def test_while_a_decision_takes_long_others_are_taken() -> None:
    thinks = _Thinks(0.03)
    world = World(thinks, clock=thinks.clock)
    world.put("long", placement=_TERMS)
    world.put("short")
    await world.run()
    assert [decision.key.name for decision in world.cycle.bound] == ["short"]
    await world.scheduler.drain(timeout=5)
    assert [decision.key.name for decision in world.cycle.bound] == ["short", "long"]
    assert isinstance(world.cycle.bound[1].error, FitError)


async def test_a_decision_that_takes_too_long_is_tried_again_after_pauses_that_grow() -> None:
    thinks = _Thinks(0.5)
    world = World(thinks, clock=thinks.clock)
    late = OverBudgetError("the decision took longer")
    world.cycle.outcomes = [Outcome(late, retry=True), Outcome(late, retry=True), DONE]
    world.put("long", placement=_TERMS)
    pauses = []
    for _ in range(2):
        await world.run()
        await world.scheduler.drain(timeout=5)
        pauses.append(world.queue.seconds_to_next())
        world.now += pauses[-1] or 0.0
    assert pauses == [10.0, 20.0]
    assert all(isinstance(decision.error, OverBudgetError) for decision in world.cycle.bound)
    assert all(decision.targets is None for decision in world.cycle.bound)
    await world.run()
    await world.scheduler.drain(timeout=5)
    assert world.scheduler._pauses == {}


async def test_where_placements_are_assumed_a_long_decision_is_the_only_one_meanwhile() -> None:
    on = gates(SchedulingOvercommitProtection=True)
    thinks = _Thinks(0.03)
    world = World(thinks, clock=thinks.clock, feature_gates=on, assumed=AssumedPlacements(clock=lambda: 0.0))
    world.put("long", placement=_TERMS)
    await world.run()
    world.put("short")
    await world.run()
    assert world.cycle.bound == []
    await world.scheduler.drain(timeout=5)
    assert [decision.key.name for decision in world.cycle.bound] == ["long", "short"]


class OnlySpace:
    """Takes what is of type space; asks at every point that it has."""

    name = "OnlySpace"
    needs_workload = True

    def __init__(self) -> None:
        self.gated: list[str] = []

    def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
        self.gated.append(context.workload_problem or (context.workload or _NOBODY).name)
        return SUCCESS

    def filter(self, context: FilterContext, /) -> Result:
        workload = context.workload
        if workload is None:
            return Result.error(context.workload_problem)
        is_space = workload.annotations.get("type") == "space"
        return SUCCESS if is_space else Result.unschedulable("not of type space")


_NOBODY = Workload("", "", "", "")
_SATELLITE = Workload("apps/v1", "Deployment", "demo", "sat", annotations={"type": "space"})


async def test_plugins_see_the_workload_before_and_in_a_decision() -> None:
    plugin = OnlySpace()
    world = World(plugin, look_up=lambda _: WorkloadAnswer(_SATELLITE))
    world.put()
    await world.run()
    [decision] = world.cycle.bound
    assert (decision.error, plugin.gated) == (None, ["sat"])


async def test_a_binding_whose_workload_is_not_known_yet_is_parked_and_holds_up_no_other() -> None:
    found: dict[str, WorkloadAnswer | NotSynced] = {"web": NotSynced(3.0), "api": WorkloadAnswer(_SATELLITE)}
    world = World(OnlySpace(), look_up=lambda binding: found[binding.key.name], max_in_flight=1)
    world.put("web")
    world.put("api")
    await world.run()
    assert [each.key.name for each in world.cycle.bound] == ["api"]
    assert (world.queue.in_progress, world.queue.delayed) == (0, 1)
    world.now = 3.1
    found["web"] = WorkloadAnswer(problem="it was not read in time")
    await world.run()
    assert "it was not read in time" in str(world.cycle.bound[1].error)


async def test_a_binding_that_was_activated_stays_so_while_its_workload_is_awaited() -> None:
    class Gate(OnlySpace):
        def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
            return Result.unschedulable("not yet")

    found: list[WorkloadAnswer | NotSynced] = [NotSynced(3.0), WorkloadAnswer(_SATELLITE)]
    world = World(Gate(), look_up=lambda _: found.pop(0))
    key = world.put()
    world.scheduler.activate(key)
    await world.run()
    world.now = 3.1
    await world.run()
    assert [each.error for each in world.cycle.bound] == [None]


async def test_nobody_looks_for_workloads_where_no_plugin_needs_them() -> None:
    class Careless(OnlySpace):
        needs_workload = False

        def pre_enqueue(self, context: PreEnqueueContext, /) -> Result:
            return SUCCESS

    asked: list[Binding] = []

    def look_up(binding: Binding) -> WorkloadAnswer:
        asked.append(binding)
        return WorkloadAnswer(_SATELLITE)

    world = World(Careless(), look_up=look_up)
    world.put()
    await world.run()
    [decision] = world.cycle.bound
    assert asked == []
    assert (
        "UndeclaredWorkloadError: the workload is not read: no plugin of this profile has needs_workload"
        in str(decision.error)
    )
