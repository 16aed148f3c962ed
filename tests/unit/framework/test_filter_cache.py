"""Plugins with a filter or score key are called for changed clusters only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import pytest

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.available_replicas import ReplicaEstimator
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.ordering import columnar
from karmada_scheduler.core.ordering.cache import OrderCache, ScoreCache
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
from karmada_scheduler.framework.runtime import filter_cache
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.snapshot import ChangeLog
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster, framework, gates
from tests.unit.framework.plugins import at_their_points

NAMES = [f"m{number}" for number in range(1, 10)]


def spread() -> BindingBuilder:
    return binding("w").replicas(3, cpu=1).dynamic_weight()


class CountingPlugin:
    """A plugin that accepts every cluster and records the clusters of its calls."""

    name = "Counting"

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
        """Return the clusters that were filtered and scored since the last call."""
        calls = self.filtered, self.scored
        self.filtered, self.scored = [], []
        return calls


class FilterCacheHarness:
    """A framework with a plugin that counts its calls, and clusters that a test can replace."""

    def __init__(self, *, key: Hashable = (), plugin: CountingPlugin | None = None) -> None:
        self.plugin = plugin or CountingPlugin(key)
        in_tree = {each.name: each for each in framework().plugins.unique}
        self.framework = Framework(at_their_points({**in_tree, "Counting": self.plugin}))
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


def decided_once(**options: Any) -> FilterCacheHarness:
    """Return a harness that has decided one binding, and has forgotten the calls of its plugin."""
    harness = FilterCacheHarness(**options)
    harness.decide(spread())
    harness.plugin.taken()
    return harness


def test_the_second_binding_with_the_same_key_calls_plugins_for_no_cluster() -> None:
    harness = FilterCacheHarness()
    first = harness.decide(spread())
    assert harness.plugin.taken() == (NAMES, NAMES)
    second = harness.decide(spread().uid("other"))
    assert harness.plugin.taken() == ([], [])
    assert second.attempts[0].candidates == first.attempts[0].candidates


def test_plugins_are_called_again_for_changed_clusters_only() -> None:
    harness = decided_once()
    harness.replace("m2", cluster("m2").capacity(cpu=1).build())
    decision = harness.decide(spread())
    assert harness.plugin.taken() == (["m2"], ["m2"])
    assert {each.name: each.allocatable for each in decision.attempts[0].candidates}["m2"] < 8


def test_added_and_removed_clusters_are_seen() -> None:
    harness = decided_once()
    harness.replace("m1", None)
    harness.replace("m0", cluster("m0").capacity(cpu=8).build())
    decision = harness.decide(spread())
    assert harness.plugin.taken() == (["m0"], ["m0"])
    assert {each.name for each in decision.attempts[0].candidates} == {"m0", *NAMES[1:]}


def test_a_cluster_that_is_being_deleted_is_excluded() -> None:
    harness = decided_once()
    harness.replace("m1", cluster("m1").capacity(cpu=8).deleting().build())
    assert {each.name for each in harness.decide(spread()).attempts[0].candidates} == set(NAMES[1:])


def test_plugins_are_always_called_for_the_clusters_of_a_binding() -> None:
    harness = decided_once()
    decision = harness.decide(spread().on(m2=1).evicted_from("m3"))
    filtered, scored = harness.plugin.taken()
    assert set(filtered) == {"m2"}
    assert set(scored) == {"m2"}
    best = decision.attempts[0].candidates[0]
    assert (best.name, best.score) == ("m2", 150)
    assert decision.attempts[0].diagnosis.result_by_cluster["m3"].plugin == "ClusterEviction"


def test_another_affinity_toleration_field_to_spread_by_or_kind_calls_plugins_again() -> None:
    harness = FilterCacheHarness()
    for name in NAMES:
        harness.replace(name, cluster(name).region("r1").capacity(cpu=8).build())
    harness.decide(spread())
    for other in (
        spread().names("m1", "m2"),
        spread().tolerates(operator="Exists"),
        spread().spread("region", 1, 2),
        spread().resource("batch/v1", "Job"),
    ):
        harness.plugin.taken()
        harness.decide(other)
        assert harness.plugin.taken() != ([], [])


def test_another_strategy_or_limit_of_a_constraint_calls_no_plugin() -> None:
    harness = FilterCacheHarness()
    harness.decide(spread().spread("cluster", 1, 2))
    for other in (
        spread().spread("cluster", 1, 5),
        binding("w").replicas(9, cpu=1).aggregated().spread("cluster", 2, 3),
        binding("w").replicas(1, cpu=1).static_weights(m1=2, m2=1).spread("cluster", 1, 2),
    ):
        harness.plugin.taken()
        found = harness.decide(other)
        assert harness.plugin.taken() == ([], [])
        assert found == FilterCacheHarness().decide(other)


def test_terms_with_equal_affinities_and_different_overflow_have_their_own_tiers() -> None:
    harness = FilterCacheHarness()
    first = binding("w").replicas(20, cpu=1).dynamic_weight().term("a", "m1", overflow=[["m2"], ["m3"]])
    other = binding("w").replicas(20, cpu=1).dynamic_weight().term("a", "m1", overflow=[["m2", "m3"]])
    for builder in (first, other, first):
        found = harness.decide(builder)
        assert found == FilterCacheHarness().decide(builder)


def test_another_resource_request_calls_estimators_only() -> None:
    harness = decided_once()
    decision = harness.decide(spread().request({"cpu": "2"}))
    assert harness.plugin.taken() == ([], [])
    assert {each.allocatable for each in decision.attempts[0].candidates} == {4}


def test_a_plugin_without_a_key_is_called_for_every_cluster() -> None:
    harness = FilterCacheHarness(key=None)
    for _ in range(2):
        harness.decide(spread())
        assert harness.plugin.taken() == (NAMES, NAMES)


class Undeclared:
    """A plugin without keys that records the clusters of its calls, and refuses m3."""

    name = "Undeclared"

    def __init__(self) -> None:
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def filter(self, context: FilterContext, /) -> Result:
        self.filtered.append(context.cluster.name)
        return Result.unschedulable("not here") if context.cluster.name == "m3" else SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        self.scored.append(context.cluster.name)
        return 100 if context.cluster.name == "m7" else 0


def test_a_plugin_without_a_key_is_called_for_what_the_others_let_pass_and_these_keep_their_results() -> None:
    harness, own = FilterCacheHarness(), Undeclared()
    plugins = {each.name: each for each in (*harness.framework.plugins.unique, own)}
    harness.framework = Framework(at_their_points(plugins))
    harness.replace("m5", cluster("m5").capacity(cpu=8).taint("down:NoSchedule").build())
    passing = [name for name in NAMES if name != "m5"]
    harness.decide(spread())
    harness.plugin.taken()
    own.filtered, own.scored = [], []

    attempt = harness.decide(spread().uid("other")).attempts[0]

    assert harness.plugin.taken() == ([], [])
    assert (own.filtered, own.scored) == (passing, [name for name in passing if name != "m3"])
    assert [candidate.name for candidate in attempt.candidates][:2] == ["m7", "m1"]
    assert {name: result.plugin for name, result in attempt.diagnosis.result_by_cluster.items()} == {
        "m3": "Undeclared",
        "m5": "TaintToleration",
    }
    assert attempt.scores["Undeclared"] == [100 * (name == "m7") for name in own.scored]


def test_a_key_function_that_is_none_is_no_key() -> None:
    class WithoutKeys(CountingPlugin):
        filter_key = score_key = None  # type: ignore[assignment]

    harness = FilterCacheHarness(plugin=WithoutKeys())
    for _ in range(2):
        harness.decide(spread())
        assert harness.plugin.taken() == (NAMES, NAMES)


def test_a_plugin_with_a_key_behind_one_without_is_called_at_each_decision() -> None:
    harness, own = FilterCacheHarness(), Undeclared()
    in_tree = {each.name: each for each in framework().plugins.unique}
    harness.framework = Framework(at_their_points({**in_tree, own.name: own, "Counting": harness.plugin}))
    harness.decide(spread())
    harness.plugin.taken()
    harness.decide(spread().uid("other"))
    assert harness.plugin.taken()[0] == [name for name in NAMES if name != "m3"]


def test_scores_of_cached_clusters_can_be_read() -> None:
    harness = decided_once()
    scores = harness.decide(spread().on(m2=1)).attempts[0].scores
    assert scores == {
        "ClusterAffinity": [0] * 9,
        "ClusterLocality": [0, 100, 0, 0, 0, 0, 0, 0, 0],
        "Counting": [50] * 9,
    }


def test_a_failing_filter_key_is_an_error_that_names_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = FilterCacheHarness()

    def broken(self: CountingPlugin, cycle: Cycle) -> Hashable:
        raise RuntimeError("boom")

    monkeypatch.setattr(CountingPlugin, "filter_key", broken)
    harness = FilterCacheHarness()
    error = harness.decide(spread().on(m1=3)).error
    assert isinstance(error, PluginError)
    assert str(error) == 'failed to find fit clusters: plugin "Counting" failed at Filter: RuntimeError: boom'


class AllOrNothing:
    """An estimator that returns replicas for all clusters of a call, and records them."""

    name = "all-or-nothing"

    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def max_available_replicas(self, clusters: Sequence[Cluster], *_: object) -> list[int]:
        self.requests.append([each.name for each in clusters])
        return [7] * len(clusters)

    max_available_component_sets = max_available_replicas


class CountingEstimator(GeneralEstimator):
    """The built-in estimator, which records the clusters of its calls."""

    def __init__(self) -> None:
        super().__init__(FeatureGates())
        self.counted: list[str] = []

    def max_available_replicas(self, clusters: Sequence[Cluster], *arguments: Any) -> list[int]:
        self.counted += [each.name for each in clusters]
        return super().max_available_replicas(clusters, *arguments)

    def replicas_by_row(self, results: FilterResults, rows: Column, *arguments: Any) -> Column:
        self.counted += [results.feasible[row].name for row in rows.tolist()]
        return super().replicas_by_row(results, rows, *arguments)


class ChangingClustersHarness(FilterCacheHarness):
    """Two hundred clusters in the scheduler's own cache, two of which report before each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.estimator = CountingEstimator()
        self.algorithm = SchedulingAlgorithm(gates(), [self.estimator])
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
    harness, requests = ChangingClustersHarness(), 4
    since: dict[int, set[str]] = {}
    for number in range(40):
        shape = number % requests
        builder = shaped(binding(f"w{number}").replicas(3, cpu=1 + shape))
        harness.estimator.counted.clear()
        harness.plugin.taken()
        reported, chosen = harness.decide_moving(number, builder)
        # Duplicated bindings are decided once more on their own result (core.schedule).
        placement = builder.build().spec.placement
        again = chosen if placement is not None and placement.is_duplicated else []
        for changed in since.values():
            changed.update(reported)
        expected = since.get(shape, set(harness.names))
        since[shape] = set()
        if number:
            assert harness.plugin.taken() == (reported + again, reported + again)
        assert sorted(harness.estimator.counted) == sorted(expected)


