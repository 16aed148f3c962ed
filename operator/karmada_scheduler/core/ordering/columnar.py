"""Candidates in the order of preference that are made when somebody looks at them.

Most decisions look at few of a thousand clusters: the first in order, the roomiest, the first of each region.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, overload

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.core.ordering.candidates import CandidateList, Place, place_of
from karmada_scheduler.framework.cycle import Candidate

Merit = tuple[int, int]
"""Tier and score of a cluster: what its place depends on beside its room."""

_FIRST_LOOK: Final = 8


@dataclass(frozen=True, slots=True)
class FeasibleClusters:
    """The clusters that pass a set of filters, in the order of names, with what their places depend on beside room.

    Attributes:
        rows: Where each of them is, by name.
        merits: One per cluster.
        ranks: The place of each one's merit among all merits, from 0, the best; None if all are the same.
        region_names: The names of the regions; the empty one is none.
        regions: One per cluster: where the name of its region is.
    """

    clusters: Sequence[Cluster]
    rows: Mapping[str, int]
    merits: Sequence[Merit]
    ranks: Column | None
    region_names: Sequence[str]
    regions: Column


class LazyCandidateList(CandidateList):
    """Some clusters of a field in the order of preference; nothing that it is made of ever changes.

    A row beyond those of the field is one of ``own``: a candidate that is not what the field says of it.
    """

    def __init__(
        self, field: FeasibleClusters, room: Column, order: Column, own: Sequence[Candidate] = ()
    ) -> None:
        """Take rows in order.

        Args:
            field: What is known of the clusters.
            room: The replicas that each cluster of the field could take.
            order: Rows.
            own: Candidates that are not of the field.
        """
        self._made = None
        self.field = field
        self.room = room
        self.order = order
        self.own = own

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All of them."""
        if self._made is None:
            self._made = tuple(self._candidates(self.order))
        return self._made

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if self._made is not None:
            return self._made[index]
        if isinstance(index, slice):
            return tuple(self._candidates(self.order[index]))
        row, count = self.order.item(index), len(self.room)
        if row >= count:
            return self.own[row - count]
        (tier, score), free = self.field.merits[row], self.room.item(row)
        return Candidate(self.field.clusters[row], score, tier, free, free)

    def __iter__(self) -> Iterator[Candidate]:
        made: list[Candidate] = []
        for index in range(min(_FIRST_LOOK, len(self.order))):
            made.append(self[index])
            yield made[-1]
        if self._made is None:
            while len(made) < len(self.order):
                more = self._candidates(self.order[len(made) : 4 * len(made)])
                made += more
                yield from more
            self._made = tuple(made)
        else:
            yield from self._made[len(made) :]

    def _candidates(self, order: Column) -> list[Candidate]:
        clusters, merits, own, count = self.field.clusters, self.field.merits, self.own, len(self.room)
        if not own:
            room = self.room[order].tolist()
            return [
                Candidate(clusters[row], merits[row][1], merits[row][0], free, free)
                for row, free in zip(order.tolist(), room, strict=True)
            ]
        return [
            own[row - count]
            if row >= count
            else Candidate(clusters[row], merits[row][1], merits[row][0], free := self.room.item(row), free)
            for row in order.tolist()
        ]

    def by_region(self) -> Mapping[str, Sequence[Candidate]]:
        """The candidates of each region, in the order of preference; those without region are left out."""
        return self._regions

    @cached_property
    def _regions(self) -> Mapping[str, Sequence[Candidate]]:
        names, regions = self.field.region_names, self.field.regions
        if self.own:
            numbers = {name: number for number, name in enumerate(names)}
            own = [numbers.setdefault(each.cluster.region, len(numbers)) for each in self.own]
            names, regions = list(numbers), columns.joined(regions, own)
        return {
            names[number]: LazyCandidateList(self.field, self.room, order, self.own)
            for number, order in columns.groups(regions, self.order)
            if names[number]
        }


class SharedOrder(LazyCandidateList):
    """All clusters of a field in the order of preference."""

    def ballot(self) -> SortedVotes:
        """The candidates' room as votes."""
        return SortedVotes(self.votes, self.total)

    def among(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those targets that are candidates."""
        return [target for target in targets if target.name in self.field.rows]

    def with_moved(self, names: Iterable[str], own: Sequence[Candidate]) -> CandidateList:
        """Return the order in which some clusters stand elsewhere, or are not candidates at all.

        Args:
            names: The clusters whose place here does not hold.
            own: Those of them that are candidates, as they are elsewhere.
        """
        return _OrderWithOverrides(
            self, [row for name in names if (row := self.field.rows.get(name)) is not None], own
        )

    @cached_property
    def votes(self) -> Votes:
        """The room of each cluster, the most first."""
        order = self.order if self.field.ranks is None else columns.preferred_first(None, self.room)
        return Votes(self.field.clusters, self.room, order)

    @cached_property
    def total(self) -> int:
        """The room of all clusters."""
        return columns.total(self.room)


class _OrderWithOverrides(LazyCandidateList):
    """All clusters of a field in the order of preference, but for some that stand elsewhere."""

    def __init__(self, ranked: SharedOrder, away: Sequence[int], own: Sequence[Candidate]) -> None:
        field, room = ranked.field, ranked.room
        count = len(room)
        order = columns.without(ranked.order, away, count) if away else ranked.order
        own = sorted(own, key=place_of)
        if own:
            places = _places(ranked, order, own)
            order = columns.with_inserted(order, places, range(count, count + len(own)))
        super().__init__(field, room, order, own)
        self._ranked = ranked
        self._away = {field.clusters[row].name: room.item(row) for row in away}

    def ballot(self) -> SortedVotes:
        """The candidates' room as votes."""
        own = {candidate.name: candidate.allocatable for candidate in self.own}
        return SortedVotes(self._ranked.votes, self._ranked.total, without=self._away, besides=own)

    def among(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those targets that are candidates."""
        own = {candidate.name for candidate in self.own}
        return [
            target
            for target in targets
            if target.name in own or (target.name in self.field.rows and target.name not in self._away)
        ]


def _places(ranked: SharedOrder, order: Column, own: Sequence[Candidate]) -> list[int]:
    """Return before what place in an order each of some candidates, which are in order, belongs."""
    merits, clusters, room = ranked.field.merits, ranked.field.clusters, ranked.room

    def place_at(index: int) -> Place:
        row = order.item(index)
        tier, score = merits[row]
        return tier, -score, -room.item(row), clusters[row].name

    places, first = [], 0
    for candidate in own:
        # Mostly they come before all others, as a binding is best kept where it is.
        place = place_of(candidate)
        if first < len(order) and place_at(first) < place:
            first = bisect_left(range(len(order)), place, lo=first + 1, key=place_at)
        places.append(first)
    return places


class Votes(Sequence[tuple[int, str]]):
    """Minus the room and the name of each cluster, sorted."""

    def __init__(self, clusters: Sequence[Cluster], room: Column, order: Column) -> None:
        self._clusters, self.room, self.order = clusters, room, order

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> tuple[int, str]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, str]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, str] | Sequence[tuple[int, str]]:
        if not isinstance(index, slice):
            row = self.order.item(index)
            return -self.room.item(row), self._clusters[row].name
        order = self.order[index]
        return [
            (-room, self._clusters[row].name)
            for row, room in zip(order.tolist(), self.room[order].tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self[:])
