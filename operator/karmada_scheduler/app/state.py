"""The caches and queues of one process."""

from __future__ import annotations

from dataclasses import dataclass

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.scheduler.pre_enqueue import PreEnqueueGate
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the parts of one process share.

    Attributes:
        bindings: All bindings.
        clusters: All clusters.
        queue: The keys of bindings that may have to be scheduled.
        gate: The bindings that PreEnqueue plugins hold back.
        waiting: The bindings that wait at Permit.
        own_writes: The versions that this process has written.
        assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
    """

    bindings: BindingCache
    clusters: ClusterCache
    queue: AsyncQueue[BindingKey]
    gate: PreEnqueueGate
    waiting: WaitingBindings
    own_writes: OwnWrites
    assumed: AssumedPlacements | None
