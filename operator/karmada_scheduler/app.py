"""The composition root: builds everything, starts it in order, stops it in order.

Two event loops share the work: that of the main thread, in which bindings are scheduled, and that of the supervisor's
thread, in which the Lease is renewed and health checks are answered.
"""

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
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.cache.assumed import AssumedPlacements
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.client import permissions
from karmada_scheduler.client.connection import ApiError, Connection, connect
from karmada_scheduler.client.karmada import WATCHED, KarmadaClient
from karmada_scheduler.client.leader import Elector
from karmada_scheduler.client.metadata import MetadataClient
from karmada_scheduler.client.recorder import NORMAL, WARNING, EventRecorder
from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.config.options import Options
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
from karmada_scheduler.metrics import metrics
from karmada_scheduler.plugin_loader.handle import HandleBackend
from karmada_scheduler.plugin_loader.manager import PluginManager
from karmada_scheduler.process import gc_tuning, process_exit
from karmada_scheduler.process.server import Server
from karmada_scheduler.process.supervisor import Supervisor
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduler.unplaced import UnplacedBindings
from karmada_scheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_scheduler.scheduling_queue.queue_sort import ranked_by
from karmada_scheduler.scheduling_queue.work_queue import (
    Queue,
    RetryLimits,
    SchedulingQueue,
    TokenBucket,
    WaitingQueue,
)

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long a stop waits for writes under way; ``supervisor.STOP_SECONDS`` is for all of it."""

_FLUSH_SECONDS: Final = 5.0
"""How long it waits for Events after that; the next leader waits as long, for the Lease is kept meanwhile."""


def _always() -> bool:
    return True


def _now() -> datetime:
    return datetime.now(UTC)


def _boot_time() -> float:
    """Return seconds that go on while the machine is suspended, where the system counts them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


async def run(options: Options, own_plugins: Sequence[Registration] = ()) -> None:
    """Run the scheduler until it is told to stop by SIGINT or SIGTERM.

    A scheduler that loses its Lease does not return: the process ends.

    Args:
        options: What the command line says.
        own_plugins: The plugins of one's own main.

    Raises:
        ConnectionConfigError: No usable credentials.
        ListenError: An address cannot be listened on.
        ConfigError: ``--config`` or a plugin cannot be used.
    """
    process = _Process(options)
    try:
        await process.serve()
        # Probes are answered while plugins are loaded, which may take half a minute.
        await _App(options, own_plugins, process).run()
    finally:
        await process.close()


class _Process:
    """What a process has before its plugins are loaded: signals, the supervisor's thread, health checks, metrics."""

    def __init__(self, options: Options) -> None:
        self.metrics = metrics.Metrics()
        self.supervisor = Supervisor(clock=time.monotonic, on_stall=self._give_up)
        self.elector: Elector | None = None
        self.ready: Callable[[], str | None] = lambda: "plugins are being loaded"
        self.stop = asyncio.Event()
        self._server = Server(
            health_address=options.health_address,
            metrics_address=options.metrics_address,
            health=lambda: self.supervisor.problem,
            ready=lambda: self.supervisor.problem or self.ready(),
            exposition=self.metrics.exposition,
            content_type=metrics.CONTENT_TYPE,
        )

    async def serve(self) -> None:
        """Answer probes."""
        self.take_signals()
        self.supervisor.start()
        await self.supervisor.run(self._server.start())

    def listen(self) -> None:
        """Stop in order when told to. Until then a signal ends the process at once: there is nothing to put in order."""
        loop = asyncio.get_running_loop()

        def told_to_stop() -> None:
            self.supervisor.stop_within()
            loop.call_soon_threadsafe(self.stop.set)

        process_exit.TERMINATION.listen(told_to_stop)

    def take_signals(self) -> None:
        """Handle signals here, and not in the event loop, which may stand; kopf does at each of its starts."""
        loop = asyncio.get_running_loop()
        for number in process_exit.SIGNALS:
            loop.remove_signal_handler(number)
        process_exit.TERMINATION.install()

    async def close(self) -> None:
        """End what ``serve`` began."""
        self.supervisor.stop_within()
        if self.supervisor.is_running:
            await self.supervisor.run(self._server.stop())
            self.supervisor.close()
        process_exit.TERMINATION.restore()

    async def _give_up(self) -> None:
        """Let a standby lead at once: this process is about to end."""
        if self.elector is not None:
            await self.elector.release()


