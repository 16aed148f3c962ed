"""What reading the metadata of workloads depends on: a client, a clock, and limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from karmada_scheduler.client.metadata import KindName, ServedResource
from karmada_scheduler.structs import Struct

PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts after failures."""


class Client(Protocol):
    """Reads metadata; ``client.metadata.MetadataClient`` implements it."""

    async def discover(self, kind: KindName) -> ServedResource: ...

    def list(self, resource: ServedResource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]: ...

    async def get(self, resource: ServedResource, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def watch(
        self, resource: ServedResource, version: str, accepted: Callable[[], None]
    ) -> AsyncGenerator[dict[str, Any], None]: ...


class Dependencies(Struct, frozen=True, kw_only=True):
    """The dependencies that all kinds share.

    Attributes:
        client: Reads metadata.
        clock: In seconds, never running backwards.
        sleep: Waits for a number of seconds.
        reads: Limits the number of single objects that are read at the same time.
    """

    client: Client
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    reads: asyncio.Semaphore
