"""Refreshed orders in columns equal orders built from scratch, cluster by cluster."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.algorithms import columns, webster
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.core.assign_replicas import assign_replicas
from karmada_scheduler.core.ordering.cache import OrderCache, OrderingCaches, ScoreCache, ScoreKey
from karmada_scheduler.core.ordering.candidates import CandidateList, sort_key
from karmada_scheduler.core.ordering.columnar import SharedOrder, TierScore, ranked
from karmada_scheduler.core.ordering.overrides import with_overrides
from karmada_scheduler.framework import Candidate, Cycle, Result, Snapshot
from karmada_scheduler.framework.cycle import KeptSteps
from karmada_scheduler.framework.diagnosis import UnschedulableError
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.snapshot import ChangeLog
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster

REFUSED = Result.unschedulable("no")


class ChangingClusters:
    """Clusters that change at random: available replicas, tier, score, region, and whether they pass the filters."""

    def __init__(self, seed: int, *, tier_scores: Sequence[TierScore], size: int = 60) -> None:
        self.rng = random.Random(seed)
        self.possible = tier_scores
        self.names = [f"m{number:04}" for number in range(size)]
        self.log = ChangeLog()
        self.clusters: dict[str, Cluster] = {}
        self.available: dict[str, int] = {}
        self.tier_scores: dict[str, TierScore] = {}
        self.refused: set[str] = set()
        self.caches = FilterResults("key"), ScoreCache(), OrderCache()
        self.estimated: list[str] = []
        self.scored: list[str] = []
        for name in self.names:
            self.change(name)

    def change(self, name: str) -> None:
        self.log.append(name)
        if self.rng.random() < 0.1:
            self.clusters.pop(name, None)
            return
        self.clusters[name] = cluster(name).region(self.rng.choice(("", "a", "b", "c"))).build()
        self.available[name] = self.rng.choice((0, 1, 1, 2, 5, MAX_INT32, self.rng.randrange(-9, 100)))
        self.tier_scores[name] = self.rng.choice(self.possible)
        (self.refused.add if self.rng.random() < 0.1 else self.refused.discard)(name)

    def put(self, name: str, region: str = "") -> None:
        """Replace a cluster by one that passes the filters."""
        self.log.append(name)
        self.clusters[name] = cluster(name).region(region).build()
        self.available[name], self.tier_scores[name] = 3, (0, 0)
        self.refused.discard(name)

    def cached(self, *, unknown: int = 7) -> SharedOrder:
        return self.refreshed(*self.caches, unknown=unknown)

    def refreshed(
        self, results: FilterResults, scores: ScoreCache, order: OrderCache, *, unknown: int
    ) -> SharedOrder:
        snapshot = Snapshot.of(self.clusters.values(), log=self.log)
        results.refresh(
            snapshot, lambda clusters: {each.name: REFUSED for each in clusters if each.name in self.refused}
        )

        def estimate(rows: Column) -> Column:
            names = [results.feasible[row].name for row in rows.tolist()]
            self.estimated += names
            return columns.column([self.available[name] for name in names])

        def score(clusters: Sequence[Cluster]) -> list[TierScore]:
            names = [each.name for each in clusters]
            self.scored += names
            return [self.tier_scores[name] for name in names]

        scores.refresh(results, score)
        order.refresh(results, estimate)
        return order.shared(scores.feasible, unknown)

    def from_scratch(self, *, unknown: int = 7) -> list[Candidate]:
        """Return the candidates in order, computed without caches."""
        passing = [each for name, each in self.clusters.items() if name not in self.refused]
        return sorted((self.candidate(each, unknown) for each in passing), key=sort_key)

    def candidate(self, cluster: Cluster, unknown: int) -> Candidate:
        (tier, score), available = self.tier_scores[cluster.name], self.available[cluster.name]
        available = unknown if available == MAX_INT32 else available
        return Candidate(cluster, score, tier, available, available)

    def overrides(self) -> tuple[list[str], list[Candidate]]:
        """Return the names of clusters that a binding is on, and those of them that are candidates."""
        names = self.rng.sample(sorted(self.clusters), 5)
        return names, [
            Candidate(
                self.clusters[name],
                self.rng.choice((0, 50, 100, 150)),
                self.rng.choice((0, 0, 1)),
                held + (available := 7 if self.available[name] == MAX_INT32 else self.available[name]),
                available,
            )
            for name, held in zip(names[:4], (0, 1, 2, 30), strict=True)
        ]


def shown(candidates: CandidateList) -> tuple[object, ...]:
    fitting = {name: members.scores_with(7) for name, members in candidates.by_region().items()}
    regions = {region: list(members) for region, members in candidates.by_region().items()}
    targets = [TargetCluster(f"m{number:04}") for number in range(70)]
    votes = candidates.votes()
    given = [
        votes.allocate(seats, descending_names=descending)
        for seats in (1, 3, 9, 40, 3000)
        for descending in (False, True)
        if votes.total > 0
    ]
    return (
        list(candidates),
        fitting,
        regions,
        candidates.regions("key", _sum_of_scores),
        [candidates.find(target.name) for target in targets],
        candidates.only_candidates(targets),
        votes.total,
        given,
        candidates.by_available,
    )


def _sum_of_scores(members: Sequence[Candidate]) -> int:
    return sum((place + 1) * (each.score + each.available) for place, each in enumerate(members))


TIER_SCORES = {"equal tier scores": [(0, 0)], "several": [(0, 0), (0, 100), (1, 50)]}


@pytest.mark.parametrize("tier_scores", TIER_SCORES.values(), ids=TIER_SCORES)
@pytest.mark.parametrize(("size", "most", "steps"), [(60, 3, 60), (60, 60, 60), (2000, 400, 5)])
def test_a_refreshed_order_equals_an_order_built_from_scratch(
    tier_scores: Sequence[TierScore], size: int, most: int, steps: int
) -> None:
    clusters = ChangingClusters(most, tier_scores=tier_scores, size=size)
    for _ in range(steps):
        for name in clusters.rng.sample(clusters.names, clusters.rng.randrange(most)):
            clusters.change(name)
        names, overrides = clusters.overrides()
        others = [each for each in clusters.from_scratch() if each.name not in names]
        assert shown(clusters.cached()) == shown(CandidateList(clusters.from_scratch()))
        moved = CandidateList(sorted((*others, *overrides), key=sort_key))
        assert shown(with_overrides(clusters.cached(), names, overrides)) == shown(moved)


def test_only_changed_clusters_are_scored_and_estimated() -> None:
    clusters = ChangingClusters(2, tier_scores=[(0, 0)])
    clusters.cached()
    clusters.estimated.clear()
    clusters.scored.clear()
    for name in ("m0003", "m0004"):
        clusters.put(name)
    clusters.cached()
    assert clusters.estimated == clusters.scored == ["m0003", "m0004"]
    assert clusters.cached() == clusters.from_scratch()


def test_an_order_of_one_cluster_grows() -> None:
    clusters = ChangingClusters(2, tier_scores=[(0, 0)], size=0)
    for name in ("m1", "m2"):
        clusters.put(name)
        assert clusters.cached() == clusters.from_scratch()


def test_a_region_whose_only_cluster_does_not_fit_one_binding_is_left_out_for_that_binding() -> None:
    clusters = ChangingClusters(2, tier_scores=[(0, 0)], size=0)
    clusters.put("m1", region="a")
    clusters.put("m2", region="b")
    assert list(with_overrides(clusters.cached(), ["m1"], []).by_region()) == ["b"]


def test_scores_are_used_again_for_other_filters_but_not_for_other_scores() -> None:
    snapshot = Snapshot.of((cluster(name).build() for name in ("m1", "m2")), log=ChangeLog())
    caches, scored = OrderingCaches(), list[list[str]]()

    def scores(filters: str, scoring: str, value: int, *refused: str) -> list[TierScore]:
        def score(clusters: Sequence[Cluster]) -> list[TierScore]:
            scored.append([each.name for each in clusters])
            return [(0, value)] * len(clusters)

        results = FilterResults(filters)
        results.refresh(
            snapshot, lambda clusters: {each.name: REFUSED for each in clusters if each.name in refused}
        )
        return list(
            caches.refreshed_scores(ScoreKey(filters, scoring, None), snapshot, results, score).tier_scores()
        )

    assert scores("some", "by-name", 10, "m2") == [(0, 10)]
    assert scores("all", "by-name", 20) == [(0, 10), (0, 20)]
    assert scored == [["m1"], ["m2"]]
    assert scores("all", "by-size", 30) == [(0, 30), (0, 30)]


def test_unknown_capacity_counts_as_the_replicas_of_each_binding() -> None:
    clusters = ChangingClusters(4, tier_scores=[(0, 0)])
    for unknown in (7, 0, 7, 50, MAX_INT32, 2**40):
        assert clusters.cached(unknown=unknown) == clusters.from_scratch(unknown=unknown)


def test_candidates_do_not_change_when_the_cache_is_refreshed() -> None:
    clusters = ChangingClusters(1, tier_scores=[(0, 0)])
    candidates, names, overrides = clusters.cached(), *clusters.overrides()
    before = clusters.from_scratch()
    for name in clusters.names[:20]:
        clusters.change(name)
    with_overrides(clusters.cached(), names, overrides)
    assert shown(candidates) == shown(CandidateList(before))


@pytest.mark.parametrize("tier_scores", TIER_SCORES.values(), ids=TIER_SCORES)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_an_order_for_one_binding_equals_one_built_from_scratch(
    tier_scores: Sequence[TierScore], share: float
) -> None:
    shared, rng = ChangingClusters(6, tier_scores=tier_scores).cached(), random.Random(6)
    left_out = {each.name for each in shared if rng.random() < share} | {"unknown"}
    kept = [each for each in shared.feasible.clusters if each.name not in left_out]
    more = {each.name: rng.choice((0, 10, 10, 90)) for each in kept}
    rows = {each.name: row for row, each in enumerate(kept)}
    few = [each for each in shared if each.name in rows]
    raised = sorted((each._replace(score=each.score + more[each.name]) for each in few), key=sort_key)
    assert shown(shared.narrowed(left_out, kept, rows, list(more.values()))) == shown(CandidateList(raised))
    assert shared.narrowed(left_out, kept, rows) == few


def test_lazy_candidates_are_equal_in_any_order_of_access() -> None:
    clusters = ChangingClusters(5, tier_scores=TIER_SCORES["several"])
    expected = clusters.from_scratch()
    for index in (0, 1, -1, len(expected) - 1, slice(3), slice(1, 40, 7), slice(None), slice(-3, None)):
        assert clusters.refreshed(FilterResults("key"), ScoreCache(), OrderCache(), unknown=7)[index] == (
            expected[index] if isinstance(index, int) else tuple(expected[index])
        )
    candidates = clusters.cached()
    few = [candidate for _, candidate in zip(range(11), candidates, strict=False)]
    assert few == expected[:11]
    assert list(reversed(candidates)) == expected[::-1]
    assert (len(candidates), expected[5] in candidates, candidates.index(expected[5])) == (
        len(expected),
        True,
        5,
    )
    assert candidates == tuple(expected)
    assert candidates != expected[1:]
    assert list(candidates) == list(candidates) == expected
    for beyond in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            clusters.refreshed(FilterResults("key"), ScoreCache(), OrderCache(), unknown=7)[beyond]


@pytest.mark.parametrize("seed", range(30))
def test_few_seats_go_to_the_same_parties_as_with_all_votes(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"m{number:03}" for number in range(rng.choice((6, 100)))]
    kinds = rng.choice(((0, 3, 7, 7, 50), (0,), (-9, 0, 4), (-9, -2)))
    votes = {name: rng.choice(kinds) for name in names}
    without = {name: votes[name] for name in rng.sample(names, 5)}
    besides = {name: rng.randrange(60) for name in list(without)[:3]}
    sorted_votes = SortedVotes(
        sorted((-count, name) for name, count in votes.items()),
        sum(votes.values()),
        without=without,
        additional=besides,
    )
    whole = {name: count for name, count in votes.items() if name not in without} | besides
    assert sorted_votes.total == sum(whole.values())
    for seats in (0, 1, 2, 10, 25, 60, 500):
        for descending in (False, True):
            given = webster.allocate(seats, whole, descending_names=descending)
            expected = {name: count for name, count in given.items() if count}
            assert sorted_votes.allocate(seats, descending_names=descending) == expected


def divided(candidates: Sequence[Candidate], cycle: Cycle) -> object:
    """Return how replicas are divided, or the error."""
    try:
        return assign_replicas(cycle, candidates)
    except UnschedulableError as error:
        return str(error)


@pytest.mark.parametrize("aggregated", [False, True])
@pytest.mark.parametrize(("size", "most", "steps"), [(12, 4, 150), (60, 3, 150), (300, 400, 30)])
def test_a_rebalance_divides_over_a_shared_order_as_over_candidates_that_are_sorted_for_it(
    size: int, most: int, steps: int, aggregated: bool
) -> None:
    """The sort is Go's, whose order of clusters with equal capacity depends on all of them."""
    clusters = ChangingClusters(most, tier_scores=TIER_SCORES["several"], size=size)
    made = binding("web").aggregated() if aggregated else binding("web").dynamic_weight()
    made.last_scheduled("2026-01-01T00:00:00Z").reschedule_triggered("2026-01-02T00:00:00Z")
    results = set()
    for step in range(steps):
        for name in clusters.rng.sample(clusters.names, clusters.rng.randrange(most) % size):
            clusters.change(name)
        names, overrides = clusters.overrides()
        held = clusters.rng.sample(names, 3) + clusters.rng.sample(clusters.names, 2)
        shared = clusters.cached()
        for candidates in (shared, with_overrides(shared, names, overrides)):
            for replicas in (-1, 0, 1, 7, 40, 10**6):
                asked = made.replicas(replicas, cpu="1").uid("ab"[step % 2]).build()
                present = tuple(TargetCluster(name, step % 9) for name in held if step % 5)
                assert asked.spec.placement is not None
                cycle = Cycle(
                    replace(asked, spec=replace(asked.spec, clusters=present)), asked.spec.placement
                )
                found = divided(candidates, cycle)
                assert found == divided(tuple(candidates), cycle)
                kept = replace(cycle, kept=KeptSteps({}))
                assert found == divided(candidates, kept), "what is kept changes nothing"
                results.add(type(found))
    assert results == {list, str}


