"""The order of preference, remembered for bindings that differ in nothing that it depends on.

A ``Ranking`` is the order for a binding that is on no cluster yet. It is kept true by moving only the clusters
that have changed, and a binding that is on some clusters gets a copy in which only those are moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.go_sort import sort_descending
from karmada_scheduler.core.webster import Ballot
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.memo import Verdicts

Place = tuple[int, int, int, str]
"""Where a candidate stands: tier, minus score, minus room, name; no two are the same."""


def place_of(candidate: Candidate) -> Place:
    """Return where a candidate stands; the smallest comes first."""
    return candidate.tier, -candidate.score, -candidate.available, candidate.cluster.name


class Ranked(tuple[Candidate, ...]):  # noqa: SLOT001 (it remembers its ballot)
    """Candidates in the order of preference, with what dividing replicas over all of them needs."""

    @classmethod
    def of(cls, ordered: Sequence[Candidate]) -> Self:
        """Return candidates that are in order as such; the same object if they are."""
        return ordered if isinstance(ordered, cls) else cls(ordered)

    @cached_property
    def by_room(self) -> Sequence[TargetCluster]:
        """The candidates with their room as replicas, in the order in which Go sorts them by it."""
        room = (TargetCluster(candidate.name, candidate.allocatable) for candidate in self)
        return sort_descending(room, lambda target: target.replicas)

    @cached_property
    def by_region(self) -> Mapping[str, Sequence[Candidate]]:
        """The candidates of each region, in the order of preference; those without region are left out."""
        members: dict[str, list[Candidate]] = {}
        for candidate in self:
            if candidate.cluster.region:
                members.setdefault(candidate.cluster.region, []).append(candidate)
        return members

    @cached_property
    def ballot(self) -> Ballot:
        """The candidates' room as votes."""
        return Ballot({candidate.name: candidate.allocatable for candidate in self})


class Ranking:
    """The order of preference of the clusters that pass a set of filters."""

    def __init__(self) -> None:
        """Start empty, as of no version."""
        self._verdicts: Verdicts | None = None
        self._version = 0
        self._places: list[Place] = []
        self._candidates: list[Candidate] = []
        self._by_name: dict[str, Candidate] = {}
        self._unknown = False
        self._ranked: Ranked | None = None

    def refresh(
        self, verdicts: Verdicts, appraise: Callable[[Sequence[Cluster]], Sequence[Candidate]]
    ) -> None:
        """Move what has changed since the last time.

        Args:
            verdicts: Which clusters pass.
            appraise: Gives clusters their score, tier and room.
        """
        if self._verdicts is not verdicts:
            # Verdicts that were forgotten and made anew count their versions anew.
            self._verdicts, self._version = verdicts, 0
        if self._version == verdicts.version:
            return
        changed = verdicts.changed_since(self._version) if self._version else None
        if changed is None or len(changed) * 4 > len(verdicts.clusters):
            self._build(appraise(verdicts.feasible))
        else:
            new = appraise([each for each in verdicts.feasible if each.name in changed])
            self._unknown = self._unknown or _any_unknown(new)
            for name in changed:
                old = self._by_name.pop(name, None)
                if old is not None:
                    _remove(old, self._places, self._candidates)
            for candidate in new:
                self._by_name[candidate.name] = candidate
                _insert(candidate, self._places, self._candidates)
        self._version = verdicts.version
        self._ranked = None

    def _build(self, candidates: Sequence[Candidate]) -> None:
        self._unknown = _any_unknown(candidates)
        self._candidates = sorted(candidates, key=place_of)
        self._places = [place_of(candidate) for candidate in self._candidates]
        self._by_name = {candidate.name: candidate for candidate in candidates}

    @property
    def ranked(self) -> Ranked:
        """All candidates, the most preferred first."""
        if self._ranked is None:
            self._ranked = Ranked(self._candidates)
        return self._ranked

    @property
    def has_unknown_room(self) -> bool:
        """Whether no estimator knows of some candidate, so that the binding's replicas have to stand for its room."""
        return self._unknown

    def ranked_with(self, names: Iterable[str], own: Iterable[Candidate]) -> Ranked:
        """Return the order in which some clusters stand elsewhere, or are not candidates at all.

        Args:
            names: The clusters whose place here does not hold.
            own: Those of them that are candidates, as they are for the binding in question.
        """
        places, candidates = self._places.copy(), self._candidates.copy()
        for name in names:
            if name in self._by_name:
                _remove(self._by_name[name], places, candidates)
        for candidate in own:
            _insert(candidate, places, candidates)
        return Ranked(candidates)


def _any_unknown(candidates: Iterable[Candidate]) -> bool:
    return any(candidate.allocatable == MAX_INT32 for candidate in candidates)


def _remove(candidate: Candidate, places: list[Place], candidates: list[Candidate]) -> None:
    index = bisect_left(places, place_of(candidate))
    del places[index], candidates[index]


def _insert(candidate: Candidate, places: list[Place], candidates: list[Candidate]) -> None:
    place = place_of(candidate)
    index = bisect_left(places, place)
    places.insert(index, place)
    candidates.insert(index, candidate)
