"""Which version of bindings the control plane serves, read from its OpenAPI document. It warns, and decides nothing.

Karmada's version is at no endpoint that the scheduler may read. CRDs change before webhooks in an upgrade, so the fields that
are served say no more than their name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.config.decision_rules import DEFAULT_RULES
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.metrics.api_server import ApiServerMetrics

log = logging.getLogger(__name__)

UNKNOWN: Final = "unknown"
_OLDEST: Final = "1.16"
_FIELDS: Final = (
    ("1.19", "components", ("spec", "clusters", "components")),
    ("1.18", "overflowAffinities", ("spec", "placement", "clusterAffinities", "overflowAffinities")),
    ("1.17", "workloadAffinityGroups", ("spec", "workloadAffinityGroups")),
)
"""From the newest: the version that has brought a field of bindings, its name, and its path."""
_NEEDED: Final = {"WorkloadAffinity": "1.17", "SchedulingOvercommitProtection": "1.18"}
_DOCUMENTS: Final = "/openapi/v3"
_BINDINGS: Final = "apis/work.karmada.io/v1alpha2"
_PAUSE_SECONDS: Final = 600.0
_TIMEOUT_SECONDS: Final = 10.0


class ControlPlaneSchema:
    """Reads the schema of bindings when the scheduler starts, and again when it has changed."""

    def __init__(self, connection: Connection, gates: FeatureGates, metrics: ApiServerMetrics) -> None:
        """Take the connection, what is warned about, and the metric."""
        self._connection = connection
        self._gates = gates
        self._metrics = metrics
        self._url = ""
        self._found = ""

    async def run(self) -> None:
        """Read it now, and look for changes every ten minutes, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def read(self) -> None:
        """Read the schema if its hash is new; log and expose what it is, if that has changed."""
        try:
            listed = await self._get(_DOCUMENTS)
            url = str(_at(listed, "paths", _BINDINGS, "serverRelativeURL") or "")
            if url and url == self._url:
                return
            found = version_of(await self._get(url)) if url.startswith("/") else UNKNOWN
            self._url, problem = url, "it has no document of bindings"
        except ApiError as error:
            found, problem = UNKNOWN, str(error)
        if found == self._found:
            return
        self._found = found
        self._metrics.expose_schema(found)
        if found == UNKNOWN:
            log.info("The version of bindings that the control plane serves is unknown: %s", problem)
            return
        missing = "".join(f" (no {name})" for version, name, _ in _FIELDS[-2:] if _is_older(found, version))
        decisions = self._gates.rules.decisions_of
        log.info(
            "Control plane serves the bindings of Karmada %s%s; decisions of %s", found, missing, decisions
        )
        for text in warnings_about(found, self._gates):
            log.warning("%s", text)

    async def _get(self, path: str) -> Mapping[str, Any]:
        return await self._connection.request("GET", path, timeout=_TIMEOUT_SECONDS)


def version_of(document: Mapping[str, Any]) -> str:
    """Return the version of the newest known field of bindings; UNKNOWN if the document has no bindings."""
    schemas = _at(document, "components", "schemas")
    for name, schema in schemas.items() if isinstance(schemas, Mapping) else ():
        if name.endswith(".v1alpha2.ResourceBinding"):
            return next((version for version, _, path in _FIELDS if _has(schema, path)), _OLDEST)
    return UNKNOWN


def warnings_about(version: str, gates: FeatureGates) -> Iterator[str]:
    """Yield what does not fit together: the version that is served, the decisions, and the gates."""
    decisions, newest = gates.rules.decisions_of, DEFAULT_RULES.decisions_of
    if _is_older(newest, version):
        yield f"Karmada {version} is newer than what is known here; decisions are those of {decisions}"
    elif _is_older(version, newest) != _is_older(decisions, newest):
        what = (
            "--decisions-of=1.17 decides as it does"
            if decisions == newest
            else "remove --decisions-of after an upgrade"
        )
        yield (
            f"Karmada {version} estimates by resource models (R1) and matches zones (R2) in another way than the decisions of "
            f"{decisions}; {what}, see docs/karmada-versions.md"
        )
    for gate, needed in _NEEDED.items():
        if gates.enabled(gate) and _is_older(version, needed):
            yield f"The feature gate {gate} has no effect: it needs Karmada {needed}, and bindings are those of {version}"


def _is_older(one: str, other: str) -> bool:
    return [int(each) for each in one.split(".")] < [int(each) for each in other.split(".")]


def _at(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _has(schema: object, path: tuple[str, ...]) -> bool:
    """Return whether a schema has a property at a path; lists count as their elements."""
    for name in path:
        inside = _at(schema, "items")
        schema = _at(schema if inside is None else inside, "properties", name)
    return schema is not None
