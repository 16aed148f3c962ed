"""Caches by content: of function results, bounded by bytes and not only by entries, and of equal strings and maps.

``functools.lru_cache`` counts entries. The contents here have some bytes or a megabyte (a placement that names 5,000
clusters), and 8,192 of the latter are not a bound.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sized
from functools import lru_cache, wraps
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from karmada_scheduler.structs import Struct

T = TypeVar("T")
Result = TypeVar("Result")


class Content(Sized, Hashable, Protocol):
    """Text or bytes."""


Given = TypeVar("Given", bound=Content)

MEBI: Final = 1 << 20

MAX_BYTES: Final = "max_bytes"
"""The attribute of a function with a cache that has the limit of its contents in bytes."""


class _Entry(Struct, Generic[T]):
    value: T
    used: int
    size: int


class LRUCache(Generic[T]):
    """An LRU cache that also drops values that have not been used for some time."""

    def __init__(self, *, size_of: Callable[[T], int] = lambda _: 1) -> None:
        """Start empty; ``size_of`` returns the size of a new value."""
        self._values: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._size_of = size_of
        self._size = 0

    def __len__(self) -> int:
        """The number of values."""
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], T], *, max_size: int, now: int = 0, since: int = 0) -> T:
        """Return the value of a key, a new one if there is none.

        Args:
            key: The key.
            make: Returns a new value.
            max_size: The size of all values together; a larger value is not cached.
            now: The current time on any scale that does not run backwards.
            since: Values that were last used before this are dropped.
        """
        values = self._values
        found = values.get(key)
        if found is None:
            value = make()
            size = self._size_of(value)
            if size > max_size:
                return value
            found = values[key] = _Entry(value, now, size)
            self._size += size
        else:
            found.used = now
            values.move_to_end(key)
        while self._size > max_size or (since > 0 and next(iter(values.values())).used < since):
            _, dropped = values.popitem(last=False)
            self._size -= dropped.size
        return found.value


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
        of_long: LRUCache[tuple[int, Result]] = LRUCache(size_of=itemgetter(0))

        @wraps(function)
        def call(given: Given) -> Result:
            if len(given) <= short:
                return of_short(given)
            return of_long.get(given, lambda: (len(given), function(given)), max_size=long_bytes)[1]

        setattr(call, MAX_BYTES, entries * short + long_bytes)
        return call

    return decorate


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
