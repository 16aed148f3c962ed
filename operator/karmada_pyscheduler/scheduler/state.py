"""What the parts of one process share, from before there is a connection until its end."""

from __future__ import annotations

from collections.abc import Callable

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
from karmada_scheduler.structs import Struct, field


class SchedulerState(Struct, dict=True):
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

    queue: SchedulingQueue[BindingKey]
    bindings: BindingCache
    clusters: ClusterCache
    waiting: WaitingBindings
    profiles: Profiles
    metrics: Metrics
    clock: Callable[[], float]
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    assumed: AssumedPlacements | None = None
    refused: RefusedBindings = field(default_factory=RefusedBindings)
    list_requests: ListRequests = field(default_factory=ListRequests)

    def __post_init__(self) -> None:
        self.gate = PreEnqueueGate(self.queue, self.bindings)
        self.bindings.add_listener(self.refused.on_binding_change)
        self.reconsiderations = Reconsiderations(
            bindings=self.bindings,
            queue=self.queue,
            profiles=self.profiles,
            metrics=self.metrics.plugins,
            clock=self.clock,
        )
