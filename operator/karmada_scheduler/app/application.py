"""Wires the scheduler of one process: caches, plugins, watches, and the loop while it leads."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from karmada_scheduler import __version__
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.app.host import Host
from karmada_scheduler.app.leadership import Leadership
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.client import permissions
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connect import connect
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.karmada import WATCHED, KarmadaClient
from karmada_scheduler.client.leader import Elector
from karmada_scheduler.client.metadata import MetadataClient
from karmada_scheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.config.options import Options
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.estimation import Estimation
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.framework.workload import UndeclaredWorkloadError
from karmada_scheduler.informer.event_handlers import EventHandlers
from karmada_scheduler.informer.kopf_watch import KopfWatch
from karmada_scheduler.informer.listeners import (
    BindingListener,
    ClusterListener,
    Listeners,
    PermitListener,
    only_assigned,
)
from karmada_scheduler.informer.relist import Relister
from karmada_scheduler.informer.workloads import NotSynced, WorkloadInformer
from karmada_scheduler.plugin_loader.handle import HandleBackend
from karmada_scheduler.plugin_loader.manager import PluginManager
from karmada_scheduler.process import gc_tuning
from karmada_scheduler.scheduler.pre_enqueue import PreEnqueueGate
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduler.unplaced import UnplacedBindings
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue
from karmada_scheduler.scheduling_queue.factory import make_queue

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long a stop waits for writes under way; ``supervisor.STOP_SECONDS`` limits the whole stop."""

_EVENT_WAIT_SECONDS: Final = 5.0
"""How long an Event lets bindings go first, at most."""

_FLUSH_SECONDS: Final = 5.0
"""Limit for posting Events after that. The process holds the Lease meanwhile, so the next leader waits as well."""


def _now() -> datetime:
    return datetime.now(UTC)


