"""Runs the Filter plugins over one cluster after the other: the innermost loop that plugins take part in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn

from karmada_scheduler.framework.deciding import FilterContext, FilterPlugin
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.guard import Guard, Observer, blame, checked
from karmada_scheduler.framework.points import Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result


class Judge:
    """Runs the filters over one cluster after the other, under one watch for all; see ``broke``."""

    def __init__(self, filters: Sequence[FilterPlugin], guard: Guard) -> None:
        self._filters = filters
        self._observer = guard.observer
        self._running: FilterPlugin | None = None
        self._cluster = ""

    def broke(self, error: BaseException) -> NoReturn:
        """Raise what came out of a call as the error of the plugin that was running, PluginError."""
        plugin = self._running
        if plugin is not None and self._observer is not None:
            self._observer.plugin(plugin.name, Point.FILTER.label, Code.ERROR, 0.0)
        if plugin is None or isinstance(error, PluginError):
            raise error
        blame(plugin, Point.FILTER, error, where=f" for cluster {self._cluster}")

    def __call__(self, context: FilterContext) -> Result:
        if self._observer is not None:
            return self._observed(context, self._observer)
        self._cluster = context.cluster.name
        for plugin in self._filters:
            self._running = plugin
            result = plugin.filter(context)
            if result is not SUCCESS:
                result = _refusal(plugin, result)
                if result is not SUCCESS:
                    return result
        return SUCCESS

    def _observed(self, context: FilterContext, observer: Observer) -> Result:
        self._cluster = context.cluster.name
        result, start = SUCCESS, time.perf_counter()
        begin = start
        for plugin in self._filters:
            self._running = plugin
            result = _refusal(plugin, plugin.filter(context))
            end = time.perf_counter()
            observer.plugin(plugin.name, "Filter", result.code, end - begin)
            begin = end
            if result is not SUCCESS:
                break
        observer.extension_point("Filter", result.code, begin - start)
        return result


def _refusal(plugin: FilterPlugin, answer: object) -> Result:
    if answer is SUCCESS:
        return SUCCESS
    result = checked(plugin, Point.FILTER, answer)
    return SUCCESS if result.is_success else result
