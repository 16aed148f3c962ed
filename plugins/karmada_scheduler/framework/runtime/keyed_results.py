"""Results of Filter and Score that hold for many bindings, by the keys of their plugins.

``filter_cache`` stores them; what changes in a cluster drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import takewhile
from typing import Final

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

__plugin_runner__ = True


Key = tuple[Hashable, ...]

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
        self.unkeyed_filters: Final = frozenset(each.name for each in unkeyed)
        self.keyed_scores: Final = frozenset(each.name for each in scored)
        self.unkeyed_scores: Final = frozenset(each.name for each in plugins.score) - self.keyed_scores
        self._run_filters: Final = partial(run_filters, keyed, caller)
        self.run_unkeyed_filters: Final = partial(run_filters, unkeyed, caller)
        self._filter_results: SnapshotCache[FilterResults] = SnapshotCache()
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
        results.refresh(snapshot, lambda clusters: self._run_filters(cycle.unplaced, clusters)[1])
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
        if new := [each for each, answers in known if each.name not in answers]:
            refused = self._run_filters(cycle, new)[1]
            for each, answers in known:
                if each.name not in answers:
                    answers[each.name] = refused.get(each.name, SUCCESS)
        feasible = [each for each, answers in known if answers[each.name] is SUCCESS]
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
