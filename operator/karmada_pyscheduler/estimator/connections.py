"""One connection for each cluster that should have an estimator.

A task per cluster finds the estimator and connects. It repeats both when the connection is lost or the cluster changes,
and ends with the cluster. Nothing waits for a cluster whose estimator is absent, except ``wait_first_attempt`` during
the very first attempt.

Source: karmada v1.18.2 pkg/estimator/client/service.go and cache.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from karmada_pyscheduler.estimator.grpc_channel import GrpcChannel
from karmada_pyscheduler.estimator.transport import (
    ClusterConnection,
    ConnectionState,
    DialEstimator,
    DiscoveryError,
    EstimatorCallError,
    addresses,
    service_name,
)
from karmada_scheduler import logs
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

DIAL_SECONDS: Final = 5.0
"""How long one address is tried."""

_MAX_DIALS: Final = 32
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds between two attempts to connect; the last one repeats."""
_RESYNC_SECONDS: Final = 300.0
"""How often the Service of a connected estimator is read again; it may have another address."""


ReadService = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""Reads a Service by namespace and name; None if there is none. LookupError when it cannot be read."""


class ConnectObserver(Protocol):
    """Counts attempts to connect, as upstream's worker of the name ``scheduler-estimator`` does."""

    def added(self) -> None:
        """An attempt is due."""

    def retried(self) -> None:
        """Another attempt is due after a failure."""

    def taken(self, waited: float, /) -> None:
        """An attempt begins after some seconds."""

    def finished(self, worked: float, /) -> None:
        """An attempt ended after some seconds."""


