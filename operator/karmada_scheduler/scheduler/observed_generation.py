"""Records in the status of a binding that its generation needs no scheduling: ``schedulerObservedGeneration``."""

from __future__ import annotations

import logging
from collections.abc import Callable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.core.classify import Classification, ScheduleType
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.scheduler.retry import DONE, Outcome, outcome_of

log = logging.getLogger(__name__)


def may_observe(framework: Framework, binding: Binding) -> bool:
    """Return whether the generation of a binding may count as observed.

    Guard plugins may delay that for a binding that leaves clusters gracefully by a decision of this scheduler.
    """
    name = binding.spec.responsible_scheduler
    if all(task.producer != name for task in binding.spec.graceful_eviction_tasks):
        return True
    try:
        return framework.guard.may_observe(binding).is_success
    except PluginError as error:
        log.error("The generation of %s is not observed: %s", binding.key.display, error)  # noqa: TRY400
        return False


class ObservedGeneration:
    """Writes the observed generation of bindings that are not scheduled."""

    def __init__(
        self,
        *,
        cycle: BindingCycle,
        bindings: BindingCache,
        profiles: Profiles,
        classify: Callable[[Binding], Classification],
    ) -> None:
        """Take the binding cycle, which writes, and the classification of the scheduling loop."""
        self._cycle = cycle
        self._bindings = bindings
        self._profiles = profiles
        self._classify = classify

    async def record(self, binding: Binding) -> Outcome:
        """Record the generation of a binding, and that it needs no scheduling."""
        return outcome_of(await self._cycle.observe(binding))

    async def record_cleared(self, before: Binding) -> Outcome:
        """After the clusters of a binding were cleared, record its new generation if nothing is left to schedule.

        The status of a success records it. Upstream's own write comes back as a change; for a binding without replicas,
        whose replicas are then correct, upstream finds nothing to schedule and records the generation.
        """
        after = self._bindings.get(before.key)
        if (
            after is None
            or after.generation == before.generation
            or after.deleting
            or after.spec.placement is None
            or not requeue_rules.is_claimed_and_assigned(after, self._profiles.names)
        ):
            return DONE
        if self._classify(after).type is not ScheduleType.AVOID or self._cycle.is_observed(after):
            return DONE
        return await self.record(after)
