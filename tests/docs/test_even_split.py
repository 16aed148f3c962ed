"""EvenSplit: the same replicas for every cluster."""

from __future__ import annotations

from karmada_scheduler.testing import binding, cluster, schedule
from tests.docs.conftest import Example


def test_big_and_small_clusters_get_equal_replicas(example: Example) -> None:
    members = [
        cluster("m1").capacity(cpu=100),
        cluster("m2").capacity(cpu=10),
        cluster("m3").capacity(cpu=10),
    ]
    run = schedule(binding("web").replicas(9, cpu=1).aggregated(), *members, plugins=example("even_split"))
    assert run.placed == {"m1": 3, "m2": 3, "m3": 3}


def test_the_remainder_goes_to_the_clusters_with_most_available_replicas(example: Example) -> None:
    members = [
        cluster("m1").capacity(cpu=10),
        cluster("m2").capacity(cpu=100),
        cluster("m3").capacity(cpu=50),
    ]
    run = schedule(
        binding("web").replicas(8, cpu=1).dynamic_weight(), *members, plugins=example("even_split")
    )
    assert run.placed == {"m1": 2, "m2": 3, "m3": 3}


def test_replicas_beyond_a_small_cluster_go_to_the_others(example: Example) -> None:
    members = [cluster("m1").capacity(cpu=1), cluster("m2").capacity(cpu=9), cluster("m3").capacity(cpu=9)]
    run = schedule(
        binding("web").replicas(9, cpu=1).dynamic_weight(), *members, plugins=example("even_split")
    )
    assert run.placed == {"m1": 1, "m2": 4, "m3": 4}


def test_replicas_beyond_the_capacity_are_refused(example: Example) -> None:
    run = schedule(
        binding("web").replicas(9, cpu=1).dynamic_weight(),
        cluster("m1").capacity(cpu=4),
        cluster("m2").capacity(cpu=4),
        plugins=example("even_split"),
    )
    assert (
        run.condition.message
        == "failed to assign replicas: refused at Assign by EvenSplit: 1 replicas too many for 2 clusters"
    )


def test_duplicated_workloads_are_left_alone(example: Example) -> None:
    run = schedule(binding("web").replicas(2).duplicated(), cluster("m1"), plugins=example("even_split"))
    assert run.placed == {"m1": 2}
