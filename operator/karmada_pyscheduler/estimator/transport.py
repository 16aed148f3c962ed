"""How the estimators of member clusters are reached, without a word on gRPC: channels, and the connection of a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)


class EstimatorCallError(Exception):
    """A call of an estimator failed.

    Attributes:
        timed_out: Whether the call ended by its deadline.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        """``message`` is upstream's."""
        super().__init__(message)
        self.timed_out = timed_out


class ConnectionState(Enum):
    """State of the connection to a cluster's estimator."""

    NEW = "new"
    """The first attempt to connect is under way."""
    CONNECTED = "connected"
    LOST = "lost"
    """It was connected, and gRPC tries to reconnect."""
    ABSENT = "absent"
    """No attempt to connect has succeeded, or the cluster should have no connection."""


class EstimatorChannel(Protocol):
    """A connection to the estimator at one address, as ``grpc_channel.GrpcChannel`` provides it.

    Attributes:
        address: ``host:port`` of the estimator.
        is_ready: Whether it is connected; if not, it tries to connect.
    """

    @property
    def address(self) -> str: ...

    @property
    def is_ready(self) -> bool: ...

    async def wait_while_ready(self) -> None:
        """Return when it is no longer connected."""

    async def wait_ready(self, seconds: float, /) -> bool:
        """Wait until it is connected, at most some seconds; return whether it is."""

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method; see ``Connections.call``."""

    async def close(self) -> None:
        """Close it; calls under way fail."""


class DialEstimator(Protocol):
    """Opens channels, as ``grpc_channel.GrpcChannel.dial`` does."""

    async def __call__(
        self, address: str, settings: EstimatorOptions, /, *, seconds: float, on_failure: Callable[[], None]
    ) -> EstimatorChannel:
        """Open a channel and wait until it is ready; see ``GrpcChannel.dial``."""


LOST_SECONDS: Final = 2.0
"""How long gRPC may try to reconnect to the same address before the Service is read again."""


class ClusterConnection(Struct):
    """The connection to the estimator of one cluster.

    Attributes:
        first_attempt: Set when the first attempt to connect has succeeded or failed.
        due: Set when the Service is to be read again.
        reported: The last problem that was logged.
    """

    cluster: str
    generation: int
    state: ConnectionState = ConnectionState.NEW
    channel: EstimatorChannel | None = None
    first_attempt: asyncio.Event = field(default_factory=asyncio.Event)
    due: asyncio.Event = field(default_factory=asyncio.Event)
    must_redial: bool = False
    task: asyncio.Task[None] | None = None
    reported: str = ""

    async def until_lost(self) -> None:
        """Keep the state up to date; return when the connection has been lost for ``LOST_SECONDS``."""
        channel, cluster = self.channel, self.cluster
        assert channel is not None
        while True:
            if self.state is ConnectionState.LOST and channel.is_ready:
                log.info("Connected to the estimator of a cluster again", extra={"cluster": cluster})
                self.state = ConnectionState.CONNECTED
            await channel.wait_while_ready()
            if self.state is ConnectionState.CONNECTED:
                log.warning("Lost the connection to the estimator of a cluster", extra={"cluster": cluster})
            self.state = ConnectionState.LOST
            if not await channel.wait_ready(LOST_SECONDS):
                return

    def log_once(self, problem: str) -> None:
        """Log why an attempt to connect failed, unless that was logged last."""
        if problem != self.reported:
            self.reported = problem
            log.warning(
                "Failed to establish a connection to the estimator of a cluster, it is tried again",
                extra={"cluster": self.cluster, "error": problem},
            )
