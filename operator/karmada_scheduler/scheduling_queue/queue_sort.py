"""Puts a QueueSort plugin in charge of the queue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.binding_points import QueuedBinding, QueueSortPlugin
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller

__plugin_runner__ = True


class _Judge:
    """Asks the plugin; while it is not called because it has hung, higher priorities go first."""

    def __init__(self, plugin: QueueSortPlugin, caller: PluginCaller) -> None:
        self._plugin = plugin
        self._caller = caller

    def less(self, a: QueuedBinding, b: QueuedBinding) -> bool:
        plugin, caller = self._plugin, self._caller
        try:
            since = caller.admit(plugin, Point.QUEUE_SORT)
        except PluginError:
            return a.default_rank < b.default_rank
        try:
            with caller.timeout:
                is_less = bool(plugin.less(a, b))
        except BaseException as problem:  # noqa: BLE001 (a plugin can raise anything)
            with contextlib.suppress(PluginError):  # which is logged
                caller.raise_plugin_error(plugin, Point.QUEUE_SORT, problem, since=since)
            return False
        caller.record_success(plugin, Point.QUEUE_SORT, since=since)
        return is_less


class _Ranked:
    """A place in the queue that a plugin compares."""

    __slots__ = ("_judge", "_queued")

    def __init__(self, judge: _Judge, queued: QueuedBinding) -> None:
        self._judge = judge
        self._queued = queued

    def __lt__(self, other: _Ranked) -> bool:
        return self._judge.less(self._queued, other._queued)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranked) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]  # compared only


def ranked_by(
    plugin: QueueSortPlugin,
    binding_of: Callable[[BindingKey], Binding | None],
    *,
    caller: PluginCaller | None = None,
) -> Callable[[BindingKey, int, float], object]:
    """Return what ranks keys as a plugin says; ``caller`` stands between the queue and the plugin."""
    judge = _Judge(plugin, caller or PluginCaller())

    def rank(key: BindingKey, priority: int, since: float) -> object:
        return _Ranked(judge, QueuedBinding(key, priority, since, binding_of(key)))

    return rank
