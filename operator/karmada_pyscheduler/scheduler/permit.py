"""Waiting at Permit, without a slot, so that other bindings are decided and written meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.scheduler.attempt import Attempt
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.result import Result


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
