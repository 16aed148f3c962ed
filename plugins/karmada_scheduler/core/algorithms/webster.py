"""Apportionment by Webster's method (Sainte-Lague): seats to parties in proportion to their votes."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_NO_SEATS: Final[Mapping[str, int]] = {}
_EXACT_AS_FLOAT: Final = 2**53
_MAX_INT32: Final = 2**31 - 1
_FIRST_PART: Final = 16


def prefers_descending_names(uid: str) -> bool:
    """Return whether ties go to the later name; this holds for half of all uids, so that no name is always preferred.

    It is the parity of the 32-bit FNV-1a hash of the uid, whose lowest bit depends on the lowest bits of
    the bytes alone, as the prime is odd.
    """
    parity = 1
    for byte in uid.encode():
        parity ^= byte & 1
    return bool(uid) and parity == 1


def allocate(
    seats: int,
    votes: Mapping[str, int],
    *,
    held: Mapping[str, int] = _NO_SEATS,
    descending_names: bool = False,
) -> dict[str, int]:
    """Allocate seats one at a time, each to the party with the highest votes / (2 * seats + 1).

    Ties go to the party with fewer seats, then by name.

    Args:
        seats: Number of seats to allocate; >= 0.
        votes: Cluster name to weight.
        held: Seats that a cluster has at the start. They lower its quotient and stay in the result; a cluster
            with seats but without votes has 0 votes.
        descending_names: See ``prefers_descending_names``.

    Returns:
        Cluster name to seats, held ones included, in name order. A cluster may have 0.

    Source: karmada v1.18.2 pkg/util/helper/webstermethod.go. Quotients are float64 there
    and here, because exact ones would break near-ties differently.
    """
    names = sorted({*votes, *held})
    if not names:
        return {}
    start = _certain_seats(seats, votes) if not held else {}
    given = {name: held.get(name, 0) + start.get(name, 0) for name in names}
    ranks = range(len(names), 0, -1) if descending_names else range(len(names))
    queue = [
        (-(float(votes.get(name, 0)) / float(2 * given[name] + 1)), given[name], rank, name)
        for rank, name in zip(ranks, names, strict=True)
    ]
    heapq.heapify(queue)
    for _ in range(seats - sum(start.values())):
        _, count, rank, name = queue[0]
        count += 1
        quotient = float(votes.get(name, 0)) / float(2 * count + 1)
        heapq.heapreplace(queue, (-quotient, count, rank, name))
        given[name] = count
    return given


class SortedVotes:
    """Sorted votes, for allocating few seats among many parties.

    Only the n parties with the most votes can get one of n seats, so the others are not considered.
    """

    def __init__(
        self,
        ordered: Sequence[tuple[int, str]],
        total: int,
        *,
        without: Mapping[str, int] = _NO_SEATS,
        additional: Mapping[str, int] = _NO_SEATS,
    ) -> None:
        """Take sorted votes.

        Args:
            ordered: Minus the votes and the name of each party, sorted.
            total: Sum of all votes, including those of ``without``.
            without: Parties in ``ordered`` that do not count, with their votes there.
            additional: Parties that are not in ``ordered``, with their votes.
        """
        self._ordered = ordered
        self._without = without
        self._additional = additional
        self.total = total - sum(without.values()) + sum(additional.values())

    def allocate(self, seats: int, *, descending_names: bool) -> dict[str, int]:
        """Allocate seats as ``allocate`` does, without the parties that get none."""
        most = max(-self._ordered[0][0] if self._ordered else 0, *self._additional.values(), 0)
        votes = self._votes() if most > _EXACT_AS_FLOAT else self._best(seats, descending_names)
        given = allocate(seats, votes, descending_names=descending_names)
        return {name: count for name, count in given.items() if count}

    def fewest(self, seats: int) -> dict[str, int] | None:
        """Return the parties with the most votes that have as many votes together as there are seats.

        None if that is not known: parties with equal votes compete for the last place, or 32 bits overflow.
        """
        chosen: dict[str, int] = {}
        total = last = 0
        for minus, name in self._descending():
            if chosen and total >= seats:
                return None if minus == last else chosen
            chosen[name], last = -minus, minus
            total -= minus
            if total > _MAX_INT32:
                return None
        return chosen

    def _descending(self) -> Iterator[tuple[int, str]]:
        """Yield minus the votes and the name of each party, the most first."""
        additional = sorted((-votes, name) for name, votes in self._additional.items())
        return heapq.merge((vote for vote in self._own() if vote[1] not in self._without), additional)

    def _own(self) -> Iterator[tuple[int, str]]:
        """Yield ``ordered`` in growing parts, because mostly few are needed."""
        begin, size = 0, _FIRST_PART
        while begin < len(self._ordered):
            yield from self._ordered[begin : begin + size]
            begin, size = begin + size, 4 * size

    def _votes(self) -> dict[str, int]:
        votes: dict[str, int] = {name: -minus for minus, name in self._ordered}
        for name in self._without:
            del votes[name]
        votes.update(self._additional)
        return votes

    def _best(self, seats: int, descending_names: bool) -> dict[str, int]:  # noqa: FBT001
        """Return at least the parties that can get a seat: those with the most votes, then by rank."""
        ordered, count = self._ordered, seats + len(self._without)
        best = ordered[:count]
        if descending_names and 0 < count < len(ordered) and best[-1][0] == ordered[count][0]:
            # Of the parties with as many votes as the last one, those with the last names come first.
            least = best[-1][0]
            begin = bisect_left(ordered, (least, ""), hi=count)
            end = bisect_left(ordered, (least + 1, ""), lo=count)
            best = [*ordered[:begin], *ordered[end - (count - begin) : end]]
        votes = {name: -minus for minus, name in best if name not in self._without}
        votes.update(self._additional)
        return votes


def _certain_seats(seats: int, votes: Mapping[str, int]) -> dict[str, int]:
    """Return seats that every party gets however ties are broken, so that few are left to allocate one by one.

    With V votes in all and N parties, a divisor of 2V / (2 * seats - N) never allocates more than ``seats``. One seat
    less per party avoids differences between floats and fractions by rounding. A party without votes, or with negative
    votes after an overflow, gets nothing while others have votes.
    """
    total = sum(vote for vote in votes.values() if vote > 0)
    parties = sum(1 for vote in votes.values() if vote > 0)
    if 2 * seats <= parties or total <= 0:
        return {}
    return {
        name: max(0, (vote * (2 * seats - parties) + total) // (2 * total) - 1)
        for name, vote in votes.items()
        if vote > 0
    }