@SHAPED
def test_a_new_resource_request_creates_few_candidates_and_is_estimated_for_all_clusters_at_once(
    shaped: Callable[[BindingBuilder], BindingBuilder], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = ChangingClustersHarness()
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
        _, chosen = harness.decide_moving(number, shaped(binding("w").replicas(3, cpu=1 + number)))
        assert len(made) <= 30  # of 200
        assert set(singly) <= set(chosen)  # a Duplicated binding is decided again on its own result


def test_a_filter_whose_key_covers_current_clusters_is_called_once_per_version_for_them() -> None:
    class Covering(CountingPlugin):
        filter_key_covers_current = True

    harness = decided_once(plugin=Covering())
    first = harness.decide(spread().on(m2=1, m4=1).evicted_from("m3"))
    assert harness.plugin.taken()[0] == ["m2", "m4"]  # an in-tree plugin before it refuses m3
    second = harness.decide(spread().on(m2=1, m4=1).evicted_from("m3").uid("other"))
    assert harness.plugin.taken()[0] == []
    assert second.attempts[0].candidates == first.attempts[0].candidates
    refused = [each.attempts[0].diagnosis.result_by_cluster for each in (first, second)]
    assert refused[0] == refused[1]
    harness.decide(spread().on(m2=3).evicted_from("m4"))
    assert harness.plugin.taken()[0] == []
    harness.replace("m2", cluster("m2").capacity(cpu=1).build())
    harness.decide(spread().on(m2=1, m4=1))
    assert harness.plugin.taken()[0] == ["m2", "m2"]  # once for bindings that are on it, once for others


def test_a_remote_estimator_is_called_once_per_decision_for_all_clusters() -> None:
    harness = FilterCacheHarness()
    estimator = AllOrNothing()
    harness.session = estimator
    for builder in (spread(), spread().on(m2=3).evicted_from("m3")):
        harness.decide(builder)
    without_m3 = [name for name in NAMES if name != "m3"]
    assert estimator.requests == [NAMES, without_m3]


def test_plugins_are_called_again_for_dropped_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_cache, "MAX_ENTRIES", 1)
    harness = decided_once()
    harness.decide(spread().resource("batch/v1", "Job"))
    harness.replace("m2", cluster("m2").capacity(cpu=1).build())
    harness.plugin.taken()
    decision = harness.decide(spread())
    # The scores of the other clusters are those of the binding before.
    assert harness.plugin.taken() == (NAMES, ["m2"])
    assert {each.name: each.allocatable for each in decision.attempts[0].candidates}["m2"] == 1


