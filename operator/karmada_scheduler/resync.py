"""List and compare: what a watch cannot promise.

kopf delivers what happens while its watch is open. It does not tell when the first list is complete, and
it does not notice an object that was deleted while the watch was down. So the caches are filled from a
list of our own before anything is decided, and compared with another one every few minutes, and soon
after kopf listed anew, which is when a watch has had a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.intake import Intake

log = logging.getLogger(__name__)

_SETTLE_SECONDS: Final = 2.0
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
        clock: Callable[[], float],
    ) -> None:
        """``period`` is the time in seconds between two comparisons when nothing else asks for one."""
        self._client = client
        self._intake = intake
        self._resources = {resource.kind: resource for resource in resources}
        self._period = period
        self._clock = clock
        self._requested: dict[str, float] = {}
        self._wake = asyncio.Event()

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
                await self._until_it_works(f"Listing {resource.plural}", partial(self._compare, resource))

    async def _until_it_works(self, what: str, attempt: Callable[[], Any]) -> None:
        told = ""
        tries = 0
        while True:
            try:
                await attempt()
            except ApiError as error:
                if str(error) != told:
                    told = str(error)
                    log.warning("%s, trying again", what, extra={"error": told})
                await asyncio.sleep(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
                tries += 1
            else:
                return

    async def _all_served(self) -> None:
        for resource in self._resources.values():
            if not await self._client.is_served(resource):
                raise ApiError(f"{resource.plural}.{resource.group}/{resource.version} is not served")

    def request(self, kind: str) -> None:
        """Ask for a comparison of one kind a moment after the last of such requests.

        kopf's list of many objects takes its time, and one comparison after it is enough.
        """
        self._requested[kind] = self._clock() + _SETTLE_SECONDS
        self._wake.set()

    async def run(self) -> None:
        """Compare when asked and every period, until cancelled."""
        periodic = {kind: self._clock() + self._period for kind in self._resources}
        while True:
            self._wake.clear()
            due = {kind: min(when, self._requested.get(kind, when)) for kind, when in periodic.items()}
            kind = min(due, key=lambda kind: due[kind])
            try:
                async with asyncio.timeout(max(0.0, due[kind] - self._clock())):
                    await self._wake.wait()
                continue
            except TimeoutError:
                self._requested.pop(kind, None)
                periodic[kind] = self._clock() + self._period
            try:
                await self._compare(self._resources[kind])
            except ApiError as error:
                log.warning("Cannot compare the cache with a list", extra={"kind": kind, "error": error})

    async def _compare(self, resource: Resource) -> None:
        listing = self._intake.listing(resource.kind)
        version = "0"
        async for page, page_version in self._client.list(resource):
            listing.take(page)
            version = page_version
        repaired = listing.end(version)
        log.debug("Compared the cache with a list", extra={"kind": resource.kind, "count": repaired})
