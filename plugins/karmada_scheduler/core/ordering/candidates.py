"""Candidates in the order of preference, with the data for selecting clusters and dividing replicas."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, overload

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.quantity import wrap32
from karmada_scheduler.core.algorithms.go_sort import sort_descending
from karmada_scheduler.core.algorithms.select_groups import RegionGroup
from karmada_scheduler.core.algorithms.webster import SortedVotes
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.structs import Struct

NO_MORE: Final[Mapping[str, int]] = {}

SortKey = tuple[int, int, int, str]
"""Tier, minus score, minus available replicas, name; no two candidates have the same."""


def sort_key(candidate: Candidate) -> SortKey:
    """Return the key by which candidates are ordered; the smallest comes first."""
    cluster, score, tier, available, _ = candidate
    return tier, -score, -available, cluster.name


class Region(Struct, frozen=True):
    """The candidates of one region, in the order of preference, and what the selection of regions reads of them."""

    group: RegionGroup
    candidates: Sequence[Candidate]

    @classmethod
    def of(cls, name: str, score: int, candidates: Sequence[Candidate]) -> Region:
        """Return a region with its score."""
        return cls(RegionGroup(name, len(candidates), score), candidates)

    @property
    def name(self) -> str:
        """Its name."""
        return self.group.name

    @property
    def score(self) -> int:
        """Its score."""
        return self.group.weight


class CandidateList(Sequence[Candidate]):
    """Candidates in the order of preference; equal to any sequence of the same candidates."""

    def __init__(self, ordered: Iterable[Candidate]) -> None:
        """Take candidates in the order of preference."""
        self._candidates = tuple(ordered)

    @property
    def all(self) -> tuple[Candidate, ...]:
        """All candidates."""
        return self._candidates

    def __len__(self) -> int:
        return len(self._candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        return self._candidates[index]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CandidateList):
            return self.all == other.all
        return self.all == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.all)

    def __repr__(self) -> str:
        return repr(list(self.all))

    def find(self, name: str) -> Candidate | None:
        """Return the candidate of a cluster, None if it is none."""
        return next((candidate for candidate in self if candidate.name == name), None)

    @cached_property
    def by_available(self) -> Sequence[TargetCluster]:
        """The candidates with their available replicas, in the order in which Go sorts them by that number."""
        available = (TargetCluster(candidate.name, candidate.allocatable) for candidate in self)
        return sort_descending(available, lambda target: target.replicas)

    def scores_with(self, replicas: int) -> list[int]:
        """Return the scores of the candidates with at least so many available replicas, in the order of preference."""
        return [candidate.score for candidate in self if candidate.available >= replicas]

    def by_region(self) -> Mapping[str, CandidateList]:
        """Return the candidates of each region, in the order of preference; those without region are left out."""
        members: dict[str, list[Candidate]] = {}
        for candidate in self:
            if candidate.cluster.region:
                members.setdefault(candidate.cluster.region, []).append(candidate)
        return {name: CandidateList(listed) for name, listed in members.items()}

    def regions(self, key: Hashable, score_of: Callable[[CandidateList], int]) -> Mapping[str, Region]:
        """Return the regions with their scores, in the order of names.

        Args:
            key: Everything that ``score_of`` depends on besides the candidates.
            score_of: Returns the score of the candidates of a region, in the order of preference.
        """
        del key
        by_region = self.by_region()
        return {
            name: Region.of(name, score_of(by_region[name]), by_region[name]) for name in sorted(by_region)
        }

    def votes(self, more: Mapping[str, int] = NO_MORE) -> SortedVotes:
        """Return the candidates' available replicas as votes; ``more`` are further ones of some candidates."""
        votes = {
            candidate.name: wrap32(candidate.allocatable + more.get(candidate.name, 0)) for candidate in self
        }
        return SortedVotes(sorted((-count, name) for name, count in votes.items()), sum(votes.values()))

    def only_candidates(self, targets: Sequence[TargetCluster]) -> list[TargetCluster]:
        """Return those of some targets that are candidates."""
        names = {candidate.name for candidate in self}
        return [target for target in targets if target.name in names]


def candidate_list(ordered: Sequence[Candidate]) -> CandidateList:
    """Return candidates that are in the order of preference as a list; the same object if it is one."""
    return ordered if isinstance(ordered, CandidateList) else CandidateList(ordered)