class Connections(Struct):
    """Connections to the estimators of all clusters.

    Attributes:
        settings: How to find and reach estimators.
        read_service: Reads Services of the Karmada API server.
        observer: Counts attempts to connect.
        clock: In seconds, for the observer.
        pause: Sleeps between attempts.
        dial: Opens channels.
    """

    settings: EstimatorOptions
    read_service: ReadService
    observer: ConnectObserver
    clock: Callable[[], float]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    dial: DialEstimator = GrpcChannel.dial
    _connections: dict[str, ClusterConnection] = field(default_factory=dict)
    _dials: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MAX_DIALS))
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def on_cluster(self, old: Cluster | None, new: Cluster | None) -> None:
        """Handle a change of a cluster: None stands for a cluster that did not exist or was deleted.

        Must be called in a running event loop; it only starts and ends tasks.
        """
        name = (new or old).name  # type: ignore[union-attr]
        connection = self._connections.get(name)
        if new is None or (self.settings.not_in_pull_mode and new.sync_mode == "Pull"):
            if connection is not None:
                del self._connections[name]
                self._end(connection)
            return
        if connection is None:
            connection = self._connections[name] = ClusterConnection(name, new.generation)
            self.observer.added()
            connection.task = asyncio.create_task(self._run(connection), name=f"estimator of {name}")
        elif connection.generation != new.generation:
            connection.generation = new.generation
            connection.due.set()

    def state(self, cluster: str) -> ConnectionState:
        """Return the state of the connection to a cluster's estimator."""
        connection = self._connections.get(cluster)
        return ConnectionState.ABSENT if connection is None else connection.state

    def count_by_state(self) -> dict[str, int]:
        """Return the number of clusters in each state."""
        counts = {state.value: 0 for state in ConnectionState}
        for connection in list(self._connections.values()):
            counts[connection.state.value] += 1
        return counts

    async def wait_first_attempt(self, cluster: str) -> None:
        """Wait until the first attempt to connect has succeeded, or has failed for the first time."""
        connection = self._connections.get(cluster)
        if connection is not None:
            await connection.first_attempt.wait()

    def reconnect(self, cluster: str) -> None:
        """Replace a connection that is ready and has had no response for long."""
        connection = self._connections.get(cluster)
        if connection is not None:
            connection.must_redial = True
            connection.due.set()

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Return the encoded response of a cluster's estimator.

        Args:
            cluster: Name of the cluster.
            method: Name of the method.
            request: The encoded request.
            timeout: Seconds from now.
            about: Kind and name of the workload, for the estimator's log.

        Raises:
            EstimatorCallError: There is no connection, or the call failed or timed out.
        """
        connection = self._connections.get(cluster)
        if connection is None or connection.channel is None:
            raise EstimatorCallError(f"cluster {cluster} does not exist in estimator cache")
        return await connection.channel.call(cluster, method, request, timeout=timeout, about=about)

    async def close(self) -> None:
        """Close all connections."""
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            self._end(connection)
        while self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    def _end(self, connection: ClusterConnection) -> None:
        async def end() -> None:
            if connection.task is not None:
                connection.task.cancel()
                await asyncio.gather(connection.task, return_exceptions=True)
            channel = connection.channel
            connection.channel, connection.state = None, ConnectionState.ABSENT
            connection.first_attempt.set()
            if channel is not None:
                await channel.close()

        task = asyncio.create_task(end(), name=f"close connection to estimator of {connection.cluster}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _run(self, connection: ClusterConnection) -> None:
        """Connect, and stay connected, until cancelled."""
        failures = 0
        due_since = self.clock()
        while True:
            connection.due.clear()
            began = self.clock()
            self.observer.taken(began - due_since)
            is_connected = await self._try_to_connect(connection)
            self.observer.finished(self.clock() - began)
            if is_connected:
                failures = 0
                await self._until_due(connection)
                self.observer.added()
            else:
                self.observer.retried()
                await self.pause(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
            due_since = self.clock()

    async def _try_to_connect(self, connection: ClusterConnection) -> bool:
        """Return whether the connection is ready; log why not."""
        try:
            await self._connect(connection)
        except (DiscoveryError, LookupError, OSError, ValueError) as error:
            connection.log_once(str(error))
        except Exception:
            extra = {"cluster": connection.cluster}
            log.exception("Cannot connect to the estimator of a cluster", extra=extra)
        else:
            return True
        if connection.channel is None:
            connection.state = ConnectionState.ABSENT
        elif not connection.channel.is_ready:
            connection.state = ConnectionState.LOST
        connection.first_attempt.set()
        return False

    async def _connect(self, connection: ClusterConnection) -> None:
        """Connect to the current address of the estimator, unless it is connected to it.

        Raises:
            DiscoveryError: The Service does not give an address.
            LookupError: The Service cannot be read.
            OSError: No address can be reached, or a certificate file cannot be read.
            ValueError: A file does not hold a certificate.
        """
        settings, cluster = self.settings, connection.cluster
        name = service_name(settings.prefix, cluster)
        service = await self.read_service(settings.namespace, name)
        found = addresses(service, name=name, namespace=settings.namespace, port=settings.port)
        before = connection.channel
        keeps = before is not None and not connection.must_redial
        if keeps and before is not None and before.address in found and before.is_ready:
            return
        problems = []
        for address in found:
            try:
                async with self._dials:
                    channel = await self.dial(
                        address,
                        settings,
                        seconds=DIAL_SECONDS,
                        on_failure=connection.first_attempt.set,
                    )
            except ConnectionError as error:
                problems.append(str(error))
                continue
            connection.channel, connection.must_redial = channel, False
            connection.state = ConnectionState.CONNECTED
            connection.first_attempt.set()
            connection.reported = ""
            log.info("Connected to the estimator of a cluster", extra={"cluster": cluster})
            log.log(logs.V4, "Connection with estimator server(%s) of cluster(%s)", address, cluster)
            if before is not None:
                await before.close()
            return
        raise ConnectionError("; ".join(problems))

    async def _until_due(self, connection: ClusterConnection) -> None:
        """Return when the Service is to be read again: the connection is lost, or the cluster has changed."""
        lost = asyncio.create_task(connection.until_lost(), name=f"watch estimator of {connection.cluster}")
        due = asyncio.create_task(connection.due.wait())
        try:
            await asyncio.wait({lost, due}, timeout=_RESYNC_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (lost, due):
                task.cancel()
            await asyncio.gather(lost, due, return_exceptions=True)
