"""A shared order in which some clusters are replaced, for one binding: those that are evaluated for it only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.quantity import wrap32
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.core.ordering.candidates import NO_MORE, CandidateList, Region, SortKey, sort_key
from karmada_scheduler.core.ordering.columnar import LazyCandidateList, SharedOrder
from karmada_scheduler.framework.cycle import Candidate


def with_overrides(
    shared: SharedOrder, names: Iterable[str], overrides: Sequence[Candidate]
) -> LazyCandidateList:
    """Return an order with some clusters replaced; itself if none of them is in it.

    Args:
        shared: The order for many bindings.
        names: The clusters that are evaluated for one binding.
        overrides: Those of them that are feasible.
    """
    rows = shared.feasible.rows
    replaced = [row for name in names if (row := rows.get(name)) is not None]
    return OrderWithOverrides(shared, replaced, overrides) if replaced or overrides else shared


class OrderWithOverrides(LazyCandidateList):
    """A shared order in which some rows are replaced, for one binding."""

    def __init__(self, shared: SharedOrder, replaced: Sequence[int], overrides: Sequence[Candidate]) -> None:
        """Replace some rows of a shared order by candidates that were evaluated for one binding."""
        feasible, available = shared.feasible, shared.available
        super().__init__(feasible, available, overrides=sorted(overrides, key=sort_key))
        self._shared = shared
        self._replaced_rows = replaced
        self._replaced = {feasible.clusters[row].name: available.item(row) for row in replaced}

    @cached_property
    def order(self) -> Column:
        """Rows in the order of preference."""
        shared, count, overrides = self._shared, len(self.available), self.overrides
        order = (
            columns.without(shared.order, self._replaced_rows, count) if self._replaced_rows else shared.order
        )
        if not overrides:
            return order
        rows = range(count, count + len(overrides))
        return columns.with_inserted(order, _positions(shared, order, overrides), rows)

    def find(self, name: str) -> Candidate | None:
        """Return the candidate of a cluster, None if it is none."""
        own = next((candidate for candidate in self.overrides if candidate.name == name), None)
        return own if own is not None or name in self._replaced else self._shared.find(name)

    def regions(self, key: Hashable, score_of: Callable[[CandidateList], int]) -> Mapping[str, Region]:
        """Return the regions with their scores; only those with replaced clusters differ from the shared ones."""
        shared = self._shared.regions(key, score_of)
        regions = dict(shared)
        for name, members in self._changed_regions.items():
            if len(members):
                regions[name] = Region.of(name, score_of(members), members)
            else:
                regions.pop(name, None)
        return regions if regions.keys() <= shared.keys() else dict(sorted(regions.items()))

    @cached_property
    def _regions(self) -> Mapping[str, LazyCandidateList]:
        """The shared regions, but for those with replaced clusters."""
        regions = {**self._shared.by_region(), **self._changed_regions}
        return {name: members for name, members in regions.items() if len(members)}

    @cached_property
    def _changed_regions(self) -> Mapping[str, LazyCandidateList]:
        """The regions with replaced clusters; they may have none left."""
        names, numbers = self.feasible.region_names, self.feasible.regions
        shared, count = self._shared, len(self.available)
        replaced: dict[str, list[int]] = {}
        for row in self._replaced_rows:
            replaced.setdefault(names[numbers.item(row)], []).append(row)
        inserted: dict[str, list[int]] = {}
        for row, override in enumerate(self.overrides, start=count):
            inserted.setdefault(override.cluster.region, []).append(row)
        changed = {}
        for name in dict.fromkeys((*replaced, *inserted)):
            if not name:
                continue
            members = shared.by_region().get(name)
            order = columns.all_rows(0) if members is None else members.order
            if name in replaced:
                order = columns.without(order, replaced[name], count)
            if rows := inserted.get(name):
                own = [self.overrides[row - count] for row in rows]
                order = columns.with_inserted(order, _positions(shared, order, own), rows)
            changed[name] = LazyCandidateList(self.feasible, self.available, order, self.overrides)
        return changed

    def votes(self, more: Mapping[str, int] = NO_MORE) -> SortedVotes:
        """Return the candidates' available replicas as votes; ``more`` are further ones of some candidates."""
        overrides = {candidate.name: candidate.allocatable for candidate in self.overrides}
        shared, without = self._shared, self._replaced
        if more:
            plain = shared.available_of(name for name in more if name not in without)
            changed = {name: count for name, count in (overrides | plain).items() if name in more}
            overrides |= {name: wrap32(count + more[name]) for name, count in changed.items()}
            without = without | plain
        return SortedVotes(shared.sorted_votes, shared.total_available, without=without, additional=overrides)

    def only_candidates(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those of some targets that are candidates."""
        names, rows = {candidate.name for candidate in self.overrides}, self.feasible.rows
        return [
            target
            for target in targets
            if target.name in names or (target.name in rows and target.name not in self._replaced)
        ]


def _positions(shared: SharedOrder, order: Column, overrides: Sequence[Candidate]) -> list[int]:
    """Return the index in an order before which each of some sorted candidates belongs."""
    feasible, available = shared.feasible, shared.available

    def key_at(index: int) -> SortKey:
        row = order.item(index)
        tier, score = feasible.levels[feasible.ranks.item(row)]
        return tier, -score, -available.item(row), feasible.clusters[row].name

    positions, first = [], 0
    for candidate in overrides:
        # Mostly they come before all others, because the cluster that a binding is on has a better score.
        key = sort_key(candidate)
        if first < len(order) and key_at(first) < key:
            first = bisect_left(range(len(order)), key, lo=first + 1, key=key_at)
        positions.append(first)
    return positions
