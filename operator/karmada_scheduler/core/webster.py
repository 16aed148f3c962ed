"""Apportionment by Webster's method (Sainte-Lague): seats to parties in proportion to their votes."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

_Turn = tuple[float, int, int, str]
"""Minus the quotient, the seats so far, the rank among equals, the name."""

_NO_SEATS: Mapping[str, int] = {}


def prefers_descending_names(uid: str) -> bool:
    """Tell whether ties fall to the later name: half of all objects do, so that none is always favoured.

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
    """Hand out seats one at a time, each to the highest votes / (2 * seats + 1).

    Equal quotients: fewer seats first, then the name, in the order asked for.

    Args:
        seats: How many to hand out; >= 0.
        votes: Cluster name to weight.
        held: Seats that a cluster starts with. They lower its quotient and stay in the result; one that
            holds seats but has no votes takes part with 0 votes.
        descending_names: See ``prefers_descending_names``.

    Returns:
        Cluster name to seats, held ones included, in name order. A cluster may have 0.

    Source: karmada v1.18.2 pkg/util/helper/webstermethod.go. Quotients are float64 there and are floats
    here, or near-ties would fall the other way.
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


class Ballot:
    """Votes that are prepared once, for handing out seats many times."""

    def __init__(self, votes: Mapping[str, int]) -> None:
        """Take cluster name to weight."""
        self._votes = dict(votes)
        self._parties = sum(1 for vote in votes.values() if vote > 0)
        self._queues: dict[bool, list[_Turn]] = {}
        self.total = sum(votes.values())

    def allocate(self, seats: int, *, descending_names: bool) -> dict[str, int]:
        """Hand out seats as ``allocate`` does; who gets none is left out.

        Few seats, compared with the parties, cost no more with many parties than with few.
        """
        if 2 * seats > self._parties:
            everybody = allocate(seats, self._votes, descending_names=descending_names)
            return {name: count for name, count in everybody.items() if count}
        queue = self._queue(descending_names).copy()
        given: dict[str, int] = {}
        for _ in range(seats):
            _, count, rank, name = queue[0]
            count += 1
            quotient = float(self._votes[name]) / float(2 * count + 1)
            heapq.heapreplace(queue, (-quotient, count, rank, name))
            given[name] = count
        return dict(sorted(given.items()))

    def _queue(self, descending_names: bool) -> list[_Turn]:  # noqa: FBT001
        queue = self._queues.get(descending_names)
        if queue is None:
            names = sorted(self._votes)
            ranks = range(len(names), 0, -1) if descending_names else range(len(names))
            queue = [
                (-float(self._votes[name]), 0, rank, name) for rank, name in zip(ranks, names, strict=True)
            ]
            heapq.heapify(queue)
            self._queues[descending_names] = queue
        return queue


def _certain_seats(seats: int, votes: Mapping[str, int]) -> dict[str, int]:
    """Return seats that every party gets whatever the ties, so that few are left to hand out singly.

    With V votes in all and N parties, a divisor of 2V / (2 * seats - N) never hands out more than ``seats``;
    one seat less per party keeps clear of rounding, in which floats and fractions may differ. Whoever has
    no votes, or by an overflow less than none, gets nothing while others have some.
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
