"""Reads manifests from a live control plane, with the verbs get and list only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.cli.sources.bindings import find_binding
from karmada_scheduler.client import json_body
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connect import connect
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.identity import ConnectionConfigError
from karmada_scheduler.client.karmada import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    PROPAGATION_POLICIES,
    RESOURCE_BINDINGS,
    Resource,
)
from karmada_scheduler.client.lists import list_pages
from karmada_scheduler.client.metadata import KindName, MetadataClient

TIMEOUT_SECONDS: Final = 60.0

_BINDINGS: Final = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)
_POLICIES: Final = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
_HINT: Final = "is this the Karmada API server? (--kubeconfig, --context)"

Manifest = dict[str, Any]


class LiveError(Exception):
    """The control plane gives no answer; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Which control plane to read.

    Attributes:
        kubeconfig: A path; "" for the default, as kubectl has it.
        context: "" for the current one.
    """

    kubeconfig: str = ""
    context: str = ""


@dataclass(slots=True)
class LiveContents:
    """What was read.

    Attributes:
        server: The URL of the API server.
        problems: What could not be read without ending the command: single objects, and policies.
    """

    server: str
    clusters: list[Manifest] = field(default_factory=list)
    bindings: list[Manifest] = field(default_factory=list)
    policies: list[Manifest] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_live(
    plane: ControlPlane,
    keys: Sequence[BindingKey] = (),
    *,
    all_bindings: bool = False,
    timeout: float = TIMEOUT_SECONDS,
) -> LiveContents:
    """Read the clusters, the policies, and bindings.

    Args:
        plane: The control plane.
        keys: The wanted binding under each of its possible keys; the first that exists is read.
        all_bindings: Whether to list the bindings of all namespaces as well; then the wanted one comes first.
        timeout: Seconds for everything.

    Raises:
        LiveError: The control plane cannot be read.
        NoSuchBindingError: No binding has any of the keys.
    """
    return asyncio.run(_read(plane, keys, all_bindings=all_bindings, timeout=timeout))


async def _read(
    plane: ControlPlane, keys: Sequence[BindingKey], *, all_bindings: bool, timeout: float
) -> LiveContents:
    async with _connection(plane) as connection:
        reading = _Reading(connection)
        try:
            async with asyncio.timeout(timeout):
                if keys:
                    reading.found.bindings.append(await find_binding(connection, keys))
                await reading.clusters()
                await reading.policies()
                if all_bindings:
                    await reading.other_bindings()
        except TimeoutError:
            raise LiveError(f"{connection.server} has not answered within {timeout:.0f} s") from None
        except ApiError as error:
            raise LiveError(str(error)) from error
        return reading.found


def read_templates(
    plane: ControlPlane, kinds: Iterable[KindName], *, timeout: float = TIMEOUT_SECONDS
) -> tuple[list[Manifest], list[str]]:
    """Read the metadata of all objects of some kinds.

    Args:
        plane: The control plane.
        kinds: Of resource templates.
        timeout: Seconds for everything.

    Returns:
        Objects with apiVersion, kind and metadata, and what could not be read.

    Raises:
        LiveError: The control plane cannot be read.
    """
    return asyncio.run(_read_templates(plane, list(kinds), timeout=timeout))


async def _read_templates(
    plane: ControlPlane, kinds: Sequence[KindName], *, timeout: float
) -> tuple[list[Manifest], list[str]]:
    found: list[Manifest] = []
    problems: list[str] = []
    async with _connection(plane) as connection:
        client = MetadataClient(connection)
        try:
            async with asyncio.timeout(timeout):
                for kind in kinds:
                    try:
                        resource = await client.discover(kind)
                        async for page, _ in client.list(resource):
                            found += [_with_type(each, kind) for each in page]
                    except ApiError as error:
                        problems.append(f"templates of kind {kind.kind}: {error}")
        except TimeoutError:
            raise LiveError(f"{connection.server} has not answered within {timeout:.0f} s") from None
    return found, problems


def _with_type(item: Manifest, kind: KindName) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": item.get("metadata") or {}}


@asynccontextmanager
async def _connection(plane: ControlPlane) -> AsyncIterator[Connection]:
    try:
        connection = await connect(kubeconfig=plane.kubeconfig, context=plane.context, master="")
    except ConnectionConfigError as error:
        raise LiveError(str(error)) from error
    try:
        yield connection
    finally:
        await connection.close()


class _Reading:
    """The contents as far as they have been read."""

    def __init__(self, connection: Connection) -> None:
        self.found = LiveContents(connection.server)
        self._connection = connection

    async def clusters(self) -> None:
        try:
            self.found.clusters += await self._list(CLUSTERS)
        except ApiError as error:
            if error.is_not_found:
                text = (
                    f"{self._connection.server} does not serve {CLUSTERS.group}/{CLUSTERS.version}: {_HINT}"
                )
                raise LiveError(text) from error
            raise

    async def policies(self) -> None:
        """Read the policies. An explanation without them is still right, so an error is only a problem."""
        for resource in _POLICIES:
            try:
                self.found.policies += await self._list(resource)
            except ApiError as error:
                self.found.problems.append(f"{resource.plural}: {error}")

    async def other_bindings(self) -> None:
        known = {_identity(each) for each in self.found.bindings}
        for resource in _BINDINGS:
            listed = await self._list(resource)
            self.found.bindings += [each for each in listed if _identity(each) not in known]

    async def _list(self, resource: Resource) -> list[Manifest]:
        manifests: list[Manifest] = []
        api_version = f"{resource.group}/{resource.version}"
        async for page, _ in list_pages(self._connection, resource.path):
            for item in page:
                if problem := json_body.unreadable(item):
                    name = item.get("metadata", {}).get("name", "")
                    self.found.problems.append(f"{resource.kind} {name}: {problem}")
                else:
                    # The API server leaves both out of the items of a list.
                    manifests.append({**item, "apiVersion": api_version, "kind": resource.kind})
        return manifests


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace") or "", metadata["name"]
