"""Caches by content: of function results, bounded by bytes and not only by entries, and of equal strings and maps.

``functools.lru_cache`` counts entries. The contents here have some bytes or a megabyte (a placement that names 5,000
clusters), and 8,192 of the latter are not a bound.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sized
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


_SHARED_TEXTS: Final = 1 << 16
_SHORT_TEXT: Final = 256
"""Names and label values are no longer."""
_SHARED_MAPS: Final = 1 << 13
_SHORT_MAP: Final = 4096
"""The names and values of a longer map are interned one by one, not as a part of it."""


@cached_by_content(entries=_SHARED_TEXTS, short=_SHORT_TEXT, long_bytes=4 * MEBI)
def interned(value: str) -> str:
    """Return the same object for equal strings that many objects hold, such as names of namespaces and clusters."""
    return value


def interned_map(found: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same mapping for equal items in the same order; it is not to be changed."""
    if sum(map(len, found)) + sum(map(len, found.values())) > _SHORT_MAP:
        return {interned(name): interned(value) for name, value in found.items()}
    return _interned_map(tuple(found.items()))


@lru_cache(maxsize=_SHARED_MAPS)
def _interned_map(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {interned(name): interned(value) for name, value in items}
