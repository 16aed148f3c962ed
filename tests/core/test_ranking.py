"""Orders that are kept true by moving what changed are the orders that would be made anew."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core import webster
from karmada_scheduler.core.ranking import Merit, Ranked, Ranking
from karmada_scheduler.core.webster import Ballot
from karmada_scheduler.framework import Candidate, Result, Snapshot
from karmada_scheduler.framework.memo import Verdicts
from karmada_scheduler.framework.snapshot import ChangeLog
from karmada_scheduler.testing import cluster

REFUSED = Result.unschedulable("no")


class World:
    """Sixty clusters with room, merit and region, some refused, that change at random."""

    def __init__(self, seed: int, *, merits: Sequence[Merit]) -> None:
        self.dice = random.Random(seed)
        self.possible = merits
        self.log = ChangeLog()
        self.clusters: dict[str, Cluster] = {}
        self.rooms: dict[str, int] = {}
        self.merits: dict[str, Merit] = {}
        self.refused: set[str] = set()
        self.verdicts = Verdicts("key")
        self.ranking = Ranking()
        for number in range(60):
            self.change(f"m{number:02}")

    def change(self, name: str) -> None:
        self.log.append(name)
        if self.dice.random() < 0.1:
            self.clusters.pop(name, None)
            return
        self.clusters[name] = cluster(name).region(self.dice.choice(("", "a", "b", "c"))).build()
        self.rooms[name] = self.dice.choice((0, 1, 1, 2, 5, self.dice.randrange(100)))
        self.merits[name] = self.dice.choice(self.possible)
        (self.refused.add if self.dice.random() < 0.1 else self.refused.discard)(name)

    def refreshed(self, ranking: Ranking, verdicts: Verdicts) -> Ranking:
        snapshot = Snapshot.of(self.clusters.values(), log=self.log)
        verdicts.refresh(
            snapshot, lambda asked: {each.name: REFUSED for each in asked if each.name in self.refused}
        )
        ranking.refresh(verdicts, self.merits, lambda asked: [self.rooms[each.name] for each in asked])
        return ranking

    def own(self) -> tuple[list[str], list[Candidate]]:
        """Return clusters that a binding is on, and those of them that are candidates."""
        names = self.dice.sample(sorted(self.clusters), 3)
        own = [
            Candidate(self.clusters[name], 100, 0, self.rooms[name] + 2, self.rooms[name])
            for name in names[:2]
        ]
        return names, own


def shown(ranked: Ranked) -> tuple[object, ...]:
    regions = {region: list(members) for region, members in ranked.by_region().items()}
    targets = [TargetCluster(f"m{number:02}") for number in range(60)]
    ballot = ranked.ballot()
    given = [
        ballot.allocate(seats, descending_names=descending)
        for seats in (1, 3, 9, 40)
        for descending in (False, True)
        if ballot.total > 0
    ]
    return list(ranked), regions, ranked.among(targets), ballot.total, given


@pytest.mark.parametrize("merits", [[(0, 0)], [(0, 0), (0, 100), (1, 50)]], ids=["one merit", "several"])
@pytest.mark.parametrize("most", [3, 60], ids=["few at a time", "many at a time"])
def test_an_order_that_has_moved_is_the_order_made_anew(merits: Sequence[Merit], most: int) -> None:
    world = World(most, merits=merits)
    for _ in range(150):
        for name in world.dice.sample(range(60), world.dice.randrange(most)):
            world.change(f"m{name:02}")
        moved = world.refreshed(world.ranking, world.verdicts)
        anew = world.refreshed(Ranking(), Verdicts("key"))
        names, own = world.own()
        check(moved.ranked, anew.ranked)
        check(moved.ranked_with(names, own), anew.ranked_with(names, own))


def check(moved: Ranked, anew: Ranked) -> None:
    assert shown(moved) == shown(anew)
    assert shown(Ranked(anew)) == shown(anew)  # with nothing to go by but the candidates


def test_candidates_outlive_the_changes_after_them() -> None:
    world = World(1, merits=[(0, 0)])
    ranked = world.refreshed(world.ranking, world.verdicts).ranked
    before = shown(ranked)
    for number in range(5):
        world.change(f"m{number:02}")
    world.refreshed(world.ranking, world.verdicts)
    assert shown(ranked) == before


@pytest.mark.parametrize("seed", range(30))
def test_few_seats_fall_as_if_all_parties_had_been_looked_at(seed: int) -> None:
    dice = random.Random(seed)
    names = [f"m{number:03}" for number in range(100)]
    votes = {name: dice.choice((0, 3, 7, 7, 50)) for name in names}
    without = {name: votes[name] for name in dice.sample(names, 5)}
    besides = {name: dice.randrange(60) for name in list(without)[:3]}
    ballot = Ballot(
        sorted((1, -count, name) for name, count in votes.items()),
        sum(votes.values()),
        before=(1,),
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
