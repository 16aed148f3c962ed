"""Equal strings and maps that many objects hold, as one object each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from karmada_scheduler.api.content_cache import MEBI, cached_by_content

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
