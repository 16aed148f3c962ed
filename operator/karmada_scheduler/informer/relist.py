"""Lists that fill the caches, and that repair them later.

A watch delivers the events after some version. Only a list has the objects before it, and shows what was deleted while
no watch was open. So the caches are filled from lists before anything is decided, each watch starts where such a list
ended, and every few minutes the caches are compared with another list.

A list requested without a resourceVersion has the newest version. A list that is older than a version seen before its
request means one of two things: the API server's etcd was restored from a backup, or the API server lags behind. A
second list that is as old confirms the first case, and its objects replace the cache. If etcd may have been restored,
objects are compared although their versions are equal.
docs/decisions/0019-resource-version-rollback.md has the reasons.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.karmada import KarmadaClient, Resource
from karmada_scheduler.informer.event_handlers import EventHandlers
from karmada_scheduler.informer.list_requests import ListRequests
from karmada_scheduler.informer.object_kinds import CLUSTER
from karmada_scheduler.informer.relist_diff import RelistDiff

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
_OUTAGE_SECONDS: Final = 10.0
"""After an outage of this length every kind is listed. Shorter ones are restarts of an API server, which would get a
list of everything at its busiest moment."""

_REMIND_SECONDS: Final = 60.0
"""The same failure is logged again after this time."""

_REQUEST_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between a requested comparison and the next one."""


class _OlderListError(Exception):
    """A list is older than a version that was seen before its request."""


class _Comparison(NamedTuple):
    """The result of a comparison: the version of the list, and whether its objects replaced the cache."""

    version: str
    replaced: bool


