"""What the parts of one process share, from before there is a connection until its end.

Plugins hold a binding at two places: at PreEnqueue before its decision, and at Permit before its write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.binding_cycle.served_components import ServedComponents
from karmada_pyscheduler.binding_cycle.writer import OwnWrites
from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache, RefusedBindings
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.informer.list_requests import ListRequests
from karmada_pyscheduler.informer.requeue import only_assigned
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.attempt import Attempt, DecisionRequest
from karmada_pyscheduler.scheduler.reconsideration import Reconsiderations
from karmada_pyscheduler.scheduler.resync import ReducedShares, Resyncs
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.structs import IdentityStruct, field

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
        if self._bindings.get(key) is not None:
            self._activated.add(key)
            self.enqueue(key)

    def enqueue(self, key: BindingKey) -> None:
        """Enqueue a binding, if it exists."""
        binding = self._bindings.get(key)
        if binding is not None:
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


class SchedulerState(IdentityStruct):
    """The caches, the queue and the plugins of one process.

    Attributes:
        queue: The keys of bindings that may have to be scheduled.
        bindings: All bindings.
        clusters: All clusters.
        waiting: The bindings that wait at Permit.
        profiles: The plugins by scheduler name.
        metrics: The metrics of the process.
        clock: Returns seconds, never running backwards.
        own_writes: The versions that this process has written.
        components: Whether the control plane serves components of targets.
        assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
        gate: The bindings that PreEnqueue plugins hold back.
        refused: The bindings that wait for changes which plugins declare that have refused them.
        reconsiderations: The bindings that Reconsider plugins may want decided again.
        list_requests: Lists that event handlers need before their time.
    """

    queue: SchedulingQueue[BindingKey]
    bindings: BindingCache
    clusters: ClusterCache
    waiting: WaitingBindings
    profiles: Profiles
    metrics: Metrics
    clock: Callable[[], float]
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    components: ServedComponents = field(default_factory=ServedComponents)
    assumed: AssumedPlacements | None = None
    refused: RefusedBindings = field(default_factory=RefusedBindings)
    list_requests: ListRequests = field(default_factory=ListRequests)

    def __post_init__(self) -> None:
        self.gate = PreEnqueueGate(self.queue, self.bindings)
        self.reduced = ReducedShares(self.clock)
        self.resyncs = Resyncs(self.queue, self.clock)
        self.bindings.add_listener(self.refused.on_binding_change)
        self.bindings.add_listener(self.reduced.on_binding_change)
        self.bindings.add_listener(only_assigned(self.resyncs.on_binding_change, self.profiles.names))
        self.reconsiderations = Reconsiderations(
            bindings=self.bindings,
            queue=self.queue,
            profiles=self.profiles,
            metrics=self.metrics.plugins,
            clock=self.clock,
        )


class Permit:
    """Makes bindings wait, and gives up those that are outdated."""

    def __init__(self, state: SchedulerState, cycle: BindingCycle) -> None:
        self._state = state
        self._cycle = cycle

    async def wait(
        self, attempt: Attempt, transaction: BindingTransaction, waits: Mapping[str, Result]
    ) -> Result:
        """Wait until every plugin has allowed the binding, and return SUCCESS or the refusal.

        The attempt has no slot meanwhile.

        Args:
            attempt: The attempt.
            transaction: The decision.
            waits: The WAIT result of each plugin by name, with its timeout.

        Raises:
            AbandonedError: The decision is outdated, or the process stops.
        """
        binding = transaction.binding
        clusters = frozenset(target.name for target in transaction.targets or ())
        timeouts = {plugin: result.timeout for plugin, result in waits.items()}
        gauges = [self._state.metrics.plugins.permit_waiting.labels(plugin) for plugin in waits]
        self._cycle.record_waiting(binding, waits)
        async with attempt.without_slot():
            started, label = self._state.clock(), "abandoned"
            for gauge in gauges:
                gauge.inc()
            try:
                result = await self._state.waiting.wait(
                    binding,
                    clusters,
                    timeouts,
                    reasons={plugin: result.message for plugin, result in waits.items()},
                    on_wait=lambda: self._abandon_outdated(binding.key, clusters),
                )
                label = "allowed" if result.is_success else "rejected"
            finally:
                for gauge in gauges:
                    gauge.dec()
                self._state.metrics.plugins.permit_wait.labels(label).observe(self._state.clock() - started)
        return result

    def _abandon_outdated(self, key: BindingKey, clusters: frozenset[str]) -> None:
        """Give up a binding that changed, or lost a cluster, while the Permit plugins ran.

        The event handlers report later changes.
        """
        newest = self._state.bindings.get(key)
        is_assigned = newest is not None and requeue_rules.is_assigned_to(newest, self._state.profiles.names)
        self._state.waiting.abandon_outdated(key, newest, is_assigned=is_assigned)
        for name in clusters:
            if self._state.clusters.is_gone(name):
                self._state.waiting.abandon_for_cluster(name)
