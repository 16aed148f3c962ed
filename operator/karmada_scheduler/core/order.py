"""Candidates in the order of preference, in which single ones can be moved."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from karmada_scheduler.framework.cycle import Candidate

Place = tuple[int, int, int, str]
"""Where a candidate stands: tier, minus score, minus room, name; no two are the same."""


def place_of(candidate: Candidate) -> Place:
    """Return where a candidate stands; the smallest comes first."""
    cluster, score, tier, available, _ = candidate
    return tier, -score, -available, cluster.name


class Order:
    """Candidates and their places, both in the order of places."""

    __slots__ = ("candidates", "places")

    def __init__(self, candidates: Iterable[Candidate] = ()) -> None:
        """Sort candidates."""
        unordered = list(candidates)
        places = list(map(place_of, unordered))
        order = sorted(range(len(places)), key=places.__getitem__)
        self.candidates = [unordered[index] for index in order]
        self.places = [places[index] for index in order]

    def with_moved(self, away: Iterable[Candidate], own: Iterable[Candidate]) -> Order:
        """Return another order, without some of its candidates and with others."""
        twin = Order()
        twin.candidates, twin.places = self.candidates.copy(), self.places.copy()
        for candidate in away:
            twin.remove(candidate)
        for candidate in own:
            twin.insert(candidate)
        return twin

    def by_region(self) -> dict[str, Order]:
        """Return the order within each region."""
        orders: dict[str, Order] = {}
        for candidate, place in zip(self.candidates, self.places, strict=True):
            region = candidate.cluster.region
            order = orders.get(region)
            if order is None:
                order = orders[region] = Order()
            order.candidates.append(candidate)
            order.places.append(place)
        return orders

    def remove(self, candidate: Candidate) -> None:
        """Take out a candidate that is in it."""
        index = bisect_left(self.places, place_of(candidate))
        del self.places[index], self.candidates[index]

    def insert(self, candidate: Candidate) -> None:
        """Put in a candidate."""
        place = place_of(candidate)
        index = bisect_left(self.places, place)
        self.places.insert(index, place)
        self.candidates.insert(index, candidate)

    def move(self, old: Candidate, new: Candidate) -> None:
        """Put one candidate in the place of another, or where it belongs."""
        before, after = place_of(old), place_of(new)
        index = bisect_left(self.places, before)
        if before != after:
            del self.places[index], self.candidates[index]
            index = bisect_left(self.places, after)
            self.places.insert(index, after)
            self.candidates.insert(index, new)
        else:
            self.candidates[index] = new

    def replace(
        self, names: AbstractSet[str], new: Iterable[Candidate], by_name: Mapping[str, Candidate]
    ) -> None:
        """Take out the candidates of these names and put in new ones, many at once.

        Args:
            names: Those whose places do not hold any more.
            new: Candidates of some of these names.
            by_name: All candidates as they are then.
        """
        self.places = [place for place in self.places if place[3] not in names]
        self.places += map(place_of, new)
        self.places.sort()
        self.candidates = [by_name[place[3]] for place in self.places]
