"""Runs the Score plugins for the clusters that passed the filters."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import repeat
from typing import Final

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import NORMALIZE_SCORE, Point
from karmada_scheduler.framework.result import Code
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller, exception_text
from karmada_scheduler.framework.runtime.timeouts import PluginTimeoutError
from karmada_scheduler.framework.runtime.validation import shown
from karmada_scheduler.framework.scheduling_points import (
    MAX_CLUSTER_SCORE,
    MIN_CLUSTER_SCORE,
    NormalizeScoreContext,
    NormalizeScorePlugin,
    ScoreContext,
    ScorePlugin,
)

__plugin_runner__ = True

SCORE: Final = "Score"


class _InvalidScoreError(Exception):
    """A plugin returned no valid score; the text has the expected type and range."""


class ScoreRunner:
    """Runs the Score plugins of a profile, with their weights."""

    def __init__(
        self, plugins: Sequence[ScorePlugin], weights: Mapping[str, int], caller: PluginCaller
    ) -> None:
        """Take plugins in running order; a plugin without a weight has the weight 1."""
        self._plugins = tuple(plugins)
        # Computed once, because isinstance is slow for protocols.
        self._normalizing = {each.name: each for each in plugins if isinstance(each, NormalizeScorePlugin)}
        self._weights = weights
        self._caller = caller
        self._observer = caller.observer
        self._passed_on: tuple[type[BaseException], ...] = (PluginTimeoutError, *caller.interrupts)

    def run(
        self, cycle: Cycle, clusters: Sequence[Cluster], skipped: AbstractSet[str] = frozenset()
    ) -> dict[str, list[int]]:
        """Return each plugin's normalized scores times its weight, one per cluster in the given order.

        Raises:
            PluginError: A plugin raised (the text is upstream's), took too long, or scored outside 0 to 100.
        """
        scores: dict[str, list[int]] = {}
        for plugin in self._plugins:
            if plugin.name in skipped:
                continue
            own = self._with_timeout(plugin, cycle, clusters)
            weight = self._weights.get(plugin.name, 1)
            scores[plugin.name] = own if weight == 1 else [score * weight for score in own]
        return scores

    def _with_timeout(self, plugin: ScorePlugin, cycle: Cycle, clusters: Sequence[Cluster]) -> list[int]:
        since = self._caller.admit(plugin, Point.SCORE)
        try:
            with self._caller.timeout_of(plugin):
                scores = self._scores_of(plugin, cycle, clusters)
        except PluginError as error:
            self._caller.record_success(plugin, Point.SCORE, since=since)
            if error.__cause__ is not None:
                self._caller.log_failure(plugin, Point.SCORE, error.__cause__)
            raise
        except BaseException as late:  # noqa: BLE001 (a timeout)
            self._caller.raise_plugin_error(plugin, Point.SCORE, late, since=since, context=cycle)
        self._caller.record_success(plugin, Point.SCORE, since=since)
        return scores

    def _scores_of(self, plugin: ScorePlugin, cycle: Cycle, clusters: Sequence[Cluster]) -> list[int]:
        scores = self._raw_scores(plugin, cycle, clusters)
        if cycle.kept is not None:
            cycle.kept.raw_scores[plugin.name] = scores
        if (normalizing := self._normalizing.get(plugin.name)) is not None:
            scores = self._normalized(normalizing, NormalizeScoreContext(cycle, clusters, scores))
        different = set(scores)
        if different and not MIN_CLUSTER_SCORE <= min(different) <= max(different) <= MAX_CLUSTER_SCORE:
            invalid = next(
                (cluster.name, score)
                for cluster, score in zip(clusters, scores, strict=True)
                if not MIN_CLUSTER_SCORE <= score <= MAX_CLUSTER_SCORE
            )
            raise PluginError(
                f'plugin "{plugin.name}" returns an invalid score {shown(invalid[1])} for cluster {invalid[0]}, '
                f"it should in the range of [{MIN_CLUSTER_SCORE}, {MAX_CLUSTER_SCORE}] after normalizing"
            )
        return scores

    def _normalized(self, plugin: NormalizeScorePlugin, context: NormalizeScoreContext) -> list[int]:
        code, start = Code.ERROR, time.perf_counter()
        try:
            scores = _validated_scores(plugin.normalize_score(context), expected=len(context.scores))
            code = Code.SUCCESS
        except self._passed_on:
            raise
        except _InvalidScoreError as error:
            raise PluginError(f'plugin "{plugin.name}" normalizeScore failed with: {error}') from None
        except BaseException as problem:
            raise PluginError(
                f'plugin "{plugin.name}" normalizeScore failed with: {exception_text(problem)}'
            ) from problem
        finally:
            if self._observer is not None:
                self._observer.plugin(plugin.name, NORMALIZE_SCORE, code, time.perf_counter() - start)
        return scores

    def _raw_scores(self, plugin: ScorePlugin, cycle: Cycle, clusters: Sequence[Cluster]) -> list[int]:
        scores: list[int] = []
        run, start = plugin.score, time.perf_counter()
        try:
            for context in map(ScoreContext, repeat(cycle), clusters):
                score = run(context)
                if type(score) is not int:
                    _require_integer(score)
                scores.append(score)
        except self._passed_on:
            raise
        except _InvalidScoreError as error:
            raise PluginError(f'plugin "{plugin.name}" failed with: {error}') from None
        except BaseException as problem:
            raise PluginError(f'plugin "{plugin.name}" failed with: {exception_text(problem)}') from problem
        finally:
            if self._observer is not None and clusters:
                is_done = len(scores) == len(clusters)
                count = len(scores) + (not is_done)
                seconds = (time.perf_counter() - start) / count
                if scores:
                    self._observer.plugin(plugin.name, SCORE, Code.SUCCESS, seconds, len(scores))
                if not is_done:
                    self._observer.plugin(plugin.name, SCORE, Code.ERROR, seconds)
        return scores


def _require_integer(score: object) -> None:
    if not isinstance(score, int) or isinstance(score, bool):
        raise _InvalidScoreError(f"expected an integer, got {shown(score)}")


def _validated_scores(scores: Sequence[object], *, expected: int) -> list[int]:
    wanted = "1 integer" if expected == 1 else f"{expected} integers"
    if not isinstance(scores, Sequence) or len(scores) != expected:
        raise _InvalidScoreError(f"expected {wanted}, got {shown(scores)}")
    integers = [score for score in scores if isinstance(score, int) and not isinstance(score, bool)]
    if len(integers) != len(scores):
        raise _InvalidScoreError(f"expected {wanted}, got {shown(scores)}")
    return integers
