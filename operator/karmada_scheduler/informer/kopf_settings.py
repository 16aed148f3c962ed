"""The settings of a kopf operator that only watches: it keeps nothing in memory and writes nothing to objects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import kopf
from kopf._core.reactor import inventory as kopf_inventory

from karmada_scheduler.client.watch_requests import WatchRequests
from karmada_scheduler.client.watch_streams import WatchStreams

_DISCOVERY_BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts of discovery. After the last one kopf ends, and is started again with new credentials."""


@dataclass
class WatchSettings(kopf.OperatorSettings):
    """kopf's settings, and the functions that ``kopf_patches`` calls instead of kopf's own.

    kopf passes its settings to all its tasks, so they identify our operator.

    Attributes:
        requests: Sends the requests to watch.
        start_version: Returns the resourceVersion at which the watch of a kind starts.
        should_deliver: Returns whether an event of a kind is to be delivered.
        streams: Supervises the connections of the watches.
        accepted: Called when the API server has accepted the watch of a connection.
    """

    requests: WatchRequests = field(kw_only=True)
    start_version: Callable[[str], Awaitable[str]] = field(kw_only=True)
    should_deliver: Callable[[str, kopf.RawEvent], bool] = field(kw_only=True)
    streams: WatchStreams = field(kw_only=True)
    accepted: Callable[[], None] = lambda: None


def watch_settings(
    requests: WatchRequests,
    *,
    start_version: Callable[[str], Awaitable[str]],
    should_deliver: Callable[[str, kopf.RawEvent], bool],
    streams: WatchStreams,
) -> WatchSettings:
    """Return settings that switch off everything but the watch."""
    settings = WatchSettings(
        requests=requests, start_version=start_version, should_deliver=should_deliver, streams=streams
    )
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.networking.error_backoffs = _DISCOVERY_BACKOFFS
    settings.process.ultimate_exiting_timeout = None
    return settings


class NoMemories(kopf_inventory.ResourceMemories):
    """Stores no object: no handler reads it, and a kilobyte would stay for each object that is deleted unseen."""

    async def recall(self, *args: Any, **rest: Any) -> kopf_inventory.ResourceMemory:
        return await super().recall(*args, **{**rest, "ephemeral": True})


class _NoProgress(kopf.ProgressStorage):
    """Stores no progress: our handlers have none, and removing it from every object takes CPU time."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class _NoDiffBase(kopf.DiffBaseStorage):
    """Stores no last-handled state: our handlers use no differences, and computing them takes CPU time."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        return None
