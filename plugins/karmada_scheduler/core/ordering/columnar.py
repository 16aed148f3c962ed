"""Orders of candidates over columns, one row per cluster; candidate objects are created when they are read.

Most decisions read few of a thousand clusters: the first in order, those with the most available replicas, the first
of each region. ``SharedOrder`` is the order for many bindings. ``OrderWithOverrides`` is that order for one binding,
in which the clusters that it is on, or is evicted from, are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Final, overload

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.api.quantity import wrap32
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.core.ordering.candidates import NO_MORE, CandidateList, Region
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.structs import Struct

_FIRST_BATCH: Final = 8
"""Candidates that an iteration creates one by one; later ones are created in batches."""
_MAX_REGIONS: Final = 256
"""Regions with scores that are kept with an order; bindings behind one policy have few different numbers of replicas."""

TierScore = tuple[int, int]
"""Tier and score of a cluster: its place depends on them and on its available replicas."""


def ranked(tier_scores: Sequence[TierScore]) -> tuple[Sequence[TierScore], Column]:
    """Return the different pairs, the lowest tier and then the highest score first, and the index of each pair in them."""
    levels = sorted(set(tier_scores), key=lambda pair: (pair[0], -pair[1]))
    return levels or [(0, 0)], columns.indexes(tier_scores, levels)


def _raised(
    levels: Sequence[TierScore], ranks: Column, more: Sequence[int]
) -> tuple[Sequence[TierScore], Column]:
    """Return levels and ranks with more score in each row."""
    if len(levels) > 1:
        pairs = ((*levels[rank], added) for rank, added in zip(ranks.tolist(), more, strict=True))
        return ranked([(tier, score + added) for tier, score, added in pairs])
    tier, score = levels[0]
    different = sorted(set(more), reverse=True)
    return [(tier, score + added) for added in different], columns.indexes(more, different)


class FeasibleClusters(Struct, frozen=True):
    """The clusters that pass a set of filters, in the order of names, with tier and score.

    Attributes:
        rows: Cluster name to row.
        levels: The different tiers and scores, the best first; one at least.
        ranks: Per row the index of its tier and score in ``levels``.
        region_names: The names of the regions; the empty name means no region.
        regions: Per row the index of its region in ``region_names``.
    """

    clusters: Sequence[Cluster]
    rows: Mapping[str, int]
    levels: Sequence[TierScore]
    ranks: Column
    region_names: Sequence[str]
    regions: Column

    def tier_scores(self, rows: Column | None = None) -> list[TierScore]:
        """Return tier and score of some rows, of all by default; any for a row past the end."""
        if len(self.levels) == 1:
            return [*self.levels] * len(self.ranks if rows is None else rows)
        ranks = self.ranks.tolist() if rows is None else columns.taken(self.ranks, rows)
        return [self.levels[rank] for rank in ranks]

    def preferred_first(self, available: Column) -> Column:
        """Return all rows in the order of preference, given the available replicas in each."""
        return columns.preferred_first(self.ranks if len(self.levels) > 1 else None, available)


class Votes(Sequence[tuple[int, str]]):
    """Minus the available replicas and the name of each cluster, sorted."""

    def __init__(self, clusters: Sequence[Cluster], available: Column, order: Column) -> None:
        self._clusters, self._available, self._order = clusters, available, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> tuple[int, str]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, str]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, str] | Sequence[tuple[int, str]]:
        if not isinstance(index, slice):
            row = self._order.item(index)
            return -self._available.item(row), self._clusters[row].name
        order = self._order[index]
        return [
            (-available, self._clusters[row].name)
            for row, available in zip(order.tolist(), self._available[order].tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self[:])


class LazyCandidateList(CandidateList):
    """Some rows in the order of preference, as candidates when they are read. Everything that it consists of is immutable.

    Row numbers past the end of the shared columns index ``overrides``, the candidates evaluated for one binding only.

    Attributes:
        feasible: The clusters with tier and score.
        available: The available replicas of each of them.
        overrides: Candidates evaluated for one binding.
    """

    def __init__(
        self,
        feasible: FeasibleClusters,
        available: Column,
        order: Column | None = None,
        overrides: Sequence[Candidate] = (),
    ) -> None:
        """Take rows in the order of preference; without them, all rows are sorted when the order is first read."""
        self.feasible = feasible
        self.available = available
        self._order = order
        self.overrides = overrides
        self._created: tuple[Candidate, ...] | None = None

    @cached_property
    def order(self) -> Column:
        """Rows in the order of preference."""
        return self.feasible.preferred_first(self.available) if self._order is None else self._order

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All candidates."""
        if self._created is None:
            self._created = tuple(self._create(self.order))
        return self._created

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if self._created is not None:
            return self._created[index]
        if isinstance(index, slice):
            return tuple(self._create(self.order[index]))
        row, count = self.order.item(index), len(self.available)
        if row >= count:
            return self.overrides[row - count]
        return self._at(row)

    def _at(self, row: int) -> Candidate:
        """Return the candidate in a row of the shared columns."""
        (tier, score), free = self.feasible.levels[self.feasible.ranks.item(row)], self.available.item(row)
        return Candidate(self.feasible.clusters[row], score, tier, free, free)

    def __iter__(self) -> Iterator[Candidate]:
        created: list[Candidate] = []
        for index in range(min(_FIRST_BATCH, len(self.order))):
            created.append(self[index])
            yield created[-1]
        if self._created is None:
            while len(created) < len(self.order):
                batch = self._create(self.order[len(created) : 4 * len(created)])
                created += batch
                yield from batch
            self._created = tuple(created)
        else:
            yield from self._created[len(created) :]

    def _create(self, order: Column) -> list[Candidate]:
        clusters, overrides, count = self.feasible.clusters, self.overrides, len(self.available)
        available, tier_scores = columns.taken(self.available, order), self.feasible.tier_scores(order)
        return [
            overrides[row - count] if row >= count else Candidate(clusters[row], score, tier, free, free)
            for row, free, (tier, score) in zip(order.tolist(), available, tier_scores, strict=True)
        ]

    def scores_with(self, replicas: int) -> list[int]:
        """Return the scores of the candidates with so many available replicas; see the base class."""
        if self._created is not None:
            return super().scores_with(replicas)
        order, overrides, count = self.order, self.overrides, len(self.available)
        if not overrides:
            order = order[self.available[order] >= replicas]
            return [score for _, score in self.feasible.tier_scores(order)]
        available, tier_scores = columns.taken(self.available, order), self.feasible.tier_scores(order)
        return [
            score if row < count else overrides[row - count].score
            for row, free, (_, score) in zip(order.tolist(), available, tier_scores, strict=True)
            if (free if row < count else overrides[row - count].available) >= replicas
        ]

    def by_region(self) -> Mapping[str, LazyCandidateList]:
        """Return the candidates of each region, in the order of preference; those without region are left out."""
        return self._regions

    @cached_property
    def _regions(self) -> Mapping[str, LazyCandidateList]:
        names = self.feasible.region_names
        return {
            names[number]: LazyCandidateList(self.feasible, self.available, order)
            for number, order in columns.groups(self.feasible.regions, self.order)
            if names[number]
        }


