"""The connections of the process to the Karmada API server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from karmada_pyscheduler.app.environment import Environment
from karmada_pyscheduler.client import permissions
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.options import Options

log = logging.getLogger(__name__)


class ApiServer:
    """Opens connections with the credentials of the flags, and counts their requests."""

    def __init__(self, options: Options, environment: Environment, metrics: Metrics) -> None:
        """Open no connection yet."""
        self._options = options
        self._environment = environment
        self._metrics = metrics
        self._connection: Connection | None = None

    async def open(self) -> Connection:
        """Return the connection of the main event loop."""
        self._connection = await self.connect()
        return self._connection

    async def connect(self) -> Connection:
        """Return a new connection, which belongs to the running event loop."""
        options = self._options
        return await self._environment.connect(
            kubeconfig=options.kubeconfig, master=options.master, on_response=self._count
        )

    def _count(self, method: str, host: str, code: int) -> None:
        self._metrics.api_server.requests.labels(str(code or "<error>"), method, host).inc()

    async def read_service(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read a Service, None if there is none.

        Raises:
            LookupError: It cannot be read.
        """
        assert self._connection is not None  # open before clusters are listed
        try:
            return await KarmadaClient(self._connection).get_service(namespace, name)
        except ApiError as error:
            raise LookupError(f"cannot read Service {namespace}/{name}: {error}") from error

    async def log_missing_permissions(self) -> None:
        """Log all missing permissions at once; requests that need them are repeated until they are granted."""
        assert self._connection is not None  # open before anything is listed
        elections = self._options.leader_election
        wanted = permissions.needed(
            lease=elections.name if elections.enabled else "", services=self._options.estimators.enabled
        )
        missing = await permissions.missing(self._connection, wanted, namespace=elections.namespace)
        if missing:
            log.error(
                "The user of the kubeconfig may not: %s; the chart's side=karmada has the roles",
                ", ".join(map(str, missing)),
            )
