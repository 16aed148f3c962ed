"""Lists and watches the metadata of one kind until cancelled, and reads single objects.

While lists and watches fail, stored metadata stays, and ``problem`` has a failure that retries cannot fix. After each
failure, and after a watch without any event, the kind is listed again. The list is authoritative: there is one writer,
so lower versions (a restore of etcd) need no further handling.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from karmada_pyscheduler.client.metadata import (
    WATCH_SECONDS,
    KindName,
    MetadataClient,
    NotServedError,
    ServedResource,
)
from karmada_pyscheduler.informer.object_kinds import namespace_and_name
from karmada_pyscheduler.informer.workloads.metadata_store import MetadataStore, Name
from karmada_scheduler import json_body
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts after failures."""
_GRACE_SECONDS: Final = 30.0
"""How much longer than requested a watch may last."""
_FAILURE_RESET_SECONDS: Final = 60.0
"""After this time without a failure, the next one counts as the first."""
_WORKED_SECONDS: Final = 5.0
"""A watch that lasted this long has worked, even without an event."""


class Dependencies(Struct, frozen=True, kw_only=True):
    """The dependencies that all kinds share.

    Attributes:
        client: Reads metadata.
        clock: In seconds, never running backwards.
        sleep: Waits for a number of seconds.
        reads: Limits the number of single objects that are read at the same time.
    """

    client: MetadataClient
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    reads: asyncio.Semaphore


