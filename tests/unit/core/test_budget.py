"""The time of a decision: slices of the event loop, and CPU time in total."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from karmada_scheduler.api.binding import Binding, Component
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core import checks
from karmada_scheduler.core.available_replicas import Estimators, available_replicas
from karmada_scheduler.core.budget import Budget, BudgetedCoroutine, WaitsError, begin, run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import FilterContext, Result, ScoreContext, Snapshot
from karmada_scheduler.framework.diagnosis import FitError, OverBudgetError
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster, framework, gates


class Clock:
    """A clock of CPU time that a test advances, or that advances at every reading."""

    def __init__(self, *, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture(autouse=True)
def _five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada_scheduler.core.budget.SECONDS", 5.0)


def _budget(clock: Clock) -> Budget:
    return Budget(clock, clock)


async def _work(clock: Clock, budget: Budget, *steps: float) -> str:
    for seconds in steps:
        clock.now += seconds
        await budget.yield_if_due()
    return "done"


async def test_the_time_before_a_decision_does_not_count() -> None:
    clock = Clock()
    clock.now = 1000.0
    budget = _budget(clock)
    unfinished = begin(_work(clock, budget, 0.03, 0.03), budget)
    assert isinstance(unfinished, BudgetedCoroutine)
    assert await unfinished == "done"


def test_a_decision_shorter_than_a_slice_runs_at_once() -> None:
    clock = Clock()
    budget = _budget(clock)
    assert begin(_work(clock, budget, 0.01, 0.005), budget) == "done"


async def test_a_longer_decision_continues_as_a_task_and_yields() -> None:
    clock = Clock()
    budget = _budget(clock)
    unfinished = begin(_work(clock, budget, *[0.03] * 5), budget)
    assert isinstance(unfinished, BudgetedCoroutine)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    assert await unfinished == "done"
    other.cancel()
    assert turns >= 4
    assert budget.used == pytest.approx(0.15)


async def test_waiting_time_does_not_count() -> None:
    clock = Clock()
    budget = _budget(clock)

    async def waits() -> str:
        clock.now += 1
        await asyncio.sleep(0)
        clock.now += 1
        await budget.yield_if_due()
        return "answered"

    async def passes() -> None:
        clock.now += 100

    task = asyncio.create_task(passes())
    assert await BudgetedCoroutine(waits(), budget) == "answered"
    await task
    assert budget.used == pytest.approx(2)


async def test_a_decision_over_its_budget_ends_with_an_error() -> None:
    clock = Clock()
    budget = _budget(clock)
    with pytest.raises(OverBudgetError, match=r"^the decision took longer than 5s of CPU time$"):
        await BudgetedCoroutine(_work(clock, budget, *[1.0] * 9), budget)
    assert clock.now == 6


def test_a_coroutine_that_does_io_needs_an_event_loop() -> None:
    budget = _budget(Clock())
    with pytest.raises(WaitsError):
        begin(asyncio.sleep(0), budget)


async def test_cancelling_the_task_cancels_the_coroutine() -> None:
    clock = Clock()
    budget = _budget(clock)
    ends: list[str] = []

    async def long() -> None:
        try:
            await _work(clock, budget, *[0.03] * 10)
        finally:
            ends.append("ended")

    task = asyncio.create_task(_awaited(BudgetedCoroutine(long(), budget)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == ["ended"]


async def _awaited(paced: BudgetedCoroutine[None]) -> None:
    await paced


class Slow:
    """A filter that takes some CPU time and refuses all clusters."""

    name = "Slow"

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def filter(self, context: FilterContext, /) -> Result:
        self.clock.now += self.seconds
        self.calls += 1
        return Result.unschedulable("slow")


def _many_terms(count: int) -> Binding:
    builder = binding("w").replicas(2).on(m1=2)
    for number in range(count):
        builder.term(f"t{number}", "m1")
    return builder.build()


async def _decide(bound: Binding, clock: Clock, slow: Slow) -> Decision:
    budget = _budget(clock)
    snapshot = Snapshot.of([cluster("m1").build()])
    decision = SchedulingAlgorithm(gates(), []).decide(bound, snapshot, framework(slow), budget=budget)
    return await BudgetedCoroutine(decision, budget)


async def test_a_decision_over_its_budget_keeps_the_placement_and_moves_to_no_other_term() -> None:
    clock = Clock()
    slow = Slow(clock, 1.0)
    decision = await _decide(_many_terms(50), clock, slow)
    assert slow.calls == 6
    assert decision.targets is None
    assert decision.affinity_name is None
    assert isinstance(decision.error, OverBudgetError)
    assert str(decision.error) == (
        "the decision took longer than 5s of CPU time (affinity terms: 50, clusters: 1)"
    )


async def test_a_long_decision_within_its_budget_has_the_same_result() -> None:
    clock = Clock()
    decision = await _decide(_many_terms(5), clock, Slow(clock, 0.4))
    assert isinstance(decision.error, FitError)
    assert decision.targets == ()


async def test_counting_sets_of_components_yields_after_every_few_clusters() -> None:
    on = gates(MultiplePodTemplatesScheduling=True)
    builder = binding("w").component("a", 1, cpu=1).component("b", 1, cpu=1).spread("cluster", 1, 1)
    clusters = [cluster(f"m{number:03}").capacity(cpu=2 * (number + 1)).build() for number in range(50)]
    turns: list[None] = []

    async def turn() -> None:
        turns.append(None)

    async def estimates(
        estimator: GeneralEstimator, **kwargs: Callable[[], Awaitable[None]]
    ) -> Sequence[int]:
        spec = builder.build().spec
        return await available_replicas(
            spec, clusters, estimators=Estimators([estimator]), gates=on, assumed={}, **kwargs
        )

    assert await estimates(GeneralEstimator(on), yield_if_due=turn) == await estimates(GeneralEstimator(on))
    assert len(turns) == 4


def _requesting(count: int) -> BindingBuilder:
    return binding("w").replicas(1).request({f"example.com/r{n}": 1 for n in range(count)})


def _with_components(count: int, names: int) -> BindingBuilder:
    builder = binding("w")
    for number in range(count):
        builder.component(f"c{number}", 1, **{f"r{n}": 1 for n in range(names)})
    return builder


def _with_terms(count: int) -> BindingBuilder:
    builder = binding("w").replicas(1)
    for number in range(count):
        builder.term(f"t{number}", "m9")
    return builder


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(
            _requesting(8000),
            "spec.replicaRequirements.resourceRequest: 8000 resource names, at most 256 are supported",
            id="resource-names",
        ),
        pytest.param(
            _with_components(257, 0),
            "spec.components: 257 components, at most 256 are supported",
            id="components",
        ),
        pytest.param(
            _with_components(40, 7),
            "spec.components[*].replicaRequirements.resourceRequest: 280 resource names, at most 256 are supported",
            id="resource-names-of-components",
        ),
        pytest.param(
            _with_terms(1001),
            "spec.placement.clusterAffinities: 1001 affinity terms, at most 1000 are supported",
            id="terms",
        ),
    ],
)
def test_a_binding_over_the_limits_keeps_its_placement_and_the_error_names_the_field(
    made: BindingBuilder, text: str
) -> None:
    decision = _decided(made.on(m1=1).build())
    assert str(decision.error) == text
    assert decision.targets is None


@pytest.mark.parametrize("made", [_requesting(256), _with_components(256, 1), _with_terms(1000)])
def test_bindings_at_the_limits_are_decided(made: BindingBuilder) -> None:
    built = made.build()
    assert built.spec.placement is not None
    checks.check_sizes(built.spec, built.spec.placement)
    checks.check_sizes(built.spec, Placement())
    assert "supported" not in str(_decided(built).error)


def _decided(bound: Binding) -> Decision:
    snapshot = Snapshot.of([cluster("m1").capacity(cpu=9).build()])
    return run_sync(SchedulingAlgorithm(gates(), []).decide(bound, snapshot, framework()))


def test_components_without_requirements_name_no_resources() -> None:
    spec = replace(binding("w").build().spec, components=tuple(Component(f"c{n}") for n in range(3)))
    checks.check_sizes(spec, Placement())


async def test_time_without_cpu_counts_for_yielding_but_not_for_the_budget() -> None:
    clock, cpu = Clock(), Clock()
    budget = Budget(clock, cpu)

    async def held_up() -> str:
        for _ in range(10):
            clock.now += 2
            cpu.now += 0.3
            await budget.yield_if_due()
        return "done"

    assert await BudgetedCoroutine(held_up(), budget) == "done"
    assert budget.used == pytest.approx(3)


class Alternates:
    """A score plugin that takes some CPU time and prefers other clusters to the current ones."""

    name = "Alternates"

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def score(self, context: ScoreContext, /) -> int:
        self.clock.now += self.seconds
        return 0 if context.cluster.name in context.cycle.current_clusters else 100


@pytest.mark.parametrize(("seconds", "kind"), [(0.0, Decision), (0.03, BudgetedCoroutine)])
async def test_a_decision_yields_between_two_passes_if_its_slice_is_over(
    seconds: float, kind: type[object]
) -> None:
    clock = Clock()
    budget = _budget(clock)
    plugins = framework(Alternates(clock, seconds), select=["*", "-ClusterLocality"])
    bound = binding("w").replicas(1).duplicated().spread("cluster", 1, 1).on(m1=1).build()
    snapshot = Snapshot.of([cluster("m1").build(), cluster("m2").build()])
    begun = begin(SchedulingAlgorithm(gates(), []).decide(bound, snapshot, plugins, budget=budget), budget)
    assert isinstance(begun, kind)
    decision = await begun if isinstance(begun, BudgetedCoroutine) else begun
    assert len(decision.attempts) > 1
