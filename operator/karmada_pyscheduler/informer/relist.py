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
from typing import Final, NamedTuple

from karmada_pyscheduler.client.karmada import KarmadaClient, Resource
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.list_requests import ListRequests
from karmada_pyscheduler.informer.lister import Lister, number
from karmada_pyscheduler.informer.object_kinds import CLUSTER
from karmada_scheduler.api_error import ApiError

log = logging.getLogger(__name__)

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


class Relister(Lister):
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
        super().__init__(resources, sleep=sleep, clock=clock)
        self._client = client
        self._handlers = handlers
        self._period = period
        self._after_list = after_list
        self._logged: dict[str, tuple[str, float]] = {}
        self._newest_list: dict[str, int] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._requests = requests

    async def wait_until_served(self) -> None:
        """Wait until the API server serves every kind; the kind that is missing is logged.

        Karmada's aggregated API server may come up later than the scheduler, and kopf does not discover a
        group that appears without a CustomResourceDefinition.
        """
        for resource in self._resources.values():
            served = partial(self._client.require_served, resource)
            await self._retry("Waiting for the API server", resource, served)

    async def initial_list(self) -> None:
        """List every kind, with retries; afterwards the caches are complete.

        Clusters that bindings have and the list lacks are unknown until they were read, which ``read_clusters`` does.
        """
        with self._handlers.requeuer.deferring_placed():
            for resource in self._resources.values():
                await self.list_first(resource)
            # The bindings were not known when the clusters were listed.
            absent = await self._handlers.cluster_lists.read_targets(self._sleep)
            self._handlers.clusters_absent(absent, self._handlers.cluster_reads.as_of)

    def relist_soon(self) -> None:
        """Compare all kinds soon, and by content, because an object was older than in the cache."""
        self._compared_by_content |= set(self._resources)
        self._requests.soon(self._resources)

    async def _list(self, resource: Resource) -> str:
        comparison = await self._compare(resource)
        if comparison.replaced:
            self.relist_soon()
        return comparison.version

    def _note(self, what: str, resource: Resource, error: Exception | None, *, tries: int) -> None:  # noqa: ARG002
        text, now = str(error), self._clock()
        logged, at = self._logged.get(what, ("", 0.0))
        if error is not None and (not tries or text != logged or now >= at + _REMIND_SECONDS):
            self._logged[what] = text, now
            trace = None if isinstance(error, ApiError) else error
            log.warning("%s, trying again", what, extra={"error": text}, exc_info=trace)

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
                    self._start_versions[kind] = comparison.version
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
                as_of = number(version)
                if as_of < known and not replaced:
                    if not is_confirmed:
                        raise _OlderListError(
                            f"A list of version {as_of} is older than {known}, which was seen before"
                        )
                    replaced = True
                    self._handlers.forget_versions(kind)
                diff.add_page(page, as_of=as_of)
        if kind == CLUSTER:
            await self._handlers.cluster_lists.keep_unlisted(diff, int(version), self._sleep)
        repaired = diff.finish(version)
        self._newest_list[kind] = int(version)
        self._compared_by_content.discard(kind)
        if replaced or diff.older:
            self._handlers.on_version_rollback(kind, diff.older)
        log.debug("Compared the cache with a list", extra={"kind": kind, "count": repaired})
        return _Comparison(version, replaced)

    async def read_clusters(self) -> None:
        """Read the clusters that lists lack, until cancelled."""
        await self._handlers.cluster_reads.run(self._client.get_cluster, self._sleep)
