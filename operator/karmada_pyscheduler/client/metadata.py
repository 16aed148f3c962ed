"""Reads the metadata of objects of any kind: discovery of the resource, lists, watches and single reads.

The ``Accept`` header requests a ``PartialObjectMetadata`` for each object. A server that does not support it sends
complete objects, of which only the metadata is used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from karmada_pyscheduler.client.connection import JSON, Connection
from karmada_pyscheduler.client.karmada import list_pages, served_resources
from karmada_pyscheduler.client.paths import ImpossibleNameError, path_of
from karmada_pyscheduler.client.watch_requests import read_event
from karmada_scheduler import json_body
from karmada_scheduler.api_error import ApiError

METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
WATCH_SECONDS: Final = 290
"""The ``timeoutSeconds`` of a watch."""


class KindName(NamedTuple):
    """A kind as references in objects have it.

    Attributes:
        api_version: Group and version: ``apps/v1``, ``v1``.
        kind: For example ``Deployment``.
    """

    api_version: str
    kind: str

    def __str__(self) -> str:
        """Return it as messages show it."""
        return f"{self.kind} ({self.api_version})"


class ServedResource(NamedTuple):
    """The resource of a kind.

    Attributes:
        api_version: Group and version.
        plural: Its name in paths.
        namespaced: Whether its objects have namespaces.
    """

    api_version: str
    plural: str
    namespaced: bool

    @property
    def path(self) -> str:
        """The path that lists all objects, of all namespaces."""
        return path_of(self.api_version, self.plural)

    def path_of(self, namespace: str, name: str) -> str:
        """Return the path of one object. Raises ImpossibleNameError."""
        return path_of(self.api_version, self.plural, name, namespace=namespace if self.namespaced else "")

    def __str__(self) -> str:
        """Return it as ``kubectl`` shows it: ``deployments.apps``."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural


class NotServedError(ApiError):
    """The API server does not serve a kind, or does not support lists and watches of it."""


class MetadataClient:
    """Reads metadata through a connection."""

    def __init__(self, connection: Connection) -> None:
        """Use a connection, which its owner closes."""
        self._connection = connection

    async def discover(self, kind: KindName) -> ServedResource:
        """Return the resource of a kind.

        Raises:
            NotServedError: The API server has no such kind, or does not support lists and watches of it.
            ApiError: There was no valid response.
        """
        for entry in await served_resources(self._connection, kind.api_version):
            if entry.get("kind") == kind.kind:
                name, verbs = entry.get("name"), entry.get("verbs")
                if isinstance(name, str) and "/" not in name:
                    if not isinstance(verbs, list) or "list" not in verbs or "watch" not in verbs:
                        raise NotServedError(f"the API server lets no {kind} be watched", code=405)
                    return ServedResource(kind.api_version, name, entry.get("namespaced") is True)
        raise NotServedError(f"the API server serves no {kind}", code=404)

    async def list(self, resource: ServedResource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Yield the metadata of all objects page by page, with the list's resourceVersion; see ``list_pages``."""
        async for page in list_pages(self._connection, resource.path, accept=METADATA_LIST):
            yield page

    async def get(self, resource: ServedResource, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the metadata of one object, None if it does not exist; ApiError if the API server does not say so."""
        try:
            path = resource.path_of(namespace, name)
            found = await self._connection.request("GET", path, timeout=10.0, accept=METADATA)
        except ImpossibleNameError:
            return None
        except ApiError as error:
            if error.is_object_not_found(name):
                return None
            raise
        found = json_body.checked(found)
        if problem := json_body.unreadable(found):
            raise ApiError(f"GET {path}: {problem}")
        metadata = found["metadata"]
        if (metadata.get("namespace") or "", metadata["name"]) != (namespace, name):
            raise ApiError(f"GET {path}: the response is another object")
        return found

    async def watch(
        self, resource: ServedResource, version: str, accepted: Callable[[], None]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events after a version until the API server ends the watch; see ``watch_requests.event_of``.

        Raises:
            ApiError: The watch was not accepted, the connection broke, or an event is an ERROR or cannot be read.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        target = f"{resource.path}?{urlencode(query)}"
        stream = self._connection.watch(target, accepted, accept=METADATA)
        async with aclosing(stream) as lines:
            async for line in lines:
                try:
                    event = await read_event(line)
                except ValueError as problem:
                    raise ApiError(f"GET {resource.path}: {problem}") from problem
                if event["type"] == "ERROR":
                    found = event["object"]
                    raise ApiError(str(found.get("message") or "the watch failed"), code=found["code"])
                yield event
