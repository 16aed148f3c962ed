"""Replaces one function of kopf for our operator, its ``watcher`` of a kind; importing this module does it.

kopf's own lists and watches, and gives each object a queue and a task, one of which starts in two to three iterations of
the event loop. Ours takes the events of a ``Reflector`` and hands them to kopf's processor one after the other. kopf has
no setting for that: docs/decisions/0045-one-seam-to-kopf.md has the reasons.

The settings that kopf passes tell which operator it is: those of ours are ``WatchSettings``, which switch off everything
but handlers. Any other kopf operator of the process has kopf's own watcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, cast

import kopf
from kopf._core.reactor import inventory as kopf_inventory
from kopf._core.reactor import queueing

from karmada_pyscheduler.client.watch_requests import Event

_DISCOVERY_BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts of discovery. After the last one kopf ends, and is started again with new credentials."""


@dataclass
class WatchSettings(kopf.OperatorSettings):
    """kopf's settings, and the source of the events of a kind.

    kopf passes its settings to all its tasks, so they identify our operator.
    """

    events: Callable[[str], AsyncGenerator[Event, None]] = field(kw_only=True)


def watch_settings(events: Callable[[str], AsyncGenerator[Event, None]]) -> WatchSettings:
    """Return settings that switch off everything but handlers of these events.

    Of several storages, there are none: our handlers have no progress, and removing it from objects takes CPU time.
    """
    settings = WatchSettings(events=events)
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiffBase([])
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    settings.networking.error_backoffs = _DISCOVERY_BACKOFFS
    settings.process.ultimate_exiting_timeout = None
    return settings


class NoMemories(kopf_inventory.ResourceMemories):
    """Stores no object: no handler reads it, and a kilobyte would stay for each object that is deleted unseen."""

    async def recall(self, *args: Any, **rest: Any) -> kopf_inventory.ResourceMemory:
        return await super().recall(*args, **{**rest, "ephemeral": True})


class _NoDiffBase(kopf.MultiDiffBaseStorage):
    """Builds no last-handled state: our handlers use no differences, and computing them takes CPU time."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})


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
