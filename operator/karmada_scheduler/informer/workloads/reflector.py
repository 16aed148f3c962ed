"""One kind's metadata, listed and watched until cancelled; single objects are read beside it.

Lists and watches fail for as long as they like: what is known stays, and a ``problem`` says what is certain not to work.
After each failure, and after a watch that brought nothing at all, the kind is listed anew, and the list is the truth: there is
one writer, so versions that go back (a restore of etcd) need no further care.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.client import json_body
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.client.metadata import WATCH_SECONDS, KindName, NotServedError, ServedResource
from karmada_scheduler.informer.workloads.metadata_store import MetadataStore, Name

log = logging.getLogger(__name__)

PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two attempts that fail."""

_GRACE_SECONDS: Final = 30.0
"""How much longer than asked for a watch may last."""
_REMEMBERED_SECONDS: Final = 60.0
"""After this time without one a failure counts as the first."""
_WORKED_SECONDS: Final = 5.0
"""A watch that lasted as long as this has worked, even if it brought nothing."""


class Client(Protocol):
    """What reads metadata; ``client.metadata.MetadataClient`` is one."""

    async def discover(self, kind: KindName) -> ServedResource: ...

    def list(self, resource: ServedResource) -> AsyncIterator[tuple[list[dict[str, Any]], str]]: ...

    async def get(self, resource: ServedResource, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def watch(
        self, resource: ServedResource, version: str, accepted: Callable[[], None]
    ) -> AsyncGenerator[dict[str, Any], None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What all kinds share.

    Attributes:
        client: Reads metadata.
        clock: In seconds, never running backwards.
        sleep: Waits for so many seconds.
        reads: Bounds how many single objects are read at a time.
    """

    client: Client
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    reads: asyncio.Semaphore


class PendingGet:
    """A single object that is being read.

    Attributes:
        began: When, in seconds.
        problem: Why it will not be known soon; "" if it may be.
        last_error: What went wrong last.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self.problem = ""
        self.last_error = ""
        self.task: asyncio.Task[None] | None = None


class Reflector:
    """Keeps the store of one kind true to the API server.

    Attributes:
        store: What is known.
        began: When it was started, in seconds.
        is_synced: Whether all that was there has been listed once.
        problem: What is certain not to work, for people; "" if nothing is.
        last_error: What went wrong last.
    """

    def __init__(
        self,
        kind: KindName,
        store: MetadataStore,
        dependencies: Dependencies,
        *,
        on_state_change: Callable[[], None],
        on_get: Callable[[Name], None],
    ) -> None:
        """Prepare; ``start`` begins.

        Args:
            kind: What is watched.
            store: What to keep true.
            dependencies: What all kinds share.
            on_state_change: Called when the kind is synced, or its ``problem`` is another one.
            on_get: Told the name when a single object has been read, or is known not to be readable.
        """
        self.kind: Final = kind
        self.store: Final = store
        self.began = dependencies.clock()
        self.is_synced = False
        self.problem = ""
        self.last_error = ""
        self._deps = dependencies
        self._on_news = on_state_change
        self._on_read = on_get
        self._resource: ServedResource | None = None
        self._task: asyncio.Task[None] | None = None
        self._gets: dict[Name, PendingGet] = {}
        self._logged = ""

    def start(self) -> None:
        """Begin to list and watch; in an event loop."""
        if self._task is None:
            self.began = self._deps.clock()
            self._task = asyncio.create_task(self._run(), name=f"metadata of {self.kind}")

    def stop(self) -> None:
        """End everything."""
        for task in (self._task, *(each.task for each in self._gets.values())):
            if task is not None:
                task.cancel()

    def get_object(self, name: Name) -> PendingGet:
        """Read a single object that the watch has not brought, and go on until the API server has answered."""
        pending = self._gets.get(name)
        if pending is None:
            pending = self._gets[name] = PendingGet(self._deps.clock())
            pending.task = asyncio.create_task(self._read(name, pending), name=f"metadata of {name}")
        return pending

    def drop(self, name: Name) -> None:
        """Forget an object."""
        self.store.drop(name)
        pending = self._gets.pop(name, None)
        if pending is not None and pending.task is not None:
            pending.task.cancel()

    async def _run(self) -> None:
        failures = 0
        while True:
            begun = self._deps.clock()
            last_error: str | None = None
            try:
                await self._list_and_watch()
            except NotServedError as error:
                self._resource, last_error = None, str(error)
                self._has_problem(last_error)
            except ApiError as error:
                last_error = str(error)
                if error.is_not_found:
                    self._resource = None
                if error.code == 403:
                    self._has_problem(self._forbidden("list and watch", last_error))
            except Exception as error:
                last_error = f"{type(error).__name__}: {error}"
                log.exception("Cannot watch the metadata of workloads", extra={"kind": str(self.kind)})
            worked = self._deps.clock() - begun > _REMEMBERED_SECONDS
            failures = 0 if last_error is None else 1 if worked else failures + 1
            if last_error is not None:
                self.last_error = last_error
                if failures != 1 or not self.is_synced:  # one is what every restart of an API server brings
                    self._log_once(self.problem or last_error)
            await self._deps.sleep(PAUSES[min(max(failures, 1), len(PAUSES)) - 1])

    async def _list_and_watch(self) -> None:
        """List, then watch until the list has to be taken anew."""
        resource = self._resource
        if resource is None:
            resource = self._resource = await self._deps.client.discover(self.kind)
        version = await self._list(resource)
        if not self.is_synced:
            self.is_synced = True
            self._on_news()
        brought = True
        while brought:
            brought, begun = False, self._deps.clock()
            try:
                async with asyncio.timeout(WATCH_SECONDS + _GRACE_SECONDS):
                    stream = self._deps.client.watch(resource, version, self._works)
                    async with aclosing(stream) as events:
                        async for event in events:
                            version = event["object"]["metadata"].get("resourceVersion") or version
                            brought = True
                            self._saw(event["type"], event["object"])
            except TimeoutError:
                return
            if not brought and self._deps.clock() - begun < _WORKED_SECONDS:
                raise ApiError(f"the watch of {resource} ended without an event")
            await self._deps.sleep(PAUSES[0])

    async def _list(self, resource: ServedResource) -> str:
        listed = ""
        self.store.begin_list()
        async for items, version in self._deps.client.list(resource):
            self.store.take(found for item in items if (found := self._parsed(item)) is not None)
            self.store.leave(_name_of(item) for item in items)
            listed = version
        self.store.end_list()
        return listed

    def _saw(self, event: str, manifest: Mapping[str, Any]) -> None:
        if event == "BOOKMARK":
            return
        found = self._parsed(manifest)
        if found is None:
            return
        if event == "DELETED":
            self.store.deleted((found.namespace, found.name), found.uid)
        else:
            self.store.put(found)

    def _parsed(self, manifest: Mapping[str, Any]) -> Workload | None:
        """Read metadata; None for what cannot be read, and what is known of it stays."""
        problem = json_body.unreadable(manifest)
        if problem is None:
            try:
                return Workload.from_manifest(
                    manifest, api_version=self.kind.api_version, kind=self.kind.kind
                )
            except ManifestError as error:
                problem = str(error)
        namespace, name = _name_of(manifest)
        extra = {"kind": str(self.kind), "object": f"{namespace}/{name}", "error": problem}
        log.warning("Cannot read the metadata of a workload, it stays as it is known", extra=extra)
        return None

    async def _read(self, name: Name, pending: PendingGet) -> None:
        failures = 0
        while True:
            try:
                async with self._deps.reads:
                    workload = await self._get(name)
            except Exception as error:
                if not isinstance(error, ApiError):
                    log.exception("Cannot read the metadata of a workload", extra={"kind": str(self.kind)})
                pending.last_error = str(error)
                if isinstance(error, ApiError) and error.code == 403 and not pending.problem:
                    pending.problem = self._forbidden("get", str(error))
                    self._log_once(pending.problem)
                    self._on_read(name)
            else:
                del self._gets[name]
                self.store.confirm(name, workload)
                self._on_read(name)
                return
            await self._deps.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1

    async def _get(self, name: Name) -> Workload | None:
        """Return an object, None if it is not there; ApiError if that cannot be found out."""
        if self._resource is None:
            raise ApiError(self.problem or self.last_error or f"{self.kind} is not discovered")
        found = await self._deps.client.get(self._resource, *name)
        if found is None:
            return None
        workload = self._parsed(found)
        if workload is None:
            raise ApiError("its metadata cannot be read")
        return workload

    def _works(self) -> None:
        """Take note that the API server has accepted a watch."""
        if self._logged:
            log.info("The metadata of workloads is watched", extra={"kind": str(self.kind)})
            self._logged = ""
        if self.problem:
            self.problem = ""
            self._on_news()

    def _has_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._on_news()

    def _forbidden(self, verbs: str, last_error: str) -> str:
        what = str(self._resource or self.kind)
        return f"the scheduler may not {verbs} {what}, which workloadMetadata of the chart's side=karmada grants ({last_error})"

    def _log_once(self, text: str) -> None:
        """Log a problem once."""
        if text != self._logged:
            self._logged = text
            extra = {"kind": str(self.kind), "error": text}
            log.error("Cannot watch the metadata of workloads, plugins are told so", extra=extra)


def _name_of(manifest: Mapping[str, Any]) -> Name:
    """Return the name of an object, also of one that cannot be read."""
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
