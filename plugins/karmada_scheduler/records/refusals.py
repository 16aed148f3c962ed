"""The refusals of a decision, grouped by plugin and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.framework.result import Result
from karmada_scheduler.structs import Struct

_MAX_CACHED: Final = 100_000
"""The size of the cache in clusters. The mappings are those that the filter cache holds, so most cost nothing here."""


class RefusalGroup(Struct, frozen=True):
    """The clusters that one plugin refused for the same reason.

    Attributes:
        plugin: The name of the plugin; empty for a refusal without one.
        reason: Its text.
        clusters: The names of the clusters.
    """

    plugin: str
    reason: str
    clusters: Sequence[str]


def grouped(refused: Mapping[str, Result]) -> tuple[RefusalGroup, ...]:
    """Return the refusals by plugin and reason, the largest group first."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, result in refused.items():
        key = (result.plugin, result.reasons)
        names = groups.get(key)
        if names is None:
            groups[key] = [name]
        else:
            names.append(name)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return tuple(RefusalGroup(plugin, ", ".join(reasons), names) for (plugin, reasons), names in ordered)


class RefusalGroups:
    """Groups refusals. Decisions share the mapping of their refusals until a cluster changes, so groups are cached."""

    def __init__(self) -> None:
        """Start without groups."""
        self._cache: LRUCache[tuple[Mapping[str, Result], tuple[RefusalGroup, ...]]] = LRUCache(
            size_of=lambda entry: len(entry[0]) + 1
        )

    def of(self, refused: Mapping[str, Result]) -> tuple[RefusalGroup, ...]:
        """Return the groups of an immutable mapping."""
        # The entry keeps the mapping alive, so the id is its own.
        return self._cache.get(id(refused), lambda: (refused, grouped(refused)), max_size=_MAX_CACHED)[1]
