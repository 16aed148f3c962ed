"""Makes the queue that the options select."""

from __future__ import annotations

from collections.abc import Callable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.binding_points import QueueSortPlugin
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_scheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.scheduling_queue.queue_sort import sort_key_of
from karmada_scheduler.scheduling_queue.work_queue import WorkQueue


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
        by_priority = PrioritySchedulingQueue[BindingKey](clock=clock, sort_key=sort_key)
        metrics.scheduling.expose_pending(by_priority.pending)
        return by_priority
    exposed = metrics.workqueues.of("scheduler-queue")
    queue = WorkQueue[BindingKey](limits=options.retry_limits, clock=clock, metrics=exposed)
    exposed.expose(depth=lambda: queue.depth, unfinished=queue.unfinished)
    return queue
