"""The metadata of objects of any kind: which resource a kind is, and lists, watches and reads of metadata alone.

The API server sends a ``PartialObjectMetadata`` in place of each object where that is asked for; a server that does not know
how sends whole objects, of which the metadata is read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import JSON, Connection
from karmada_scheduler.client.lists import list_pages
from karmada_scheduler.client.watch_lines import event_of

METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
WATCH_SECONDS: Final = 290
"""How long the API server is asked to keep a watch open."""


class KindName(NamedTuple):
    """A kind as objects name it.

    Attributes:
        api_version: Group and version: ``apps/v1``, ``v1``.
        kind: ``Deployment``, say.
    """

    api_version: str
    kind: str

    def __str__(self) -> str:
        """Write it for people."""
        return f"{self.kind} ({self.api_version})"


class ServedResource(NamedTuple):
    """Where the objects of a kind are.

    Attributes:
        api_version: Group and version.
        plural: Its name in paths.
        namespaced: Whether its objects are in namespaces.
    """

    api_version: str
    plural: str
    namespaced: bool

    @property
    def path(self) -> str:
        """The path that lists all objects, of all namespaces."""
        return f"{group_path(self.api_version)}/{self.plural}"

    def path_of(self, namespace: str, name: str) -> str:
        """Return the path of one object."""
        inside = f"namespaces/{quote(namespace, safe='')}/" if self.namespaced else ""
        return f"{group_path(self.api_version)}/{inside}{self.plural}/{quote(name, safe='')}"

    def __str__(self) -> str:
        """Write it as ``kubectl`` does: ``deployments.apps``."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural


class NotServedError(ApiError):
    """The API server does not serve a kind, or does not let it be watched."""


def group_path(api_version: str) -> str:
    """Return the path of a group and version, which may be anything that a binding says."""
    return f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version, safe='/')}"


class MetadataClient:
    """Reads metadata through a connection, which somebody else closes."""

    def __init__(self, connection: Connection) -> None:
        """Share a connection."""
        self._connection = connection

    async def discover(self, kind: KindName) -> ServedResource:
        """Find out which resource a kind is.

        Raises:
            NotServedError: The API server says that there is no such kind, or that it cannot be listed and watched.
            ApiError: It cannot be asked.
        """
        path = group_path(kind.api_version)
        try:
            answer = await self._connection.request("GET", path, timeout=10.0)
        except ApiError as error:
            if error.is_not_found:
                raise NotServedError(f"the API server serves no {kind}", code=404) from error
            raise
        entries = answer.get("resources")
        if not isinstance(entries, list):
            raise ApiError(f"GET {path}: expected an APIResourceList, it has no resources")
        for entry in entries:
            if isinstance(entry, dict) and entry.get("kind") == kind.kind:
                name, verbs = entry.get("name"), entry.get("verbs")
                if isinstance(name, str) and "/" not in name:
                    if not isinstance(verbs, list) or "list" not in verbs or "watch" not in verbs:
                        raise NotServedError(f"the API server lets no {kind} be watched", code=405)
                    return ServedResource(kind.api_version, name, entry.get("namespaced") is True)
        raise NotServedError(f"the API server serves no {kind}", code=404)

    async def list(self, resource: ServedResource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        """Yield the metadata of all objects a page at a time, with the list's resourceVersion; as ``list_pages``."""
        async for page in list_pages(self._connection, resource.path, accept=METADATA_LIST):
            yield page

    async def get(self, resource: ServedResource, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Read the metadata of one object; None if the API server says that there is none."""
        path = resource.path_of(namespace, name)
        try:
            found = await self._connection.request("GET", path, timeout=10.0, accept=METADATA)
        except ApiError as error:
            if error.is_object_not_found(name):
                return None
            raise
        found = json_body.checked(found)
        if problem := json_body.unreadable(found):
            raise ApiError(f"GET {path}: {problem}")
        metadata = found["metadata"]
        if (metadata.get("namespace") or "", metadata["name"]) != (namespace, name):
            raise ApiError(f"GET {path}: the answer is another object")
        return found

    async def watch(
        self, resource: ServedResource, version: str, accepted: Callable[[], None]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events after a version until the API server ends the watch; see ``watch_lines.event_of``.

        Raises:
            ApiError: It could not be begun, the connection broke, an event is an ERROR or cannot be read.
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
                    event = event_of(line)
                except ValueError as problem:
                    raise ApiError(f"GET {resource.path}: {problem}") from problem
                if event["type"] == "ERROR":
                    found = event["object"]
                    raise ApiError(str(found.get("message") or "the watch failed"), code=found["code"])
                yield event
