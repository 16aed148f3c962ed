"""Reads single objects that the watch of their kind has not delivered, with retries until the API server answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from karmada_scheduler.api.workload import Workload
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.metadata import KindName
from karmada_scheduler.informer.workloads.dependencies import PAUSES, Dependencies
from karmada_scheduler.informer.workloads.metadata_store import MetadataStore, Name

log = logging.getLogger(__name__)


class PendingGet:
    """A single object that is being read.

    Attributes:
        started: Time of the first attempt, in seconds.
        problem: A failure that retries cannot fix; "" without one.
        last_error: The error of the last attempt.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self.problem = ""
        self.last_error = ""
        self.task: asyncio.Task[None] | None = None


class ObjectGets:
    """The single objects of one kind that are being read into a store."""

    def __init__(
        self,
        kind: KindName,
        dependencies: Dependencies,
        *,
        get: Callable[[Name], Awaitable[Workload | None]],
        store: MetadataStore,
        on_get: Callable[[Name], None],
        on_forbidden: Callable[[str], str],
    ) -> None:
        """Read nothing yet.

        Args:
            kind: The kind of the objects.
            dependencies: Shared by all kinds.
            get: Reads an object; None if it does not exist, ApiError without an answer.
            store: Gets the metadata.
            on_get: Called with the name when an object was read, or turns out not to be readable.
            on_forbidden: Gets the error of a request that is not allowed, and returns the text for users.
        """
        self._kind = kind
        self._deps = dependencies
        self._get = get
        self._store = store
        self._on_get = on_get
        self._on_forbidden = on_forbidden
        self._pending: dict[Name, PendingGet] = {}

    def start(self, name: Name) -> PendingGet:
        """Read an object, unless that is under way."""
        pending = self._pending.get(name)
        if pending is None:
            pending = self._pending[name] = PendingGet(self._deps.clock())
            pending.task = asyncio.create_task(self._read(name, pending), name=f"metadata of {name}")
        return pending

    def cancel(self, name: Name) -> None:
        """Stop to read an object."""
        pending = self._pending.pop(name, None)
        if pending is not None and pending.task is not None:
            pending.task.cancel()

    def cancel_all(self) -> None:
        """Stop to read all objects."""
        for pending in self._pending.values():
            if pending.task is not None:
                pending.task.cancel()

    async def _read(self, name: Name, pending: PendingGet) -> None:
        failures = 0
        while True:
            try:
                async with self._deps.reads:
                    workload = await self._get(name)
            except Exception as error:
                if not isinstance(error, ApiError):
                    log.exception("Cannot read the metadata of a workload", extra={"kind": str(self._kind)})
                pending.last_error = str(error)
                if isinstance(error, ApiError) and error.code == 403 and not pending.problem:
                    pending.problem = self._on_forbidden(str(error))
                    self._on_get(name)
            else:
                del self._pending[name]
                self._store.confirm(name, workload)
                self._on_get(name)
                return
            await self._deps.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
            failures += 1
