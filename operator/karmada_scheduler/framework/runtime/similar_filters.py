"""Filter results of one key from those of another one that differs in the key of a single plugin.

An edited affinity, or the next policy, often leaves what all other plugins depend on as it is. Then only the plugin whose
key differs is called for a cluster, and the others keep their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.snapshot import Snapshot

Key = tuple[Hashable, ...]
RunFilter = Callable[[Sequence[Cluster], frozenset[str]], Mapping[str, Result]]
"""Returns the refusals of clusters by name, without the plugins of the given names."""


class Similar(NamedTuple):
    """Filter results whose key differs in one part.

    Attributes:
        results: The results.
        position: The index of the plugin whose key differs.
    """

    results: FilterResults
    position: int


class SimilarFilters:
    """The latest filter results of a profile, by all parts of their key but one."""

    def __init__(self) -> None:
        """Start empty."""
        self._results: WeakValueDictionary[tuple[int, Key], FilterResults] = WeakValueDictionary()

    def find(self, key: Key) -> Similar | None:
        """Return results whose key differs in one part, None if there are none."""
        for position in range(len(key)):
            found = self._results.get((position, _without(key, position)))
            if found is not None:
                return Similar(found, position)
        return None

    def add(self, key: Key, results: FilterResults) -> None:
        """Let later keys find these results."""
        for position in range(len(key)):
            self._results[position, _without(key, position)] = results


def _without(key: Key, position: int) -> Key:
    return key[:position] + key[position + 1 :]


def refused(
    run_filter: RunFilter,
    plugins: Sequence[str],
    similar: Similar,
    snapshot: Snapshot,
    clusters: Sequence[Cluster],
) -> Mapping[str, Result]:
    """Return the refusals of clusters by name.

    Args:
        run_filter: Calls plugins.
        plugins: The names of the Filter plugins in their order.
        similar: Other results.
        snapshot: All clusters.
        clusters: The clusters to filter, in the order of names.
    """
    results, position = similar
    changed = results.changed_until(snapshot)
    if changed is None:
        return run_filter(clusters, frozenset())
    ranks = {name: rank for rank, name in enumerate(plugins)}
    found: dict[str, Result] = {}
    by_one, by_later, by_all = list[Cluster](), list[Cluster](), list[Cluster]()
    for cluster in clusters:
        name = cluster.name
        before = results.refused.get(name)
        rank = position + 1 if before is None else ranks.get(before.plugin, -1)
        if name in changed or (before is None and name not in results.rows) or rank < 0:
            by_all.append(cluster)
        elif before is not None and rank < position:
            found[name] = before
        elif rank == position:
            by_later.append(cluster)
        else:
            by_one.append(cluster)
    others = frozenset(plugins) - {plugins[position]}
    answers = run_filter(by_one, others)
    for cluster in by_one:
        answer = answers.get(cluster.name) or results.refused.get(cluster.name)
        if answer is not None:
            found[cluster.name] = answer
    found |= run_filter(by_later, frozenset(plugins[:position]))
    found |= run_filter(by_all, frozenset())
    return found
