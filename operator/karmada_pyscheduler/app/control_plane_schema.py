"""Logs, exposes and compares which version of bindings the control plane serves. It warns, and decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from karmada_pyscheduler.client.bindings_schema import FIELDS, UNKNOWN, BindingsSchema
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.metrics.metrics import ApiServerMetrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.decision_rules import DEFAULT_RULES
from karmada_scheduler.config.features import FeatureGates

log = logging.getLogger(__name__)

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
