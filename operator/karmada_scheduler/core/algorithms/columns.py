"""Columns of whole numbers, one row per cluster: the only importer of numpy.

A column is never changed once somebody else has it; what follows from it is a new one. All numbers are of 64 bits,
and nothing here may overflow unless it says so: whoever makes a column sees to that.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

# Else it starts a thread per core for linear algebra, of which there is none here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
"""One number per row; a list of rows is a column, too."""

_ROOM_BITS: Final = 32
_USABLE_BITS: Final = 63
_MOST_SHORT: Final = 2**15 - 1
_LEAST_ROOM, _MOST_ROOM = -(2**31), 2**31 - 1


def column(values: Sequence[int]) -> Column:
    """Return numbers as a column; each fits 64 bits."""
    return np.array(values, dtype=np.int64)


def filled(count: int, value: int) -> Column:
    """Return as many rows with the same number."""
    return np.full(count, value, dtype=np.int64)


def rows_of(count: int) -> Column:
    """Return the numbers of so many rows, from 0."""
    return np.arange(count, dtype=np.int64)


def with_values(values: Column, rows: Column, new: Column) -> Column:
    """Return a column in which some rows have other numbers."""
    changed = values.copy()
    changed[rows] = new
    return changed


def with_stand_in(values: Column, unknown: int, known: int) -> Column:
    """Return a column in which one number stands for another."""
    return np.where(values == unknown, np.int64(known), values)


def least(several: Sequence[Column], *, but: int, otherwise: int) -> Column:
    """Return the least number of each row; ``but`` is none, and where there is no other, it is ``otherwise``."""
    result, *more = [np.where(each == but, np.int64(otherwise), each) for each in several]
    for each in more:
        np.minimum(result, each, out=result)
    return result


def total(values: Column) -> int:
    """Add up numbers of at most 32 bits."""
    return int(values.sum())


def greatest(values: Column) -> int:
    """Return the greatest number, 0 if there is none."""
    return int(values.max()) if len(values) else 0


def how_often(limits: Column, amounts: Iterable[tuple[Column, int]], rows: Column) -> Column:
    """Return how often a request fits, cut to 32 bits as Go's int32 does.

    Args:
        limits: What it is at most; none is negative.
        amounts: Columns of what there is, none of it negative, with what of it is wanted; > 0.
        rows: Those that are asked about.
    """
    most = limits[rows]
    for number, (have, wanted) in enumerate(amounts):
        if number % 8 == 7 and not most.any():
            break
        np.minimum(most, have[rows] // wanted, out=most)
    return most.astype(np.int32).astype(np.int64)


def preferred_first(ranks: Column | None, room: Column) -> Column:
    """Return the rows in the order of rank, then from much room to little, then of rows.

    Args:
        ranks: From 0, the best; None if all are the same.
        room: Of any size; up to 32 bits it is fast.
    """
    count = len(room)
    row_bits = count.bit_length()
    rank_bits = 0 if ranks is None else int(ranks.max()).bit_length()
    fits = rank_bits + _ROOM_BITS + row_bits <= _USABLE_BITS
    if not count or not fits or room.min() < _LEAST_ROOM or room.max() > _MOST_ROOM:
        return np.lexsort((-room,) if ranks is None else (-room, ranks)).astype(np.int64)
    # One number for all that counts: sorting these is ten times as fast as sorting by several columns.
    keys = _MOST_ROOM - room
    if ranks is not None:
        keys += ranks << _ROOM_BITS
    keys <<= row_bits
    keys += np.arange(count, dtype=np.int64)
    keys.sort()
    keys &= (1 << row_bits) - 1
    return keys


def groups(numbers: Column, order: Column) -> list[tuple[int, Column]]:
    """Return the rows of each group in the given order.

    Args:
        numbers: The number of each row's group; there are no more groups than rows.
        order: Some of the rows.
    """
    # Short numbers are sorted digit by digit.
    of_each = numbers[order].astype(np.int16 if len(numbers) <= _MOST_SHORT else np.int64)
    grouped = np.argsort(of_each, kind="stable")
    of_each, order = of_each[grouped], order[grouped]
    ends = [*(np.flatnonzero(of_each[1:] != of_each[:-1]) + 1).tolist(), len(order)]
    return [
        (of_each.item(begin), order[begin:end])
        for begin, end in itertools.pairwise([0, *ends])
        if end > begin
    ]


def without(order: Column, rows: Sequence[int], count: int) -> Column:
    """Return an order that lacks some rows, of ``count`` in all."""
    stays = np.ones(count, dtype=np.bool_)
    stays[list(rows)] = False
    return order[stays[order]]


def with_inserted(order: Column, positions: Sequence[int], rows: Sequence[int]) -> Column:
    """Return an order in which rows stand before what was at some positions; of equal positions, in turn."""
    if not any(positions):
        return np.concatenate((column(rows), order))
    return np.insert(order, positions, rows)


def joined(values: Column, more: Sequence[int]) -> Column:
    """Return a column with more rows at its end."""
    return np.append(values, column(more))


def carried_over(values: Column, source: Sequence[int]) -> Column:
    """Return the numbers that some rows had; 0 for the row -1."""
    rows = column(source)
    return np.where(rows < 0, 0, values[rows]) if len(values) else np.zeros(len(rows), dtype=np.int64)


class Choices:
    """Which of some items to take, one after the other, for the greatest gain; see ``best_choices``.

    Attributes:
        exist: Whether there is a way to have enough, from the first item on.
    """

    def __init__(self, exist: bool, takes: Sequence[NDArray[np.uint8]], width: int) -> None:  # noqa: FBT001
        self.exist = exist
        self._takes = takes
        self._width = width

    def takes(self, item: int, taken: int, size: int) -> bool:
        """Tell whether the best way on takes an item, with so many taken before, of such a size together."""
        place, bit = divmod(taken * self._width + size, 8)
        return bool(self._takes[item][place] >> (7 - bit) & 1)


def best_choices(
    sizes: Sequence[int], gains: Sequence[int], *, most: int, enough: int, ends_from: int, stays_at_most: bool
) -> Choices:
    """Return the best ways to take items until they are enough together; of equal ways the one that takes earlier.

    Args:
        sizes: Of the items; >= 0.
        gains: Of the items, of any size and sign; beyond 62 bits together it is slow.
        most: Up to how many items are counted.
        enough: Up to which size is counted; a way ends as soon as it has this size and ``ends_from`` items.
        ends_from: See there.
        stays_at_most: Whether items beyond ``most`` may be taken without being counted.
    """
    bound = 2 * sum(abs(gain) for gain in gains) + 1
    kind: type[Any] = np.int64 if bound < 2**61 else np.object_
    # No way: no gains of all items together make it better than a way.
    best: NDArray[Any] = np.full((most + 1, enough + 1), -2 * bound, dtype=kind)
    first_end = max(0, ends_from)
    best[first_end:, enough] = 0
    places = np.arange(enough + 1)
    taken = np.full_like(best, -2 * bound)
    takes = []
    for size, gain in zip(reversed(sizes), reversed(gains), strict=True):
        after = np.minimum(places + size, enough)
        np.take(best[1:], after, axis=1, out=taken[:most], mode="clip")
        if stays_at_most:
            np.take(best[most], after, out=taken[most], mode="clip")
            taken += gain
        else:
            taken[:most] += gain
        takes.append(np.packbits((taken >= best).astype(np.bool_, copy=False)))
        np.maximum(taken, best, out=best)
        best[first_end:, enough] = 0
    takes.reverse()
    return Choices(bool(best[0, 0] > -bound), takes, enough + 1)
