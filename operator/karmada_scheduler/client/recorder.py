"""Events: what people see of a decision with ``kubectl describe``.

Recording never delays a binding: events wait in a bounded queue and are posted in order, one at a time,
while nothing more urgent is going on; what a full queue has to drop is counted. An event that repeats
one of the last minutes raises that one's count instead of adding another.

Source of the fields: k8s.io/client-go 0.35.3 tools/record (event.go, events_cache.go).
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.client.connection import STRATEGIC_MERGE_PATCH, ApiError, Connection

log = logging.getLogger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
QUEUE_SIZE: Final = 1000
_CACHE_SIZE: Final = 4096
_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Event:
    """One event about one object, as it was recorded."""

    involved: tuple[tuple[str, str], ...]
    type: str
    reason: str
    message: str
    at: datetime = field(compare=False)


@dataclass(slots=True)
class _Posted:
    namespace: str
    name: str
    count: int = 1


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def involved_objects(binding: Binding) -> tuple[dict[str, str], dict[str, str]]:
    """Return the references of a binding and of its resource template, in that order."""
    resource = binding.spec.resource
    own = {
        "kind": binding.key.kind,
        "apiVersion": "work.karmada.io/v1alpha2",
        "namespace": binding.key.namespace,
        "name": binding.key.name,
        "uid": binding.uid,
        "resourceVersion": binding.resource_version,
    }
    template = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "namespace": resource.namespace,
        "name": resource.name,
        "uid": resource.uid,
    }
    return own, template


class EventRecorder:
    """Records events about bindings and their templates."""

    def __init__(
        self,
        connection: Connection,
        *,
        component: str,
        now: Callable[[], datetime],
        idle: Callable[[], Awaitable[None]],
        on_result: Callable[[str], None],
    ) -> None:
        """Take what posting needs.

        Args:
            connection: Where to post.
            component: The source of the events: the scheduler's name.
            now: The time of day.
            idle: Returns when placements can spare the API server for one event.
            on_result: Told ``posted``, ``dropped`` or ``failed`` for every event.
        """
        self._connection = connection
        self._component = component
        self._now = now
        self._idle = idle
        self._on_result = on_result
        self._queue: asyncio.Queue[Event] = asyncio.Queue(QUEUE_SIZE)
        self._posted: OrderedDict[Event, _Posted] = OrderedDict()

    def record(self, binding: Binding, event_type: str, reason: str, message: str) -> None:
        """Record one event on the binding and the same on its resource template."""
        for reference in involved_objects(binding):
            self._enqueue(Event(tuple(reference.items()), event_type, reason, message, self._now()))

    def _enqueue(self, event: Event) -> None:
        about = dict(event.involved)
        log.info(
            "Event occurred",
            extra={
                "object": f"{about['namespace']}/{about['name']}".lstrip("/"),
                "kind": about["kind"],
                "type": event.type,
                "reason": event.reason,
                "note": event.message,
            },
        )
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._on_result("dropped")

    async def run(self) -> None:
        """Post what is recorded, until cancelled."""
        while True:
            event = await self._queue.get()
            await self._idle()
            try:
                await self._post(event)
            finally:
                self._queue.task_done()

    async def flush(self, *, timeout: float) -> None:
        """Wait until everything recorded has been posted, at most ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._queue.join()
        except TimeoutError:
            log.warning("Events were not posted before the stop", extra={"count": self._queue.qsize()})

    async def _post(self, event: Event) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                await self._create_or_count(event)
            except ApiError as error:
                # An answer of the server is final; without one the event is still worth sending.
                if error.code or attempt == _TRIES:
                    self._on_result("failed")
                    log.warning("Cannot record an event", extra={"reason": event.reason, "error": error})
                    return
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._on_result("posted")
                return

    async def _create_or_count(self, event: Event) -> None:
        key = self._without_version(event)
        posted = self._posted.get(key)
        if posted is not None:
            self._posted.move_to_end(key)
            posted.count += 1
            count = {"count": posted.count, "lastTimestamp": _timestamp(event.at)}
            path = f"/api/v1/namespaces/{posted.namespace}/events/{posted.name}"
            try:
                await self._connection.request("PATCH", path, body=count, content_type=STRATEGIC_MERGE_PATCH)
            except ApiError as error:
                if not error.is_not_found:
                    raise
                del self._posted[key]
            else:
                return
        body = self._manifest(event)
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        await self._connection.request("POST", f"/api/v1/namespaces/{namespace}/events", body=body)
        self._posted[key] = _Posted(namespace, name)
        if len(self._posted) > _CACHE_SIZE:
            self._posted.popitem(last=False)

    @staticmethod
    def _without_version(event: Event) -> Event:
        involved = tuple(item for item in event.involved if item[0] != "resourceVersion")
        return Event(involved, event.type, event.reason, event.message, event.at)

    def _manifest(self, event: Event) -> dict[str, Any]:
        about = {key: value for key, value in event.involved if value}
        name = f"{about.get('name', '')}.{int(event.at.timestamp() * 1e9):x}"
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            name = str(uuid.uuid4())
        at = _timestamp(event.at)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.get("namespace") or "default"},
            "involvedObject": about,
            "reason": event.reason,
            "message": event.message[:1024],
            "type": event.type,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
