"""How the estimators of member clusters are reached, without a word on gRPC."""

from __future__ import annotations

from enum import Enum
from typing import Protocol


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


class EstimatorTransport(Protocol):
    """Connections to estimators, as ``connections.Connections`` provides them."""

    def state(self, cluster: str, /) -> ConnectionState:
        """Return the state of the connection to a cluster's estimator."""
        ...

    async def wait_first_attempt(self, cluster: str, /) -> None:
        """Wait for the end of the first attempt to connect."""
        ...

    def reconnect(self, cluster: str, /) -> None:
        """Replace the connection to a cluster's estimator by a new one."""
        ...

    async def call(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method.

        Args:
            cluster: Name of the cluster.
            method: Name of the method.
            request: The encoded request.
            timeout: Seconds from now.
            about: Kind and name of the workload, for the estimator's log.

        Returns:
            The encoded response.

        Raises:
            EstimatorCallError: There is no connection, or the call failed or timed out.
        """
        ...
