"""Candidates in the order of preference, and what choosing among them and dividing over them needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, overload

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.algorithms.go_sort import sort_descending
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.runtime.filter_cache import LRUCache

Place = tuple[int, int, int, str]
"""Where a candidate stands: tier, minus score, minus room, name; no two are the same."""


def place_of(candidate: Candidate) -> Place:
    """Return where a candidate stands; the smallest comes first."""
    cluster, score, tier, available, _ = candidate
    return tier, -score, -available, cluster.name


_MOST_CHOSEN: Final = 512
"""Candidates in all choices that are remembered of one order; mostly each has a handful."""


def _size_of(chosen: Sequence[Candidate]) -> int:
    return 8 + len(chosen)


class CandidateList(Sequence[Candidate]):
    """Candidates in the order of preference; equal to any sequence of the same."""

    def __init__(self, ordered: Iterable[Candidate]) -> None:
        """Take candidates that are in order."""
        self._made: tuple[Candidate, ...] | None = tuple(ordered)

    @classmethod
    def of(cls, ordered: Sequence[Candidate]) -> CandidateList:
        """Return candidates that are in order as such; the same object if they are."""
        return ordered if isinstance(ordered, CandidateList) else CandidateList(ordered)

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All of them."""
        return self._made or ()

    def __len__(self) -> int:
        return len(self.all)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        return self.all[index]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.all)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CandidateList):
            return self.all == other.all
        return self.all == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.all)

    def __repr__(self) -> str:
        return repr(list(self.all))

    @cached_property
    def by_room(self) -> Sequence[TargetCluster]:
        """The candidates with their room as replicas, in the order in which Go sorts them by it."""
        room = (TargetCluster(candidate.name, candidate.allocatable) for candidate in self)
        return sort_descending(room, lambda target: target.replicas)

    def by_region(self) -> Mapping[str, Sequence[Candidate]]:
        """The candidates of each region, in the order of preference; those without region are left out."""
        members: dict[str, list[Candidate]] = {}
        for candidate in self:
            if candidate.cluster.region:
                members.setdefault(candidate.cluster.region, []).append(candidate)
        return members

    def choice(self, key: Hashable, choose: Callable[[], Sequence[Candidate]]) -> Sequence[Candidate]:
        """Return what was chosen of these candidates for a key, chosen now if it was not yet.

        An order is that of many decisions, as long as no cluster changes, and many of them choose alike.

        Args:
            key: What the choice depends on beside the candidates and their order.
            choose: Chooses; what it raises is not remembered.
        """
        return self._choices.get(key, lambda: tuple(choose()), most=_MOST_CHOSEN)

    @cached_property
    def _choices(self) -> LRUCache[Sequence[Candidate]]:
        return LRUCache(size_of=_size_of)

    def ballot(self) -> SortedVotes:
        """The candidates' room as votes."""
        return SortedVotes(
            sorted((-candidate.allocatable, candidate.name) for candidate in self),
            sum(candidate.allocatable for candidate in self),
        )

    def among(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those targets that are candidates."""
        names = {candidate.name for candidate in self}
        return [target for target in targets if target.name in names]
