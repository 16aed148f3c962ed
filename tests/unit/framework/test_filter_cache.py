"""Which clusters plugins are asked about, when they say what their answers depend on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.available_replicas import ReplicaEstimator
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.ordering import columnar
from karmada_scheduler.core.ordering.cache import OrderCache, ScoreCache
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import (
    SUCCESS,
    Candidate,
    Cycle,
    FilterContext,
    PluginError,
    Result,
    ScoreContext,
    Snapshot,
)
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.runtime import filter_cache
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import BindingBuilder, binding, cluster, framework, gates

NAMES = [f"m{number}" for number in range(1, 10)]


def spread() -> BindingBuilder:
    return binding("w").replicas(3, cpu=1).dynamic_weight()


class Asked:
    """A plugin that passes and scores everything and remembers what it was asked about."""

    name = "Asked"

    def __init__(self, key: Hashable = ()) -> None:
        self.key = key
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def filter_key(self, cycle: Cycle) -> Hashable:
        return self.key

    def filter(self, context: FilterContext, /) -> Result:
        self.filtered.append(context.cluster.name)
        return SUCCESS

    def score_key(self, cycle: Cycle) -> Hashable:
        return self.key

    def score(self, context: ScoreContext, /) -> int:
        self.scored.append(context.cluster.name)
        return 50

    def taken(self) -> tuple[list[str], list[str]]:
        """Return what was asked about since the last call."""
        asked = self.filtered, self.scored
        self.filtered, self.scored = [], []
        return asked


class World:
    """A framework with a plugin that counts, and clusters that may change."""

    def __init__(self, *, key: Hashable = (), plugin: Asked | None = None) -> None:
        self.plugin = plugin or Asked(key)
        in_tree = {each.name: each for each in framework().plugins.unique}
        self.framework = Framework(ProfilePlugins.from_plugins({**in_tree, "Asked": self.plugin}))
        self.clusters = {name: cluster(name).capacity(cpu=8).build() for name in NAMES}
        self.algorithm = SchedulingAlgorithm(gates(), [GeneralEstimator(FeatureGates())])
        self.session: ReplicaEstimator | None = None

    def decide(self, builder: BindingBuilder, snapshot: Snapshot | None = None) -> Decision:
        snapshot = snapshot or Snapshot.of(self.clusters.values())
        return run_sync(
            self.algorithm.decide(builder.build(), snapshot, self.framework, session=self.session)
        )

    def replace(self, name: str, new: Cluster | None) -> None:
        self.clusters.pop(name, None)
        if new is not None:
            self.clusters[name] = new


def test_the_second_binding_with_the_same_key_calls_plugins_for_no_cluster() -> None:
    world = World()
    first = world.decide(spread())
    assert world.plugin.taken() == (NAMES, NAMES)
    second = world.decide(spread().uid("other"))
    assert world.plugin.taken() == ([], [])
    assert second.attempts[0].candidates == first.attempts[0].candidates


def test_plugins_are_called_again_for_changed_clusters_only() -> None:
    world = World()
    world.decide(spread())
    world.plugin.taken()
    world.replace("m2", cluster("m2").capacity(cpu=1).build())
    decision = world.decide(spread())
    assert world.plugin.taken() == (["m2"], ["m2"])
    assert {each.name: each.allocatable for each in decision.attempts[0].candidates}["m2"] < 8


def test_added_and_removed_clusters_are_seen() -> None:
    world = World()
    world.decide(spread())
    world.plugin.taken()
    world.replace("m1", None)
    world.replace("m0", cluster("m0").capacity(cpu=8).build())
    decision = world.decide(spread())
    assert world.plugin.taken() == (["m0"], ["m0"])
    assert {each.name for each in decision.attempts[0].candidates} == {"m0", *NAMES[1:]}


def test_a_cluster_that_is_being_deleted_is_excluded() -> None:
    world = World()
    world.decide(spread())
    world.replace("m1", cluster("m1").capacity(cpu=8).deleting().build())
    assert {each.name for each in world.decide(spread()).attempts[0].candidates} == set(NAMES[1:])


def test_plugins_are_always_called_for_the_clusters_of_a_binding() -> None:
    world = World()
    world.decide(spread())
    world.plugin.taken()
    decision = world.decide(spread().on(m2=1).evicted_from("m3"))
    filtered, scored = world.plugin.taken()
    assert set(filtered) == {"m2"}
    assert set(scored) == {"m2"}
    best = decision.attempts[0].candidates[0]
    assert (best.name, best.score) == ("m2", 150)
    assert decision.attempts[0].diagnosis.result_by_cluster["m3"].plugin == "ClusterEviction"


def test_another_placement_or_kind_is_another_key() -> None:
    world = World()
    world.decide(spread())
    for other in (spread().names("m1", "m2"), spread().resource("batch/v1", "Job")):
        world.plugin.taken()
        world.decide(other)
        assert world.plugin.taken() != ([], [])


def test_another_resource_request_calls_estimators_only() -> None:
    world = World()
    world.decide(spread())
    world.plugin.taken()
    decision = world.decide(spread().request({"cpu": "2"}))
    assert world.plugin.taken() == ([], [])
    assert {each.allocatable for each in decision.attempts[0].candidates} == {4}


def test_a_plugin_without_a_key_is_called_for_every_cluster() -> None:
    world = World(key=None)
    for _ in range(2):
        world.decide(spread())
        assert world.plugin.taken() == (NAMES, NAMES)


def test_scores_of_cached_clusters_can_be_read() -> None:
    world = World()
    world.decide(spread())
    scores = world.decide(spread().on(m2=1)).attempts[0].scores
    assert scores == {
        "ClusterAffinity": [0] * 9,
        "ClusterLocality": [0, 100, 0, 0, 0, 0, 0, 0, 0],
        "Asked": [50] * 9,
    }


def test_a_key_that_fails_is_an_error_that_names_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def broken(self: Asked, cycle: Cycle) -> Hashable:
        raise RuntimeError("boom")

    monkeypatch.setattr(Asked, "filter_key", broken)
    world = World()
    error = world.decide(spread().on(m1=3)).error
    assert isinstance(error, PluginError)
    assert str(error) == 'failed to find fit clusters: plugin "Asked" failed at Filter: RuntimeError: boom'


class AllOrNothing:
    """An estimator that answers for all clusters that it is asked about, or for none."""

    name = "all-or-nothing"

    def __init__(self) -> None:
        self.questions: list[list[str]] = []

    def max_available_replicas(self, clusters: Sequence[Cluster], *_: object) -> list[int]:
        self.questions.append([each.name for each in clusters])
        return [7] * len(clusters)

    max_available_component_sets = max_available_replicas


class Counted(GeneralEstimator):
    """The built-in estimator, counting the clusters that it is asked about."""

    def __init__(self) -> None:
        super().__init__(FeatureGates())
        self.asked: list[str] = []

    def max_available_replicas(self, clusters: Sequence[Cluster], *arguments: Any) -> list[int]:
        self.asked += [each.name for each in clusters]
        return super().max_available_replicas(clusters, *arguments)

    def replicas_by_row(self, verdicts: FilterResults, rows: Column, *arguments: Any) -> Column:
        self.asked += [verdicts.feasible[row].name for row in rows.tolist()]
        return super().replicas_by_row(verdicts, rows, *arguments)


class MovingWorld(World):
    """Two hundred clusters in the scheduler's own cache, two of which report before each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.counted = Counted()
        self.algorithm = SchedulingAlgorithm(gates(), [self.counted])
        self.cache = ClusterCache()
        self.version = 0
        self.names = [f"m{number:03}" for number in range(200)]
        for name in self.names:
            self.report(name, 100)

    def report(self, name: str, cpu: int) -> None:
        self.version += 1
        builder = cluster(name).region(f"r{int(name[1:]) % 5}").capacity(cpu=cpu)
        self.cache.put(replace(builder.build(), resource_version=str(self.version)))

    def decide_moving(self, number: int, builder: BindingBuilder) -> tuple[list[str], list[str]]:
        """Return the clusters that have reported before the decision, and those that were chosen."""
        reported = [self.names[(7 * number + step) % 200] for step in (0, 90)]
        for name in reported:
            self.report(name, 50 + number % 40)
        targets = self.decide(builder, self.cache.snapshot()).targets
        assert targets
        return sorted(reported), sorted(target.name for target in targets)


