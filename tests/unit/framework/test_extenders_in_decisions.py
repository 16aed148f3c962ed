"""The framework calls extenders in a chain at Filter, concurrently at Score, and instead of the plugins at Bind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.framework import Cycle, Result
from karmada_scheduler.framework.binding_points import BindContext
from karmada_scheduler.framework.runtime.extenders import ExtenderError, ExtenderFilterResult
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import binding, cluster, framework, placed, snapshot

CLUSTERS = [cluster(name) for name in ("m1", "m2", "m3")]


class FakeExtender:
    """Returns what a test gives it, or raises it if it is an exception."""

    def __init__(
        self,
        name: str = "http://x",
        *,
        keeps: Any = None,
        scores: Any = None,
        binds: Any = None,
        ignorable: bool = False,
        interested: bool = True,
    ) -> None:
        self.name, self.ignorable, self.interested = name, ignorable, interested
        self.keeps, self.scores, self.bound = keeps, scores, binds
        self.filters, self.prioritizes, self.binds = keeps is not None, scores is not None, binds is not None
        self.filtered: list[list[str]] = []

    def is_interested(self, binding: Binding) -> bool:
        return self.interested

    async def filter(self, cycle: Cycle, clusters: Sequence[Cluster]) -> ExtenderFilterResult:
        self.filtered.append([each.name for each in clusters])
        if isinstance(self.keeps, Exception):
            raise self.keeps
        refused = {
            each.name: Result.unschedulable(f"{self.name} refuses")
            for each in clusters
            if each.name not in self.keeps
        }
        return ExtenderFilterResult(frozenset(self.keeps), refused)

    async def prioritize(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Mapping[str, int]:
        await asyncio.sleep(0)
        if isinstance(self.scores, Exception):
            raise self.scores
        return dict(self.scores)

    async def bind(self, cycle: Cycle, targets: Sequence[TargetCluster]) -> None:
        if isinstance(self.bound, Exception):
            raise self.bound


def with_extenders(*extenders: FakeExtender) -> Framework:
    return Framework(framework().plugins, extenders=extenders)


async def decided(*extenders: FakeExtender, builder: Any = None) -> Any:
    web = builder or binding("web").replicas(2).on(m1=2)
    algorithm = SchedulingAlgorithm(FeatureGates(), [])
    return await algorithm.decide(web.build(), snapshot(*CLUSTERS), with_extenders(*extenders))


DOWN = ExtenderError("failed filter with extender at URL http://x/filter, code 500")


async def test_each_extender_gets_the_clusters_that_passed_the_previous_one() -> None:
    first, second = FakeExtender(keeps={"m1", "m2"}), FakeExtender(keeps={"m2"})
    assert placed(await decided(first, second)) == {"m2": 2}
    assert (first.filtered[0], second.filtered[0]) == (["m1", "m2", "m3"], ["m1", "m2"])


async def test_without_feasible_clusters_the_next_extender_is_not_called() -> None:
    first, second = FakeExtender("http://a", keeps=set()), FakeExtender("http://b", keeps=set())
    decision = await decided(first, second)
    assert decision.targets == ()
    assert str(decision.error) == "0/3 clusters are available: 3 http://a refuses."
    assert second.filtered == []


async def test_a_failing_extender_keeps_the_placement_unless_it_is_ignorable() -> None:
    decision = await decided(FakeExtender(keeps=DOWN))
    assert decision.targets is None
    assert condition_for(decision.error) == (
        "False",
        "SchedulerError",
        f"failed to find fit clusters: {DOWN}",
    )
    assert placed(await decided(FakeExtender(keeps=DOWN, ignorable=True), FakeExtender(keeps={"m3"}))) == {
        "m3": 2
    }


async def test_an_extender_that_is_not_interested_is_not_called() -> None:
    uninterested = FakeExtender(keeps=set(), scores={"m1": 100}, interested=False)
    decision = await decided(uninterested)
    assert set(placed(decision)) == {"m1", "m2", "m3"}
    assert uninterested.name not in decision.attempts[-1].scores


async def test_scores_of_extenders_are_added_and_a_failing_one_has_none() -> None:
    builder = binding("web").replicas(2).spread("cluster", 1, 1)
    extenders = [
        FakeExtender("http://a", scores={"m3": 500}),
        FakeExtender("http://b", scores=DOWN),
        FakeExtender("http://a", scores={"m2": 300, "m3": 1}),
    ]
    decision = await decided(*extenders, builder=builder)
    assert placed(decision) == {"m3": 2}
    assert decision.attempts[0].scores["http://a"] == [0, 300, 501]
    assert "http://b" not in decision.attempts[0].scores


def test_extenders_that_filter_or_score_make_a_decision_asynchronous() -> None:
    assert with_extenders(FakeExtender(keeps=set())).is_async
    assert with_extenders(FakeExtender(scores={})).is_async
    assert not with_extenders(FakeExtender(binds=True)).is_async


@pytest.mark.parametrize(
    ("extenders", "binder"),
    [
        ([FakeExtender("http://a", binds=True)], 'extender "http://a"'),
        (
            [FakeExtender("http://a", binds=DOWN, ignorable=True), FakeExtender("http://b", binds=True)],
            'extender "http://b"',
        ),
        ([FakeExtender("http://a", binds=DOWN, ignorable=True)], 'plugin "DefaultBinder"'),
        ([FakeExtender("http://a", binds=True, interested=False)], 'plugin "DefaultBinder"'),
    ],
)
async def test_the_first_interested_binder_binds_instead_of_the_plugins(
    extenders: list[FakeExtender], binder: str
) -> None:
    web = binding("web").build()
    written: list[bool] = []

    async def patch() -> Binding:
        written.append(True)
        return web

    assert web.spec.placement is not None
    context = BindContext(web, (), Cycle(web, web.spec.placement), patch)
    assert await with_extenders(*extenders).binding.bind(context) == binder
    assert bool(written) == (binder == 'plugin "DefaultBinder"')
