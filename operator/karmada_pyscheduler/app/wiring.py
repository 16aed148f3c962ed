"""Connects the parts of a scheduler: events with the queue, and the queue with writes.

A process does this in three phases. At first it has no connection, and builds ``SchedulerState`` with caches, queue and
plugins. Then it watches: ``new_event_handlers``. When it leads, it writes: ``new_scheduler``. Tests without a process do the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_pyscheduler.binding_cycle.writer import BindingWriter
from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.client.recorder import EventRecorder
from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.object_kinds import CLUSTER
from karmada_pyscheduler.informer.requeue import (
    BindingListener,
    ClusterListener,
    Listeners,
    PermitListener,
    on_failure_of_another,
    only_assigned,
)
from karmada_pyscheduler.informer.workloads import NotSynced
from karmada_pyscheduler.records.recorder import Recorder
from karmada_pyscheduler.scheduler.decision_runner import new_budget
from karmada_pyscheduler.scheduler.scheduler import Scheduler
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.available_replicas import LocalEstimator
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.core.classify import needs_none
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.framework.cycle import no_workload


def new_event_handlers(
    state: SchedulerState,
    *,
    manifests: ManifestCache | None = None,
    on_cluster: Sequence[ClusterListener] = (),
    on_enqueued: Sequence[Callable[[BindingKey, str], None]] = (),
) -> EventHandlers:
    """Return the handlers of watched objects.

    Args:
        state: The caches, the queue and the plugins.
        manifests: Stores objects as they were sent, for extenders; None without extenders.
        on_cluster: Called with a cluster before and after a change.
        on_enqueued: Called with the key of a binding and the event by which it is added to the queue.
    """
    names = state.profiles.names
    permit = PermitListener(state.waiting, names)
    on_failure = on_failure_of_another(state.queue.add, state.own_writes.has_conditions_of)
    on_binding: list[BindingListener] = [permit.binding_changed, only_assigned(on_failure, names)]
    if state.assumed is not None:
        on_binding.append(only_assigned(state.assumed.on_binding_change, names))
    return EventHandlers(
        bindings=state.bindings,
        clusters=state.clusters,
        queue=state.queue,
        scheduler_names=names,
        metrics=state.metrics,
        clock=state.clock,
        refused=state.refused,
        manifests=manifests,
        listeners=Listeners(
            bindings=on_binding,
            clusters=[permit.cluster_changed, state.reconsiderations.on_cluster, *on_cluster],
            versions=[state.own_writes.observe],
            enqueued=on_enqueued,
        ),
        on_empty_list=lambda seconds: state.list_requests.after(seconds, [CLUSTER]),
    )


def new_scheduler(
    options: Options,
    state: SchedulerState,
    client: KarmadaClient,
    events: EventRecorder,
    handlers: EventHandlers,
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
        options: The validated command line.
        state: The caches, the queue and the plugins.
        client: Sends the writes.
        events: Posts Events.
        handlers: Get the objects that are read after conflicts.
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
    writer = BindingWriter(
        client,
        state.bindings,
        limiter=WriteLimiter.from_options(
            options, clock=state.clock, on_window=state.metrics.api_server.write_window.set
        ),
        is_leading=is_leading,
        is_gone=state.clusters.is_gone,
        on_read=handlers.on_event,
        on_rollback=on_rollback,
        metrics=state.metrics,
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
        algorithm=algorithm,
        cycle=BindingCycle(
            writer,
            events,
            own_writes=state.own_writes,
            components=state.components,
            now=now,
            needs_none=lambda binding: needs_none(
                binding, state.profiles.names, is_gone=state.clusters.is_gone, gates=options.feature_gates
            ),
        ),
        find_workload=find_workload,
        new_budget=new_budget,
        accurate=accurate,
        recorder=recorder,
    )
