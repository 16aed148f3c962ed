"""EvenSplit: the same replicas for every cluster."""

from __future__ import annotations

import pytest

from karmada_scheduler.testing import binding, cluster, schedule
from tests.docs.conftest import Example


@pytest.mark.parametrize(
    ("cpus", "replicas", "placed"),
    [
        pytest.param((100, 10, 10), 9, (3, 3, 3), id="big-and-small-clusters-get-equal-replicas"),
        pytest.param((10, 100, 50), 8, (2, 3, 3), id="the-remainder-goes-where-most-are-available"),
        pytest.param((1, 9, 9), 9, (1, 4, 4), id="replicas-beyond-a-small-cluster-go-to-the-others"),
    ],
)
def test_replicas_are_split_evenly(
    cpus: tuple[int, ...], replicas: int, placed: tuple[int, ...], example: Example
) -> None:
    members = [cluster(f"m{number}").capacity(cpu=cpu) for number, cpu in enumerate(cpus)]
    for web in (binding("web").dynamic_weight(), binding("web").aggregated()):
        run = schedule(web.replicas(replicas, cpu=1), *members, plugins=example("even_split"))
        assert tuple(run.placed[f"m{number}"] for number in range(3)) == placed


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