def test_an_order_is_rebuilt_after_its_filter_results_were_dropped() -> None:
    scores, orders = ScoreCache(), OrderCache()
    snapshot = Snapshot.of([cluster("m1").build()])
    for available in (3, 5):
        results = FilterResults("key")
        results.refresh(snapshot, lambda _: {})
        scores.refresh(results, lambda clusters: [(0, 0)] * len(clusters))
        orders.refresh(results, partial(_fill, available))
        assert orders.shared(scores.feasible, 0)[0].allocatable == available


def test_positions_in_another_log_are_other_versions_although_it_begins_with_the_same_clusters() -> None:
    clusters = [cluster(name).build() for name in NAMES]
    results, scores, orders = FilterResults("key"), ScoreCache(), OrderCache()

    def order(log: ChangeLog) -> list[str]:
        results.refresh(Snapshot.of(clusters, log=log), lambda _: {})
        scores.refresh(results, lambda found: [(0, 0)] * len(found))
        orders.refresh(results, lambda rows: columns.filled(len(rows), 3))
        return [each.name for each in orders.shared(scores.feasible, 0)]

    while len(clusters) > 1:
        log = ChangeLog()
        assert order(log) == [each.name for each in clusters]
        log.append(clusters.pop().name)
        assert order(log) == [each.name for each in clusters]


