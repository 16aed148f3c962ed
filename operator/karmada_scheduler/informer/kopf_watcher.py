"""Replaces one function of kopf for our operator, its ``watcher`` of a kind; importing this module does it.

kopf's own lists and watches, and gives each object a queue and a task, one of which starts in two to three iterations of
the event loop. Ours takes the events of a ``Reflector`` and hands them to kopf's processor one after the other. kopf has
no setting for that: docs/decisions/0045-one-seam-to-kopf.md has the reasons, and what was measured.

The settings that kopf passes tell which operator it is: those of ours are ``WatchSettings``. Any other kopf operator of
the process has kopf's own watcher.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, cast

from kopf._core.reactor import queueing

from karmada_scheduler.informer.kopf_settings import WatchSettings

_watcher = queueing.watcher


async def _watch_in_order(
    *, settings: Any, resource: Any, processor: queueing.WatchStreamProcessor, **rest: Any
) -> None:
    """Call the handlers of a kind with its events, one after the other, in the order of the watch."""
    if not isinstance(settings, WatchSettings):
        await _watcher(settings=settings, resource=resource, processor=processor, **rest)
        return
    pressure = asyncio.Event()
    pressure.set()  # nothing sleeps between two events
    async with aclosing(settings.events(resource.kind)) as events:
        async for event in events:
            await processor(raw_event=cast("Any", event), stream_pressure=pressure)


queueing.watcher = _watch_in_order