class SharedOrder(LazyCandidateList):
    """All feasible clusters in the order of preference, for many bindings.

    Attributes:
        selections: Selections from exactly these candidates, by the constraints that they depend on.
        scored_regions: The regions of exactly these candidates, by what their scores depend on.
    """

    def __init__(
        self, feasible: FeasibleClusters, available: Column, selections: LRUCache[Sequence[Candidate]]
    ) -> None:
        """Take all rows, and a cache for selections from them."""
        super().__init__(feasible, available)
        self.selections: Final = selections
        self.scored_regions: Final[LRUCache[Mapping[str, Region]]] = LRUCache(size_of=len)

    def narrowed(
        self,
        left_out: Iterable[str],
        clusters: Sequence[Cluster],
        rows: Mapping[str, int],
        more: Sequence[int] = (),
    ) -> SharedOrder:
        """Return the order of some of these clusters, for one binding.

        Args:
            left_out: The names of the others; names of no cluster are ignored.
            clusters: The clusters, in the order of names.
            rows: The index of each of them by name.
            more: What is added to the score of each; empty for nothing.
        """
        before, count, available = self.feasible, len(self.available), self.available
        levels, ranks, regions = before.levels, before.ranks, before.regions
        if dropped := [row for name in left_out if (row := before.rows.get(name)) is not None]:
            kept = columns.without(columns.all_rows(count), dropped, count)
            available, ranks, regions = available[kept], ranks[kept], regions[kept]
        if more:
            levels, ranks = _raised(levels, ranks, more)
        feasible = FeasibleClusters(clusters, rows, levels, ranks, before.region_names, regions)
        return SharedOrder(feasible, available, LRUCache())

    def with_available(self, available: Mapping[str, int]) -> SharedOrder:
        """Return the order for one binding for which some of these clusters have other available replicas."""
        changed = self.available.copy()
        changed[[self.feasible.rows[name] for name in available]] = list(available.values())
        return SharedOrder(self.feasible, changed, LRUCache())

    def __len__(self) -> int:
        return len(self.available)

    def regions(self, key: Hashable, score_of: Callable[[CandidateList], int]) -> Mapping[str, Region]:
        """Return the regions with their scores; see the base class."""
        return self.scored_regions.get(key, partial(super().regions, key, score_of), max_size=_MAX_REGIONS)

    def find(self, name: str) -> Candidate | None:
        """Return the candidate of a cluster, None if it is none."""
        row = self.feasible.rows.get(name)
        return None if row is None else self._at(row)

    def votes(self, more: Mapping[str, int] = NO_MORE) -> SortedVotes:
        """Return the candidates' available replicas as votes; ``more`` are further ones of some candidates."""
        without = self.available_of(more)
        additional = {name: wrap32(available + more[name]) for name, available in without.items()}
        return SortedVotes(self.sorted_votes, self.total_available, without=without, additional=additional)

    def available_of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the available replicas of those of some clusters that are candidates."""
        rows = self.feasible.rows
        return {name: self.available.item(row) for name in names if (row := rows.get(name)) is not None}

    def only_candidates(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those of some targets that are candidates."""
        return [target for target in targets if target.name in self.feasible.rows]

    @cached_property
    def sorted_votes(self) -> Votes:
        """The available replicas of each cluster, the most first."""
        is_by_available = len(self.feasible.levels) == 1
        by_available = self.order if is_by_available else columns.preferred_first(None, self.available)
        return Votes(self.feasible.clusters, self.available, by_available)

    @cached_property
    def total_available(self) -> int:
        """The available replicas of all clusters."""
        return columns.total(self.available)
