"""Which version of Karmada's bindings a control plane serves, read from its OpenAPI document.

Karmada's version is at no endpoint that the scheduler may read. CRDs change before webhooks and controllers in an upgrade, so
the fields that are served say no more than their name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_pyscheduler.client.connection import Connection

UNKNOWN: Final = "unknown"
_OLDEST: Final = "1.16"
_COMPONENTS_SINCE: Final = "1.19"
FIELDS: Final = (
    (_COMPONENTS_SINCE, "components", ("spec", "clusters", "components")),
    ("1.18", "overflowAffinities", ("spec", "placement", "clusterAffinities", "overflowAffinities")),
    ("1.17", "workloadAffinityGroups", ("spec", "workloadAffinityGroups")),
)
"""From the newest: the version that has brought a field of bindings, its name, and its path."""
DOCUMENTS: Final = "/openapi/v3"
_BINDINGS: Final = "apis/work.karmada.io/v1alpha2"
_TIMEOUT_SECONDS: Final = 10.0


class BindingsSchema:
    """Reads the version of bindings that are served; their document only if its hash is new."""

    def __init__(self, connection: Connection) -> None:
        """Take the connection."""
        self._connection = connection
        self._url = ""
        self._version = UNKNOWN

    async def version(self) -> str:
        """Return the version, such as 1.18; UNKNOWN if there is no document of bindings.

        Raises:
            ApiError: The documents cannot be read.
        """
        listed = await self._get(DOCUMENTS)
        url = str(_at(listed, "paths", _BINDINGS, "serverRelativeURL") or "")
        if not url or url != self._url:
            self._version = version_of(await self._get(url)) if url.startswith("/") else UNKNOWN
            self._url = url
        return self._version

    async def _get(self, path: str) -> Mapping[str, Any]:
        return await self._connection.request("GET", path, timeout=_TIMEOUT_SECONDS)


def version_of(document: Mapping[str, Any]) -> str:
    """Return the version of the newest known field of bindings; UNKNOWN if the document has no bindings."""
    schemas = _at(document, "components", "schemas")
    for name, schema in schemas.items() if isinstance(schemas, Mapping) else ():
        if name.endswith(".v1alpha2.ResourceBinding"):
            return next((version for version, _, path in FIELDS if _has(schema, path)), _OLDEST)
    return UNKNOWN


def is_older(one: str, other: str) -> bool:
    """Return whether a version is older than another: 1.9 is older than 1.10."""
    return [int(number) for number in one.split(".")] < [int(number) for number in other.split(".")]


def serves_components(version: str) -> bool:
    """Return whether targets have ``components`` in a known version of bindings."""
    return not is_older(version, _COMPONENTS_SINCE)


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
