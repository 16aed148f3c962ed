"""Wires the scheduler of one process: caches, plugins, watches, and the loop while it leads.

This is done in three phases. At first there is no connection, and ``SchedulerState`` has caches, queue and plugins. Then the
process watches: ``new_event_handlers``. When it leads, it writes: ``leader.new_scheduler``. Tests without a process do the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from karmada_pyscheduler.app.api_server import ApiServer, ControlPlaneSchema
from karmada_pyscheduler.app.host import FILLING, Host
from karmada_pyscheduler.app.leader import Leader, Leadership, WorkloadSource
from karmada_pyscheduler.app.records import DecisionRecords, default_profiles
from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import WATCHED, KarmadaClient
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_pyscheduler.estimator.accurate import Estimation
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.object_kinds import CLUSTER
from karmada_pyscheduler.informer.relist import Relister
from karmada_pyscheduler.informer.requeue import (
    BindingListener,
    ClusterListener,
    Listeners,
    PermitListener,
    on_failure_of_another,
    only_assigned,
)
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_pyscheduler.plugin_loader.manager import PluginManager
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduler.unplaced import GuardedBindings, UnplacedBindings
from karmada_pyscheduler.scheduling_queue.queue_sort import make_queue
from karmada_scheduler import __version__
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings

log = logging.getLogger(__name__)


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


class Application:
    """The scheduler of one process.

    Attributes:
        state: The caches and queues.
        workloads: The metadata of the workloads that bindings name.
        records: Records decisions; None if that is off.
    """

    def __init__(self, options: Options, own_plugins: Sequence[Registration], host: Host) -> None:
        """Load the plugins and build all parts that need no connection.

        Raises:
            ConfigError: ``--config`` or a plugin cannot be used.
        """
        self._options = options
        self._host = host
        self._environment = environment = host.environment
        self._clock = environment.clock
        self._metrics = host.metrics
        bindings, clusters, waiting = BindingCache(), ClusterCache(), WaitingBindings()
        self.workloads = WorkloadSource(bindings)
        self._handle_backend = HandleBackend(
            bindings=bindings,
            clusters=clusters,
            waiting=waiting,
            now=self._seconds_of_day,
            stored_workload=self.workloads.stored_for_profile,
        )
        self._plugins = PluginManager(
            options,
            self._handle_backend,
            self._metrics,
            own_plugins=own_plugins,
            clock=self._clock,
            call_timeout=environment.call_timeout,
            in_thread=environment.in_thread,
            extender_transport=environment.extender_transport,
        )
        queue = make_queue(
            options,
            queue_sort=self._plugins.queue_sort,
            binding_of=bindings.get,
            caller=self._plugins.caller,
            metrics=self._metrics,
            clock=self._clock,
        )
        assumed: AssumedPlacements | None = None
        if options.feature_gates.enabled("SchedulingOvercommitProtection"):
            assumed = AssumedPlacements(clock=self._clock, ttl=options.assumption_ttl)
            self._metrics.scheduling.assumed.set_function(assumed.__len__)
        self.state = SchedulerState(
            queue,
            bindings=bindings,
            clusters=clusters,
            waiting=waiting,
            profiles=self._plugins.profiles,
            metrics=self._metrics,
            clock=self._clock,
            assumed=assumed,
        )
        self._api_server = ApiServer(options, environment, self._metrics)
        self._estimation: Estimation | None = None
        if options.estimators.enabled:
            self._estimation = Estimation.make(
                options.estimators,
                self._api_server.read_service,
                metrics=self._metrics,
                clock=self._clock,
                dial=environment.dial_estimator,
            )
        self._identity = environment.identity()
        self.records: DecisionRecords | None = None
        if options.explain.enabled:
            self.records = DecisionRecords(
                options,
                host,
                self.state,
                identity=self._identity,
                estimation=self._estimation,
                now=self._seconds_of_day,
                connect=self._api_server.connect,
            )
        estimation, records = self._estimation, self.records
        self._event_handlers = new_event_handlers(
            self.state,
            manifests=self._plugins.manifests,
            on_cluster=[
                *([estimation.connections.on_cluster] if estimation is not None else []),
                *([records.clusters.on_cluster] if records is not None else []),
            ],
            on_enqueued=[records.recorder.enqueued] if records is not None else [],
        )
        self._unplaced = UnplacedBindings(
            self._plugins.profiles.names,
            waiting=waiting,
            gated=self.state.gate.gated,
            now=self._seconds_of_day,
        )
        bindings.add_listener(self._unplaced.changed)
        self._guarded = GuardedBindings(self._plugins.profiles.names, clock=self._clock)
        bindings.add_listener(self._guarded.changed)
        self._leader: Leader | None = None
        host.phase = FILLING

    def _seconds_of_day(self) -> float:
        return self._environment.now().timestamp()

    async def run(self) -> None:
        options = self._options
        log.info("karmada-pyscheduler version: %s", __version__)
        for warning in options.warnings:
            log.warning("%s", warning)
        self._host.stop_on_signals()
        connection = await self._api_server.open()
        try:
            if self.records is not None:
                await self.records.start()
            await self._until_stopped(self._serve(connection))
        finally:
            if self._estimation:
                await self._estimation.close()
            self.workloads.close()
            await self._plugins.close()
            await connection.close()
            if self.records is not None:
                await self.records.close()

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
        relister = Relister(
            client,
            self._event_handlers,
            WATCHED,
            self.state.list_requests,
            period=self._options.resync_seconds,
            clock=self._clock,
            after_list=self._environment.after_list,
        )
        watch = self._environment.watch(
            WATCHED,
            self._event_handlers,
            relister,
            WatchRequests(connection.watch, clock=self._clock),
            identity=self._identity,
            login=connection.credentials,
            after_start=self._host.take_signals,
            clock=self._clock,
        )
        for resource in WATCHED:
            self._metrics.api_server.watch_age.labels(resource.kind).set_function(
                partial(watch.age, resource.kind)
            )
        leadership = await self._make_leadership()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._host.supervisor.beat(), name="heartbeat")
            tasks.create_task(relister.read_clusters(), name="read clusters")
            await relister.wait_until_served()
            await self._api_server.log_missing_permissions()
            with self._environment.initial_list():
                await relister.initial_list()
            self.workloads.connect(
                connection,
                self._plugins.profiles,
                self._event_handlers.requeuer,
                metrics=self._metrics,
                clock=self._clock,
            )
            self._host.watch = watch
            tasks.create_task(watch.run(), name="watch")
            tasks.create_task(relister.run(watch.restart), name="relist")
            tasks.create_task(self._event_handlers.run(), name="cluster reconcile")
            tasks.create_task(self._plugins.run_plugins(), name="plugins")
            tasks.create_task(
                self._plugins.follow_files(
                    follows=bool(self._options.plugin_dirs), on_change=self._plugins_changed
                ),
                name="plugin files",
            )
            schema = ControlPlaneSchema(
                connection,
                self._options.feature_gates,
                self._metrics.api_server,
                self.state.components.on_schema,
            )
            tasks.create_task(schema.run(), name="control plane's schema")
            if self.records is not None:
                tasks.create_task(self.records.recorder.run(), name="record decisions")
            tasks.create_task(self._lead(connection, leadership, relister.relist_soon), name="lead")

    def _plugins_changed(self) -> None:
        self.workloads.follow()
        self._event_handlers.requeuer.on_plugins_changed()

    async def _make_leadership(self) -> Leadership:
        elections, supervisor = self._options.leader_election, self._host.supervisor
        if elections.enabled:
            # The supervisor's event loop renews the Lease, on a connection of its own.
            connection = await supervisor.run(self._api_server.connect())
            self._host.elector = Elector(
                connection,
                elections,
                identity=self._identity,
                clock=self._environment.boot_clock,
                now=self._environment.now,
                random=self._environment.random,
                scheduler_names=sorted(self._plugins.profiles.names),
                default_profiles=default_profiles(self._options, self._plugins.profiles),
            )
        return Leadership(
            self._host.elector, supervisor=supervisor, metrics=self._metrics, end=self._environment.end
        )

    async def _lead(
        self, connection: Connection, leadership: Leadership, on_rollback: Callable[[], None]
    ) -> None:
        """Schedule while this process leads. The Lease is kept until the last write has ended."""
        leader = Leader(
            self._host,
            self._options,
            self.state,
            self._event_handlers,
            connection,
            accurate=self._estimation.accurate if self._estimation else None,
            is_leading=leadership.is_leader,
            workloads=self.workloads,
            on_rollback=on_rollback,
            recorder=self.records.recorder if self.records is not None else None,
        )
        async with leadership.hold():
            self._leader = leader
            gate = self.state.gate
            self._handle_backend.lead(gate.activate, leader.record, gate.enqueue)
            self._metrics.scheduling.expose_unplaced(
                self._unplaced.report, unclaimed=self._unplaced.unclaimed
            )
            self._metrics.plugins.expose_guarded(self._guarded.counts)
            self._metrics.plugins.failback_waiting.set_function(lambda: self.state.reconsiderations.waiting)
            await leader.run()

    @property
    def is_filled(self) -> bool:
        """Whether the caches have everything that the initial lists had."""
        return self._host.watch is not None

    def pending(self) -> dict[str, int]:
        """Return how much of each kind of work is not done yet; all are 0 at rest."""
        state, leader = self.state, self._leader
        return {
            "due keys": len(state.queue),
            "attempts": leader.scheduler.pending_attempts if leader is not None else 0,
            "waiting at Permit": len(state.waiting),
            "pending assumed placements": state.assumed.pending if state.assumed is not None else 0,
            "unresponsive estimators": len(self._estimation.accurate.unresponsive)
            if self._estimation is not None
            else 0,
        }