SHAPED = pytest.mark.parametrize(
    "shaped",
    [
        lambda builder: builder.dynamic_weight(),
        lambda builder: builder.duplicated().spread("cluster", 1, 5),
        lambda builder: builder.aggregated().spread("region", 1, 2).spread("cluster", 2, 4),
    ],
    ids=["dynamic weight", "duplicated", "by region"],
)


@SHAPED
def test_when_clusters_report_plugins_are_called_for_those_and_estimators_once_per_request(
    shaped: Callable[[BindingBuilder], BindingBuilder],
) -> None:
    world, requests = MovingWorld(), 4
    since: dict[int, set[str]] = {}
    for number in range(40):
        shape = number % requests
        builder = shaped(binding(f"w{number}").replicas(3, cpu=1 + shape))
        world.counted.asked.clear()
        world.plugin.taken()
        reported, chosen = world.decide_moving(number, builder)
        # Duplicated bindings are decided once more on their own result (core.schedule).
        placement = builder.build().spec.placement
        again = chosen if placement is not None and placement.is_duplicated else []
        for news in since.values():
            news.update(reported)
        expected = since.get(shape, set(world.names))
        since[shape] = set()
        if number:
            assert world.plugin.taken() == (reported + again, reported + again)
        assert sorted(world.counted.asked) == sorted([*expected, *again])


