"""Columns of integers, one row per cluster: the only importer of numpy.

A column is never mutated once another object has it; functions return new columns. All numbers have 64 bits, and callers
make sure that nothing overflows, unless a function documents another behaviour.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

# Without it, numpy starts a thread per core for linear algebra, which is not used here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
"""One number per row. A list of row numbers is a column as well."""

_AVAILABLE_BITS: Final = 32
_USABLE_BITS: Final = 63
_MAX_INT16: Final = 2**15 - 1
_MIN_AVAILABLE, _MAX_AVAILABLE = -(2**31), 2**31 - 1


def column(values: Sequence[int]) -> Column:
    """Return integers of at most 64 bits as a column."""
    return np.array(values, dtype=np.int64)


def indexes(values: Sequence[Hashable], different: Sequence[Hashable]) -> Column:
    """Return the index of each value in a list of different ones."""
    index = {value: number for number, value in enumerate(different)}
    return np.fromiter(map(index.__getitem__, values), np.int64, len(values))


def filled(count: int, value: int) -> Column:
    """Return a column of ``count`` rows with the same number."""
    return np.full(count, value, dtype=np.int64)


def all_rows(count: int) -> Column:
    """Return the row numbers 0 to ``count - 1``."""
    return np.arange(count, dtype=np.int64)


def with_values(values: Column, rows: Column, new: Column) -> Column:
    """Return a column with new numbers in some rows."""
    changed = values.copy()
    changed[rows] = new
    return changed


def with_replaced(values: Column, old: int, new: int) -> Column:
    """Return a column with one number replaced by another wherever it occurs."""
    return np.where(values == old, np.int64(new), values)


def row_minimum(several: Sequence[Column], *, ignored: int, default: int) -> Column:
    """Return the row-wise minimum without entries equal to ``ignored``; a row with nothing else gets ``default``.

    ``default`` must not be less than any other entry.
    """
    result, *more = [np.where(array == ignored, np.int64(default), array) for array in several]
    for array in more:
        np.minimum(result, array, out=result)
    return result


def total(values: Column) -> int:
    """Return the sum of numbers of at most 32 bits."""
    return int(values.sum())


def greatest(values: Column) -> int:
    """Return the greatest number, 0 for an empty column."""
    return int(values.max()) if len(values) else 0


def fits(limits: Column, amounts: Iterable[tuple[Column, int]], rows: Column) -> Column:
    """Return how many times a request fits, wrapped to 32 bits as Go's int32 is.

    Args:
        limits: Upper bounds; >= 0.
        amounts: Per resource the available amounts, >= 0, and the requested amount, > 0.
        rows: The rows to compute.
    """
    most = limits[rows]
    for number, (available, wanted) in enumerate(amounts):
        if number % 8 == 7 and not most.any():
            break
        np.minimum(most, available[rows] // wanted, out=most)
    return most.astype(np.int32).astype(np.int64)


def preferred_first(ranks: Column | None, available: Column) -> Column:
    """Return the rows sorted by rank, then by available replicas in descending order, then by row.

    Args:
        ranks: From 0, the best; None if all are the same.
        available: Any numbers; with at most 32 bits it is fast.
    """
    count = len(available)
    if not count:
        return all_rows(0)
    row_bits = count.bit_length()
    rank_bits = 0 if ranks is None else int(ranks.max()).bit_length()
    fits = rank_bits + _AVAILABLE_BITS + row_bits <= _USABLE_BITS
    if not fits or available.min() < _MIN_AVAILABLE or available.max() > _MAX_AVAILABLE:
        return np.lexsort((-available,) if ranks is None else (-available, ranks)).astype(np.int64)
    # Everything in one number per row: sorting these is ten times as fast as sorting by several columns.
    keys = _MAX_AVAILABLE - available
    if ranks is not None:
        keys += ranks << _AVAILABLE_BITS
    keys <<= row_bits
    keys += np.arange(count, dtype=np.int64)
    keys.sort()
    keys &= (1 << row_bits) - 1
    return keys


def groups(numbers: Column, order: Column) -> list[tuple[int, Column]]:
    """Return the number and the rows of each group, the rows in the given order.

    Args:
        numbers: Per row the number of its group; there are no more groups than rows.
        order: Some of the rows.
    """
    # numpy sorts 16-bit numbers by radix sort.
    of_each = numbers[order].astype(np.int16 if len(numbers) <= _MAX_INT16 else np.int64)
    grouped = np.argsort(of_each, kind="stable")
    of_each, order = of_each[grouped], order[grouped]
    ends = [*(np.flatnonzero(of_each[1:] != of_each[:-1]) + 1).tolist(), len(order)]
    return [
        (of_each.item(begin), order[begin:end])
        for begin, end in itertools.pairwise([0, *ends])
        if end > begin
    ]


def without(order: Column, rows: Sequence[int], count: int) -> Column:
    """Return an order without some rows; ``count`` is the number of all rows."""
    if len(rows) == 1:
        others: Column = order[order != rows[0]]
        return others
    stays = np.empty(count, dtype=np.bool_)
    stays.fill(True)
    stays[rows] = False
    return order[stays[order]]


def with_inserted(order: Column, positions: Sequence[int], rows: Sequence[int]) -> Column:
    """Return an order with rows inserted before some positions, which ascend; at equal ones rows keep their order."""
    inserted = column(rows)
    if not any(positions):
        return np.concatenate((inserted, order))
    parts: list[Column] = []
    begin = 0  # for the few rows that are inserted, several times as fast as np.insert
    for place, position in enumerate(positions):
        parts += (order[begin:position], inserted[place : place + 1])
        begin = position
    return np.concatenate((*parts, order[begin:]))


def taken(values: Column, rows: Column) -> list[int]:
    """Return the numbers of some rows; any number for a row past the end."""
    numbers: list[int] = values.take(rows, mode="clip").tolist() if len(values) else [0] * len(rows)
    return numbers


def reindexed(values: Column, source: Sequence[int]) -> Column:
    """Return a column with the numbers of some source rows; 0 for the source row -1."""
    rows = column(source)
    return np.where(rows < 0, 0, values[rows]) if len(values) else np.zeros(len(rows), dtype=np.int64)


class Choices:
    """The items to take, one after the other, for the greatest gain; see ``best_choices``.

    Attributes:
        exist: Whether any choice is large enough.
    """

    def __init__(self, exist: bool, takes: Sequence[NDArray[np.uint8]], width: int) -> None:  # noqa: FBT001
        self.exist = exist
        self._takes = takes
        self._width = width

    def takes(self, item: int, taken: int, size: int) -> bool:
        """Return whether to take an item when ``taken`` items with a total ``size`` were taken before it."""
        place, bit = divmod(taken * self._width + size, 8)
        return bool(self._takes[item][place] >> (7 - bit) & 1)


def best_choices(
    sizes: Sequence[int], gains: Sequence[int], *, most: int, enough: int, ends_from: int, stays_at_most: bool
) -> Choices:
    """Return the best choice of items that are large enough together; of equal ones the one with earlier items.

    Args:
        sizes: Sizes of the items; >= 0.
        gains: Gains of the items; with more than 62 bits in total it is slow.
        most: The largest number of items that is counted.
        enough: The largest total size that is counted.
        ends_from: A choice ends as soon as it has this number of items and the size ``enough``.
        stays_at_most: Whether more than ``most`` items may be taken, counted as ``most``.
    """
    bound = 2 * sum(abs(gain) for gain in gains) + 1
    kind: type[Any] = np.int64 if bound < 2**61 else np.object_
    # Marks impossible states: all gains together do not make one better than a possible state.
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
