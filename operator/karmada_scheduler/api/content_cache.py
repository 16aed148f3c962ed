"""Results remembered by content: as many as fit into a number of bytes, not only so many.

``functools.lru_cache`` counts entries. What is read here may be some bytes or a megabyte (a placement that names 5,000
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


def remembered(
    *, entries: int, short: int, long_bytes: int
) -> Callable[[Callable[[Given], Result]], Callable[[Given], Result]]:
    """Have a function of one text called once per text, as long as its result is remembered.

    At most ``entries * short + long_bytes`` bytes of texts are kept, and what was made of them.

    Args:
        entries: How many short texts.
        short: Up to which length a text is short; these cost what ``lru_cache`` costs.
        long_bytes: How many bytes of longer texts; 0 remembers none.
    """

    def decorate(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
        of_short = lru_cache(maxsize=entries)(function)
        of_long = _Long(function, long_bytes)

        @wraps(function)
        def call(given: Given) -> Result:
            return of_short(given) if len(given) <= short else of_long(given)

        return call

    return decorate


class _Long(Generic[Given, Result]):
    """Results for long texts; the longest unused are forgotten when all of them are too long together."""

    def __init__(self, function: Callable[[Given], Result], most: int) -> None:
        self._function = function
        self._most = most
        self._results: OrderedDict[Given, Result] = OrderedDict()
        self._bytes = 0

    def __call__(self, given: Given) -> Result:
        results = self._results
        if given in results:
            results.move_to_end(given)
            return results[given]
        result = self._function(given)
        if len(given) <= self._most:
            results[given] = result
            self._bytes += len(given)
            while self._bytes > self._most:
                forgotten, _ = results.popitem(last=False)
                self._bytes -= len(forgotten)
        return result
