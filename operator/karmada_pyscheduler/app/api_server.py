"""The connections of the process to the Karmada API server, and which version of bindings it serves.

That is logged, exposed and compared; it decides nothing. What is not served is not written (``binding_cycle.served_components``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from karmada_pyscheduler.app.host import Environment
from karmada_pyscheduler.client.bindings_schema import FIELDS, UNKNOWN, BindingsSchema, is_older
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.client.permissions import missing_permissions, needed_permissions
from karmada_pyscheduler.metrics.metrics import ApiServerMetrics, Metrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.features import DEFAULT_RULES, RULES, FeatureGates
from karmada_scheduler.config.options import Options
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

_NEEDED: Final = {"WorkloadAffinity": "1.17", "SchedulingOvercommitProtection": "1.18"}
_RULES: Final = (
    ("1.18", "estimates by resource models (R1) and matches zones (R2)"),
    ("1.19", "begins a reschedule (A) and writes components of targets (B)"),
)
"""The versions that brought rules of decisions, and the rules."""
_PAUSE_SECONDS: Final = 600.0


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
        lease = elections.name if elections.enabled else ""
        wanted = needed_permissions(lease=lease, services=self._options.estimators.enabled)
        missing = await missing_permissions(self._connection, wanted, namespace=elections.namespace)
        if missing:
            log.error(
                "The user of the kubeconfig may not: %s; the chart's side=karmada has the roles",
                ", ".join(map(str, missing)),
            )


class ControlPlaneSchema(IdentityStruct):
    """Reads the schema of bindings when the scheduler starts, and again when it has changed.

    Attributes:
        connection: To the control plane.
        gates: What is warned about.
        metrics: Exposes the version.
        on_version: Called with each version that is found.
    """

    connection: Connection
    gates: FeatureGates
    metrics: ApiServerMetrics
    on_version: Callable[[str], None] = lambda _: None
    _found: str = ""

    def __post_init__(self) -> None:
        self._schema = BindingsSchema(self.connection)

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
        self.metrics.expose_schema(found)
        self.on_version(found)
        if found == UNKNOWN:
            log.info("The version of bindings that the control plane serves is unknown: %s", problem)
            return
        missing = "".join(f" (no {name})" for version, name, _ in FIELDS[-2:] if is_older(found, version))
        decisions = self.gates.rules.decisions_of
        log.info(
            "Control plane serves the bindings of Karmada %s%s; decisions of %s", found, missing, decisions
        )
        for text in warnings_about(found, self.gates):
            log.warning("%s", text)


def warnings_about(version: str, gates: FeatureGates) -> Iterator[str]:
    """Yield what does not fit together: the version that is served, the decisions, and the gates."""
    decisions = gates.rules.decisions_of
    if is_older(max(RULES), version):
        yield f"Karmada {version} is newer than what is known here; decisions are those of {decisions}"
    for since, what in _RULES:
        if is_older(version, since) != is_older(decisions, since):
            yield (
                f"Karmada {version} {what} in another way than the decisions of {decisions}; "
                f"{_remedy(version, decisions)}, see docs/karmada-versions.md"
            )
    for gate, needed in _NEEDED.items():
        if gates.enabled(gate) and is_older(version, needed):
            yield f"The feature gate {gate} has no effect: it needs Karmada {needed}, and bindings are those of {version}"


def _remedy(version: str, decisions: str) -> str:
    """Return which ``--decisions-of`` decides as a version does; those of 1.17 do so for the ones before it."""
    fitting = max((known for known in RULES if not is_older(version, known)), default=min(RULES))
    if fitting != DEFAULT_RULES.decisions_of:
        return f"--decisions-of={fitting} decides as it does"
    return f"remove --decisions-of {'after an' if is_older(decisions, version) else 'until the'} upgrade"
