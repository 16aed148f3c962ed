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
from karmada_scheduler.core.ordering.cache import OrderCache, ScoreCache
from karmada_scheduler.core.ordering.candidates import CandidateList, EagerCandidateList, sort_key
from karmada_scheduler.core.ordering.columnar import SharedOrder, TierScore
from karmada_scheduler.framework import Candidate, Result, Snapshot
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.snapshot import ChangeLog
from karmada_scheduler.testing import cluster

REFUSED = Result.unschedulable("no")


class World:
    """Clusters with room, merit and region, some refused, that change at random."""

    def __init__(self, seed: int, *, merits: Sequence[TierScore], size: int = 60) -> None:
        self.dice = random.Random(seed)
        self.possible = merits
        self.names = [f"m{number:04}" for number in range(size)]
        self.log = ChangeLog()
        self.clusters: dict[str, Cluster] = {}
        self.rooms: dict[str, int] = {}
        self.merits: dict[str, TierScore] = {}
        self.refused: set[str] = set()
        self.memory = FilterResults("key"), ScoreCache(), OrderCache()
        self.asked: list[str] = []
        for name in self.names:
            self.change(name)

    def change(self, name: str) -> None:
        self.log.append(name)
        if self.dice.random() < 0.1:
            self.clusters.pop(name, None)
            return
        self.clusters[name] = cluster(name).region(self.dice.choice(("", "a", "b", "c"))).build()
        self.rooms[name] = self.dice.choice((0, 1, 1, 2, 5, MAX_INT32, self.dice.randrange(-9, 100)))
        self.merits[name] = self.dice.choice(self.possible)
        (self.refused.add if self.dice.random() < 0.1 else self.refused.discard)(name)

    def remembered(self, *, unknown: int = 7) -> SharedOrder:
        return self.through(*self.memory, unknown=unknown)

    def through(
        self, verdicts: FilterResults, standings: ScoreCache, ranking: OrderCache, *, unknown: int
    ) -> SharedOrder:
        snapshot = Snapshot.of(self.clusters.values(), log=self.log)
        verdicts.refresh(
            snapshot, lambda asked: {each.name: REFUSED for each in asked if each.name in self.refused}
        )

        def room_of(rows: Column) -> Column:
            names = [verdicts.feasible[row].name for row in rows.tolist()]
            self.asked += names
            return columns.column([self.rooms[name] for name in names])

        standings.refresh(verdicts, lambda asked: [self.merits[each.name] for each in asked])
        ranking.refresh(verdicts, room_of)
        return ranking.shared(standings.feasible, unknown)

    def anew(self, *, unknown: int = 7) -> list[Candidate]:
        """Return the candidates in order, with nothing to go by but what is true now."""
        passing = [each for name, each in self.clusters.items() if name not in self.refused]
        return sorted((self.candidate(each, unknown) for each in passing), key=sort_key)

    def candidate(self, cluster: Cluster, unknown: int) -> Candidate:
        (tier, score), room = self.merits[cluster.name], self.rooms[cluster.name]
        room = unknown if room == MAX_INT32 else room
        return Candidate(cluster, score, tier, room, room)

    def own(self) -> tuple[list[str], list[Candidate]]:
        """Return clusters that a binding is on, and those of them that are candidates."""
        names = self.dice.sample(sorted(self.clusters), 5)
        return names, [
            Candidate(
                self.clusters[name],
                self.dice.choice((0, 50, 100, 150)),
                self.dice.choice((0, 0, 1)),
                held + (room := 7 if self.rooms[name] == MAX_INT32 else self.rooms[name]),
                room,
            )
            for name, held in zip(names[:4], (0, 1, 2, 30), strict=True)
        ]


def shown(ranked: CandidateList) -> tuple[object, ...]:
    regions = {region: list(members) for region, members in ranked.by_region().items()}
    targets = [TargetCluster(f"m{number:04}") for number in range(70)]
    ballot = ranked.votes()
    given = [
        ballot.allocate(seats, descending_names=descending)
        for seats in (1, 3, 9, 40, 3000)
        for descending in (False, True)
        if ballot.total > 0
    ]
    return list(ranked), regions, ranked.only_candidates(targets), ballot.total, given, ranked.by_available