class _App:
    def __init__(self, options: Options, own_plugins: Sequence[Registration], process: _Process) -> None:
        self._options = options
        self._process = process
        self._clock = time.monotonic
        self._metrics = process.metrics
        self._bindings = BindingCache()
        self._clusters = ClusterCache()
        self._waiting = WaitingBindings()
        self._echoes = OwnWrites()
        self._switchboard = HandleBackend(
            bindings=self._bindings, clusters=self._clusters, waiting=self._waiting, now=time.time
        )
        self._plugins = PluginManager(
            options, self._switchboard, self._metrics, own_plugins=own_plugins, clock=self._clock
        )
        self._queue = WaitingQueue(self._make_queue())
        self._connection: Connection | None = None
        self._estimation = (
            Estimation.make(options.estimators, self._read_service, metrics=self._metrics, clock=self._clock)
            if options.estimators.enabled
            else None
        )
        self._assumed: AssumedPlacements | None = None
        if options.feature_gates.enabled("SchedulingOvercommitProtection"):
            self._assumed = AssumedPlacements(clock=self._clock, ttl=options.assumption_ttl)
            self._metrics.watch_assumed(self._assumed.__len__)
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
        self._scheduler = Scheduler(
            options=options,
            queue=self._queue,
            bindings=self._bindings,
            clusters=self._clusters,
            profiles=self._plugins.profiles,
            waiting=self._waiting,
            estimators=[GeneralEstimator(options.feature_gates)],
            metrics=self._metrics,
            clock=self._clock,
            accurate=self._estimation.accurate if self._estimation else None,
            assumed=self._assumed,
            look_up=self._look_up,
            stored_workload=self._stored_workload,
        )
        self._unplaced = UnplacedBindings(
            self._plugins.profiles.names, waiting=self._waiting, gated=self._scheduler.gated
        )
        self._bindings.add_listener(self._unplaced.changed)
        self._workloads: WorkloadInformer | None = None
        self._switchboard.stored_workload = self._workload_for_profile
        self._filled = False
        self._watch: KopfWatch | None = None
        process.ready = self._ready

    def _listeners(self) -> Listeners:
        names = self._plugins.profiles.names
        permit = PermitListener(self._waiting, names)
        bindings: list[BindingListener] = [permit.binding_changed]
        clusters: list[ClusterListener] = [permit.cluster_changed]
        if self._assumed is not None:
            bindings.append(only_assigned(self._assumed.on_binding_change, names))
        if self._estimation is not None:
            clusters.append(self._estimation.connections.follow)
        return Listeners(bindings=bindings, clusters=clusters, versions=[self._echoes.saw])

    def _make_queue(self) -> Queue[BindingKey]:
        options = self._options
        sorter = self._plugins.queue_sort
        if sorter is not None or options.feature_gates.enabled("PriorityBasedScheduling"):
            priorities: PrioritySchedulingQueue[BindingKey] = PrioritySchedulingQueue(
                clock=self._clock,
                rank=None
                if sorter is None
                else ranked_by(sorter, self._bindings.get, guard=self._plugins.guard),
            )
            self._metrics.watch_pending(priorities.pending)
            return priorities
        limits = RetryLimits(
            base_delay=options.rate_limiter_base_delay,
            max_delay=options.rate_limiter_max_delay,
            qps=options.rate_limiter_qps,
            burst=options.rate_limiter_bucket_size,
        )
        observer = self._metrics.workqueues.of("scheduler-queue")
        queue: SchedulingQueue[BindingKey] = SchedulingQueue(
            limits=limits, clock=self._clock, observer=observer
        )
        observer.watch(depth=lambda: queue.depth, unfinished=queue.unfinished)
        return queue

    async def run(self) -> None:
        options = self._options
        log.info("karmada-pyscheduler version: %s", __version__)
        for notice in options.notices:
            log.warning("%s", notice)
        self._process.listen()
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
            kubeconfig=options.kubeconfig, master=options.master, on_answer=self._count_request
        )

    async def _read_service(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read a Service of the Karmada API server; LookupError when it cannot be asked."""
        assert self._connection is not None  # clusters are seen after that
        try:
            return await KarmadaClient(self._connection).get_service(namespace, name)
        except ApiError as error:
            raise LookupError(f"cannot read Service {namespace}/{name}: {error}") from error

    def _count_request(self, method: str, host: str, code: int) -> None:
        self._metrics.rest_requests.labels(str(code or "<error>"), method, host).inc()

    async def _until_stopped(self, work: Any) -> None:
        """Run until the work fails or the process is told to stop, whichever is first."""
        task = asyncio.create_task(work, name="serve")
        stop = asyncio.create_task(self._process.stop.wait(), name="stop")
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        self._process.supervisor.stop_within()
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
            after_start=self._process.take_signals,
            observe=self._event_handlers.observe,
            is_known=self._event_handlers.is_known,
            start_version=relister.list_and_start_version,
            is_ahead=relister.is_ahead,
            clock=self._clock,
        )
        relister.on_replaced = self._watch.restart
        for resource in WATCHED:
            self._metrics.watch_age(resource.kind, partial(self._watch.age, resource.kind))
        elections = self._options.leader_election
        elector: Elector | None = None
        if elections.enabled:
            # In the supervisor's loop, so with sockets of its own.
            lease_connection = await self._process.supervisor.run(self._connect())
            elector = self._process.elector = Elector(
                lease_connection, elections, identity=identity, clock=_boot_time, now=_now
            )
        may_write = elector.is_leader if elector is not None else _always
        recorder = EventRecorder(
            connection,
            now=_now,
            clock=self._clock,
            idle=self._scheduler.spare_moment,
            may_post=may_write,
            on_result=lambda result: self._metrics.api_writes.labels("event", result).inc(),
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._process.supervisor.beat(), name="heartbeat")
            await relister.wait_until_served()
            await self._say_what_is_forbidden(connection)
            with gc_tuning.settling():
                await relister.initial_list()
            self._workloads = self._watch_workloads(connection)
            self._follow_workloads()
            self._filled = True
            tasks.create_task(self._watch.run(), name="watch")
            tasks.create_task(relister.run(), name="resync")
            tasks.create_task(self._event_handlers.run(), name="cluster reconcile")
            tasks.create_task(self._plugins.run_plugins(), name="plugins")
            tasks.create_task(
                self._plugins.follow_files(
                    follows=bool(self._options.plugin_dirs), on_change=self._plugins_changed
                ),
                name="plugin files",
            )
            tasks.create_task(
                self._lead(client, elector, recorder, may_write, relister.relist_soon),
                name="lead",
            )

    def _watch_workloads(self, connection: Connection) -> WorkloadInformer:
        informer = WorkloadInformer(
            MetadataClient(connection),
            is_needed=self._plugins.profiles.needs_workload,
            on_change=self._event_handlers.requeuer.on_workload_changed,
            on_synced=self._event_handlers.requeuer.add_key,
            clock=self._clock,
        )
        self._bindings.add_listener(informer.on_binding_change)
        self._metrics.watch_cache("Workload", informer.__len__)
        self._metrics.watch_unavailable_workloads(lambda: len(informer.unavailable()))
        return informer

    def _follow_workloads(self) -> None:
        """Watch the workloads that plugins need, and no others: none while there is no such plugin."""
        assert self._workloads is not None  # made before plugins change
        is_needed = self._plugins.profiles.need_workloads
        self._workloads.follow_all(self._bindings if is_needed else ())

    def _look_up(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        assert self._workloads is not None  # nothing is decided before
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

    async def _say_what_is_forbidden(self, connection: Connection) -> None:
        """Name all missing permissions at once; the requests that need them will be repeated until they are granted."""
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

    async def _lead(
        self,
        client: KarmadaClient,
        elector: Elector | None,
        recorder: EventRecorder,
        may_write: Callable[[], bool],
        went_back: Callable[[], None],
    ) -> None:
        """Schedule while this process may, and give back what it holds when it stops."""
        cycle = BindingCycle(
            client,
            recorder,
            self._bindings,
            echoes=self._echoes,
            seen=self._event_handlers.on_event,
            went_back=went_back,
            may_write=may_write,
            pace=self._pace(),
            now=_now,
            metrics=self._metrics,
        )
        if elector is None:
            await self._schedule(cycle, recorder)
            return
        supervisor, master = self._process.supervisor, self._metrics.leader.labels("")
        master.set(0)
        await supervisor.run(elector.acquire())
        master.set(1)
        supervisor.leading = True
        renewing = asyncio.create_task(supervisor.run(_keep(elector)), name="renew lease")
        try:
            await self._schedule(cycle, recorder)
        finally:
            # While writes are still under way the lease is kept, then it is given back.
            supervisor.leading = False
            master.set(0)
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await supervisor.run(elector.release())

    async def _schedule(self, cycle: BindingCycle, recorder: EventRecorder) -> None:
        log.info("Starting karmada scheduler", extra={"count": len(self._queue)})
        self._switchboard.activate = self._scheduler.activate
        self._switchboard.record = partial(_record, recorder)
        self._metrics.watch_unplaced(self._unplaced.report, unclaimed=self._unplaced.unclaimed)
        async with recorder.posting(flush_seconds=_FLUSH_SECONDS):
            try:
                await self._scheduler.run(cycle)
            finally:
                await self._scheduler.drain(timeout=STOP_SECONDS)

    def _ready(self) -> str | None:
        if not self._filled:
            return "the caches are not filled yet"
        assert self._watch is not None  # set before the caches are filled
        elector = self._process.elector
        return self._watch.problem or (elector.problem if elector is not None else None)

    def _pace(self) -> WriteLimiter:
        options = self._options
        rate = None
        if options.kube_api_qps is not None:
            rate = TokenBucket(rate=options.kube_api_qps, burst=options.kube_api_burst, clock=self._clock)
        return WriteLimiter(
            most=options.max_in_flight, clock=self._clock, rate=rate, on_window=self._metrics.write_window.set
        )


async def _keep(elector: Elector) -> None:
    """Renew the Lease; end the process when it is lost, whatever the main loop does just then."""
    why = await elector.renew()
    process_exit.end(1, log_last=lambda: log.error("leaderelection lost: %s", why))


def _record(recorder: EventRecorder, binding: Binding, warning: bool, reason: str, text: str) -> None:  # noqa: FBT001
    recorder.record(binding, WARNING if warning else NORMAL, reason, text)
