"""Connects the parts of a scheduler: events with the queue, and the queue with writes.

A process does this in three phases. At first it has no connection, and builds ``Wiring`` with caches, queue and plugins.
Then it watches: ``new_event_handlers``. When it leads, it writes: ``new_scheduler``. Tests without a process do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.cache.manifests import ManifestCache
from karmada_scheduler.client.karmada import KarmadaClient
from karmada_scheduler.client.recorder import EventRecorder
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.available_replicas import LocalEstimator
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.informer.event_handlers import EventHandlers
from karmada_scheduler.informer.list_requests import ListRequests
from karmada_scheduler.informer.listeners import (
    BindingListener,
    ClusterListener,
    Listeners,
    PermitListener,
    only_assigned,
)
from karmada_scheduler.informer.object_kinds import CLUSTER
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.scheduler.decision_runner import new_budget
from karmada_scheduler.scheduler.reconsideration import Reconsiderations
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduler.state import SchedulerState


class Wiring:
    """What all parts of a scheduler share, before there is a connection.

    Attributes:
        options: The validated command line.
        state: The caches and queues.
        profiles: The plugins by scheduler name.
        reconsiderations: The bindings that Reconsider plugins may want decided again.
        list_requests: Lists that event handlers need before their time.
    """

    def __init__(
        self,
        options: Options,
        state: SchedulerState,
        profiles: Profiles,
        *,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Take the caches and the plugins; ``clock`` returns seconds, never running backwards."""
        self.options: Final = options
        self.state: Final = state
        self.profiles: Final = profiles
        self.reconsiderations: Final = Reconsiderations(
            bindings=state.bindings,
            queue=state.queue,
            profiles=profiles,
            metrics=metrics.plugins,
            clock=clock,
        )
        self.list_requests: Final = ListRequests()
        self._metrics = metrics
        self._clock = clock

    def new_event_handlers(
        self,
        *,
        manifests: ManifestCache | None = None,
        on_cluster: Sequence[ClusterListener] = (),
        on_enqueued: Sequence[Callable[[BindingKey, str], None]] = (),
    ) -> EventHandlers:
        """Return the handlers of watched objects.

        Args:
            manifests: Stores objects as they were sent, for extenders; None without extenders.
            on_cluster: Called with a cluster before and after a change.
            on_enqueued: Called with the key of a binding and the event by which it is added to the queue.
        """
        state, names = self.state, self.profiles.names
        permit = PermitListener(state.waiting, names)
        on_binding: list[BindingListener] = [permit.binding_changed]
        if state.assumed is not None:
            on_binding.append(only_assigned(state.assumed.on_binding_change, names))
        return EventHandlers(
            bindings=state.bindings,
            clusters=state.clusters,
            queue=state.queue,
            scheduler_names=names,
            metrics=self._metrics,
            clock=self._clock,
            manifests=manifests,
            listeners=Listeners(
                bindings=on_binding,
                clusters=[permit.cluster_changed, self.reconsiderations.on_cluster, *on_cluster],
                versions=[state.own_writes.observe],
                enqueued=on_enqueued,
            ),
            on_unlisted_cluster=lambda seconds: self.list_requests.after(seconds, [CLUSTER]),
        )

    def new_scheduler(
        self,
        client: KarmadaClient,
        events: EventRecorder,
        handlers: EventHandlers,
        limiter: WriteLimiter,
        *,
        is_leading: Callable[[], bool],
        now: Callable[[], datetime],
        find_workload: Callable[[Binding], WorkloadAnswer | NotSynced],
        stored_workload: Callable[[BindingKey], Workload | None] = no_workload,
        on_rollback: Callable[[], None] = lambda: None,
        estimators: Sequence[LocalEstimator] = (),
        accurate: AccurateEstimator | None = None,
        new_budget: Callable[[], Budget] = new_budget,
        recorder: Recorder | None = None,
    ) -> Scheduler:
        """Return the scheduling loop.

        Args:
            client: Sends the writes.
            events: Posts Events.
            handlers: Get the objects that are read after conflicts.
            limiter: Limits the number of writes at a time.
            is_leading: Returns whether a write may be sent now.
            now: Returns the time of day.
            find_workload: Returns the metadata of a binding's workload; called if a plugin of its profile needs it.
            stored_workload: Returns the workload of another binding for plugins, None without one.
            on_rollback: Called when an object is older than in the cache.
            estimators: The estimators in this process.
            accurate: Requests available replicas from the member clusters; None if that is off.
            new_budget: Returns the budget of one decision.
            recorder: Records decisions; None without records.
        """
        options, state = self.options, self.state
        writer = BindingWriter(
            client,
            state.bindings,
            limiter=limiter,
            is_leading=is_leading,
            on_read=handlers.on_event,
            on_rollback=on_rollback,
            metrics=self._metrics,
        )
        algorithm = SchedulingAlgorithm(
            options.feature_gates,
            estimators,
            empty_workload_propagation=options.enable_empty_workload_propagation,
            peers=state.bindings if options.feature_gates.enabled("WorkloadAffinity") else None,
            stored=state.bindings.get,
            stored_workload=stored_workload,
        )
        return Scheduler(
            options,
            state,
            profiles=self.profiles,
            algorithm=algorithm,
            cycle=BindingCycle(writer, events, own_writes=state.own_writes, now=now),
            reconsiderations=self.reconsiderations,
            find_workload=find_workload,
            metrics=self._metrics,
            clock=self._clock,
            new_budget=new_budget,
            accurate=accurate,
            recorder=recorder,
        )
