"""List and compare: what a watch cannot promise.

A watch delivers what happens from a version on. What there was before, and what was deleted while no watch was
open, only a list tells. So the caches are filled from lists before anything is decided, each watch begins where
such a list ended, and every few minutes the caches are compared with another one.

A list without a resourceVersion is of the newest version there is. One that is older than what was seen before it was
asked for tells of an API server whose etcd was restored from a backup (or of one that lags behind, which a second list
does not confirm): what it has replaces the cache. docs/decisions/0019-resource-version-rollback.md has the reasons.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast

from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.informer.event_handlers import EventHandlers

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
_REMIND_EVERY: Final = 16
"""Of the failures in a row of one kind each so-manieth is told of again: every three minutes or so."""

_DOUBT_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""How long a doubt waits after the comparison that the one before it led to."""


class _OlderListError(Exception):
    """A list is older than what was seen before it was asked for."""


class _Compared(NamedTuple):
    """What a comparison came to: the version of the list, and whether it replaced the cache."""

    version: str
    replaced: bool


class Relister:
    """Keeps the caches true to what the API server stores.

    Attributes:
        on_replaced: Takes a kind whose cache was replaced while it was watched; its watch is to begin anew.
    """

    def __init__(
        self,
        client: KarmadaClient,
        intake: EventHandlers,
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
        self._newest_list: dict[str, int] = {}
        self._comparing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._doubted = asyncio.Event()
        self.on_replaced: Callable[[str], None] = lambda _: None

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
                self._filled_as_of[resource.kind] = (await self._list(resource)).version

    async def begin(self, kind: str) -> str:
        """Return the version from which a watch of a kind is to begin; up to it the cache knows everything.

        The first watch begins where the filling ended. Every other one was preceded by a gap, so that the cache is
        compared with a list first, until that has worked.
        """
        if (version := self._filled_as_of.pop(kind, None)) is not None:
            return version
        compared = await self._list(self._resources[kind])
        if compared.replaced:
            self.doubt()
        return compared.version

    async def is_ahead(self, kind: str, version: str) -> bool:
        """Tell whether a version is ahead of the newest of a kind; returns when the API server has answered."""
        resource = self._resources[kind]
        newest = await self._until_it_works(
            f"Asking for the version of {resource.plural}", partial(self._client.newest_version, resource)
        )
        return _number(newest) < _number(version)

    def doubt(self) -> None:
        """Compare all kinds soon: something was older than it was known."""
        self._doubted.set()

    async def _list(self, resource: Resource) -> _Compared:
        return await self._until_it_works(f"Listing {resource.plural}", partial(self._compare, resource))

    async def _until_it_works(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        told = ""
        tries = 0
        while True:
            try:
                return await attempt()
            except Exception as error:
                if str(error) != told or tries % _REMIND_EVERY == 0:
                    told = str(error)
                    trace = None if isinstance(error, ApiError) else error
                    log.warning("%s, trying again", what, extra={"error": told}, exc_info=trace)
                await self._sleep(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
                tries += 1

    async def _all_served(self) -> None:
        for resource in self._resources.values():
            if not await self._client.is_served(resource):
                raise ApiError(f"{resource.plural}.{resource.group}/{resource.version} is not served")

    async def run(self) -> None:
        """Compare every kind every period, and when there is doubt, until cancelled; nothing else ends this."""
        doubts = 0
        while True:
            if await self._is_doubted_within(self._period):
                self._doubted.clear()
                if not await self._compare_all():
                    self._doubted.set()
                await self._sleep(_DOUBT_SECONDS[min(doubts, len(_DOUBT_SECONDS) - 1)])
                doubts += 1
            else:
                doubts = 0
                await self._compare_all()

    async def _is_doubted_within(self, seconds: float) -> bool:
        pause = asyncio.ensure_future(self._sleep(seconds))
        doubt = asyncio.create_task(self._doubted.wait())
        try:
            await asyncio.wait({pause, doubt}, return_when=asyncio.FIRST_COMPLETED)
            return doubt.done()
        finally:
            pause.cancel()
            doubt.cancel()

    async def _compare_all(self) -> bool:
        """Compare every kind; tell whether that has worked for all."""
        worked = True
        for resource in self._resources.values():
            kind = resource.kind
            try:
                compared = await self._compare(resource)
                if compared.replaced:
                    self._filled_as_of[kind] = compared.version
                    self.on_replaced(kind)
            except ApiError as error:
                worked = False
                log.warning("Cannot compare the cache with a list", extra={"kind": kind, "error": error})
            except Exception:
                worked = False
                log.exception("Cannot compare the cache with a list", extra={"kind": kind})
        return worked

    async def _compare(self, resource: Resource) -> _Compared:
        async with self._comparing[resource.kind]:
            try:
                return await self._take_in(resource, is_confirmed=False)
            except _OlderListError as doubt:
                log.warning("%s; asking again", doubt, extra={"kind": resource.kind})
                return await self._take_in(resource, is_confirmed=True)

    async def _take_in(self, resource: Resource, *, is_confirmed: bool) -> _Compared:
        kind = resource.kind
        known = max(self._newest_list.get(kind, 0), self._intake.newest_version(kind))
        listing = self._intake.listing(kind)
        version, replaced = "0", False
        pages = cast("AsyncGenerator[tuple[list[dict[str, Any]], str], None]", self._client.list(resource))
        async with aclosing(pages):
            async for page, version in pages:
                as_of = _number(version)
                if as_of < known and not replaced:
                    if not is_confirmed:
                        raise _OlderListError(
                            f"A list of version {as_of} is older than {known}, which was seen before"
                        )
                    replaced = True
                    self._intake.forget_versions(kind)
                listing.take(page, as_of=as_of)
        repaired = listing.end(version)
        self._newest_list[kind] = int(version)
        if replaced or listing.older:
            self._intake.versions_went_back(kind, listing.older)
        log.debug("Compared the cache with a list", extra={"kind": kind, "count": repaired})
        return _Compared(version, replaced)


def _number(version: str) -> int:
    """Return a resourceVersion as a number; ApiError if it is none."""
    if not (version.isascii() and version.isdigit()):
        raise ApiError(f"the API server gave {version!r} for a resourceVersion")
    return int(version)
