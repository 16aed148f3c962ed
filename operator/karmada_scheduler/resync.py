"""List and compare: what a watch cannot promise.

A watch delivers what happens from a version on. What there was before, and what was deleted while no watch was
open, only a list tells. So the caches are filled from lists before anything is decided, each watch begins where
such a list ended, and every few minutes the caches are compared with another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.intake import Intake

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)


class Resync:
    """Keeps the caches true to what the API server stores."""

    def __init__(
        self,
        client: KarmadaClient,
        intake: Intake,
        resources: Sequence[Resource],
        *,
        period: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``period`` is the time between two comparisons, in seconds; ``sleep`` waits for so many."""
        self._client = client
        self._intake = intake
        self._resources = {resource.kind: resource for resource in resources}
        self._period = period
        self._sleep = sleep
        self._filled_as_of: dict[str, str] = {}

    async def wait_until_served(self) -> None:
        """Wait until the API server serves every kind, and say what is missing while it does not.

        Karmada's aggregated API server may come up later than the scheduler, and kopf never learns of a
        group that appears without a CustomResourceDefinition.
        """
        await self._until_it_works("Waiting for the API server", self._all_served)

    async def fill(self) -> None:
        """List every kind until each has worked once; afterwards the caches are complete."""
        with self._intake.filling():
            for resource in self._resources.values():
                self._filled_as_of[resource.kind] = await self._list(resource)

    async def begin(self, kind: str) -> str:
        """Return the version from which a watch of a kind is to begin; up to it the cache knows everything.

        The first watch begins where the filling ended. Every other one was preceded by a gap, so that the cache is
        compared with a list first, until that has worked.
        """
        return self._filled_as_of.pop(kind, None) or await self._list(self._resources[kind])

    async def _list(self, resource: Resource) -> str:
        return await self._until_it_works(f"Listing {resource.plural}", partial(self._compare, resource))

    async def _until_it_works(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        told = ""
        tries = 0
        while True:
            try:
                return await attempt()
            except ApiError as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("%s, trying again", what, extra={"error": told})
                await self._sleep(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
                tries += 1

    async def _all_served(self) -> None:
        for resource in self._resources.values():
            if not await self._client.is_served(resource):
                raise ApiError(f"{resource.plural}.{resource.group}/{resource.version} is not served")

    async def run(self) -> None:
        """Compare every kind every period, until cancelled."""
        while True:
            await self._sleep(self._period)
            for resource in self._resources.values():
                try:
                    await self._compare(resource)
                except ApiError as error:
                    log.warning(
                        "Cannot compare the cache with a list", extra={"kind": resource.kind, "error": error}
                    )

    async def _compare(self, resource: Resource) -> str:
        listing = self._intake.listing(resource.kind)
        version = "0"
        async for page, page_version in self._client.list(resource):
            listing.take(page)
            version = page_version
        repaired = listing.end(version)
        log.debug("Compared the cache with a list", extra={"kind": resource.kind, "count": repaired})
        return version
