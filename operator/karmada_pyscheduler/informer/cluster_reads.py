"""Reads clusters by name that a binding or the cache has, and lists lack.

Names come from bindings, which other people write: there may be thousands that no cluster has, and the API server may
refuse to read one. So nothing waits for the answer about one name. Reads are in parallel and limited in rate, and a
cluster without an answer stays unknown. A name that no Cluster can have is not read.
docs/decisions/0021-unknown-clusters.md has the reasons.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from itertools import count
from typing import Final

from karmada_pyscheduler.informer.list_requests import first_of
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.matching import is_subdomain
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.rate_limit import TokenBucket
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

READS_PER_SECOND: Final = 5.0
BURST: Final = 100
"""Reads that may be sent at once after a pause: those of a start or of a list that lacks a few clusters."""

SOON_SECONDS: Final = 2.0
"""How long a start or a list waits for answers."""

_PARALLEL: Final = 8
_RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
_REPORT_SECONDS: Final = 5.0
"""Time between two reports of absent clusters while others are read."""

_REMIND_SECONDS: Final = 60.0
"""The same error is logged again after this time."""

Sleep = Callable[[float], Awaitable[None]]


class _Read(Struct):
    """A cluster to read; ``failures`` are the failed attempts in a row."""

    name: str
    failures: int = 0


class ClusterReads(Struct, kw_only=True):
    """The clusters to read, and the loop that reads them; for use from one event loop.

    Attributes:
        as_of: The resourceVersion of the last list of clusters, 0 if none counts.
        on_found: Called with a cluster that exists, and ``as_of``.
        on_absent: Called with the names of clusters that do not exist, unless ``soon`` returns them, and ``as_of``.
        clock: In seconds, never running backwards.
    """

    on_found: Callable[[Manifest, int], object]
    on_absent: Callable[[Collection[str], int], object]
    clock: Callable[[], float]
    as_of: int = 0
    _reads: dict[str, _Read] = field(default_factory=dict)
    _due: list[tuple[float, int, _Read]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _bucket: TokenBucket = field(default_factory=lambda: TokenBucket(READS_PER_SECOND, BURST, 0.0))
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _awaited: set[str] = field(default_factory=set)
    _absent: set[str] = field(default_factory=set)
    _unreported: set[str] = field(default_factory=set)
    _reported_at: float = 0.0
    _logged: str = ""
    _logged_at: float = 0.0

    def request(self, names: Iterable[str]) -> None:
        """Read clusters whose names a Cluster can have."""
        for name in names:
            if name not in self._reads and is_subdomain(name):
                self._reads[name] = _Read(name)
                self._enqueue(self._reads[name], 0.0)

    def forget(self, name: str) -> None:
        """Drop a cluster that a watch or a list has delivered; an answer on its way is older."""
        self._reads.pop(name, None)
        self._absent.discard(name)
        self._unreported.discard(name)
        self._awaited.discard(name)
        self._answered.set()

    async def soon(self, names: Collection[str], sleep: Sleep) -> set[str]:
        """Read clusters, and wait until each was read once, for ``SOON_SECONDS`` at most.

        The reads without an answer go on afterwards.

        Returns:
            The names of the clusters that do not exist.
        """
        self.request(names)
        self._awaited, self._absent = self._reads.keys() & names, set()
        deadline = asyncio.ensure_future(sleep(SOON_SECONDS))
        try:
            while self._awaited and not deadline.done():
                self._answered.clear()
                await first_of(asyncio.shield(deadline), self._answered.wait())
        finally:
            deadline.cancel()
            self._awaited = set()
        return {*self._absent, *(name for name in names if not is_subdomain(name))}

    async def run(self, read: Callable[[str], Awaitable[Manifest | None]], sleep: Sleep) -> None:
        """Read until cancelled.

        Args:
            read: Returns a Cluster by its name, None if it does not exist. ApiError without an answer.
            sleep: Waits for seconds.
        """
        slots = asyncio.Semaphore(_PARALLEL)
        async with asyncio.TaskGroup() as tasks:
            while True:
                request = await self._next(sleep)
                await slots.acquire()
                task = tasks.create_task(self._read(request, read), name=f"read cluster {request.name}")
                task.add_done_callback(lambda _: slots.release())

    def _enqueue(self, request: _Read, pause: float) -> None:
        heapq.heappush(self._due, (self.clock() + pause, next(self._numbers), request))
        self._requested.set()

    async def _next(self, sleep: Sleep) -> _Read:
        """Return the read that is due first, when it is due and the rate allows one."""
        while True:
            while self._due and not self._is_wanted(self._due[0][2]):
                heapq.heappop(self._due)
            self._requested.clear()
            if not self._due:
                await self._requested.wait()
                continue
            now = self.clock()
            if (pause := self._due[0][0] - now) > 0:
                await first_of(sleep(pause), self._requested.wait())
            elif self._bucket.take(now):
                return heapq.heappop(self._due)[2]
            else:
                await sleep(1 / READS_PER_SECOND)

    def _is_wanted(self, request: _Read) -> bool:
        """Return whether the cluster was not forgotten; it may have been requested again since."""
        return self._reads.get(request.name) is request

    async def _read(self, request: _Read, read: Callable[[str], Awaitable[Manifest | None]]) -> None:
        name = request.name
        try:
            found = await read(name)
        except Exception as error:  # noqa: BLE001 (logged; the cluster stays unknown)
            if self._is_wanted(request):
                self._failed(request, error)
        else:
            if self._is_wanted(request):
                del self._reads[name]
                self._answer(name, found)
        self._awaited.discard(name)
        self._answered.set()
        self._report_absent()

    def _answer(self, name: str, found: Manifest | None) -> None:
        if found is not None:
            log.warning("Lists lack a Cluster that exists", extra={"object": name})
            self.on_found(found, self.as_of)
        elif name in self._awaited:
            self._absent.add(name)
        else:
            self._unreported.add(name)

    def _report_absent(self) -> None:
        """Report absent clusters, many at once: a binding on thousands of them is not decided after each."""
        now = self.clock()
        if self._unreported and (not self._reads or now >= self._reported_at + _REPORT_SECONDS):
            absent, self._unreported, self._reported_at = self._unreported, set(), now
            self.on_absent(absent, self.as_of)

    def _failed(self, request: _Read, error: Exception) -> None:
        self._enqueue(request, _RETRY_SECONDS[min(request.failures, len(_RETRY_SECONDS) - 1)])
        request.failures += 1
        text, now = str(error).replace(request.name, "NAME"), self.clock()
        if text != self._logged or now >= self._logged_at + _REMIND_SECONDS:
            self._logged, self._logged_at = text, now
            log.warning(
                "Lists lack Clusters that cannot be read, these count as present",
                extra={"object": request.name, "count": len(self._reads), "error": error},
                exc_info=None if isinstance(error, ApiError) else error,
            )
