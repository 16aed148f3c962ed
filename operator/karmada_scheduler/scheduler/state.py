"""The caches and queues of one process."""

from __future__ import annotations

from typing import Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.scheduler.pre_enqueue import PreEnqueueGate
from karmada_scheduler.scheduling_queue.queue import SchedulingQueue


class SchedulerState:
    """What the parts of one process share.

    Attributes:
        queue: The keys of bindings that may have to be scheduled.
        bindings: All bindings.
        clusters: All clusters.
        gate: The bindings that PreEnqueue plugins hold back.
        waiting: The bindings that wait at Permit.
        own_writes: The versions that this process has written.
        assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
    """

    def __init__(
        self,
        queue: SchedulingQueue[BindingKey],
        *,
        bindings: BindingCache,
        clusters: ClusterCache,
        waiting: WaitingBindings,
        own_writes: OwnWrites | None = None,
        assumed: AssumedPlacements | None = None,
    ) -> None:
        """Take the caches, and the queue with the keys of ``bindings``."""
        self.queue: Final = queue
        self.bindings: Final = bindings
        self.clusters: Final = clusters
        self.gate: Final = PreEnqueueGate(queue, bindings)
        self.waiting: Final = waiting
        self.own_writes: Final = OwnWrites() if own_writes is None else own_writes
        self.assumed: Final = assumed
