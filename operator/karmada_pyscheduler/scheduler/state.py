"""What the parts of one process share, from before there is a connection until its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from karmada_pyscheduler.binding_cycle.own_writes import OwnWrites
from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.cache.refused_bindings import RefusedBindings
from karmada_pyscheduler.informer.list_requests import ListRequests
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduler.pre_enqueue import PreEnqueueGate
from karmada_pyscheduler.scheduler.reconsideration import Reconsiderations
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings


class SchedulerState:
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
        assumed: The assumed placements; None without the gate SchedulingOvercommitProtection.
        gate: The bindings that PreEnqueue plugins hold back.
        refused: The bindings that wait for changes which plugins declare that have refused them.
        reconsiderations: The bindings that Reconsider plugins may want decided again.
        list_requests: Lists that event handlers need before their time.
    """

    def __init__(
        self,
        queue: SchedulingQueue[BindingKey],
        *,
        bindings: BindingCache,
        clusters: ClusterCache,
        waiting: WaitingBindings,
        profiles: Profiles,
        metrics: Metrics,
        clock: Callable[[], float],
        own_writes: OwnWrites | None = None,
        assumed: AssumedPlacements | None = None,
    ) -> None:
        """Take the caches, and the queue with the keys of ``bindings``."""
        self.queue: Final = queue
        self.bindings: Final = bindings
        self.clusters: Final = clusters
        self.waiting: Final = waiting
        self.profiles: Final = profiles
        self.metrics: Final = metrics
        self.clock: Final = clock
        self.own_writes: Final = OwnWrites() if own_writes is None else own_writes
        self.assumed: Final = assumed
        self.gate: Final = PreEnqueueGate(queue, bindings)
        self.refused: Final = RefusedBindings()
        bindings.add_listener(self.refused.on_binding_change)
        self.reconsiderations: Final = Reconsiderations(
            bindings=bindings, queue=queue, profiles=profiles, metrics=metrics.plugins, clock=clock
        )
        self.list_requests: Final = ListRequests()
