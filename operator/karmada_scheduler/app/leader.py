"""The work of the process that leads: decide, write, and post Events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.app.host import Host
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import KarmadaClient
from karmada_scheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.accurate import AccurateEstimator
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.informer.workloads import NotSynced
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.scheduler.reconsideration import Reconsiderations
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduler.state import SchedulerState

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long a stop waits for writes under way; ``supervisor.STOP_SECONDS`` limits the whole stop."""

_EVENT_WAIT_SECONDS: Final = 5.0
"""How long an Event lets bindings go first, at most."""

_FLUSH_SECONDS: Final = 5.0
"""How long a stop then waits for Events. The Lease is kept meanwhile, so the next leader waits as well."""


class Leader:
    """The scheduling loop with its writer and its Events."""

    def __init__(
        self,
        host: Host,
        options: Options,
        state: SchedulerState,
        connection: Connection,
        *,
        profiles: Profiles,
        accurate: AccurateEstimator | None,
        is_leading: Callable[[], bool],
        find_workload: Callable[[Binding], WorkloadAnswer | NotSynced],
        stored_workload: Callable[[BindingKey], Workload | None],
        on_read: Callable[[str, str, Mapping[str, Any]], None],
        on_rollback: Callable[[], None],
        recorder: Recorder | None = None,
        reconsiderations: Reconsiderations,
    ) -> None:
        """Build the loop; ``run`` runs it.

        Args:
            host: The process.
            options: The validated command line.
            state: The caches and queues.
            connection: Writes go here.
            profiles: The plugins by scheduler name.
            accurate: Requests available replicas from the member clusters; None if that is off.
            is_leading: Returns whether a write may be sent now.
            find_workload: Returns the metadata of a binding's workload; called if a plugin of its profile needs it.
            stored_workload: Returns the workload of another binding for plugins, None without one.
            on_read: Gets the objects that are read after conflicts, as watch events.
            on_rollback: Called when an object is older than in the cache.
            recorder: Records decisions; None without records.
            reconsiderations: The bindings that Reconsider plugins may want decided again.
        """
        self._reconsiderations = reconsiderations
        environment, metrics = host.environment, host.metrics
        self._metrics = metrics
        self._state = state
        self._recorder = EventRecorder(
            connection,
            now=environment.now,
            clock=environment.clock,
            idle=partial(state.queue.wait_idle, timeout=_EVENT_WAIT_SECONDS),
            may_post=is_leading,
            on_result=lambda result: metrics.api_server.writes.labels("event", result).inc(),
        )
        writer = BindingWriter(
            KarmadaClient(connection),
            state.bindings,
            limiter=WriteLimiter.from_options(
                options, clock=environment.clock, on_window=metrics.api_server.write_window.set
            ),
            is_leading=is_leading,
            on_read=on_read,
            on_rollback=on_rollback,
            metrics=metrics,
        )
        gates = options.feature_gates
        self.scheduler = Scheduler(
            options,
            state,
            profiles=profiles,
            algorithm=SchedulingAlgorithm(
                gates,
                [GeneralEstimator(gates)],
                empty_workload_propagation=options.enable_empty_workload_propagation,
                peers=state.bindings if gates.enabled("WorkloadAffinity") else None,
                stored=state.bindings.get,
                stored_workload=stored_workload,
            ),
            cycle=BindingCycle(writer, self._recorder, own_writes=state.own_writes, now=environment.now),
            reconsiderations=reconsiderations,
            find_workload=find_workload,
            metrics=metrics,
            clock=environment.clock,
            new_budget=environment.decision_budget,
            accurate=accurate,
            recorder=recorder,
        )

    def record(self, binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001 (the handle)
        """Record an Event of a plugin."""
        self._recorder.record(binding, WARNING if warning else NORMAL, reason, text)

    async def run(self) -> None:
        """Schedule until cancelled; then wait for the writes under way, and for Events."""
        log.info("Starting karmada scheduler", extra={"count": len(self._state.queue)})
        async with self._recorder.posting(flush_seconds=_FLUSH_SECONDS):
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self.scheduler.run(), name="schedule")
                    tasks.create_task(self._reconsiderations.run(), name="reconsider")
            finally:
                await self.scheduler.drain(timeout=STOP_SECONDS)
