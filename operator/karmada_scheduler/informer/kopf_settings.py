"""The settings of a kopf operator that only calls handlers: it keeps nothing in memory and writes nothing to objects."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import kopf
from kopf._core.reactor import inventory as kopf_inventory

from karmada_scheduler.client.watch_requests import Event

_DISCOVERY_BACKOFFS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts of discovery. After the last one kopf ends, and is started again with new credentials."""


@dataclass
class WatchSettings(kopf.OperatorSettings):
    """kopf's settings, and the source of the events of a kind.

    kopf passes its settings to all its tasks, so they identify our operator.
    """

    events: Callable[[str], AsyncGenerator[Event, None]] = field(kw_only=True)


def watch_settings(events: Callable[[str], AsyncGenerator[Event, None]]) -> WatchSettings:
    """Return settings that switch off everything but handlers of these events."""
    settings = WatchSettings(events=events)
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
