"""Mappings that are made on first use: most decisions are written without anybody reading all that they were made by."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property
from typing import TypeVar

Value = TypeVar("Value")


class LazyMapping(Mapping[str, Value]):
    """What ``make`` returns, which is called once, and not before something is read."""

    def __init__(self, make: Callable[[], Mapping[str, Value]]) -> None:
        """Take the function; it must return the same whenever it is called."""
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Value]:
        return self._make()

    def __getitem__(self, name: str) -> Value:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def items(self) -> ItemsView[str, Value]:
        """Return the items; those of the base class are several times as slow."""
        return self._made.items()

    def values(self) -> ValuesView[Value]:
        """Return the values; those of the base class are several times as slow."""
        return self._made.values()