def _fill(available: int, rows: Column) -> Column:
    return columns.filled(len(rows), available)


def test_without_estimates_an_order_is_valid_for_one_number_of_replicas() -> None:
    harness = FilterCacheHarness()
    harness.algorithm = SchedulingAlgorithm(gates(), [])
    for replicas in (3, 5, 3):
        decision = harness.decide(binding("w").replicas(replicas, cpu=1).dynamic_weight())
        assert {each.allocatable for each in decision.attempts[0].candidates} == {replicas}


def test_a_failing_score_is_reported_with_and_without_cached_clusters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: CountingPlugin, context: ScoreContext, /) -> int:
        raise RuntimeError("boom")

    monkeypatch.setattr(CountingPlugin, "score", broken)
    for key in ((), None):
        error = FilterCacheHarness(key=key).decide(spread()).error
        assert (
            str(error) == 'failed to prioritize clusters: plugin "Counting" failed with: RuntimeError: boom'
        )


def test_filter_results_are_cached_although_scores_are_not() -> None:
    class Unkeyed(CountingPlugin):
        def score_key(self, cycle: Cycle) -> Hashable:
            return None

    harness = FilterCacheHarness(plugin=Unkeyed())
    first = harness.decide(spread())
    harness.plugin.taken()
    second = harness.decide(spread())
    assert harness.plugin.taken() == ([], NAMES)
    assert second.attempts == first.attempts


def test_filter_results_store_nothing_per_change() -> None:
    harness, results = ChangingClustersHarness(), FilterResults("key")
    scores = ScoreCache()
    for number in range(50):
        harness.report(harness.names[number], 50)
        results.refresh(harness.cache.snapshot(), lambda _: {})
        expected = 200 if number == 0 else 1
        rated: list[str] = []
        scores.refresh(results, partial(_rated, rated))
        assert len(rated) == expected
    before = results.version
    for number in range(2000):
        harness.report(harness.names[number % 200], 50)
        results.refresh(harness.cache.snapshot(), lambda _: {})
    # Two numbers identify the changes since a version; no attribute grows with the number of changes.
    assert results.changed_since(before) == set(harness.names)
    own = {
        name: getattr(results, name)
        for name in FilterResults.__slots__
        if name not in {"__weakref__", "_snapshot"}
    }
    assert max(len(each) for each in own.values() if hasattr(each, "__len__")) <= 200


def _rated(rated: list[str], clusters: Sequence[Cluster]) -> list[tuple[int, int]]:
    rated.extend(each.name for each in clusters)
    return [(0, 0)] * len(clusters)


