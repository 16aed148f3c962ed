"""PreEnqueue: bindings that plugins keep out of the queue, and those that a plugin has activated."""

from __future__ import annotations

import logging
from collections.abc import Set as AbstractSet
from typing import Final

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.scheduler.attempt import DecisionRequest
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.framework.diagnosis import PluginError

log = logging.getLogger(__name__)

GATED_SECONDS: Final = 300.0
"""After this time PreEnqueue plugins are called again for a gated binding without an event, as in kube-scheduler."""


class PreEnqueueGate:
    """Runs PreEnqueue plugins when a key is taken from the queue."""

    def __init__(self, queue: SchedulingQueue[BindingKey], bindings: BindingCache) -> None:
        self._queue = queue
        self._bindings = bindings
        self._gated: set[BindingKey] = set()
        self._activated: set[BindingKey] = set()

    @property
    def gated(self) -> AbstractSet[BindingKey]:
        """A live view of the keys that PreEnqueue plugins keep out."""
        return self._gated

    def activate(self, key: BindingKey) -> None:
        """Enqueue a binding, and let its next attempt pass without a call of PreEnqueue plugins."""
        binding = self._bindings.get(key)
        if binding is not None:
            self._activated.add(key)
            self._queue.add(key, binding.spec.priority)

    def reset(self, key: BindingKey) -> bool:
        """Count a key as not gated, and return whether it was activated; both hold until the next call."""
        self._gated.discard(key)
        is_activated = key in self._activated
        self._activated.discard(key)
        return is_activated

    def stay_activated(self, key: BindingKey) -> None:
        """Keep an activation for the next attempt."""
        self._activated.add(key)

    def admits(self, request: DecisionRequest) -> bool:
        """Return whether no PreEnqueue plugin would gate a binding; it is not counted as gated."""
        try:
            return request.framework.binding.run_pre_enqueue(request.binding, request.workload).is_success
        except PluginError:
            return False

    def delay(self, request: DecisionRequest) -> float:
        """Call the PreEnqueue plugins; return for how many seconds the binding is gated, 0 if it is not.

        Raises:
            PluginError: A plugin failed.
        """
        binding = request.binding
        result = request.framework.binding.run_pre_enqueue(binding, request.workload)
        if result.is_success:
            return 0.0
        log.info(
            "%s is gated by %s: %s",
            binding.key.display,
            result.plugin,
            result.message,
            extra={"binding": str(binding.key), "plugin": result.plugin},
        )
        self._gated.add(binding.key)
        return result.retry_after or GATED_SECONDS
