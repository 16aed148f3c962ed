"""What has happened to a binding, as it is stored: its conditions, and the Events of the binding and of its template."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from karmada_advisor.state.stored import mappings, part, text_of, value_at
from karmada_pyscheduler.client.connection import ApiConnection
from karmada_pyscheduler.client.paths import path_of
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import Struct, replace

MOST: Final = 50
"""Entries of a history; of more, the newest."""

_MOST_EVENTS: Final = 100
_SECONDS: Final = 1.0
"""How long Events may take; a page waits for them."""


class HistoryEntry(Struct, frozen=True):
    """Something that has happened.

    Attributes:
        at: When, for the last time, in the format of the API.
        of: What it was written to: ``condition Scheduled``, or the kind of an Event's object, or of two.
        reason: Its reason.
        text: Its message.
        is_bad: Whether it is a Warning, or a condition that is not True.
        count: How often it has happened.
    """

    at: str
    of: str
    reason: str
    text: str
    is_bad: bool
    count: int = 1


class History(Struct, frozen=True):
    """What is known of it.

    Attributes:
        entries: The newest first.
        has_events: Whether Events were read; the API server keeps them for an hour by default.
        problem: Why they were not; "" without a problem.
    """

    entries: tuple[HistoryEntry, ...]
    has_events: bool
    problem: str = ""


def history_of(
    manifest: Mapping[str, Any], events: Iterable[Mapping[str, Any]] | None, problem: str = ""
) -> History:
    """Return the history of a binding.

    Args:
        manifest: The binding as it was read.
        events: Of the binding and its template; None if they were not read.
        problem: Why they were not.
    """
    found = [*map(_of_condition, mappings(value_at(manifest, "status", "conditions")))]
    found += _once(map(_of_event, events or ()))
    newest = sorted((entry for entry in found if entry.at), key=lambda entry: entry.at, reverse=True)
    return History(tuple(newest[:MOST]), events is not None, problem)


async def read_events(connection: ApiConnection, manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the Events of a binding and of its template.

    Raises:
        ApiError: They cannot be read in time.
    """
    metadata, resource = part(manifest, "metadata"), part(manifest, "spec", "resource")
    # Events of an object without a namespace are in this one.
    namespace = str(metadata.get("namespace") or "default")
    uids = [str(uid) for uid in (metadata.get("uid"), resource.get("uid")) if uid]

    async def of(uid: str) -> list[Mapping[str, Any]]:
        query = urlencode({"fieldSelector": f"involvedObject.uid={uid}", "limit": _MOST_EVENTS})
        path = path_of("v1", "events", namespace=namespace)
        found = await connection.request("GET", f"{path}?{query}", timeout=_SECONDS)
        return mappings(found.get("items"))

    try:
        async with asyncio.timeout(_SECONDS):
            return [event for found in await asyncio.gather(*map(of, uids)) for event in found]
    except TimeoutError:
        raise ApiError(f"no Events within {_SECONDS:g} s") from None


def _once(events: Iterable[HistoryEntry]) -> Iterable[HistoryEntry]:
    """Join what a scheduler has written about a binding and about its template at the same time."""
    joined: dict[tuple[str, str, str], HistoryEntry] = {}
    for event in events:
        key = (event.at, event.reason, event.text)
        first = joined.get(key, event)
        of = event.of if event.of == first.of else f"{first.of} and {event.of}"
        joined[key] = replace(first, of=of, count=max(first.count, event.count))
    return joined.values()


def _of_condition(found: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(
        at=text_of(found, "lastTransitionTime"),
        of=f"condition {text_of(found, 'type')}",
        reason=text_of(found, "reason"),
        text=text_of(found, "message"),
        is_bad=found.get("status") != "True",
    )


def _of_event(found: Mapping[str, Any]) -> HistoryEntry:
    series, count = part(found, "series"), found.get("count")
    counted = series.get("count") or count
    times = (text_of(series, "lastObservedTime"), *(text_of(found, name) for name in _TIMES))
    at = next(filter(None, times), "")
    return HistoryEntry(
        at=f"{at[:19]}Z" if len(at) > len("2026-01-01T00:00:00Z") else at,
        of=text_of(found, "involvedObject", "kind"),
        reason=text_of(found, "reason"),
        text=text_of(found, "message"),
        is_bad=found.get("type") == "Warning",
        count=counted if isinstance(counted, int) and counted > 0 else 1,
    )


_TIMES: Final = ("lastTimestamp", "eventTime", "firstTimestamp")
