"""Makes the queue that the options select, in the order of a QueueSort plugin."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.grouped_queue import GroupedSchedulingQueue
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.binding_points import (
    QueuedBinding,
    QueueGroupPlugin,
    QueueSortPlugin,
    SortKeyPlugin,
)
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.plugin_problems import takes
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller

__plugin_runner__ = True

Answer = TypeVar("Answer")


class _Comparator:
    """Calls the plugin; uses the default order while the plugin's circuit breaker is open."""

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
            with caller.timeout_of(plugin):
                is_less = bool(plugin.less(a, b))
        except BaseException as problem:  # noqa: BLE001 (a plugin can raise anything)
            with contextlib.suppress(PluginError):  # the caller has logged it
                caller.raise_plugin_error(plugin, Point.QUEUE_SORT, problem, since=since)
            return False
        caller.record_success(plugin, Point.QUEUE_SORT, since=since)
        return is_less


class _SortKey:
    """A queued binding that the plugin compares."""

    __slots__ = ("_comparator", "_queued")

    def __init__(self, comparator: _Comparator, queued: QueuedBinding) -> None:
        self._comparator = comparator
        self._queued = queued

    def __lt__(self, other: _SortKey) -> bool:
        return self._comparator.less(self._queued, other._queued)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SortKey) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]  # compared only


def sort_key_of(
    plugin: QueueSortPlugin,
    binding_of: Callable[[BindingKey], Binding | None],
    *,
    caller: PluginCaller | None = None,
) -> Callable[[BindingKey, int, float], object]:
    """Return the sort key of ``PrioritySchedulingQueue`` that orders bindings as a plugin does.

    Args:
        plugin: The QueueSort plugin.
        binding_of: Returns a binding by its key, None if it is not known.
        caller: Calls the plugin.
    """
    calling = caller or PluginCaller()
    if isinstance(plugin, SortKeyPlugin):
        key_of = _checked_key_of(plugin)

        def sort_key(key: BindingKey, priority: int, since: float) -> object:
            queued = QueuedBinding(key, priority, since, binding_of(key))
            try:
                return calling.call(plugin, Point.QUEUE_SORT, key_of, queued)
            except PluginError:  # the caller has logged it
                return queued.default_rank

        return sort_key
    comparator = _Comparator(plugin, calling)

    def compared(key: BindingKey, priority: int, since: float) -> object:
        return _SortKey(comparator, QueuedBinding(key, priority, since, binding_of(key)))

    return compared


def _checked_key_of(plugin: SortKeyPlugin) -> Callable[[QueuedBinding], tuple[float, ...]]:
    """Return the plugin's function with a check: the heap needs keys that can be compared with each other."""
    return lambda queued: _checked(plugin.sort_key(queued), "sort_key")


def _checked(key: object, method: str) -> tuple[float, ...]:
    if not isinstance(key, tuple) or not all(isinstance(part, int | float) for part in key):
        raise TypeError(f"{method} must return a tuple of numbers, got {key!r:.200}")
    if any(isinstance(part, float) and math.isnan(part) for part in key):
        raise ValueError(f"{method} must not return NaN, got {key!r:.200}")
    return key


def groups_of(
    plugin: QueueGroupPlugin, binding_of: Callable[[BindingKey], Binding | None], caller: PluginCaller
) -> tuple[
    Callable[[BindingKey, int, float], str],
    Callable[[str, BindingKey, int, float], tuple[float, ...] | None],
]:
    """Return what tells ``GroupedSchedulingQueue`` the group of a binding, and the key of a group from its next binding."""
    read_key: Any = plugin.queue_group_key
    with_head = takes(read_key, 2)

    def call(function: Callable[[Any], Answer], given: Any, failed: Answer) -> Answer:
        try:
            return caller.call(plugin, Point.QUEUE_SORT, function, given)
        except PluginError:  # the caller has logged it
            return failed

    def group(queued: QueuedBinding) -> str:
        if not isinstance(found := plugin.queue_group(queued), str):
            raise TypeError(f"queue_group must return a text, got {found!r:.200}")
        return found

    def key(given: tuple[Any, ...]) -> tuple[float, ...] | None:
        return _checked(read_key(*given), "queue_group_key")

    def queued(key: BindingKey, priority: int, since: float) -> QueuedBinding:
        return QueuedBinding(key, priority, since, binding_of(key))

    return (
        lambda *head: call(group, queued(*head), ""),
        lambda group, *head: call(key, (group, queued(*head)) if with_head else (group,), None),
    )


def make_queue(
    options: Options,
    *,
    queue_sort: QueueSortPlugin | None,
    binding_of: Callable[[BindingKey], Binding | None],
    caller: PluginCaller,
    metrics: Metrics,
    clock: Callable[[], float],
) -> SchedulingQueue[BindingKey]:
    """Return the priority queue if the gate PriorityBasedScheduling or a plugin requires it, else the work queue.

    Args:
        options: The gate, and the limits of retries.
        queue_sort: The plugin that orders the queue; None for the default order.
        binding_of: Returns a binding by its key, None if it is not known.
        caller: Calls the plugin.
        metrics: Gets the metrics of the queue.
        clock: Returns seconds, never running backwards.
    """
    if queue_sort is not None or options.feature_gates.enabled("PriorityBasedScheduling"):
        sort_key = None if queue_sort is None else sort_key_of(queue_sort, binding_of, caller=caller)
        by_priority: PrioritySchedulingQueue[BindingKey]
        if isinstance(queue_sort, QueueGroupPlugin):
            group_of, key_of = groups_of(queue_sort, binding_of, caller)
            by_priority = GroupedSchedulingQueue(
                clock=clock,
                sort_key=sort_key,
                group_of=group_of,
                key_of=key_of,
                fallen=getattr(queue_sort, "fallen_groups", None),
            )
        else:
            by_priority = PrioritySchedulingQueue(clock=clock, sort_key=sort_key)
        metrics.scheduling.expose_pending(by_priority.pending)
        return by_priority
    exposed = metrics.workqueues.of("scheduler-queue")
    queue = WorkQueue[BindingKey](limits=options.retry_limits, clock=clock, metrics=exposed)
    exposed.expose(depth=lambda: queue.depth, unfinished=queue.unfinished)
    return queue