def _boot_time() -> float:
    """Return seconds; they include the time of suspension if the system counts it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Application:
    """The scheduler of one process."""

    def __init__(self, options: Options, own_plugins: Sequence[Registration], host: Host) -> None:
        """Load the plugins and build all parts that need no connection.

        Raises:
            ConfigError: ``--config`` or a plugin cannot be used.
        """
        self._options = options
        self._host = host
        self._clock = time.monotonic
        self._metrics = host.metrics
        self._bindings = BindingCache()
        self._clusters = ClusterCache()
        self._waiting = WaitingBindings()
        self._own_writes = OwnWrites()
        self._handle_backend = HandleBackend(
            bindings=self._bindings, clusters=self._clusters, waiting=self._waiting, now=time.time
        )
        self._plugins = PluginManager(
            options, self._handle_backend, self._metrics, own_plugins=own_plugins, clock=self._clock
        )
        self._queue = AsyncQueue(
            make_queue(
                options,
                queue_sort=self._plugins.queue_sort,
                binding_of=self._bindings.get,
                caller=self._plugins.caller,
                metrics=self._metrics,
                clock=self._clock,
            )
        )
        self._gate = PreEnqueueGate(self._queue, self._bindings)
        self._connection: Connection | None = None
        self._estimation = (
            Estimation.make(options.estimators, self._read_service, metrics=self._metrics, clock=self._clock)
            if options.estimators.enabled
            else None
        )
        self._assumed: AssumedPlacements | None = None
        if options.feature_gates.enabled("SchedulingOvercommitProtection"):
            self._assumed = AssumedPlacements(clock=self._clock, ttl=options.assumption_ttl)
            self._metrics.scheduling.expose_assumed(self._assumed.__len__)
        self._event_handlers = EventHandlers(
            bindings=self._bindings,
            clusters=self._clusters,
            queue=self._queue,
            scheduler_names=self._plugins.profiles.names,
            metrics=self._metrics,
            clock=self._clock,
            manifests=self._plugins.manifests,
            listeners=self._listeners(),
        )
        self._unplaced = UnplacedBindings(
            self._plugins.profiles.names, waiting=self._waiting, gated=self._gate.gated
        )
        self._bindings.add_listener(self._unplaced.changed)
        self._workloads: WorkloadInformer | None = None
        self._handle_backend.stored_workload = self._workload_for_profile
        self._is_filled = False
        self._watch: KopfWatch | None = None
        host.ready = self._not_ready_reason

    def _listeners(self) -> Listeners:
        names = self._plugins.profiles.names
        permit = PermitListener(self._waiting, names)
        bindings: list[BindingListener] = [permit.binding_changed]
        clusters: list[ClusterListener] = [permit.cluster_changed]
        if self._assumed is not None:
            bindings.append(only_assigned(self._assumed.on_binding_change, names))
        if self._estimation is not None:
            clusters.append(self._estimation.connections.on_cluster)
        return Listeners(bindings=bindings, clusters=clusters, versions=[self._own_writes.observe])

    async def run(self) -> None:
        options = self._options
        log.info("karmada-pyscheduler version: %s", __version__)
        for warning in options.warnings:
            log.warning("%s", warning)
        self._host.stop_on_signals()
        connection = await self._connect()
        self._connection = connection
        try:
            await self._until_stopped(self._serve(connection))
        finally:
            if self._estimation:
                await self._estimation.close()
            if self._workloads is not None:
                self._workloads.close()
            await self._plugins.close()
            await connection.close()

    async def _connect(self) -> Connection:
        options = self._options
        return await connect(
            kubeconfig=options.kubeconfig, master=options.master, on_response=self._count_request
        )

    async def _read_service(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read a Service from the Karmada API server, None if there is none.

        Raises:
            LookupError: It cannot be read.
        """
        assert self._connection is not None  # connected before clusters are listed
        try:
            return await KarmadaClient(self._connection).get_service(namespace, name)
        except ApiError as error:
            raise LookupError(f"cannot read Service {namespace}/{name}: {error}") from error

    def _count_request(self, method: str, host: str, code: int) -> None:
        self._metrics.api_server.requests.labels(str(code or "<error>"), method, host).inc()

    async def _until_stopped(self, work: Any) -> None:
        """Run until the work fails or the process has to stop."""
        task = asyncio.create_task(work, name="serve")
        stop = asyncio.create_task(self._host.stop.wait(), name="stop")
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        self._host.supervisor.stop_within()
        if not task.done():
            log.info("Shutting down karmada scheduler")
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return

    async def _serve(self, connection: Connection) -> None:
        client = KarmadaClient(connection)
        relister = Relister(client, self._event_handlers, WATCHED, period=self._options.resync_seconds)

        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._watch = KopfWatch(
            WATCHED,
            self._event_handlers.on_event,
            identity=identity,
            login=connection.credentials,
            requests=WatchRequests(connection.watch),
            before_start=relister.wait_until_served,
            after_start=self._host.take_signals,
            observe=self._event_handlers.observe,
            is_known=self._event_handlers.is_known,
            start_version=relister.list_and_start_version,
            is_ahead=relister.is_ahead,
            clock=self._clock,
        )
        relister.on_replaced = self._watch.restart
        for resource in WATCHED:
            self._metrics.api_server.expose_watch_age(resource.kind, partial(self._watch.age, resource.kind))
        leadership = await self._make_leadership(identity)
        recorder = EventRecorder(
            connection,
            now=_now,
            clock=self._clock,
            idle=partial(self._queue.wait_idle, timeout=_EVENT_WAIT_SECONDS),
            may_post=leadership.is_leader,
            on_result=lambda result: self._metrics.api_server.writes.labels("event", result).inc(),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._host.supervisor.beat(), name="heartbeat")
            await relister.wait_until_served()
            await self._log_missing_permissions(connection)
            with gc_tuning.paused():
                await relister.initial_list()
            self._workloads = self._make_workload_informer(connection)
            self._follow_workloads()
            self._is_filled = True
            tasks.create_task(self._watch.run(), name="watch")
            tasks.create_task(relister.run(), name="relist")
            tasks.create_task(self._event_handlers.run(), name="cluster reconcile")
            tasks.create_task(self._plugins.run_plugins(), name="plugins")
            tasks.create_task(
                self._plugins.follow_files(
                    follows=bool(self._options.plugin_dirs), on_change=self._plugins_changed
                ),
                name="plugin files",
            )
            tasks.create_task(
                self._lead(client, leadership, recorder, relister.relist_soon),
                name="lead",
            )

    def _make_workload_informer(self, connection: Connection) -> WorkloadInformer:
        informer = WorkloadInformer(
            MetadataClient(connection),
            is_needed=self._plugins.profiles.needs_workload,
            on_change=self._event_handlers.requeuer.on_workload_changed,
            on_synced=self._event_handlers.requeuer.add_key,
            clock=self._clock,
        )
        self._bindings.add_listener(informer.on_binding_change)
        self._metrics.api_server.expose_cache_size("Workload", informer.__len__)
        self._metrics.api_server.expose_unavailable_workloads(lambda: len(informer.unavailable()))
        return informer

    def _follow_workloads(self) -> None:
        """Watch the metadata of workloads, if a plugin needs it."""
        assert self._workloads is not None  # made before plugins change
        is_needed = self._plugins.profiles.need_workloads
        self._workloads.follow_all(self._bindings if is_needed else ())

    def _find_workload(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        assert self._workloads is not None  # made before bindings are scheduled
        return self._workloads.look_up(binding)

    def _stored_workload(self, key: BindingKey) -> Workload | None:
        return self._workloads.stored(key) if self._workloads is not None else None

    def _workload_for_profile(self, profile: str, key: BindingKey) -> Workload | None:
        if not self._plugins.profiles.declares_workload(profile):
            raise UndeclaredWorkloadError
        return self._stored_workload(key)

    def _plugins_changed(self) -> None:
        self._follow_workloads()
        self._event_handlers.requeuer.on_plugins_changed()

    async def _log_missing_permissions(self, connection: Connection) -> None:
        """Log all missing permissions at once; requests that need them are repeated until they are granted."""
        elections = self._options.leader_election
        wanted = permissions.needed(
            lease=elections.name if elections.enabled else "", services=self._estimation is not None
        )
        missing = await permissions.missing(connection, wanted, namespace=elections.namespace)
        if missing:
            log.error(
                "The user of the kubeconfig may not: %s; the chart's side=karmada has the roles",
                ", ".join(map(str, missing)),
            )

    async def _make_leadership(self, identity: str) -> Leadership:
        elections, supervisor = self._options.leader_election, self._host.supervisor
        if elections.enabled:
            # The supervisor's event loop renews the Lease, on a connection of its own.
            connection = await supervisor.run(self._connect())
            self._host.elector = Elector(connection, elections, identity=identity, clock=_boot_time, now=_now)
        return Leadership(self._host.elector, supervisor=supervisor, metrics=self._metrics)

    async def _lead(
        self,
        client: KarmadaClient,
        leadership: Leadership,
        recorder: EventRecorder,
        on_rollback: Callable[[], None],
    ) -> None:
        """Schedule while this process leads. It holds the Lease until the last write has ended."""
        limiter = WriteLimiter.from_options(
            self._options, clock=self._clock, on_window=self._metrics.api_server.write_window.set
        )
        writer = BindingWriter(
            client,
            self._bindings,
            limiter=limiter,
            is_leading=leadership.is_leader,
            on_read=self._event_handlers.on_event,
            on_rollback=on_rollback,
            metrics=self._metrics,
        )
        cycle = BindingCycle(writer, recorder, own_writes=self._own_writes, now=_now)
        scheduler = self._make_scheduler(cycle)
        async with leadership.hold():
            await self._schedule(scheduler, recorder)

    def _make_algorithm(self) -> SchedulingAlgorithm:
        options, gates = self._options, self._options.feature_gates
        return SchedulingAlgorithm(
            gates,
            [GeneralEstimator(gates)],
            empty_workload_propagation=options.enable_empty_workload_propagation,
            peers=self._bindings if gates.enabled("WorkloadAffinity") else None,
            stored=self._bindings.get,
            stored_workload=self._stored_workload,
        )

    def _make_scheduler(self, cycle: BindingCycle) -> Scheduler:
        return Scheduler(
            options=self._options,
            queue=self._queue,
            gate=self._gate,
            bindings=self._bindings,
            clusters=self._clusters,
            profiles=self._plugins.profiles,
            waiting=self._waiting,
            cycle=cycle,
            find_workload=self._find_workload,
            algorithm=self._make_algorithm(),
            accurate=self._estimation.accurate if self._estimation else None,
            assumed=self._assumed,
            metrics=self._metrics,
            clock=self._clock,
        )

    async def _schedule(self, scheduler: Scheduler, recorder: EventRecorder) -> None:
        log.info("Starting karmada scheduler", extra={"count": len(self._queue)})
        self._handle_backend.activate = self._gate.activate
        self._handle_backend.record = partial(_record, recorder)
        self._metrics.scheduling.expose_unplaced(self._unplaced.report, unclaimed=self._unplaced.unclaimed)
        async with recorder.posting(flush_seconds=_FLUSH_SECONDS):
            try:
                await scheduler.run()
            finally:
                await scheduler.drain(timeout=STOP_SECONDS)

    def _not_ready_reason(self) -> str | None:
        if not self._is_filled:
            return "the caches are not filled yet"
        assert self._watch is not None  # set before the caches are filled
        elector = self._host.elector
        return self._watch.problem or (elector.problem if elector is not None else None)


def _record(recorder: EventRecorder, binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001
    recorder.record(binding, WARNING if warning else NORMAL, reason, text)
