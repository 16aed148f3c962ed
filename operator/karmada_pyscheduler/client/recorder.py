"""Records Events about bindings and their resource templates.

Recording never delays a binding. Events wait in a bounded queue and are posted in order, one at a time, while the
scheduling queue is empty. Events that a full queue drops are counted. ``event_correlator`` limits their number.

Source of the fields: k8s.io/client-go 0.35.3 tools/record/event.go.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from karmada_pyscheduler.client.connection import STRATEGIC_MERGE_PATCH, Connection
from karmada_pyscheduler.client.event_correlator import Event, EventCorrelator, Involved, Posted
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler.api import binding as binding_api
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.matching import is_subdomain
from karmada_scheduler.api.object_fields import object_fields
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct, field

log = logging.getLogger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
QUEUE_SIZE: Final = 20_000
"""Two for each of 10,000 bindings: about 10 MB, 30 MB with the longest messages. Upstream has a queue of 1,000 and posts
while it schedules."""

_MESSAGE_LIMIT: Final = 1024
_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0


def involved_objects(binding: Binding) -> tuple[Involved, Involved]:
    """Return the references of a binding and of its resource template, in that order."""
    key, resource = binding.key, binding.spec.resource
    return (
        Involved(
            key.kind,
            binding_api.API_VERSION,
            key.namespace,
            key.name,
            binding.uid,
            binding.resource_version,
        ),
        Involved(resource.kind, resource.api_version, resource.namespace, resource.name, resource.uid),
    )


class EventRecorder(IdentityStruct):
    """Records events about bindings and their resource templates.

    Attributes:
        connection: The connection to the API server.
        now: The time of day.
        clock: In seconds, never running backwards.
        idle: Returns when an event may be posted without delaying placements.
        may_post: Called before every attempt; False when the Lease may have expired, which drops the event.
        on_result: Called with ``posted``, ``dropped``, ``filtered`` or ``failed`` for every event.
    """

    connection: Connection
    now: Callable[[], datetime]
    clock: Callable[[], float]
    idle: Callable[[], Awaitable[None]]
    may_post: Callable[[], bool]
    on_result: Callable[[str], None]
    _queue: asyncio.Queue[Event] = field(default_factory=lambda: asyncio.Queue(QUEUE_SIZE))

    def __post_init__(self) -> None:
        self._correlator = EventCorrelator(self.clock)

    def record(self, binding: Binding, event_type: str, reason: str, message: str) -> None:
        """Record one event on the binding and one on its resource template, with its scheduler as the component.

        The message may name 5,000 clusters. It is cut at the length that can be posted.
        """
        message = message[:_MESSAGE_LIMIT]
        component = binding.spec.responsible_scheduler
        log.info(
            "Event occurred",
            extra={
                "object": f"{binding.key.namespace}/{binding.key.name}".lstrip("/"),
                "kind": binding.key.kind,
                "type": event_type,
                "reason": reason,
                "note": message,
            },
        )
        for involved in involved_objects(binding):  # names of Events have the time, which differs for each
            try:
                self._queue.put_nowait(Event(involved, event_type, reason, message, self.now(), component))
            except asyncio.QueueFull:
                self.on_result("dropped")

    @asynccontextmanager
    async def posting(self, *, flush_seconds: float) -> AsyncIterator[None]:
        """Post recorded events while the block runs, and the remaining ones at its end.

        Args:
            flush_seconds: Limit for the time at the end.
        """
        poster = asyncio.create_task(self._post_forever(), name="recorder")
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(flush_seconds):
                    await self._queue.join()
            except TimeoutError:
                log.warning("Events were not posted before the stop", extra={"count": self._queue.qsize()})
            finally:
                poster.cancel()
                await asyncio.gather(poster, return_exceptions=True)

    async def _post_forever(self) -> None:
        while True:
            event = await self._queue.get()
            await self.idle()
            try:
                await self._post(event)
            except Exception:
                # Nothing awaits this task, so one event must not end it.
                log.exception("Cannot record an event")
                self.on_result("failed")
            finally:
                self._queue.task_done()

    async def _post(self, recorded: Event) -> None:
        decision = self._correlator.correlate(recorded)
        if decision is None:
            self.on_result("filtered")
            return
        for attempt in range(1, _TRIES + 1):
            if not self.may_post():
                self.on_result("dropped")
                return
            try:
                await self._create_or_count(*decision)
            except ApiError as error:
                # A response of the server is final; without one the event is sent again.
                if error.code or attempt == _TRIES:
                    self.on_result("failed")
                    log.warning("Cannot record an event", extra={"reason": recorded.reason, "error": error})
                    return
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self.on_result("posted")
                return

    async def _create_or_count(self, event: Event, posted: Posted) -> None:
        message = event.message[:_MESSAGE_LIMIT]
        if posted.name:
            path = path_of("v1", "events", posted.name, namespace=posted.namespace)
            body = {"count": posted.count, "lastTimestamp": format_time(event.at), "message": message}
            try:
                await self.connection.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
            except ApiError as error:
                if not error.is_not_found:
                    raise
            else:
                return
        manifest = self._manifest(event, posted, message)
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        path = path_of("v1", "events", namespace=namespace)
        await self.connection.request("POST", path, body=manifest)
        posted.namespace, posted.name = namespace, name

    def _manifest(self, event: Event, posted: Posted, message: str) -> dict[str, Any]:
        about = event.involved
        name = f"{about.name}.{int(event.at.timestamp() * 1e9):x}"
        if not is_subdomain(name):
            name = str(uuid.uuid4())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.namespace or "default"},
            "involvedObject": object_fields(about),
            "reason": event.reason,
            "message": message,
            "type": event.type,
            "source": {"component": event.component},
            "reportingComponent": event.component,
            "reportingInstance": "",
            "firstTimestamp": format_time(posted.first or event.at),
            "lastTimestamp": format_time(event.at),
            "count": posted.count,
        }