@SHAPED
def test_a_new_resource_request_creates_few_candidates_and_is_estimated_for_all_clusters_at_once(
    shaped: Callable[[BindingBuilder], BindingBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = MovingWorld()
    made: list[object] = []
    singly: list[str] = []
    count = GeneralEstimator.max_available_replicas

    def counted(self: GeneralEstimator, clusters: Sequence[Cluster], *arguments: Any) -> list[int]:
        singly.extend(each.name for each in clusters)
        return count(self, clusters, *arguments)

    def candidate(*parts: Any) -> Candidate:
        made.append(parts)
        return Candidate(*parts)

    monkeypatch.setattr(GeneralEstimator, "max_available_replicas", counted)
    monkeypatch.setattr(columnar, "Candidate", candidate)
    for number in range(5):
        singly.clear()
        made.clear()
        _, chosen = world.decide_moving(number, shaped(binding("w").replicas(3, cpu=1 + number)))
        assert len(made) <= 30  # of 200
        assert set(singly) <= set(chosen)  # a Duplicated binding is decided again on its own result


def test_a_remote_estimator_is_called_once_per_decision_for_all_clusters() -> None:
    world = World()
    estimator = AllOrNothing()
    world.session = estimator
    for builder in (spread(), spread().on(m2=3).evicted_from("m3")):
        world.decide(builder)
    without_m3 = [name for name in NAMES if name != "m3"]
    assert estimator.questions == [NAMES, without_m3]


def test_plugins_are_called_again_for_dropped_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_cache, "MAX_ENTRIES", 1)
    world = World()
    world.decide(spread())
    world.decide(spread().resource("batch/v1", "Job"))
    world.replace("m2", cluster("m2").capacity(cpu=1).build())
    world.plugin.taken()
    decision = world.decide(spread())
    assert world.plugin.taken() == (NAMES, NAMES)
    assert {each.name: each.allocatable for each in decision.attempts[0].candidates}["m2"] == 1


def test_an_order_is_rebuilt_after_its_filter_results_were_dropped() -> None:
    standings, ranking = ScoreCache(), OrderCache()
    snapshot = Snapshot.of([cluster("m1").build()])
    for room in (3, 5):
        verdicts = FilterResults("key")
        verdicts.refresh(snapshot, lambda _: {})
        standings.refresh(verdicts, lambda clusters: [(0, 0)] * len(clusters))
        ranking.refresh(verdicts, partial(_room, room))
        assert ranking.shared(standings.feasible, 0)[0].allocatable == room


def _room(room: int, rows: Column) -> Column:
    return columns.filled(len(rows), room)


def test_without_estimates_an_order_is_valid_for_one_number_of_replicas() -> None:
    world = World()
    world.algorithm = SchedulingAlgorithm(gates(), [])
    for replicas in (3, 5, 3):
        decision = world.decide(binding("w").replicas(replicas, cpu=1).dynamic_weight())
        assert {each.allocatable for each in decision.attempts[0].candidates} == {replicas}


def test_a_failing_score_is_reported_with_and_without_cached_clusters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: Asked, context: ScoreContext, /) -> int:
        raise RuntimeError("boom")

    monkeypatch.setattr(Asked, "score", broken)
    for key in ((), None):
        error = World(key=key).decide(spread()).error
        assert str(error) == 'failed to prioritize clusters: plugin "Asked" failed with: RuntimeError: boom'