class PendingGet(Struct):
    """A single object that is being read.

    Attributes:
        started: Time of the first attempt, in seconds.
        problem: A failure that retries cannot fix; "" without one.
        last_error: The error of the last attempt.
    """

    started: float
    problem: str = ""
    last_error: str = ""
    task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Stop to read it."""
        if self.task is not None:
            self.task.cancel()


class MetadataReflector(Struct):
    """Lists and watches one kind into a store, and reads single objects that the watch has not delivered.

    Attributes:
        started: Time of the start, in seconds.
        is_synced: Whether a complete list was stored.
        problem: A failure that retries cannot fix, shown to users; "" without one.
        last_error: The error of the last attempt.
        kind: The watched kind.
        store: Gets the metadata.
        dependencies: Shared by all kinds.
        on_state_change: Called when the kind is synced, or its ``problem`` changes.
        on_get: Called with the name when a single object was read, or turns out not to be readable.
    """

    kind: KindName
    store: MetadataStore
    dependencies: Dependencies
    on_state_change: Callable[[], None]
    on_get: Callable[[Name], None]
    started: float = 0.0
    is_synced: bool = False
    problem: str = ""
    last_error: str = ""
    _resource: ServedResource | None = None
    _task: asyncio.Task[None] | None = None
    _pending: dict[Name, PendingGet] = field(default_factory=dict)
    _logged: str = ""

    def __post_init__(self) -> None:
        self.started = self.dependencies.clock()

    def start(self) -> None:
        """Start to list and watch; in an event loop."""
        if self._task is None:
            self.started = self.dependencies.clock()
            self._task = asyncio.create_task(self._run(), name=f"metadata of {self.kind}")

    def stop(self) -> None:
        """Stop the watch and all reads."""
        if self._task is not None:
            self._task.cancel()
        for pending in self._pending.values():
            pending.cancel()

    def get_object(self, name: Name) -> PendingGet:
        """Read a single object that the watch has not delivered, with retries until the API server answers."""
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = PendingGet(self.dependencies.clock())
            pending.task = asyncio.create_task(self._read(name, pending), name=f"metadata of {name}")
        return pending

    def drop(self, name: Name) -> None:
        """Delete an object and stop to read it."""
        self.store.drop(name)
        if (pending := self._pending.pop(name, None)) is not None:
            pending.cancel()

    async def _run(self) -> None:
        failures = 0
        while True:
            started = self.dependencies.clock()
            last_error: str | None = None
            try:
                await self._list_and_watch()
            except NotServedError as error:
                self._resource, last_error = None, str(error)
                self._set_problem(last_error)
            except ApiError as error:
                last_error = str(error)
                if error.is_not_found:
                    self._resource = None
                if error.code == 403:
                    self._set_problem(self._forbidden("list and watch", last_error))
            except Exception as error:
                last_error = f"{type(error).__name__}: {error}"
                log.exception("Cannot watch the metadata of workloads", extra={"kind": str(self.kind)})
            worked = self.dependencies.clock() - started > _FAILURE_RESET_SECONDS
            failures = 0 if last_error is None else 1 if worked else failures + 1
            if last_error is not None:
                self.last_error = last_error
                if failures != 1 or not self.is_synced:  # every restart of an API server causes one
                    self._log_once(self.problem or last_error)
            await self.dependencies.sleep(_PAUSES[min(max(failures, 1), len(_PAUSES)) - 1])

    async def _list_and_watch(self) -> None:
        """List, then watch until another list is needed."""
        resource = self._resource
        if resource is None:
            resource = self._resource = await self.dependencies.client.discover(self.kind)
        version = await self._list(resource)
        if not self.is_synced:
            self.is_synced = True
            self.on_state_change()
        has_events = True
        while has_events:
            has_events, started = False, self.dependencies.clock()
            try:
                async with asyncio.timeout(WATCH_SECONDS + _GRACE_SECONDS):
                    stream = self.dependencies.client.watch(resource, version, self._accepted)
                    async with aclosing(stream) as events:
                        async for event in events:
                            version = event["object"]["metadata"].get("resourceVersion") or version
                            has_events = True
                            self._on_event(event["type"], event["object"])
            except TimeoutError:
                return
            if not has_events and self.dependencies.clock() - started < _WORKED_SECONDS:
                raise ApiError(f"the watch of {resource} ended without an event")
            await self.dependencies.sleep(_PAUSES[0])

    async def _list(self, resource: ServedResource) -> str:
        listed = ""
        self.store.begin_list()
        async for items, version in self.dependencies.client.list(resource):
            self.store.take(found for item in items if (found := self._parsed(item)) is not None)
            self.store.leave(namespace_and_name(item) for item in items)
            listed = version
        self.store.end_list()
        return listed

    def _on_event(self, event: str, manifest: Mapping[str, Any]) -> None:
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
        """Parse metadata; None for an object that cannot be read, whose stored metadata stays."""
        problem = json_body.unreadable(manifest)
        if problem is None:
            try:
                return Workload.from_manifest(
                    manifest, api_version=self.kind.api_version, kind=self.kind.kind
                )
            except ManifestError as error:
                problem = str(error)
        namespace, name = namespace_and_name(manifest)
        extra = {"kind": str(self.kind), "object": f"{namespace}/{name}", "error": problem}
        log.warning("Cannot read the metadata of a workload, its stored metadata stays", extra=extra)
        return None

    async def _read(self, name: Name, pending: PendingGet) -> None:
        failures = 0
        while True:
            try:
                async with self.dependencies.reads:
                    workload = await self._get(name)
            except Exception as error:
                if not isinstance(error, ApiError):
                    log.exception("Cannot read the metadata of a workload", extra={"kind": str(self.kind)})
                pending.last_error = str(error)
                if isinstance(error, ApiError) and error.code == 403 and not pending.problem:
                    pending.problem = self._forbidden("get", str(error))
                    self._log_once(pending.problem)
                    self.on_get(name)
            else:
                del self._pending[name]
                self.store.confirm(name, workload)
                self.on_get(name)
                return
            await self.dependencies.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    async def _get(self, name: Name) -> Workload | None:
        """Return an object, None if it does not exist; ApiError without an answer."""
        if self._resource is None:
            raise ApiError(self.problem or self.last_error or f"{self.kind} is not discovered")
        found = await self.dependencies.client.get(self._resource, *name)
        if found is None:
            return None
        workload = self._parsed(found)
        if workload is None:
            raise ApiError("its metadata cannot be read")
        return workload

    def _accepted(self) -> None:
        """Note that the API server has accepted a watch."""
        if self._logged:
            log.info("The metadata of workloads is watched", extra={"kind": str(self.kind)})
            self._logged = ""
        if self.problem:
            self.problem = ""
            self.on_state_change()

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.on_state_change()

    def _forbidden(self, verbs: str, last_error: str) -> str:
        what = str(self._resource or self.kind)
        return f"the scheduler may not {verbs} {what}, which workloadMetadata of the chart's side=karmada grants ({last_error})"

    def _log_once(self, text: str) -> None:
        """Log a problem, unless it was the last one that was logged."""
        if text != self._logged:
            self._logged = text
            extra = {"kind": str(self.kind), "error": text}
            log.error("Cannot watch the metadata of workloads, plugins get this as the reason", extra=extra)
