"""The judge of growth finds what grows in recorded samples, and nothing else; and leaks of a real process."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest

from tools.live.growth import LIMITS, Growth, judge_growth
from tools.live.program import LEAKS
from tools.live.sampler import Sample
from tools.live.soak import Soak, SoakPlan

EVERY = 10_000


def recorded(count: int = 100, pid: int = 1, /, **figures: Any) -> list[Sample]:
    """Return samples of a run whose figures are functions of the sample's number."""
    constant = dict.fromkeys((*LIMITS, "tasks"), 100_000.0)
    return [
        Sample(pid, (number + 1) * EVERY, constant | {name: of(number) for name, of in figures.items()}, {})
        for number in range(count)
    ]


def grown(samples: list[Sample]) -> list[str]:
    """Return the names of the figures that grow."""
    return [problem.partition(" grows")[0] for problem in judge_growth(samples).problems]


def test_noise_is_no_growth() -> None:
    dice = Random(1)
    samples = recorded(
        rss_kib=lambda _: 100_000 + dice.gauss(0, 4_000), descriptors=lambda _: 50.0 + dice.randint(-10, 10)
    )
    assert grown(samples) == []


@pytest.mark.parametrize("seed", range(30))
def test_noise_that_wanders_is_no_growth(seed: int) -> None:
    dice, value = Random(seed), 0.0

    def wandering(_: int) -> float:
        nonlocal value
        value = 0.7 * value + dice.gauss(0, 10)
        return 1000 + value

    assert grown(recorded(entries=wandering)) == []


def test_one_entry_per_sample_is_growth_also_in_noise_that_is_smaller_than_its_rise() -> None:
    dice = Random(2)
    assert grown(recorded(entries=lambda number: 2000.0 + number)) == ["entries"]
    assert grown(recorded(entries=lambda number: 2000 + 3 * number + dice.gauss(0, 20))) == ["entries"]


@pytest.mark.parametrize("step", [55, 65, 70, 85])
def test_one_step_is_no_growth(step: int) -> None:
    assert grown(recorded(entries=lambda number: 100.0 if number < step else 200.0)) == []
    assert grown(recorded(rss_kib=lambda number: 100_000.0 if number < step else 101_024.0)) == []


def test_what_grew_in_the_first_half_does_not_count() -> None:
    assert grown(recorded(entries=lambda number: min(number, 45) * 100.0)) == []


@pytest.mark.parametrize("name", LIMITS)
def test_memory_has_a_limit_per_event(name: str) -> None:
    limit = LIMITS[name] * EVERY / 1000
    assert grown(recorded(**{name: lambda number: 1e6 + 1.1 * limit * number})) == [name]
    assert grown(recorded(**{name: lambda number: 1e6 + 0.9 * limit * number})) == []


def test_an_arena_after_every_tenth_sample_is_growth() -> None:
    assert grown(recorded(rss_kib=lambda number: 100_000.0 + 1024 * (number // 10))) == ["rss_kib"]


def test_only_the_process_that_ended_the_run_is_judged() -> None:
    samples = recorded(60, entries=float) + recorded(100, 2, entries=lambda _: 3.0)[60:]
    assert judge_growth(samples).window == (610_000, 1_000_000)
    assert grown(samples) == []


def test_times_are_no_sizes_and_both_scopes_of_a_kind_are_one_figure() -> None:
    kinds = {
        "karmada_scheduler_cached_objects{kind=ResourceBinding}": float,
        "karmada_scheduler_cached_objects{kind=ClusterResourceBinding}": lambda number: 1000.0 - number,
        "karmada_scheduler_oldest_unplaced_age_seconds": float,
    }
    assert grown(recorded(**kinds)) == []


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="5 samples in the last half"):
        judge_growth(recorded(8))


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Growth:
    """The growth of a short run of the real process with all leaks at once."""
    plan = SoakPlan(
        events=4000, every=220, clusters=20, bindings=100, policies=10, leaks=tuple(LEAKS), takeovers=()
    )
    soak = Soak(plan, tmp_path_factory.mktemp("soak"))
    samples = list(soak.samples(print))
    assert len(samples) >= 15
    assert not soak.unsettled
    return judge_growth(samples)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("figure", ["blocks", "series", "tasks", "descriptors"])
def test_a_planted_leak_is_found(leaking: Growth, figure: str) -> None:
    assert any(problem.startswith(f"{figure} grows") for problem in leaking.problems), leaking.problems


def test_what_is_held_is_named_and_what_is_not_does_not_grow(leaking: Growth) -> None:
    assert leaking.types["_asyncio.Task"].grows
    assert not [
        problem for problem in leaking.problems if "cached_objects" in problem or "threads" in problem
    ]
