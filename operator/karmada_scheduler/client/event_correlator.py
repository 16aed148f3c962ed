"""Keeps Events few: counts equal ones, combines similar ones, and stops a storm.

Pure: an event goes in, what to do about it comes out. Three rules apply, in this order:

- *aggregation*: of one kind of event about one object, the tenth different message within ten minutes and
  all that follow become one event whose message begins with ``(combined from similar events): ``;
- *counting*: an event that was posted before raises that one's count;
- *spam filter*: an object gets 25 events of a type at once and then one every five minutes; more are dropped.

Source: k8s.io/client-go 0.35.3 tools/record/events_cache.go, with its defaults.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

CACHE_SIZE: Final = 4096
SIMILAR_LIMIT: Final = 10
SIMILAR_SECONDS: Final = 600.0
SPAM_BURST: Final = 25
SPAM_RATE: Final = 1 / 300.0
COMBINED: Final = "(combined from similar events): "

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Involved(NamedTuple):
    """The object that an event is about; empty strings where it has no such field."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two references mean the same object."""
        return self[:-1]


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it was recorded."""

    involved: Involved
    type: str
    reason: str
    message: str
    at: datetime
    component: str


@dataclass(slots=True)
class Posted:
    """What is known of an event on the API server.

    Attributes:
        name: Empty before it was posted.
        count: How often it was observed, the time that is being handled included.
    """

    namespace: str = ""
    name: str = ""
    count: int = 0
    first: datetime | None = None


class EventDecision(NamedTuple):
    """What to do about an event: post it, or raise the count of ``posted`` when that has a name."""

    event: Event
    posted: Posted


class _Recent(Generic[Key, Value]):
    """The most recently used entries of a mapping."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value:
        """Return an entry, a new one if there is none."""
        if key in self._entries:
            self._entries.move_to_end(key)
        else:
            self._entries[key] = self._make()
            if len(self._entries) > CACHE_SIZE:
                self._entries.popitem(last=False)
        return self._entries[key]


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last: float = float("-inf")


@dataclass(slots=True)
class _Bucket:
    tokens: float = SPAM_BURST
    last: float | None = None


class EventCorrelator:
    """Decides for each event what is sent of it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is in seconds and never runs backwards."""
        self._clock = clock
        self._similar: _Recent[Hashable, _Similar] = _Recent(_Similar)
        self._posted: _Recent[Hashable, Posted] = _Recent(Posted)
        self._buckets: _Recent[Hashable, _Bucket] = _Recent(_Bucket)

    def correlate(self, event: Event) -> EventDecision | None:
        """Return what to do about an event, None if it is one too many."""
        now = self._clock()
        event, key = self._combined(event, now)
        posted = self._posted.get(key)
        posted.count += 1
        posted.first = posted.first or event.at
        if not self._may_pass(event, now):
            return None
        return EventDecision(event, posted)

    def _combined(self, event: Event, now: float) -> tuple[Event, Hashable]:
        kind = (event.involved.identity, event.type, event.reason)
        similar = self._similar.get(kind)
        if now - similar.last > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(event.message)
        if len(similar.messages) < SIMILAR_LIMIT:
            return event, (kind, event.message)
        similar.messages.pop()
        return replace(event, message=COMBINED + event.message), kind

    def _may_pass(self, event: Event, now: float) -> bool:
        bucket = self._buckets.get((event.involved.identity, event.type))
        if bucket.last is not None:
            bucket.tokens = min(SPAM_BURST, bucket.tokens + (now - bucket.last) * SPAM_RATE)
        bucket.last = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
