"""A cache of function results by content, bounded by bytes and not only by entries.

``functools.lru_cache`` counts entries. The contents here have some bytes or a megabyte (a placement that names 5,000
clusters), and 8,192 of the latter are not a bound.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from functools import lru_cache, wraps
from typing import Final, Generic, Protocol, TypeVar

Result = TypeVar("Result")


class Content(Sized, Hashable, Protocol):
    """Text or bytes."""


Given = TypeVar("Given", bound=Content)

MEBI: Final = 1 << 20

MAX_BYTES: Final = "max_bytes"
"""The attribute of a function with a cache that has the limit of its contents in bytes."""


def cached_by_content(
    *, entries: int, short: int, long_bytes: int
) -> Callable[[Callable[[Given], Result]], Callable[[Given], Result]]:
    """Cache the results of a function with one argument.

    The cache holds the results for at most ``entries * short + long_bytes`` bytes of contents.

    Args:
        entries: Number of cached short contents.
        short: Longest short content, in bytes; a short content costs as much as with ``lru_cache``.
        long_bytes: Bytes of cached longer contents; with 0 they are not cached.
    """

    def decorate(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
        of_short = lru_cache(maxsize=entries)(function)
        of_long = _LongContents(function, long_bytes)

        @wraps(function)
        def call(given: Given) -> Result:
            return of_short(given) if len(given) <= short else of_long(given)

        setattr(call, MAX_BYTES, entries * short + long_bytes)
        return call

    return decorate


class _LongContents(Generic[Given, Result]):
    """An LRU cache bounded by the bytes of its contents."""

    def __init__(self, function: Callable[[Given], Result], max_bytes: int) -> None:
        self._function = function
        self._max_bytes = max_bytes
        self._results: OrderedDict[Given, Result] = OrderedDict()
        self._bytes = 0

    def __call__(self, given: Given) -> Result:
        results = self._results
        if given in results:
            results.move_to_end(given)
            return results[given]
        result = self._function(given)
        if len(given) <= self._max_bytes:
            results[given] = result
            self._bytes += len(given)
            while self._bytes > self._max_bytes:
                evicted, _ = results.popitem(last=False)
                self._bytes -= len(evicted)
        return result
