"""One gRPC connection for each cluster that should have an estimator; the only importer of grpc.

A task per cluster finds the estimator, connects, and stays: it finds it anew when the connection is lost or the
cluster changes, and gives up only with the cluster. Nothing here makes anybody wait for a cluster whose
estimator is absent, except ``settled`` during the very first attempt.

Source: karmada v1.18.2 pkg/estimator/client/service.go and cache.go, pkg/util/grpcconnection.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import grpc.aio

from karmada_scheduler import logs
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.estimator.discovery import DiscoveryError, addresses, service_name
from karmada_scheduler.estimator.relay import TlsProxy
from karmada_scheduler.estimator.wire import SERVICE

log = logging.getLogger(__name__)

DIAL_SECONDS: Final = 5.0
"""How long one address is tried."""

_DIALS_AT_ONCE: Final = 32
_PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_LOOK_AGAIN_SECONDS: Final = 300.0
"""How often the Service of a connected estimator is read again; it may have moved."""

LOST_SECONDS: Final = 2.0
"""How long grpc may try to reconnect to the same address before the Service is read again."""

_CHANNEL_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    ("grpc.use_local_subchannel_pool", 1),  # a dial is a new connection, also to an address known before
)

ReadService = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""Reads a Service by namespace and name; None if there is none. LookupError when it cannot be asked."""


class EstimatorCallError(Exception):
    """An estimator was not asked, or did not answer with a number.

    Attributes:
        timed_out: Whether it kept silent until the deadline.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        """``message`` is upstream's."""
        super().__init__(message)
        self.timed_out = timed_out


class ConnectionState(Enum):
    """What is known of a cluster's estimator."""

    NEW = "new"
    """The first attempt to connect is under way."""
    CONNECTED = "connected"
    LOST = "lost"
    """It was connected, and grpc tries to be so again."""
    ABSENT = "absent"
    """No connection has been made, or none is wanted."""


class QueueObserver(Protocol):
    """Counts attempts to connect, as upstream's worker of the name ``scheduler-estimator`` does."""

    def added(self) -> None:
        """An attempt is due."""

    def retried(self) -> None:
        """Another attempt is due after a failure."""

    def taken(self, waited: float, /) -> None:
        """An attempt begins after some seconds."""

    def finished(self, worked: float, /) -> None:
        """An attempt ended after some seconds."""


@dataclass(slots=True)
class _Channel:
    """What is kept of one cluster."""

    name: str
    generation: int
    standing: ConnectionState = ConnectionState.NEW
    address: str = ""
    channel: grpc.aio.Channel | None = None
    relay: TlsProxy | None = None
    methods: dict[str, Any] = field(default_factory=dict)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    look_again: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    told: str = ""


