"""Logs, exposes and compares which version of bindings the control plane serves. It warns, and decides nothing.

What is not served is not written (``binding_cycle.served_components``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

from karmada_pyscheduler.client.bindings_schema import FIELDS, UNKNOWN, BindingsSchema, is_older
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.metrics.metrics import ApiServerMetrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.features import DEFAULT_RULES, RULES, FeatureGates
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

_NEEDED: Final = {"WorkloadAffinity": "1.17", "SchedulingOvercommitProtection": "1.18"}
_RULES: Final = (
    ("1.18", "estimates by resource models (R1) and matches zones (R2)"),
    ("1.19", "begins a reschedule (A) and writes components of targets (B)"),
)
"""The versions that brought rules of decisions, and the rules."""
_PAUSE_SECONDS: Final = 600.0


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
