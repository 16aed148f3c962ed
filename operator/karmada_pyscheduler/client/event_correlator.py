"""Limits the number of Events: counts equal ones, combines similar ones, and drops the excess.

No input or output; the recorder posts. Three rules apply, in this order:

- *aggregation*: the tenth different message of the same reason and type about one object within ten minutes, and all
  later ones, become one event whose message starts with ``(combined from similar events): ``;
- *counting*: an event that was posted before increases the count of that event;
- *spam filter*: an object gets 25 events of a type at once, then one every five minutes; others are dropped.

Source: k8s.io/client-go 0.35.3 tools/record/events_cache.go, with its defaults.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Final, Generic, NamedTuple, TypeVar

from karmada_scheduler.rate_limit import TokenBucket
from karmada_scheduler.structs import Struct, field, replace

CACHE_SIZE: Final = 4096
SIMILAR_LIMIT: Final = 10
SIMILAR_SECONDS: Final = 600.0
SPAM_BURST: Final = 25
SPAM_RATE: Final = 1 / 300.0
COMBINED: Final = "(combined from similar events): "

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Involved(NamedTuple):
    """The object of an event; empty strings for fields that it does not have."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that identify the object, without the resourceVersion."""
        return self[:-1]


class Event(Struct, frozen=True):
    """One recorded event."""

    involved: Involved
    type: str
    reason: str
    message: str
    at: datetime
    component: str


class Posted(Struct):
    """An event on the API server.

    Attributes:
        namespace: Its namespace.
        name: Its name; empty before it was posted.
        count: Number of occurrences, including the current one.
        first: Time of the first occurrence.
    """

    namespace: str = ""
    name: str = ""
    count: int = 0
    first: datetime | None = None


class EventDecision(NamedTuple):
    """Post the event, or increase the count of ``posted`` if that has a name."""

    event: Event
    posted: Posted


class _Recent(Generic[Key, Value]):
    """The most recently used entries of a mapping."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value:
        """Return an entry; a missing one is created."""
        if key in self._entries:
            self._entries.move_to_end(key)
        else:
            self._entries[key] = self._make()
            if len(self._entries) > CACHE_SIZE:
                self._entries.popitem(last=False)
        return self._entries[key]


class _Similar(Struct):
    messages: set[str] = field(default_factory=set)
    last: float = float("-inf")


class EventCorrelator:
    """Decides for each event whether it is posted or counted."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is in seconds and never runs backwards."""
        self._clock = clock
        self._similar: _Recent[Hashable, _Similar] = _Recent(_Similar)
        self._posted: _Recent[Hashable, Posted] = _Recent(Posted)
        self._buckets: _Recent[Hashable, TokenBucket] = _Recent(_full_bucket)

    def correlate(self, event: Event) -> EventDecision | None:
        """Return what to post, None if the event is dropped."""
        now = self._clock()
        event, key = self._combined(event, now)
        posted = self._posted.get(key)
        posted.count += 1
        posted.first = posted.first or event.at
        bucket = self._buckets.get((event.involved.identity, event.type))
        return EventDecision(event, posted) if bucket.take(now) else None

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


def _full_bucket() -> TokenBucket:
    return TokenBucket(SPAM_RATE, SPAM_BURST, float("-inf"))
