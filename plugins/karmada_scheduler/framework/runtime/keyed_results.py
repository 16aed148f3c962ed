"""Results of Filter and Score that hold for many bindings, by the keys of their plugins.

``filter_cache`` stores them; what changes in a cluster drops them.

An edited affinity, or the next policy, often leaves what all other plugins depend on as it is. Then only the plugin whose
key differs is called for a cluster, and the others keep their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.runtime.filter_cache import FilterResults, SnapshotCache
from karmada_scheduler.framework.runtime.filtering import run_filters
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.scheduling_points import NormalizeScorePlugin
from karmada_scheduler.framework.snapshot import Snapshot

__plugin_runner__ = True


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


KeyFunctions = Sequence[tuple[Plugin, Callable[[Cycle], Hashable]]]
"""Plugins with their ``filter_key`` or ``score_key``."""


class KeyedResults:
    """The results of a profile's plugins with ``filter_key`` and ``score_key``, and calls of the others.

    The filters before the first one without a key are cached; the others are called for the clusters that these let
    pass. A plugin whose PreFilter or PreScore runs, or that normalizes scores, counts as one without a key.

    Attributes:
        unkeyed_filters: The names of the Filter plugins that are called at each decision.
        unkeyed_scores: The names of the Score plugins that are called at each decision.
        keyed_scores: The names of the others.
    """

    def __init__(self, plugins: ProfilePlugins, caller: PluginCaller, *, caches_results: bool) -> None:
        """Take the plugins of a profile, and what calls them."""
        self._caller: Final = caller
        stateful = {plugin.name for plugin in (*plugins.pre_filter, *plugins.pre_score)}

        def has_key(plugin: Plugin, method: str) -> bool:
            return getattr(plugin, method, None) is not None and plugin.name not in stateful

        keyed = list(takewhile(lambda plugin: has_key(plugin, "filter_key"), plugins.filter))
        unkeyed = plugins.filter[len(keyed) :]
        scored = [
            plugin
            for plugin in plugins.score
            if has_key(plugin, "score_key") and not isinstance(plugin, NormalizeScorePlugin)
        ]
        self.unkeyed_filters: Final = frozenset(plugin.name for plugin in unkeyed)
        self.keyed_scores: Final = frozenset(plugin.name for plugin in scored)
        self.unkeyed_scores: Final = frozenset(plugin.name for plugin in plugins.score) - self.keyed_scores
        self._run_filters: Final = partial(run_filters, keyed, caller)
        self.run_unkeyed_filters: Final = partial(run_filters, unkeyed, caller)
        self._filter_results: SnapshotCache[FilterResults] = SnapshotCache()
        self._similar = SimilarFilters()
        self._filter_names = tuple(plugin.name for plugin in keyed)
        is_cached = caches_results and (keyed or not unkeyed)
        self._filter_keys = _key_functions(keyed, "filter_key") if is_cached else None
        self._score_keys = _key_functions(scored, "score_key")
        self._keys_cover_current = all(getattr(each, "filter_key_covers_current", False) for each in keyed)

    def filter_results(self, cycle: Cycle) -> FilterResults | None:
        """Return the results of the filters with keys, for a binding like this one that is on no cluster.

        None if they cannot be cached: the first Filter plugin has no ``filter_key``, one returns None as the key of this
        binding, or nothing is cached.

        Raises:
            PluginError: A plugin failed.
        """
        key = self._key(cycle, self._filter_keys, Point.FILTER)
        if key is None:
            return None
        snapshot = cycle.snapshot
        results = self._filter_results.get_for(key, lambda: FilterResults(key), snapshot)
        similar = None if len(results) else self._similar.find(key)
        is_new = not len(results)

        def run(clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()) -> Mapping[str, Result]:
            return self._run_filters(cycle.unplaced, clusters, skipped)[1]

        if similar is None:
            results.refresh(snapshot, run)
        else:
            results.refresh(snapshot, partial(refused, run, self._filter_names, similar, snapshot))
        if is_new:
            self._similar.add(key, results)
        return results

    def filter_current(
        self, cycle: Cycle, clusters: Sequence[Cluster], results: FilterResults
    ) -> tuple[Sequence[Cluster], dict[str, Result]]:
        """Run Filter for clusters that the binding is on or evicted from, as the framework's ``run_filter`` does.

        Answers are taken from ``results``, and stored there, if the keys of all plugins cover such clusters.
        """
        if not self._keys_cover_current:
            return self._run_filters(cycle, clusters)
        current, evicted = cycle.current_clusters, cycle.evicted
        known = [(each, results.current[each.name in current, each.name in evicted]) for each in clusters]
        if new := [cluster for cluster, answers in known if cluster.name not in answers]:
            refused = self._run_filters(cycle, new)[1]
            for cluster, answers in known:
                if cluster.name not in answers:
                    answers[cluster.name] = refused.get(cluster.name, SUCCESS)
        feasible = [cluster for cluster, answers in known if answers[cluster.name] is SUCCESS]
        filtered_out = {
            each.name: answer for each, answers in known if (answer := answers[each.name]) is not SUCCESS
        }
        return feasible, filtered_out

    def score_key(self, cycle: Cycle) -> Hashable | None:
        """Return the key of the scores of clusters that the binding is not on; None if they cannot be cached.

        Raises:
            PluginError: A plugin failed.
        """
        return self._key(cycle, self._score_keys, Point.SCORE)

    def _key(self, cycle: Cycle, functions: KeyFunctions | None, point: Point) -> Key | None:
        if functions is None:
            return None
        running: Plugin | None = None
        parts: list[Hashable] = []
        since, has_shorter_timeouts = self._caller.openings, self._caller.has_shorter_timeouts
        if self._caller.has_open_breakers:
            for plugin, _ in functions:
                self._caller.admit(plugin, point, probes=False)
        try:
            with self._caller.timeout:
                for running, key_of in functions:
                    if not has_shorter_timeouts:
                        parts.append(key_of(cycle))
                        continue
                    with self._caller.timeout_of(running):
                        parts.append(key_of(cycle))
                key = None if None in parts else tuple(parts)
                hash(key)
        except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
            self._caller.raise_plugin_error(running, point, error, since=since, context=cycle)
        return key


def _key_functions(plugins: Sequence[Plugin], method: str) -> KeyFunctions:
    return [(plugin, getattr(plugin, method)) for plugin in plugins]
