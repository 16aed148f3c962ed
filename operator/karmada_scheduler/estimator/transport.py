"""How the estimators of member clusters are reached, without a word on gRPC."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from karmada_scheduler.config.options import EstimatorOptions


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
        ...

    async def wait_ready(self, seconds: float, /) -> bool:
        """Wait until it is connected, at most some seconds; return whether it is."""
        ...

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method; see ``Connections.call``."""
        ...

    async def close(self) -> None:
        """Close it; calls under way fail."""
        ...


class DialEstimator(Protocol):
    """Opens channels, as ``grpc_channel.GrpcChannel.dial`` does."""

    async def __call__(
        self, address: str, settings: EstimatorOptions, /, *, seconds: float, on_failure: Callable[[], None]
    ) -> EstimatorChannel:
        """Open a channel and wait until it is ready; see ``GrpcChannel.dial``."""
        ...
