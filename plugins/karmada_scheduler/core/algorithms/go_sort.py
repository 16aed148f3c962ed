"""Go's sort.Sort, step by step: it is not stable, and the order of ties is visible in results.

Aggregated division cuts a list that Go sorts by replicas alone. With more than twelve clusters, the order of equal ones
depends on how Go moves elements.

Source: Go 1.25 sort/zsortfunc.go (pattern-defeating quicksort).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")

_INSERTION_SORT_LENGTH = 12
_INCREASING, _DECREASING, _UNKNOWN = range(3)


def sort_descending(items: Iterable[T], key: Callable[[T], int]) -> list[T]:
    """Return the items as Go's sort.Sort orders them by descending key."""
    ordered = list(items)
    keys = [key(item) for item in ordered]
    # Go does not change an ordered list and sorts a short one stably; without ties there is only one order.
    in_order = all(one >= other for one, other in pairwise(keys))
    if in_order or len(ordered) <= _INSERTION_SORT_LENGTH or len(set(keys)) == len(keys):
        return sorted(ordered, key=key, reverse=True)
    sorter = _Sorter(list(zip([-column for column in keys], ordered, strict=True)))
    sorter.sort(0, len(ordered), len(ordered).bit_length())
    return [item for _, item in sorter.items]


class _Sorter(Generic[T]):
    """Sorts pairs by their first element in ascending order; all arguments are indexes, as in Go."""

    def __init__(self, items: list[tuple[int, T]]) -> None:
        self.items = items

    def less(self, i: int, j: int) -> bool:
        return self.items[i][0] < self.items[j][0]

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, low: int, high: int, limit: int) -> None:
        balanced = partitioned = True
        while True:
            length = high - low
            if length <= _INSERTION_SORT_LENGTH:
                self.insertion_sort(low, high)
                return
            if limit == 0:
                self.heap_sort(low, high)
                return
            if not balanced:
                self.break_patterns(low, high)
                limit -= 1
            pivot, hint = self.choose_pivot(low, high)
            if hint == _DECREASING:
                self.reverse(low, high)
                pivot, hint = (high - 1) - (pivot - low), _INCREASING
            if balanced and partitioned and hint == _INCREASING and self.partial_insertion_sort(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                low = self.partition_equal(low, high, pivot)
                continue
            middle, partitioned = self.partition(low, high, pivot)
            left, right = middle - low, high - middle
            if left < right:
                balanced = left >= length // 8
                self.sort(low, middle, limit)
                low = middle + 1
            else:
                balanced = right >= length // 8
                self.sort(middle + 1, high, limit)
                high = middle

    def insertion_sort(self, low: int, high: int) -> None:
        for i in range(low + 1, high):
            j = i
            while j > low and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def heap_sort(self, low: int, high: int) -> None:
        length = high - low
        for i in range((length - 1) // 2, -1, -1):
            self.sift_down(i, length, low)
        for i in range(length - 1, -1, -1):
            self.swap(low, low + i)
            self.sift_down(0, i, low)

    def sift_down(self, root: int, length: int, first: int) -> None:
        while True:
            child = 2 * root + 1
            if child >= length:
                return
            if child + 1 < length and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def break_patterns(self, low: int, high: int) -> None:
        length = high - low
        random = length
        modulus = 1 << length.bit_length()
        first = low + (length // 4) * 2 - 1
        for i in range(3):
            random ^= (random << 13) & (2**64 - 1)
            random ^= random >> 7
            random ^= (random << 17) & (2**64 - 1)
            other = random & (modulus - 1)
            if other >= length:
                other -= length
            self.swap(first + i, low + other)

    def choose_pivot(self, low: int, high: int) -> tuple[int, int]:
        length = high - low
        i, j, k = (low + length // 4 * quarter for quarter in (1, 2, 3))
        swaps = [0]
        if length >= 50:
            i, j, k = (self.median(index - 1, index, index + 1, swaps) for index in (i, j, k))
        pivot = self.median(i, j, k, swaps)
        return pivot, {0: _INCREASING, 12: _DECREASING}.get(swaps[0], _UNKNOWN)

    def median(self, a: int, b: int, c: int, swaps: list[int]) -> int:
        if self.less(b, a):
            a, b = b, a
            swaps[0] += 1
        if self.less(c, b):
            b, c = c, b
            swaps[0] += 1
        if self.less(b, a):
            a, b = b, a
            swaps[0] += 1
        return b

    def reverse(self, low: int, high: int) -> None:
        self.items[low:high] = self.items[low:high][::-1]

    def partial_insertion_sort(self, low: int, high: int) -> bool:
        i = low + 1
        for _ in range(5):
            while i < high and not self.less(i, i - 1):
                i += 1
            if i == high:
                return True
            if high - low < 50:
                return False
            self.swap(i, i - 1)
            if i - low >= 2:
                for j in range(i - 1, 0, -1):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
            if high - i >= 2:
                for j in range(i + 1, high):
                    if not self.less(j, j - 1):
                        break
                    self.swap(j, j - 1)
        return False

    def partition_equal(self, low: int, high: int, pivot: int) -> int:
        self.swap(low, pivot)
        i, j = low + 1, high - 1
        while True:
            while i <= j and not self.less(low, i):
                i += 1
            while i <= j and self.less(low, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    def partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        self.swap(low, pivot)
        i, j = self.advance(low, low + 1, high - 1)
        if i > j:
            self.swap(j, low)
            return j, True
        while i <= j:
            self.swap(i, j)
            i, j = self.advance(low, i + 1, j - 1)
        self.swap(j, low)
        return j, False

    def advance(self, pivot: int, i: int, j: int) -> tuple[int, int]:
        while i <= j and self.less(i, pivot):
            i += 1
        while i <= j and not self.less(j, pivot):
            j -= 1
        return i, j
