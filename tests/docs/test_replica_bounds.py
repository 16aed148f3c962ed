"""ReplicaBounds: between a minimum and a maximum on every cluster that is used."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import binding, cluster, profiles, schedule
from tests.docs.conftest import PLUGINS, Example

BOUNDS: Framework = profiles(PLUGINS / "replica_bounds.yaml", plugin_dir=PLUGINS)["bounded"]  # 2 to 5
ROOMY = [cluster("m1"), cluster("m2"), cluster("m3")]


def test_no_cluster_gets_more_than_the_maximum() -> None:
    run = schedule(binding("web").replicas(12).aggregated(), *ROOMY, plugins=BOUNDS)
    assert run.placed == {"m1": 4, "m2": 4, "m3": 4}


def test_a_cluster_that_would_get_too_little_gets_nothing() -> None:
    run = schedule(binding("web").replicas(5).dynamic_weight(), *ROOMY, plugins=BOUNDS)
    assert run.placed == {"m1": 3, "m2": 2}


def test_a_small_cluster_leaves_more_to_the_others() -> None:
    small = cluster("m1").capacity(cpu=2)
    run = schedule(binding("web").replicas(12, cpu=1).dynamic_weight(), small, *ROOMY[1:], plugins=BOUNDS)
    assert run.placed == {"m1": 2, "m2": 5, "m3": 5}


def test_placed_replicas_stay_when_the_workload_grows() -> None:
    run = schedule(binding("web").replicas(8).dynamic_weight().on(m3=4, m2=2), *ROOMY, plugins=BOUNDS)
    placed = run.placed
    assert placed["m3"] >= 4
    assert placed["m2"] >= 2
    assert sum(placed.values()) == 8


def test_impossible_bounds_are_reported_and_the_placement_stays() -> None:
    run = schedule(binding("web").replicas(16).dynamic_weight().on(m1=5), *ROOMY, plugins=BOUNDS)
    assert run.condition.reason == "Unschedulable"
    assert run.condition.message.startswith(
        "failed to assign replicas: refused at Assign by ReplicaBounds: 16 replicas do not fit: 2 to {"
    )
    assert [target.name for target in run.binding.spec.clusters] == ["m1"]


def test_duplicated_workloads_are_left_alone() -> None:
    run = schedule(binding("web").replicas(9).duplicated(), *ROOMY, plugins=BOUNDS)
    assert run.placed == {"m1": 9, "m2": 9, "m3": 9}


def test_bounds_come_from_the_configuration(example: Example) -> None:
    plugins = example("replica_bounds", minimum=1, maximum=4)
    run = schedule(binding("web").replicas(10).dynamic_weight(), *ROOMY, plugins=plugins)
    assert sorted(run.placed.values()) == [3, 3, 4]


@settings(deadline=None)  # a busy machine is slow, not wrong
@given(
    replicas=st.integers(2, 15),
    capacities=st.lists(st.integers(0, 8), min_size=3, max_size=3),
    now=st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_every_result_adds_up_and_is_within_bounds(
    replicas: int, capacities: list[int], now: list[int]
) -> None:
    members = [cluster(f"m{index}").capacity(cpu=capacity) for index, capacity in enumerate(capacities)]
    placed = {f"m{index}": count for index, count in enumerate(now) if count}
    builder = binding("web").replicas(replicas, cpu=1).dynamic_weight().on(**placed)
    run = schedule(builder, *members, plugins=BOUNDS)
    if run.error is None and run.decision.targets is not None:
        assert sum(run.placed.values()) == replicas
        assert all(2 <= count <= 5 for count in run.placed.values())
