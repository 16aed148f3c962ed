"""The connection to the estimator of one cluster, and its state."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from karmada_scheduler.estimator.transport import ConnectionState, EstimatorChannel
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

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
