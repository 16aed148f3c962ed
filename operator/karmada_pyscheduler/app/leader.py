"""The work of the process that leads (decide, write, post Events), whether it may write, and the workloads for its plugins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

from karmada_pyscheduler.app.host import Host
from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_pyscheduler.binding_cycle.writer import BindingWriter
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.client.metadata import MetadataClient
from karmada_pyscheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.requeue import (
    Requeuer,
)
from karmada_pyscheduler.informer.workloads import NotSynced, WorkloadInformer
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.process.supervisor import Supervisor
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
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.cycle import no_workload
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.workload import UndeclaredWorkloadError
from karmada_scheduler.structs import IdentityStruct


class WorkloadSource:
    """The workload informer of the process, from the time when there is a connection."""

    def __init__(self, bindings: BindingCache) -> None:
        """Know no workload until ``connect``."""
        self._bindings = bindings
        self._informer: WorkloadInformer | None = None
        self._profiles: Profiles | None = None

    def connect(
        self,
        connection: Connection,
        profiles: Profiles,
        requeuer: Requeuer,
        *,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        """Watch what the plugins of the profiles need; a change of a workload requeues its bindings."""
        self._profiles = profiles
        informer = self._informer = WorkloadInformer(
            MetadataClient(connection),
            is_needed=profiles.needs_workload,
            on_change=requeuer.on_workload_changed,
            on_synced=requeuer.add_key,
            clock=clock,
        )
        self._bindings.add_listener(informer.on_binding_change)
        metrics.api_server.cached.labels("Workload").set_function(informer.__len__)
        metrics.api_server.unavailable_workloads.set_function(lambda: len(informer.unavailable()))
        self.follow()

    def follow(self) -> None:
        """Watch the metadata of the workloads of all bindings if a plugin needs it; called when plugins change."""
        assert self._informer is not None  # connected before plugins change
        assert self._profiles is not None
        self._informer.follow_all(self._bindings if self._profiles.need_workloads else ())

    def look_up(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        """Return the workload of a binding for a decision."""
        assert self._informer is not None  # connected before bindings are scheduled
        return self._informer.look_up(binding)

    def stored(self, key: BindingKey) -> Workload | None:
        """Return the workload as it was last seen, None if it is not known."""
        return self._informer.stored(key) if self._informer is not None else None

    def stored_for_profile(self, profile: str, key: BindingKey) -> Workload | None:
        """Return the workload as it was last seen for a plugin's handle.

        Raises:
            UndeclaredWorkloadError: No plugin of the profile declares that it needs workloads.
        """
        if self._profiles is not None and not self._profiles.declares_workload(profile):
            raise UndeclaredWorkloadError
        return self.stored(key)

    def close(self) -> None:
        """End all watches."""
        if self._informer is not None:
            self._informer.close()


log = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long a stop waits for writes under way; ``supervisor.STOP_SECONDS`` limits the whole stop."""

_EVENT_WAIT_SECONDS: Final = 5.0
"""How long an Event lets bindings go first, at most."""

_FLUSH_SECONDS: Final = 5.0
"""How long a stop then waits for Events. The Lease is kept meanwhile, so the next leader waits as well."""


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


class Leader:
    """The scheduling loop with its writer and its Events."""

    def __init__(
        self,
        host: Host,
        options: Options,
        state: SchedulerState,
        handlers: EventHandlers,
        connection: Connection,
        *,
        accurate: AccurateEstimator | None,
        is_leading: Callable[[], bool],
        workloads: WorkloadSource,
        on_rollback: Callable[[], None],
        recorder: Recorder | None,
    ) -> None:
        """Build the loop; ``run`` runs it.

        Args:
            host: The process.
            options: The validated command line.
            state: The caches, the queue and the plugins.
            handlers: Get the objects that are read after conflicts.
            connection: Writes go here.
            accurate: Requests available replicas from the member clusters; None if that is off.
            is_leading: Returns whether a write may be sent now.
            workloads: The metadata of workloads, for plugins.
            on_rollback: Called when an object is older than in the cache.
            recorder: Records decisions; None without records.
        """
        environment, metrics = host.environment, host.metrics
        self._queue = state.queue
        self._reconsiderations = state.reconsiderations
        self._recorder = EventRecorder(
            connection,
            now=environment.now,
            clock=environment.clock,
            idle=partial(self._queue.wait_idle, timeout=_EVENT_WAIT_SECONDS),
            may_post=is_leading,
            on_result=lambda result: metrics.api_server.writes.labels("event", result).inc(),
        )
        self.scheduler = new_scheduler(
            options,
            state,
            KarmadaClient(connection),
            self._recorder,
            handlers,
            is_leading=is_leading,
            now=environment.now,
            find_workload=workloads.look_up,
            stored_workload=workloads.stored,
            on_rollback=on_rollback,
            estimators=[GeneralEstimator(options.feature_gates)],
            accurate=accurate,
            new_budget=environment.decision_budget,
            recorder=recorder,
        )

    def record(self, binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001 (the handle)
        """Record an Event of a plugin."""
        self._recorder.record(binding, WARNING if warning else NORMAL, reason, text)

    async def run(self) -> None:
        """Schedule until cancelled; then wait for the writes under way, and for Events."""
        log.info("Starting karmada scheduler", extra={"count": len(self._queue)})
        async with self._recorder.posting(flush_seconds=_FLUSH_SECONDS):
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.scheduler.run(), name="schedule")
                    tasks.create_task(self._reconsiderations.run(), name="reconsider")
            finally:
                await self.scheduler.drain(timeout=STOP_SECONDS)


class Leadership(IdentityStruct):
    """Whether this process may write; without leader election it always may.

    ``end`` ends the process at once; see ``process_exit.end``.
    """

    elector: Elector | None
    supervisor: Supervisor
    metrics: Metrics
    end: Callable[..., None]

    def is_leader(self) -> bool:
        """Return False before the Lease is acquired, and once it may have expired."""
        return self.elector is None or self.elector.is_leader()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Acquire the Lease, renew it during the block, and release it at the end. If it is lost, the process ends."""
        if self.elector is None:
            yield
            return
        gauge = self.metrics.api_server.leader.labels("")
        gauge.set(0)
        await self.supervisor.run(self.elector.acquire())
        gauge.set(1)
        self.supervisor.leading = True
        renewal = asyncio.create_task(self.supervisor.run(self._renew(self.elector)), name="renew lease")
        try:
            yield
        finally:
            self.supervisor.leading = False
            gauge.set(0)
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            await self.supervisor.run(self.elector.release())

    async def _renew(self, elector: Elector) -> None:
        """Renew the Lease; if it is lost, end the process, even while the main event loop is blocked."""
        reason = await elector.renew()
        self.end(1, log_last=lambda: log.error("leaderelection lost: %s", reason))