class Relister:
    """Compares the caches with lists."""

    def __init__(
        self,
        client: KarmadaClient,
        handlers: EventHandlers,
        resources: Sequence[Resource],
        requests: ListRequests,
        *,
        period: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        after_list: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare the lists.

        Args:
            client: Lists objects.
            handlers: Own the caches.
            resources: The kinds, in the order in which they are listed.
            requests: Comparisons that are requested between two periods.
            period: Seconds between two comparisons.
            sleep: Waits for seconds.
            clock: Seconds on a scale that does not run backwards.
            after_list: Called after each complete list, whose pages are free then.
        """
        self._client = client
        self._handlers = handlers
        self._resources = {resource.kind: resource for resource in resources}
        self._period = period
        self._sleep = sleep
        self._clock = clock
        self._after_list = after_list
        self._list_versions: dict[str, str] = {}
        self._newest_list: dict[str, int] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._requests = requests
        self._compared_by_content: set[str] = set()
        """The kinds of whose objects the same version may have two contents, because etcd may have been restored."""

    async def wait_until_served(self) -> None:
        """Wait until the API server serves every kind; the kind that is missing is logged.

        Karmada's aggregated API server may come up later than the scheduler, and kopf does not discover a
        group that appears without a CustomResourceDefinition.
        """
        await self._retry("Waiting for the API server", self._all_served)

    async def initial_list(self) -> None:
        """List every kind, with retries; afterwards the caches are complete."""
        with self._handlers.requeuer.deferring_placed():
            for resource in self._resources.values():
                self._list_versions[resource.kind] = (await self._list(resource)).version
            # The bindings were not known when the clusters were listed.
            self._handlers.cluster_lists.check_empty()
            for name in sorted(self._handlers.cluster_lists.unknown_targets()):
                read = partial(self._read_unlisted, name)
                if (found := await self._retry(f"Reading cluster {name}", read)) is not None:
                    self._handlers.on_event(CLUSTER, "ADDED", found)
                else:
                    self._handlers.cluster_lists.absent(name, self._newest_list[CLUSTER])

    async def list_and_start_version(self, kind: str) -> str:
        """Return the version at which a watch of a kind is to start; the cache is complete up to it.

        The first watch starts where the initial list ended. There was a gap before any other watch, so the cache is
        compared with a list first, with retries.
        """
        if (version := self._list_versions.pop(kind, None)) is not None:
            return version
        comparison = await self._list(self._resources[kind])
        if comparison.replaced:
            self.relist_soon()
        return comparison.version

    async def must_relist(self, kind: str, version: str) -> bool:
        """Return whether a watch cannot continue at a version, because etcd was or may have been restored.

        Returns once the API server has answered. A version ahead of the newest one proves a restore. After a long
        outage other clients may have written so much that the newest version is ahead again. After a shorter one, which
        may seem short because this process did not run, the next comparison compares contents.
        """
        resource = self._resources[kind]
        asked, requests = self._clock(), 0

        async def request() -> int:
            nonlocal requests
            requests += 1
            return _number(await self._client.newest_version(resource))

        newest = await self._retry(f"Reading the version of {resource.plural}", request)
        may_be_restored = newest < _number(version) or self._clock() - asked >= _OUTAGE_SECONDS
        if may_be_restored or requests > 1:
            self._compared_by_content.add(kind)
        return may_be_restored

    def relist_soon(self) -> None:
        """Compare all kinds soon, and by content, because an object was older than in the cache."""
        self._compared_by_content |= set(self._resources)
        self._requests.soon(self._resources)

    async def _list(self, resource: Resource) -> _Comparison:
        return await self._retry(f"Listing {resource.plural}", partial(self._compare, resource))

    async def _retry(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        logged, logged_at = "", 0.0
        tries = 0
        while True:
            try:
                return await attempt()
            except Exception as error:
                if not tries or str(error) != logged or self._clock() >= logged_at + _REMIND_SECONDS:
                    logged, logged_at = str(error), self._clock()
                    trace = None if isinstance(error, ApiError) else error
                    log.warning("%s, trying again", what, extra={"error": logged}, exc_info=trace)
                await self._sleep(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
                tries += 1

    async def _all_served(self) -> None:
        for resource in self._resources.values():
            if not await self._client.is_served(resource):
                raise ApiError(f"{resource.plural}.{resource.group}/{resource.version} is not served")

    async def run(self, on_replaced: Callable[[str], None]) -> None:
        """Compare every kind each period, and those that are requested, until cancelled; errors are logged.

        Args:
            on_replaced: Called with a kind whose cache was replaced while it was watched; restarts its watch.
        """
        requests = 0
        while True:
            if kinds := await self._requests.take(self._period, self._sleep):
                if failed := await self._compare_all(kinds, on_replaced):
                    self._requests.soon(failed)
                await self._sleep(_REQUEST_PAUSES[min(requests, len(_REQUEST_PAUSES) - 1)])
                requests += 1
            else:
                requests = 0
                await self._compare_all(self._resources, on_replaced)

    async def _compare_all(self, kinds: Container[str], on_replaced: Callable[[str], None]) -> list[str]:
        """Compare some kinds; return those that could not be compared."""
        failed = []
        for kind, resource in self._resources.items():
            if kind not in kinds:
                continue
            try:
                comparison = await self._compare(resource)
                if comparison.replaced:
                    self._list_versions[kind] = comparison.version
                    on_replaced(kind)
            except ApiError as error:
                failed.append(kind)
                log.warning("Cannot compare the cache with a list", extra={"kind": kind, "error": error})
            except Exception:
                failed.append(kind)
                log.exception("Cannot compare the cache with a list", extra={"kind": kind})
        return failed

    async def _compare(self, resource: Resource) -> _Comparison:
        async with self._locks[resource.kind]:
            try:
                return await self._apply_list(resource, is_confirmed=False)
            except _OlderListError as older:
                log.warning("%s; listing again", older, extra={"kind": resource.kind})
                return await self._apply_list(resource, is_confirmed=True)
            finally:
                self._after_list()

    async def _apply_list(self, resource: Resource, *, is_confirmed: bool) -> _Comparison:
        kind = resource.kind
        known = max(self._newest_list.get(kind, 0), self._handlers.newest_version(kind))
        diff = self._handlers.relist_diff(kind, by_content=kind in self._compared_by_content)
        version, replaced = "0", False
        async with aclosing(self._client.list(resource)) as pages:
            async for page, version in pages:
                as_of = _number(version)
                if as_of < known and not replaced:
                    if not is_confirmed:
                        raise _OlderListError(
                            f"A list of version {as_of} is older than {known}, which was seen before"
                        )
                    replaced = True
                    self._handlers.forget_versions(kind)
                diff.add_page(page, as_of=as_of)
        if kind == CLUSTER:
            await self._read_all_unlisted(diff, int(version))
        repaired = diff.finish(version)
        self._newest_list[kind] = int(version)
        self._compared_by_content.discard(kind)
        if replaced or diff.older:
            self._handlers.on_version_rollback(kind, diff.older)
        log.debug("Compared the cache with a list", extra={"kind": kind, "count": repaired})
        return _Comparison(version, replaced)

    async def _read_all_unlisted(self, diff: RelistDiff, version: int) -> None:
        """Read each cluster that a list lacks, and keep it unless the API server reports that there is none.

        A list may be incomplete, and bindings would leave the clusters that it lacks. More of these may become known
        while others are read.
        """
        read: set[str] = set()
        unlisted = self._handlers.cluster_lists.unlisted
        while names := [name for name in unlisted(diff, version) if name not in read]:
            read.update(names)
            for name in names:
                await self._read_or_keep(diff, name, version)

    async def _read_or_keep(self, diff: RelistDiff, name: str, version: int) -> None:
        """Add a cluster that a list of this version lacks to the list, unless the API server has none of this name."""
        try:
            found = await self._read_unlisted(name)
        except ApiError as error:
            text = "A list lacks a Cluster that cannot be read, it counts as present"
            log.warning(text, extra={"object": name, "error": error})
            diff.keep(name)
            self._requests.soon([CLUSTER])
        else:
            if found is not None:
                diff.add_page([found], as_of=version)
            else:
                self._handlers.cluster_lists.absent(name, version)

    async def _read_unlisted(self, name: str) -> dict[str, Any] | None:
        """Read a cluster that a list lacks; None if the API server reports that there is none.

        Raises:
            ApiError: It cannot be read, so it may exist.
        """
        found = await self._client.get_cluster(name)
        if found is not None:
            log.warning("A list lacks a Cluster that exists", extra={"object": name})
        return found


def _number(version: str) -> int:
    """Return a resourceVersion as a number; ApiError if it is not one."""
    if not (version.isascii() and version.isdigit()):
        raise ApiError(f"the API server gave {version!r} for a resourceVersion")
    return int(version)