class Connections:
    """Connections to the estimators of all clusters that ``follow`` was told of."""

    def __init__(
        self,
        settings: EstimatorOptions,
        read_service: ReadService,
        *,
        observer: QueueObserver,
        clock: Callable[[], float],
        dial_seconds: float = DIAL_SECONDS,
        lost_seconds: float = LOST_SECONDS,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Connect to nothing yet.

        Args:
            settings: How to find and reach estimators.
            read_service: Reads Services of the Karmada API server.
            observer: Told of attempts to connect.
            clock: In seconds, for the observer.
            dial_seconds: How long one address is tried.
            lost_seconds: How long grpc may try to reconnect before the Service is read again.
            pause: Sleeps between attempts.
        """
        self._settings = settings
        self._read_service = read_service
        self._observer = observer
        self._clock = clock
        self._dial_seconds = dial_seconds
        self._lost_seconds = lost_seconds
        self._pause = pause
        self._links: dict[str, _Channel] = {}
        self._dials = asyncio.Semaphore(_DIALS_AT_ONCE)
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self, old: Cluster | None, new: Cluster | None) -> None:
        """Take note of a cluster before and after a change; None where there was or is none.

        Has to be called with an event loop running; it only starts and ends tasks.
        """
        name = (new or old).name  # type: ignore[union-attr]
        link = self._links.get(name)
        if new is None or not self._is_wanted(new):
            if link is not None:
                del self._links[name]
                self._end(link)
            return
        if link is None:
            link = self._links[name] = _Channel(name, new.generation)
            self._observer.added()
            link.task = asyncio.create_task(self._keep(link), name=f"estimator of {name}")
        elif link.generation != new.generation:
            link.generation = new.generation
            link.look_again.set()

    def standing(self, cluster: str) -> ConnectionState:
        """Tell what is known of a cluster's estimator; waits for nothing."""
        link = self._links.get(cluster)
        return ConnectionState.ABSENT if link is None else link.standing

    def standings(self) -> dict[str, int]:
        """Return how many clusters there are of every standing."""
        counts = {standing.value: 0 for standing in ConnectionState}
        for link in list(self._links.values()):
            counts[link.standing.value] += 1
        return counts

    async def settled(self, cluster: str) -> None:
        """Wait until the first attempt to connect has succeeded or run into its first failure."""
        link = self._links.get(cluster)
        if link is not None:
            await link.settled.wait()

    def suspect(self, cluster: str) -> None:
        """Connect anew: the connection is up and nothing has come through it for long."""
        link = self._links.get(cluster)
        if link is not None:
            link.address = ""
            link.look_again.set()

    async def ask(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method of a cluster's estimator.

        Args:
            cluster: Its name.
            method: The method's name.
            request: The encoded request.
            timeout: Seconds from now.
            about: What it is asked for, for the estimator's log.

        Returns:
            The encoded answer.

        Raises:
            AskError: There is no connection, or the call failed.
        """
        link = self._links.get(cluster)
        if link is None or link.channel is None:
            raise EstimatorCallError(f"cluster {cluster} does not exist in estimator cache")
        call = link.methods.get(method)
        if call is None:
            call = link.methods[method] = link.channel.unary_unary(f"/{SERVICE}/{method}")
        try:
            answer: bytes = await call(request, timeout=timeout, metadata=(("object", about),))
        except grpc.aio.AioRpcError as error:
            code = error.code()
            raise EstimatorCallError(
                f"gRPC request cluster({cluster}) estimator error when calling {method}: "
                f"rpc error: code = {_go_name(code)} desc = {error.details()}",
                timed_out=code is grpc.StatusCode.DEADLINE_EXCEEDED,
            ) from error
        except (asyncio.CancelledError, grpc.aio.UsageError) as error:
            if _is_our_own(error):
                raise
            raise EstimatorCallError(
                f"gRPC request cluster({cluster}) estimator error: connection closed"
            ) from error
        return answer

    async def close(self) -> None:
        """Close all connections."""
        links = list(self._links.values())
        self._links.clear()
        for link in links:
            self._end(link)
        while self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    def _is_wanted(self, cluster: Cluster) -> bool:
        return not (self._settings.not_in_pull_mode and cluster.sync_mode == "Pull")

    def _end(self, link: _Channel) -> None:
        async def ending() -> None:
            if link.task is not None:
                link.task.cancel()
                await asyncio.gather(link.task, return_exceptions=True)
            await self._drop(link, ConnectionState.ABSENT)

        task = asyncio.create_task(ending(), name=f"leave estimator of {link.name}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _drop(self, link: _Channel, standing: ConnectionState) -> None:
        """Close what a link holds; calls under way fail."""
        channel, relay = link.channel, link.relay
        link.channel, link.relay, link.address, link.standing = None, None, "", standing
        link.methods.clear()
        link.settled.set()
        await _closed(channel, relay)

    async def _keep(self, link: _Channel) -> None:
        """Connect, and stay connected, until cancelled."""
        failures = 0
        asked = self._clock()
        while True:
            link.look_again.clear()
            began = self._clock()
            self._observer.taken(began - asked)
            is_connected = await self._attempt(link)
            self._observer.finished(self._clock() - began)
            if is_connected:
                failures = 0
                await self._until_doubtful(link)
                self._observer.added()
            else:
                self._observer.retried()
                await self._pause(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
            asked = self._clock()

    async def _attempt(self, link: _Channel) -> bool:
        """Try to connect; tell why that failed."""
        try:
            await self._connect(link)
        except (DiscoveryError, LookupError, OSError, ValueError) as error:
            self._tell(link, str(error))
        except Exception:
            log.exception("Cannot connect to the estimator of a cluster", extra={"cluster": link.name})
        else:
            return True
        if link.channel is None:
            link.standing = ConnectionState.ABSENT
        elif not _is_up(link.channel):
            link.standing = ConnectionState.LOST
        link.settled.set()
        return False

    def _tell(self, link: _Channel, text: str) -> None:
        """Say once why there is no connection."""
        if text != link.told:
            link.told = text
            log.warning(
                "Failed to establish a connection to the estimator of a cluster, it is tried again",
                extra={"cluster": link.name, "error": text},
            )

    async def _connect(self, link: _Channel) -> None:
        """Have a link connected to where its estimator is now.

        Raises:
            DiscoveryError: The Service is no use.
            LookupError: The Service cannot be read.
            OSError: No address answers, or a file of the certificates cannot be read.
            ValueError: A file does not hold a certificate.
        """
        settings = self._settings
        name = service_name(settings.prefix, link.name)
        service = await self._read_service(settings.namespace, name)
        found = addresses(service, name=name, namespace=settings.namespace, port=settings.port)
        if link.channel is not None and link.address in found and _is_up(link.channel):
            return
        problems = []
        for address in found:
            try:
                async with self._dials:
                    channel, relay = await self._dial(address, link)
            except ConnectionError as error:
                problems.append(str(error))
                continue
            before = link.channel, link.relay
            link.methods.clear()
            link.channel, link.relay, link.address = channel, relay, address
            link.standing = ConnectionState.CONNECTED
            link.settled.set()
            link.told = ""
            log.info("Connected to the estimator of a cluster", extra={"cluster": link.name})
            log.log(logs.V4, "Connection with estimator server(%s) of cluster(%s)", address, link.name)
            await _closed(*before)
            return
        raise ConnectionError("; ".join(problems))

    async def _dial(self, address: str, link: _Channel) -> tuple[grpc.aio.Channel, TlsProxy | None]:
        """Open a channel and wait until it is ready; ConnectionError if it takes too long."""
        settings, relay = self._settings, None
        if settings.skip_verify:
            relay = await TlsProxy.start(address, certificate=settings.certificate)
            options = (*_CHANNEL_OPTIONS, ("grpc.default_authority", address))
            channel = grpc.aio.insecure_channel(relay.target, options=options)
        elif settings.uses_tls:
            channel = grpc.aio.secure_channel(address, _credentials(settings), options=_CHANNEL_OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        try:
            async with asyncio.timeout(self._dial_seconds):
                state = channel.get_state(try_to_connect=True)
                while state is not grpc.ChannelConnectivity.READY:
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        link.settled.set()  # nobody needs to wait for this
        except TimeoutError:
            state = channel.get_state()
            await _closed(channel, relay)
            text = f"dial {address} error: timeout waiting for connection to {address}, state is {state.name}"
            raise ConnectionError(text) from None
        except BaseException:
            await _closed(channel, relay)
            raise
        return channel, relay

    async def _until_doubtful(self, link: _Channel) -> None:
        """Return when the Service should be read again: the connection is lost, or the cluster changed."""
        watching = asyncio.create_task(
            _watch(link, self._lost_seconds), name=f"watch estimator of {link.name}"
        )
        asking = asyncio.create_task(link.look_again.wait())
        try:
            await asyncio.wait(
                {watching, asking}, timeout=_LOOK_AGAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (watching, asking):
                task.cancel()
            await asyncio.gather(watching, asking, return_exceptions=True)


async def _watch(link: _Channel, lost_seconds: float) -> None:
    """Note whether a channel is up, and keep it so; return when it has been down for that long."""
    channel = link.channel
    assert channel is not None
    while True:
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            if link.standing is ConnectionState.LOST:
                log.info("Connected to the estimator of a cluster again", extra={"cluster": link.name})
            link.standing = ConnectionState.CONNECTED
            await channel.wait_for_state_change(state)
            continue
        if link.standing is ConnectionState.CONNECTED:
            log.warning("Lost the connection to the estimator of a cluster", extra={"cluster": link.name})
        link.standing = ConnectionState.LOST
        with suppress(TimeoutError):
            async with asyncio.timeout(lost_seconds):
                while state is not grpc.ChannelConnectivity.READY:
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        if state is not grpc.ChannelConnectivity.READY:
            return


def _is_up(channel: grpc.aio.Channel) -> bool:
    return channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY


async def _closed(channel: grpc.aio.Channel | None, relay: TlsProxy | None) -> None:
    if channel is not None:
        await channel.close()
    if relay is not None:
        await relay.close()


def _is_our_own(error: BaseException) -> bool:
    """Tell whether a cancellation was meant for the task that asks, not for the call."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _credentials(settings: EstimatorOptions) -> grpc.ChannelCredentials:
    """Read the certificates, anew for each dial, for they are replaced while this process runs."""
    certificate = settings.certificate
    chain, key = (Path(path).read_bytes() for path in certificate) if certificate else (None, None)
    authorities = Path(settings.ca_file).read_bytes() if settings.ca_file else None
    return grpc.ssl_channel_credentials(
        root_certificates=authorities, private_key=key, certificate_chain=chain
    )


def _go_name(code: grpc.StatusCode) -> str:
    """Return the name of a status as Go writes it: ``DeadlineExceeded``."""
    special = {"OK": "OK", "CANCELLED": "Canceled"}
    return special.get(code.name, code.name.replace("_", " ").title().replace(" ", ""))