def test_filter_results_are_cached_although_scores_are_not() -> None:
    class Unkeyed(Asked):
        def score_key(self, cycle: Cycle) -> Hashable:
            return None

    world = World(plugin=Unkeyed())
    first = world.decide(spread())
    world.plugin.taken()
    second = world.decide(spread())
    assert world.plugin.taken() == ([], NAMES)
    assert second.attempts == first.attempts


def test_filter_results_store_nothing_per_change() -> None:
    world, verdicts = MovingWorld(), FilterResults("key")
    standings = ScoreCache()
    for number in range(50):
        world.report(world.names[number], 50)
        verdicts.refresh(world.cache.snapshot(), lambda _: {})
        expected = 200 if number == 0 else 1
        rated: list[str] = []
        standings.refresh(verdicts, partial(_rated, rated))
        assert len(rated) == expected
    before = verdicts.version
    for number in range(2000):
        world.report(world.names[number % 200], 50)
        verdicts.refresh(world.cache.snapshot(), lambda _: {})
    # Two numbers tell what has changed since; there is nothing that grows with the number of changes.
    assert verdicts.changed_since(before) == set(world.names)
    own = {
        name: getattr(verdicts, name)
        for name in FilterResults.__slots__
        if name not in {"__weakref__", "_snapshot"}
    }
    assert max(len(each) for each in own.values() if hasattr(each, "__len__")) <= 200


def _rated(rated: list[str], clusters: Sequence[Cluster]) -> list[tuple[int, int]]:
    rated.extend(each.name for each in clusters)
    return [(0, 0)] * len(clusters)


def test_a_log_that_does_not_go_back_far_enough_causes_a_full_update() -> None:
    world, verdicts = MovingWorld(), FilterResults("key")
    verdicts.refresh(world.cache.snapshot(), lambda _: {})
    before = verdicts.version
    for number in range(50_000):
        world.report(world.names[number % 200], 50)
    judged: list[str] = []

    def judge(clusters: Sequence[Cluster]) -> dict[str, Result]:
        judged.extend(each.name for each in clusters)
        return {}

    verdicts.refresh(world.cache.snapshot(), judge)
    assert judged == sorted(world.names)
    assert verdicts.changed_since(before) is None


def test_values_whose_clusters_have_all_been_replaced_are_dropped() -> None:
    world = MovingWorld()
    for number in range(100):
        world.decide(spread().names(f"nobody-{number}", *world.names), world.cache.snapshot())
    assert len(world.framework._filter_results) == 100
    for round_ in range(3):
        for name in world.names:
            world.report(name, 50 + round_)
    world.decide(spread(), world.cache.snapshot())
    assert len(world.framework._filter_results) == 1
    assert len(world.algorithm._caches[world.framework]) == 2


def test_a_value_that_is_larger_than_the_cache_is_not_cached() -> None:
    remembered: filter_cache.LRUCache[str] = filter_cache.LRUCache(size_of=len)
    for key, made in (("a", "four"), ("b", "four"), ("c", "more than nine"), ("b", "other"), ("a", "other")):
        found = remembered.get(key, lambda made=made: made, max_size=9)  # type: ignore[misc]
        assert found == (made if key != "b" and made != "other" else "four")
    assert len(remembered) == 2
