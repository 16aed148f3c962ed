"""Leaks on purpose, to see that the judge finds them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Hashable
from typing import Any, Final

from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.runtime import filter_cache
from karmada_scheduler.framework.runtime.keyed_results import KeyedResults
from karmada_scheduler.informer.event_handlers import EventHandlers

_held: list[object] = []
_sockets: list[socket.socket] = []


def _on_event(leak: Callable[[EventHandlers, str, str, Any], object]) -> None:
    """Call a function for each event that the informer delivers."""
    original = EventHandlers.on_event

    def on_event(self: EventHandlers, kind: str, event: str, found: Any) -> None:
        leak(self, kind, event, found)
        original(self, kind, event, found)

    EventHandlers.on_event = on_event  # type: ignore[method-assign,assignment]


def _bindings() -> None:
    """Keep each binding that the watch delivers."""

    def keep(handlers: EventHandlers, kind: str, event: str, found: Any) -> None:
        if kind.endswith("Binding"):
            vars(handlers).setdefault("_planted", []).append(found)

    _on_event(keep)


def _filter_cache() -> None:
    """Have the binding in the key of its filter results, and never forget them."""
    filter_cache._MAX_REPORTS = 1 << 40  # type: ignore[misc]
    filter_cache.MAX_ENTRIES = 1 << 40  # type: ignore[misc]
    original = KeyedResults._key

    def key(self: KeyedResults, cycle: Cycle, functions: Any, point: Point) -> tuple[Hashable, ...] | None:
        found = original(self, cycle, functions, point)
        return None if found is None else (found, cycle.binding.uid)

    KeyedResults._key = key  # type: ignore[method-assign]


def _series() -> None:
    """Count events by the object's name."""

    def count(handlers: EventHandlers, kind: str, event: str, found: Any) -> None:
        handlers._metrics.api_server.malformed.labels(found["metadata"]["name"])

    _on_event(count)


def _tasks() -> None:
    """Leave a task behind for each deleted object."""

    def leave(handlers: EventHandlers, kind: str, event: str, found: Any) -> None:
        if event == "DELETED":
            _held.append(asyncio.get_running_loop().create_task(asyncio.Event().wait()))

    _on_event(leave)


def _descriptors() -> None:
    """Open sockets for each deleted binding: two, because the idle connections to the API server vary by dozens."""

    def leave(handlers: EventHandlers, kind: str, event: str, found: Any) -> None:
        if event == "DELETED" and kind.endswith("Binding"):
            _sockets.extend((socket.socket(), socket.socket()))

    _on_event(leave)


LEAKS: Final[dict[str, Callable[[], None]]] = {
    "bindings": _bindings,
    "filter-cache": _filter_cache,
    "series": _series,
    "tasks": _tasks,
    "descriptors": _descriptors,
}