def test_a_change_log_that_is_too_short_causes_a_full_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada_scheduler.framework.snapshot._KEPT_CHANGES", 500)
    harness, results = ChangingClustersHarness(), FilterResults("key")
    results.refresh(harness.cache.snapshot(), lambda _: {})
    before = results.version
    for number in range(1_250):
        harness.report(harness.names[number % 200], 50)
    filtered: list[str] = []

    def run_filters(clusters: Sequence[Cluster]) -> dict[str, Result]:
        filtered.extend(each.name for each in clusters)
        return {}

    results.refresh(harness.cache.snapshot(), run_filters)
    assert filtered == sorted(harness.names)
    assert results.changed_since(before) is None


def test_values_whose_clusters_have_all_been_replaced_are_dropped() -> None:
    harness = ChangingClustersHarness()
    for number in range(100):
        harness.decide(spread().names(f"nobody-{number}", *harness.names), harness.cache.snapshot())
    assert len(harness.framework.keyed._filter_results) == 100
    for round_ in range(3):
        for name in harness.names:
            harness.report(name, 50 + round_)
    harness.decide(spread(), harness.cache.snapshot())
    assert len(harness.framework.keyed._filter_results) == 1
    assert len(harness.algorithm._caches[harness.framework]) == 2


def test_a_value_that_is_larger_than_the_cache_is_not_cached() -> None:
    cached: LRUCache[str] = LRUCache(size_of=len)
    for key, made in (("a", "four"), ("b", "four"), ("c", "more than nine"), ("b", "other"), ("a", "other")):
        found = cached.get(key, lambda made=made: made, max_size=9)  # type: ignore[misc]
        assert found == (made if key != "b" and made != "other" else "four")
    assert len(cached) == 2
    assert cached.get("d", lambda: "4", max_size=9) == "4"
    assert len(cached) == 3, "the size may be used to the full"


def test_a_cluster_that_changes_after_the_snapshots_get_a_log_is_seen() -> None:
    first, changed = cluster("m1").build(), cluster("m1").build()
    log = ChangeLog()
    results = FilterResults("key")
    results.refresh(Snapshot.of([first]), lambda _: {})
    results.refresh(Snapshot.of([first], log=log), lambda _: {})
    before = results.version

    log.append("m1")
    results.refresh(Snapshot.of([changed], log=log), lambda _: {})

    assert results.changed_since(before) != frozenset()
    assert list(results.feasible) == [changed]


def test_a_version_of_another_log_has_no_changes_in_this_one() -> None:
    first, changed = cluster("m1").build(), cluster("m1").build()
    one, other = ChangeLog(), ChangeLog()
    results = FilterResults("key")
    for _ in range(3):
        one.append("m1")
    results.refresh(Snapshot.of([first], log=one), lambda _: {})
    before = results.version
    other.append("m1")
    results.refresh(Snapshot.of([first], log=other), lambda _: {})
    other.append("m1")
    results.refresh(Snapshot.of([changed], log=other), lambda _: {})
    assert results.changed_since(before) != frozenset()


def test_a_cluster_that_passes_again_is_not_refused_any_more() -> None:
    refused = {"m1": Result.unschedulable("no")}
    results = FilterResults("key")
    results.refresh(Snapshot.of([cluster("m1").build()]), lambda _: refused)
    results.refresh(Snapshot.of([cluster("m1").build()]), lambda _: {})
    assert [each.name for each in results.feasible] == ["m1"]
    assert results.refused == {}


def test_a_snapshot_without_a_log_has_no_position() -> None:
    snapshot = Snapshot.of([cluster("m1").build()])
    assert (snapshot.has_log, snapshot.position) == (False, 0)
    assert snapshot.with_reported(snapshot.clusters, generation=1).position == 0


def test_a_value_that_is_used_again_for_the_same_clusters_is_dropped_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filter_cache, "max_keys", lambda _: 2)
    cached: filter_cache.SnapshotCache[str] = filter_cache.SnapshotCache()
    snapshot = Snapshot.of([cluster("m1").build()])
    for key in ("a", "b", "a", "c"):
        cached.get_for(key, lambda key=key: key, snapshot)  # type: ignore[misc]
    assert cached.get_for("a", lambda: "new", snapshot) == "a"
    assert cached.get_for("b", lambda: "new", snapshot) == "new"
