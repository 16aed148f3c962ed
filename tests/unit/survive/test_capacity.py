"""The replicas of a burst that do not fit where they go."""

from __future__ import annotations

from karmada_advisor.whatif.plan.load import FreeCapacity, Starting
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import cluster


def _capacity() -> FreeCapacity:
    full = cluster("full").capacity(cpu=8).allocated({"cpu": "10"})
    return FreeCapacity(
        Snapshot.of(
            [cluster("b").capacity(cpu=8).build(), cluster("x").without_summary().build(), full.build()]
        )
    )


def _starting(position: int, **starts: int) -> Starting:
    return Starting(position, {"cpu": 2000, "pods": 1}, [TargetCluster(*each) for each in starts.items()])


def test_the_first_in_the_queue_gets_the_capacity() -> None:
    capacity, starting = _capacity(), [_starting(1, b=3), _starting(0, b=3)]
    over = capacity.overcommitted(starting)
    assert [(each.resource, each.asked) for each in over["b"]] == [("cpu", 12.0)]
    assert capacity.pending(starting, over) == {1: 2}


def test_what_fits_asks_no_cluster_for_too_much() -> None:
    assert _capacity().overcommitted([_starting(0, b=4)]) == {}


def test_a_cluster_without_a_summary_is_not_known_to_be_full() -> None:
    assert _capacity().overcommitted([_starting(0, x=1000)]) == {}


def test_an_overallocated_cluster_takes_nothing() -> None:
    capacity, starting = _capacity(), [_starting(0, full=1)]
    over = capacity.overcommitted(starting)
    assert capacity.pending(starting, over) == {0: 1}
    [demand] = over["full"]
    assert (demand.resource, demand.asked, demand.free) == ("cpu", 2.0, -2.0)
