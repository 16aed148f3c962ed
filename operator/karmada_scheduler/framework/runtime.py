"""Runs the plugins of each extension point: in order, timed, and with the plugin's name on what it raises."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.interface import (
    Cycle,
    FilterContext,
    FilterPlugin,
    NormalizeScoreContext,
    NormalizeScorePlugin,
    Plugin,
    ScoreContext,
    ScorePlugin,
)
from karmada_scheduler.framework.registry import Registry
from karmada_scheduler.framework.result import SUCCESS, Code, Result

FILTER: Final = "Filter"
SCORE: Final = "Score"
NORMALIZE_SCORE: Final = "ScoreExtensionNormalize"


class Observer(Protocol):
    """Receives how long things took; upstream's histograms are fed from it."""

    def extension_point(self, point: str, code: Code, seconds: float, /) -> None:
        """All plugins of a point ran: Filter once per cluster, Score once per attempt."""
        ...

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, /) -> None:
        """One plugin ran: Filter and Score once per cluster."""
        ...

    def step(self, step: str, seconds: float, /) -> None:
        """One step of the algorithm (Filter, Score, Select, AssignReplicas) ended, well or not."""
        ...


class Framework:
    """The plugins that are on, in running order.

    The order of a registry is the running order, so the reason under which a cluster is refused is the
    same in every process (upstream's order is random).
    """

    def __init__(self, plugins: Mapping[str, Plugin], *, observer: Observer | None = None) -> None:
        self.plugins: Final = dict(plugins)
        self.observer: Final = observer
        self._filters: Final = [each for each in plugins.values() if isinstance(each, FilterPlugin)]
        self._scorers: Final = [each for each in plugins.values() if isinstance(each, ScorePlugin)]
        self._normalizers: Final = {
            each.name: each for each in plugins.values() if isinstance(each, NormalizeScorePlugin)
        }

    @classmethod
    def build(cls, registry: Registry, *, observer: Observer | None = None) -> Framework:
        """Make every registered plugin.

        Raises:
            PluginError: A factory failed; the text is upstream's and the cause is attached.
        """
        plugins: dict[str, Plugin] = {}
        for name, factory in registry.items():
            try:
                plugins[name] = factory()
            except Exception as problem:
                raise PluginError(f'failed to initialize plugin "{name}": {problem}') from problem
        return cls(plugins, observer=observer)

    def run_filter(self, context: FilterContext, /) -> Result:
        """Ask the filter plugins about one cluster; the first refusal is the answer."""
        if self.observer is not None:
            return self._run_filter_observed(context, self.observer)
        for plugin in self._filters:
            try:
                result = plugin.filter(context)
            except Exception as problem:
                raise _raised(plugin, context, problem) from problem
            if result is not SUCCESS:
                result = _refusal(plugin, result)
                if result is not SUCCESS:
                    return result
        return SUCCESS

    def _run_filter_observed(self, context: FilterContext, observer: Observer) -> Result:
        result, start = SUCCESS, time.perf_counter()
        for plugin in self._filters:
            begin = time.perf_counter()
            try:
                result = _refusal(plugin, plugin.filter(context))
            except PluginError:
                raise
            except Exception as problem:
                raise _raised(plugin, context, problem) from problem
            observer.plugin(plugin.name, FILTER, result.code, time.perf_counter() - begin)
            if result is not SUCCESS:
                break
        observer.extension_point(FILTER, result.code, time.perf_counter() - start)
        return result

    def run_score(self, cycle: Cycle, clusters: Sequence[Cluster]) -> dict[str, list[int]]:
        """Ask the score plugins about the clusters that can take the binding.

        Returns:
            Plugin name to final scores, one per cluster in the given order.

        Raises:
            PluginError: A plugin failed; the text is upstream's.
        """
        scores: dict[str, list[int]] = {}
        code, start = Code.ERROR, time.perf_counter()
        try:
            for plugin in self._scorers:
                scores[plugin.name] = self._scores_of(plugin, cycle, clusters)
            code = Code.SUCCESS
        finally:
            if self.observer is not None:
                self.observer.extension_point(SCORE, code, time.perf_counter() - start)
        return scores

    def _scores_of(self, plugin: ScorePlugin, cycle: Cycle, clusters: Sequence[Cluster]) -> list[int]:
        scores = [self._score(plugin, ScoreContext(cycle, cluster)) for cluster in clusters]
        normalizer = self._normalizers.get(plugin.name)
        if normalizer is None:
            return scores
        code, start = Code.ERROR, time.perf_counter()
        try:
            normalized = normalizer.normalize_score(NormalizeScoreContext(cycle, clusters, scores))
            checked = _checked_scores(normalized, expected=len(scores))
            code = Code.SUCCESS
        except Exception as problem:
            raise PluginError(f'plugin "{plugin.name}" normalizeScore failed with: {problem}') from problem
        finally:
            if self.observer is not None:
                self.observer.plugin(plugin.name, NORMALIZE_SCORE, code, time.perf_counter() - start)
        return checked

    def _score(self, plugin: ScorePlugin, context: ScoreContext) -> int:
        start = time.perf_counter() if self.observer is not None else 0.0
        code = Code.ERROR
        try:
            score = plugin.score(context)
            if type(score) is not int:
                (score,) = _checked_scores([score], expected=1)
            code = Code.SUCCESS
        except Exception as problem:
            raise PluginError(f'plugin "{plugin.name}" failed with: {problem}') from problem
        finally:
            if self.observer is not None:
                self.observer.plugin(plugin.name, SCORE, code, time.perf_counter() - start)
        return score


def _checked_scores(scores: Sequence[object], *, expected: int) -> list[int]:
    integers = [score for score in scores if isinstance(score, int) and not isinstance(score, bool)]
    if len(integers) != len(scores) or len(scores) != expected:
        raise ValueError(f"expected {expected} integers, got {scores!r}")
    return integers


def _refusal(plugin: FilterPlugin, result: object) -> Result:
    """Put the plugin's name on its refusal; an answer that is no Result is an error of the plugin."""
    if not isinstance(result, Result):
        raise PluginError(f'plugin "{plugin.name}" returned {result!r} from filter, expected a Result')
    return SUCCESS if result.is_success else Result(result.code, result.reasons, plugin.name)


def _raised(plugin: FilterPlugin, context: FilterContext, problem: Exception) -> PluginError:
    return PluginError(f'plugin "{plugin.name}" raised for cluster {context.cluster.name}: {problem}')
