"""Thrift: a placed workload moves if that saves enough."""

from __future__ import annotations

from karmada_scheduler.core.decision import ReconsiderResult
from karmada_scheduler.testing import Run, binding, cluster, schedule
from tests.docs.conftest import Example

MEMBERS = [cluster("m1"), cluster("m2")]


def moved(example: Example, **prices: float) -> Run:
    web = binding("web").replicas(2).spread("cluster", 1, 1).on(m1=2).applied()
    return schedule(web, *MEMBERS, plugins=example("thrift", prices=prices), reconsiders=True)


def test_a_large_saving_moves_a_placed_workload(example: Example) -> None:
    run = moved(example, m1=1.0, m2=0.5)
    assert run.placed == {"m2": 2}
    assert run.decision.reconsidered is not None
    assert run.decision.reconsidered.result is ReconsiderResult.ACCEPTED


def test_a_small_saving_leaves_it_where_it_is_and_is_no_failure(example: Example) -> None:
    run = moved(example, m1=1.0, m2=0.85)
    assert run.placed == {"m1": 2}
    assert run.condition.status == "True"
    found = run.decision.reconsidered
    assert found is not None
    assert (found.result, found.reason) == (
        ReconsiderResult.DECLINED,
        "the saving is too small: from 2 to 1.7",
    )


def test_the_cheapest_cluster_is_no_saving(example: Example) -> None:
    assert moved(example, m1=0.5, m2=1.0).placed == {"m1": 2}
