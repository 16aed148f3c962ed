"""Replaces five functions of kopf for our operator; importing this module does it.

kopf has no setting for any of this. Each replacement checks the settings that kopf passes to it: those of our operator
are ``WatchSettings``. For any other kopf operator of the process it calls kopf's own function with the same arguments.

- ``fetch_objs``: kopf lists a kind before each watch that does not continue another one. Here the caches are filled
  from lists before (``relist``), and the watch starts where the list ended.
- ``infinite_watch``: kopf calls the filters of handlers only after each event has a queue, a task and three loggers.
  Here events without a change are dropped before.
- ``watcher``: kopf gives each object a queue and a task, and starts one task in two to three iterations of the event loop.
  While bindings are scheduled, that limits a watch to some 200 events per second. Handlers of ours never wait, so events
  are processed here one after the other.
- ``watch_objs``: one connection of a watch. Here ``watch_streams`` supervises it and may restart it.
- ``stream``: one request to watch. Here ``watch_requests`` sends it and reads the response.

docs/decisions/0012-own-writes.md, 0018-api-server-input.md, 0019-resource-version-rollback.md and 0039-events-in-order.md
have the reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, cast

from kopf._cogs.clients import api as kopf_api
from kopf._cogs.clients import fetching as kopf_fetching
from kopf._cogs.clients import watching as kopf_watching
from kopf._core.reactor import queueing as kopf_queueing

from karmada_scheduler.informer.kopf_settings import WatchSettings

_fetch_objs = kopf_fetching.fetch_objs
_infinite_watch = kopf_watching.infinite_watch
_watch_objs = kopf_watching.watch_objs
_stream = kopf_api.stream
_watcher = kopf_queueing.watcher


async def _start_version_only(
    *, settings: Any, resource: Any, **rest: Any
) -> AsyncIterator[tuple[Collection[Any], str]]:
    """Yield no objects, only the resourceVersion at which kopf starts its watch."""
    if not isinstance(settings, WatchSettings):
        async for page in _fetch_objs(settings=settings, resource=resource, **rest):
            yield page
        return
    settings.streams.starts(resource.kind)
    yield (), await settings.start_version(resource.kind)


async def _filtered_watch(*, settings: Any, resource: Any, **rest: Any) -> AsyncIterator[Any]:
    """Yield the events of a kind that are to be delivered."""
    is_ours = isinstance(settings, WatchSettings)
    stream = cast("AsyncGenerator[Any, None]", _infinite_watch(settings=settings, resource=resource, **rest))
    async with aclosing(stream) as events:
        async for event in events:
            is_object = is_ours and isinstance(event, dict) and event.get("type") != "BOOKMARK"
            if is_object and not settings.should_deliver(resource.kind, event):
                continue
            yield event


async def _watch_in_order(
    *,
    settings: Any,
    resource: Any,
    namespace: Any,
    processor: kopf_queueing.WatchStreamProcessor,
    operator_paused: Any = None,
    operator_indexed: Any = None,
    resource_indexed: Any = None,
) -> None:
    """Process the events of a kind one after the other, in the order of the watch."""
    if not isinstance(settings, WatchSettings):
        await _watcher(
            settings=settings,
            resource=resource,
            namespace=namespace,
            processor=processor,
            operator_paused=operator_paused,
            operator_indexed=operator_indexed,
            resource_indexed=resource_indexed,
        )
        return
    pressure = asyncio.Event()
    pressure.set()  # nothing sleeps between two events
    stream = kopf_watching.infinite_watch(
        settings=settings, resource=resource, namespace=namespace, operator_paused=operator_paused
    )
    async with aclosing(cast("AsyncGenerator[Any, None]", stream)) as events:
        async for event in events:
            if event is kopf_watching.Bookmark.LISTED and operator_indexed is not None:
                await operator_indexed.drop_toggle(resource_indexed)
            if isinstance(event, kopf_watching.Bookmark) or event.get("type") == "BOOKMARK":
                continue
            await processor(
                raw_event=event,
                stream_pressure=pressure,
                operator_indexed=operator_indexed,
                resource_indexed=None,
                consistency_time=None,
            )


def _supervised_connection(
    *, settings: Any, resource: Any, since: str | None = None, **rest: Any
) -> AsyncIterator[Any]:
    """Return the events of one connection, under the supervision of ``watch_streams``."""
    if not isinstance(settings, WatchSettings):
        return _watch_objs(settings=settings, resource=resource, since=since, **rest)
    kind, streams = resource.kind, settings.streams
    of_connection = replace(settings, accepted=partial(streams.accepted, kind))
    connect = partial(_watch_objs, settings=of_connection, resource=resource, since=since, **rest)
    return streams.connection(kind, since, connect)


def _own_request(url: str, *, settings: Any, **rest: Any) -> AsyncIterator[Any]:
    """Return the events of one request to watch, sent by ``watch_requests``."""
    if not isinstance(settings, WatchSettings):
        return _stream(url=url, settings=settings, **rest)
    return settings.requests.events(url, settings.accepted)


kopf_fetching.fetch_objs = _start_version_only
kopf_watching.infinite_watch = _filtered_watch
kopf_watching.watch_objs = _supervised_connection
kopf_api.stream = _own_request
kopf_queueing.watcher = _watch_in_order