def test_the_fewest_parties_are_not_known_if_equal_votes_compete_for_the_last_place() -> None:
    votes = SortedVotes([(-9, "a"), (-7, "b"), (-7, "c"), (-1, "d")], 24)
    assert votes.fewest(9) == {"a": 9}
    assert votes.fewest(10) is None
    assert votes.fewest(17) == {"a": 9, "b": 7, "c": 7}
    assert votes.fewest(24) == {"a": 9, "b": 7, "c": 7, "d": 1}
    more = SortedVotes([(-9, "a"), (-7, "b")], 16, without={"a": 9}, additional={"a": 3, "n": 8})
    assert more.fewest(9) == {"n": 8, "b": 7}
    assert SortedVotes([(-MAX_INT32, "a"), (-1, "b")], 2**31).fewest(2**31) is None


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_sorted_by_rank_capacity_and_row_whatever_bits_the_numbers_have(seed: int) -> None:
    rng = random.Random(seed)
    edges = (-(2**40), -(2**31) - 1, -(2**31), -1, 0, 1, 2**31 - 1, 2**31, 2**40)
    available = [rng.choice(edges if seed % 2 else edges[2:7]) for _ in range(seed)]
    ranks = [rng.randrange(3) for _ in available]
    for given in (ranks, None):
        expected = sorted(range(seed), key=lambda row: (given[row] if given else 0, -available[row], row))
        column = None if given is None else columns.column(given)
        assert columns.preferred_first(column, columns.column(available)).tolist() == expected


def test_tiers_come_before_scores_of_any_size() -> None:
    pairs = [(9000, 2**40), (0, -(2**40)), (0, 2**62), (1, 2**70)]
    levels, ranks = ranked(pairs)
    assert ranks.tolist() == [3, 1, 0, 2]
    assert [levels[rank] for rank in ranks.tolist()] == pairs
