"""The connections of the process to the Karmada API server, and which version of bindings it serves: a warning, no decision."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_pyscheduler.app.environment import Environment
from karmada_pyscheduler.client import permissions
from karmada_pyscheduler.client.bindings_schema import FIELDS, UNKNOWN, BindingsSchema
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.metrics.metrics import ApiServerMetrics, Metrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.decision_rules import DEFAULT_RULES
from karmada_scheduler.config.features import FeatureGates
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


_NEEDED: Final = {"WorkloadAffinity": "1.17", "SchedulingOvercommitProtection": "1.18"}
_PAUSE_SECONDS: Final = 600.0


class ControlPlaneSchema:
    """Reads the schema of bindings when the scheduler starts, and again when it has changed."""

    def __init__(self, connection: Connection, gates: FeatureGates, metrics: ApiServerMetrics) -> None:
        """Take the connection, what is warned about, and the metric."""
        self._schema = BindingsSchema(connection)
        self._gates = gates
        self._metrics = metrics
        self._found = ""

    async def run(self) -> None:
        """Read it now, and look for changes every ten minutes, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def read(self) -> None:
        """Read the schema if its hash is new; log and expose what it is, if that has changed."""
        try:
            found, problem = await self._schema.version(), "it has no document of bindings"
        except ApiError as error:
            found, problem = UNKNOWN, str(error)
        if found == self._found:
            return
        self._found = found
        self._metrics.expose_schema(found)
        if found == UNKNOWN:
            log.info("The version of bindings that the control plane serves is unknown: %s", problem)
            return
        missing = "".join(f" (no {name})" for version, name, _ in FIELDS[-2:] if _is_older(found, version))
        decisions = self._gates.rules.decisions_of
        log.info(
            "Control plane serves the bindings of Karmada %s%s; decisions of %s", found, missing, decisions
        )
        for text in warnings_about(found, self._gates):
            log.warning("%s", text)


def warnings_about(version: str, gates: FeatureGates) -> Iterator[str]:
    """Yield what does not fit together: the version that is served, the decisions, and the gates."""
    decisions, newest = gates.rules.decisions_of, DEFAULT_RULES.decisions_of
    if _is_older(newest, version):
        yield f"Karmada {version} is newer than what is known here; decisions are those of {decisions}"
    elif _is_older(version, newest) != _is_older(decisions, newest):
        what = "remove --decisions-of after an upgrade"
        if decisions == newest:
            what = "--decisions-of=1.17 decides as it does"
        yield (
            f"Karmada {version} estimates by resource models (R1) and matches zones (R2) in another way than the decisions of "
            f"{decisions}; {what}, see docs/karmada-versions.md"
        )
    for gate, needed in _NEEDED.items():
        if gates.enabled(gate) and _is_older(version, needed):
            yield f"The feature gate {gate} has no effect: it needs Karmada {needed}, and bindings are those of {version}"


def _is_older(one: str, other: str) -> bool:
    return [int(each) for each in one.split(".")] < [int(each) for each in other.split(".")]
