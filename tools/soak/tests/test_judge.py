"""The judge finds what grows in recorded samples, and nothing else."""

import json
from collections.abc import Callable
from random import Random

import pytest

from tools.soak.judge import RSS_LIMIT, USED, judge
from tools.soak.report import document
from tools.soak.run import Faults, Plan
from tools.soak.samples import Sample

EVERY = 10_000


def recorded(count: int = 100, *, process: int = 1, **figures: Callable[[int], float]) -> list[Sample]:
    """Return samples of a run whose figures are functions of the sample's number."""
    constant: dict[str, Callable[[int], float]] = {"rss_kib": lambda _: 100_000.0, "tasks": lambda _: 50.0}
    return [
        Sample(
            (number + 1) * EVERY,
            number,
            process,
            {name: of(number) for name, of in (constant | figures).items()},
        )
        for number in range(count)
    ]


def with_used(of: Callable[[int], float]) -> list[Sample]:
    """Return samples with bytes in use."""
    samples = recorded()
    for number, each in enumerate(samples):
        each.figures[USED] = of(number)
    return samples


def test_a_flat_run_has_no_problems() -> None:
    dice = Random(1)
    samples = recorded(
        rss_kib=lambda _: 100_000 + dice.gauss(0, 200), descriptors=lambda _: 50.0 + dice.randint(-10, 10)
    )
    assert judge(samples).problems == []


def test_one_entry_per_sample_is_a_leak() -> None:
    judgement = judge(recorded(entries=lambda number: 2000.0 + number))
    assert judgement.leaks == ["entries"]


def test_a_leak_is_found_in_noise_that_is_smaller_than_its_rise() -> None:
    dice = Random(2)
    judgement = judge(recorded(entries=lambda number: 2000 + 3 * number + dice.gauss(0, 20)))
    assert judgement.leaks == ["entries"]


@pytest.mark.parametrize("seed", range(50))
def test_noise_without_a_trend_is_no_leak(seed: int) -> None:
    dice, value = Random(seed), 0.0

    def wandering(_: int) -> float:
        nonlocal value
        value = 0.7 * value + dice.gauss(0, 10)
        return 1000 + value

    assert judge(recorded(entries=wandering, pool=lambda _: float(dice.randint(20, 60)))).leaks == []


@pytest.mark.parametrize("step", [55, 60, 75, 90])
def test_a_single_step_is_no_leak(step: int) -> None:
    assert judge(recorded(tasks=lambda number: 50.0 if number < step else 51.0)).leaks == []


def test_both_scopes_of_a_kind_are_one_figure() -> None:
    samples = recorded()
    for number, each in enumerate(samples):
        cached = 'gauge karmada_scheduler_cached_objects{kind="%s"}'
        each.figures.update(
            {cached % "ResourceBinding": 900.0 - number, cached % "ClusterResourceBinding": number}
        )
        each.figures[cached % "Cluster"] = 100.0
    judgement = judge(samples)
    assert judgement.leaks == []
    assert judgement.trends["gauge karmada_scheduler_cached_objects ResourceBinding"].slope == 0


def test_the_first_half_does_not_count() -> None:
    assert judge(recorded(entries=lambda number: min(number, 45) * 100.0)).leaks == []


def test_memory_has_a_limit_per_event() -> None:
    samples_of_leak = recorded(rss_kib=lambda number: 100_000 + 11.0 * number)
    samples_below = recorded(rss_kib=lambda number: 100_000 + 9.0 * number)
    assert judge(samples_of_leak).rss_slope == pytest.approx(RSS_LIMIT * 1.1)
    assert "RSS grows by 1126 +- 0 bytes per 1,000 events" in judge(samples_of_leak).problems[0]
    assert judge(samples_below).problems == []


@pytest.mark.parametrize("step", [55, 65, 70, 85])
def test_a_single_arena_of_pythons_allocator_is_no_growth(step: int) -> None:
    samples = recorded(rss_kib=lambda number: 100_000.0 if number < step else 101_024.0)
    assert judge(samples).problems == []


def test_an_arena_after_every_tenth_sample_is_growth() -> None:
    samples = recorded(rss_kib=lambda number: 100_000.0 + 1024 * (number // 10))
    assert any(each.startswith("RSS grows") for each in judge(samples).problems)


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_returned_memory_is_no_growth(seed: int) -> None:
    dice = Random(seed)
    assert judge(recorded(rss_kib=lambda _: 300_000 + dice.gauss(0, 4_000))).problems == []


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_that_is_larger_than_the_noise_of_returned_memory_is_found(seed: int) -> None:
    dice = Random(seed)
    samples = recorded(rss_kib=lambda number: 300_000 + 300.0 * number + dice.gauss(0, 4_000))
    assert any(each.startswith("RSS grows") for each in judge(samples).problems)


def test_a_leak_into_free_memory_is_found_in_the_bytes_in_use() -> None:
    dice = Random(3)
    samples = with_used(lambda number: 2e8 + 60_000.0 * number + dice.gauss(0, 1_000_000))
    (problem,) = judge(samples).problems
    assert problem.startswith("the bytes in use grow by ")


@pytest.mark.parametrize("seed", range(20))
def test_noise_in_the_bytes_in_use_is_no_growth(seed: int) -> None:
    dice = Random(seed)
    assert judge(with_used(lambda _: 2e8 + dice.gauss(0, 2_500_000))).problems == []


def test_a_cache_that_fills_up_to_its_bound_is_no_leak() -> None:
    samples = recorded()
    for number, each in enumerate(samples):
        each.figures["size clusters._tombstones"] = 20.0 * number
        each.bounded["interned"] = 100 * number, 65536
    judgement = judge(samples)
    assert judgement.problems == []
    assert judgement.filling == ["size clusters._tombstones", "lru interned"]


def test_a_container_that_appears_only_later_is_seen() -> None:
    samples = recorded()
    for number, each in enumerate(samples[70:]):
        each.figures["size late"] = 10.0 * number
    assert judge(samples).leaks == ["size late"]


def test_a_container_that_changes_its_path_is_seen() -> None:
    samples = recorded()
    for number, each in enumerate(samples):
        root = "task Scheduler.run.self" if number < 80 else "task PluginManager.run.self.profiles"
        each.figures[f"size {root}._results._values"] = number
    assert judge(samples).leaks == ["size *._results._values"]


def test_only_the_process_that_ended_the_run_is_judged() -> None:
    before = recorded(60, entries=float)
    after = recorded(100, process=2, entries=lambda _: 3.0)[60:]
    judgement = judge(before + after)
    assert judgement.window == (610_000, 1_000_000)
    assert judgement.leaks == []


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="5 samples in the last half"):
        judge(recorded(8))


def test_a_figure_that_never_changed_is_one_number_of_the_file() -> None:
    samples = recorded(entries=lambda number: 2000.0 + number)
    found = document(Plan(), samples, judge(samples), Faults(), unsettled=0)
    series = json.loads(json.dumps(found))["samples"]["series"]
    assert series["tasks"] == 50
    assert series["entries"][:2] == [2000, 2001]
    assert found["judgement"]["problems"]
