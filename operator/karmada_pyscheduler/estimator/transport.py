"""How the estimators of member clusters are reached, without a word on gRPC: addresses, channels, the connection of a cluster.

Source of the addresses: karmada v1.18.2 pkg/util/names GenerateEstimatorServiceName, pkg/util/grpcconnection and
pkg/util/helper ResolveCluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from karmada_scheduler.api.manifest import Manifest, ManifestError, read_mapping, read_mappings, read_text
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

_MAX_PORT: Final = 65535


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


class DiscoveryError(Exception):
    """The Service does not give the address of the estimator."""


def service_name(prefix: str, cluster: str) -> str:
    """Return the name of the Service of a cluster's estimator."""
    return f"{prefix}-{cluster}"


def addresses(service: Mapping[str, Any] | None, *, name: str, namespace: str, port: int) -> list[str]:
    """Return ``host:port`` of an estimator, in the order in which to try them.

    Args:
        service: The Service as stored, None if there is none; then names of the host cluster's DNS are used.
        name: The Service's name.
        namespace: Its namespace.
        port: The port of the Service (``--scheduler-estimator-port``).

    Raises:
        DiscoveryError: The Service is not of type ExternalName, does not map the port to a number, or cannot be read.
    """
    if service is None:
        return [f"{name}.{namespace}.svc.cluster.local:{port}", f"{name}.{namespace}.svc:{port}"]
    try:
        return [_external_address(service, name=name, port=port)]
    except ManifestError as error:
        raise DiscoveryError(f'cannot read service "{name}": {error}') from None


def _external_address(service: Manifest, *, name: str, port: int) -> str:
    spec = read_mapping(service, "spec", "")
    type_ = read_text(spec, "type", "spec")
    if type_ != "ExternalName":
        raise DiscoveryError(f'unsupported service type "{type_}"')
    for entry in read_mappings(spec, "ports", "spec"):
        if entry.get("port") == port:
            target = entry.get("targetPort")
            if type(target) is not int or not 0 <= target <= _MAX_PORT:
                raise DiscoveryError(
                    "ExternalName service type should have int target port, "
                    f"current target port: {'' if target is None else target!s:.60}"
                )
            return f"{read_text(spec, 'externalName', 'spec')}:{target}"
    raise DiscoveryError(f'no service port {port} found for service "{name}"')
