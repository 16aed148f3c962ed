"""Runs the Filter plugins for one cluster after another: the innermost loop of a decision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import Observer, PluginCaller
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import FilterContext, FilterPlugin

__plugin_runner__ = True


def run_filters(
    filters: Sequence[FilterPlugin],
    caller: PluginCaller,
    cycle: Cycle,
    clusters: Sequence[Cluster],
    skipped: frozenset[str] = frozenset(),
) -> tuple[list[Cluster], dict[str, Result]]:
    """Run filters for each cluster, until one refuses it; see ``Framework.run_filter``."""
    if skipped:
        filters = [plugin for plugin in filters if plugin.name not in skipped]
    feasible: list[Cluster] = []
    refused: dict[str, Result] = {}
    run = FilterRunner(filters, caller)
    try:
        with caller.timeout:
            for cluster in clusters:
                result = run(FilterContext(cycle, cluster))
                if result is SUCCESS:
                    feasible.append(cluster)
                else:
                    refused[cluster.name] = result
    except BaseException as error:  # noqa: BLE001 (a plugin can raise anything)
        run.raise_plugin_error(error, cycle)
    run.record_success()
    return feasible, refused


class FilterRunner:
    """Runs the filters of one attempt; the caller has one timeout for all clusters.

    The caller must call ``raise_plugin_error`` with the exception of a call, or ``record_success`` at the end.
    """

    def __init__(self, filters: Sequence[FilterPlugin], caller: PluginCaller) -> None:
        self._filters = filters
        self._caller = caller
        self._observer = caller.observer
        self._running: FilterPlugin | None = None
        self._cluster = ""
        self._since = caller.openings
        self._admitted: list[FilterPlugin] | None = [] if caller.has_open_breakers else None
        self._shorter = (
            {id(each): caller.timeout_of(each, adds_up=True) for each in filters}
            if caller.has_shorter_timeouts
            else None
        )
        self._last_refusal: tuple[FilterPlugin, object, Result] | None = None

    def raise_plugin_error(self, error: BaseException, cycle: Cycle) -> NoReturn:
        """Raise PluginError of the plugin that was running for the binding of a cycle."""
        plugin = self._running
        if plugin is not None and self._observer is not None:
            self._observer.plugin(plugin.name, Point.FILTER.label, Code.ERROR, 0.0)
        if isinstance(error, PluginError):
            raise error
        self._caller.raise_plugin_error(
            plugin, Point.FILTER, error, since=self._since, cluster=self._cluster, context=cycle
        )

    def record_success(self) -> None:
        """Record for the circuit breakers that all calls ended in time."""
        for plugin in self._admitted or ():
            self._caller.record_success(plugin, Point.FILTER, since=self._since)

    def __call__(self, context: FilterContext) -> Result:
        if self._observer is not None:
            return self._run_observed(context, self._observer)
        self._cluster = context.cluster.name
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            result = plugin.filter(context) if self._shorter is None else self._limited(plugin, context)
            if result is not SUCCESS:
                result = self._validated(plugin, result)
                if result is not SUCCESS:
                    return result
        return SUCCESS

    def _run_observed(self, context: FilterContext, observer: Observer) -> Result:
        self._cluster = context.cluster.name
        result, start = SUCCESS, time.perf_counter()
        begin = start
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            answer = plugin.filter(context) if self._shorter is None else self._limited(plugin, context)
            result = self._validated(plugin, answer)
            end = time.perf_counter()
            observer.plugin(plugin.name, "Filter", result.code, end - begin)
            begin = end
            if result is not SUCCESS:
                break
        observer.extension_point("Filter", result.code, begin - start)
        return result

    def _admit(self, plugin: FilterPlugin, admitted: list[FilterPlugin]) -> None:
        """Check the circuit breaker of a plugin once for all clusters."""
        if not any(each is plugin for each in admitted):
            self._caller.admit(plugin, Point.FILTER)
            admitted.append(plugin)

    def _limited(self, plugin: FilterPlugin, context: FilterContext) -> Result:
        """Call a plugin with its own timeout, for all clusters together."""
        assert self._shorter is not None  # the caller has checked it
        with self._shorter[id(plugin)]:
            return plugin.filter(context)

    def _validated(self, plugin: FilterPlugin, answer: object) -> Result:
        """Return SUCCESS or a refusal; the last one is cached, as plugins mostly return the same object again."""
        if answer is SUCCESS:
            return SUCCESS
        cached = self._last_refusal
        if cached is not None and cached[1] is answer and cached[0] is plugin:
            return cached[2]
        result = _refusal(plugin, answer)
        if isinstance(answer, Result) and type(answer.reasons) is tuple:  # immutable
            self._last_refusal = plugin, answer, result
        return result


def _refusal(plugin: FilterPlugin, answer: object) -> Result:
    result = validated(plugin, Point.FILTER, answer)
    if result.is_refusal:
        return result
    if result.is_success:
        return SUCCESS
    raise unexpected_code(plugin, Point.FILTER, result)