MERITS = {"one merit": [(0, 0)], "several": [(0, 0), (0, 100), (1, 50)]}


@pytest.mark.parametrize("merits", MERITS.values(), ids=MERITS)
@pytest.mark.parametrize(("size", "most", "steps"), [(60, 3, 150), (60, 60, 150), (2000, 400, 10)])
def test_a_refreshed_order_equals_an_order_built_from_scratch(
    merits: Sequence[TierScore], size: int, most: int, steps: int
) -> None:
    world = World(most, merits=merits, size=size)
    for _ in range(steps):
        for name in world.dice.sample(world.names, world.dice.randrange(most)):
            world.change(name)
        names, own = world.own()
        others = [each for each in world.anew() if each.name not in names]
        assert shown(world.remembered()) == shown(EagerCandidateList(world.anew()))
        moved = EagerCandidateList(sorted((*others, *own), key=sort_key))
        assert shown(world.remembered().with_overrides(names, own)) == shown(moved)


def test_only_changed_clusters_are_estimated() -> None:
    world = World(2, merits=[(0, 0)])
    world.remembered()
    world.asked.clear()
    for name in ("m0003", "m0004"):
        world.log.append(name)
        world.clusters[name] = cluster(name).build()
        world.rooms[name], world.merits[name] = 3, (0, 0)
        world.refused.discard(name)
    world.remembered()
    assert world.asked == ["m0003", "m0004"]
    assert world.remembered() == world.anew()


def test_unknown_capacity_counts_as_the_replicas_of_each_binding() -> None:
    world = World(4, merits=[(0, 0)])
    for unknown in (7, 0, 7, 50, MAX_INT32, 2**40):
        assert world.remembered(unknown=unknown) == world.anew(unknown=unknown)


def test_candidates_do_not_change_when_the_cache_is_refreshed() -> None:
    world = World(1, merits=[(0, 0)])
    ranked, names, own = world.remembered(), *world.own()
    before = world.anew()
    for name in world.names[:20]:
        world.change(name)
    world.remembered().with_overrides(names, own)
    assert shown(ranked) == shown(EagerCandidateList(before))


def test_lazy_candidates_are_equal_in_any_order_of_access() -> None:
    world = World(5, merits=MERITS["several"])
    expected = world.anew()
    for look in (0, 1, -1, len(expected) - 1, slice(3), slice(1, 40, 7), slice(None), slice(-3, None)):
        assert world.through(FilterResults("key"), ScoreCache(), OrderCache(), unknown=7)[look] == (
            expected[look] if isinstance(look, int) else tuple(expected[look])
        )
    ranked = world.remembered()
    few = [candidate for _, candidate in zip(range(11), ranked, strict=False)]
    assert few == expected[:11]
    assert list(reversed(ranked)) == expected[::-1]
    assert (len(ranked), expected[5] in ranked, ranked.index(expected[5])) == (len(expected), True, 5)
    assert ranked == tuple(expected)
    assert ranked != expected[1:]
    assert list(ranked) == list(ranked) == expected
    for beyond in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError):
            world.through(FilterResults("key"), ScoreCache(), OrderCache(), unknown=7)[beyond]


@pytest.mark.parametrize("seed", range(30))
def test_few_seats_go_to_the_same_parties_as_with_all_votes(seed: int) -> None:
    dice = random.Random(seed)
    names = [f"m{number:03}" for number in range(100)]
    votes = {name: dice.choice((0, 3, 7, 7, 50)) for name in names}
    without = {name: votes[name] for name in dice.sample(names, 5)}
    besides = {name: dice.randrange(60) for name in list(without)[:3]}
    ballot = SortedVotes(
        sorted((-count, name) for name, count in votes.items()),
        sum(votes.values()),
        without=without,
        besides=besides,
    )
    whole = {name: count for name, count in votes.items() if name not in without} | besides
    assert ballot.total == sum(whole.values())
    for seats in (1, 2, 10, 25, 60, 500):
        for descending in (False, True):
            everybody = webster.allocate(seats, whole, descending_names=descending)
            expected = {name: count for name, count in everybody.items() if count}
            assert ballot.allocate(seats, descending_names=descending) == expected
