"""Runs the Filter plugins over one cluster after the other: the innermost loop that plugins take part in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn

from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import Observer, PluginCaller
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import FilterContext, FilterPlugin

__plugin_runner__ = True


class FilterRunner:
    """Runs the filters over one cluster after the other, under one watch for all; see ``broke`` and ``ended``."""

    def __init__(self, filters: Sequence[FilterPlugin], caller: PluginCaller) -> None:
        self._filters = filters
        self._caller = caller
        self._observer = caller.observer
        self._running: FilterPlugin | None = None
        self._cluster = ""
        self._since = caller.openings
        self._admitted: list[FilterPlugin] | None = [] if caller.has_open_breakers else None
        self._refused: tuple[FilterPlugin, object, Result] | None = None

    def broke(self, error: BaseException) -> NoReturn:
        """Raise what came out of a call as the error of the plugin that was running, PluginError."""
        plugin = self._running
        if plugin is not None and self._observer is not None:
            self._observer.plugin(plugin.name, Point.FILTER.label, Code.ERROR, 0.0)
        if plugin is None or isinstance(error, PluginError):
            raise error
        self._caller.raise_plugin_error(plugin, Point.FILTER, error, since=self._since, cluster=self._cluster)

    def ended(self) -> None:
        """Note that all calls have ended in time."""
        for plugin in self._admitted or ():
            self._caller.record_success(plugin, Point.FILTER, since=self._since)

    def __call__(self, context: FilterContext) -> Result:
        if self._observer is not None:
            return self._observed(context, self._observer)
        self._cluster = context.cluster.name
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            result = plugin.filter(context)
            if result is not SUCCESS:
                result = self._checked(plugin, result)
                if result is not SUCCESS:
                    return result
        return SUCCESS

    def _observed(self, context: FilterContext, observer: Observer) -> Result:
        self._cluster = context.cluster.name
        result, start = SUCCESS, time.perf_counter()
        begin = start
        for plugin in self._filters:
            self._running = plugin
            if self._admitted is not None:
                self._admit(plugin, self._admitted)
            result = self._checked(plugin, plugin.filter(context))
            end = time.perf_counter()
            observer.plugin(plugin.name, "Filter", result.code, end - begin)
            begin = end
            if result is not SUCCESS:
                break
        observer.extension_point("Filter", result.code, begin - start)
        return result

    def _admit(self, plugin: FilterPlugin, admitted: list[FilterPlugin]) -> None:
        """Ask once for all clusters whether a plugin may be called."""
        if not any(each is plugin for each in admitted):
            self._caller.admit(plugin, Point.FILTER)
            admitted.append(plugin)

    def _checked(self, plugin: FilterPlugin, answer: object) -> Result:
        """Check an answer as ``_refusal`` does; many clusters in a row are mostly refused by the same object."""
        if answer is SUCCESS:
            return SUCCESS
        known = self._refused
        if known is not None and known[1] is answer and known[0] is plugin:
            return known[2]
        result = _refusal(plugin, answer)
        if isinstance(answer, Result) and type(answer.reasons) is tuple:  # nobody can change it meanwhile
            self._refused = plugin, answer, result
        return result


def _refusal(plugin: FilterPlugin, answer: object) -> Result:
    if answer is SUCCESS:
        return SUCCESS
    result = validated(plugin, Point.FILTER, answer)
    if result.is_refusal:
        return result
    if result.is_success:
        return SUCCESS
    raise unexpected_code(plugin, Point.FILTER, result)
