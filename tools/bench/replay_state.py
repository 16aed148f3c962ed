"""The state of a replay: the objects of each kind with their watches, and the received requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from karmada_scheduler.client.karmada import Resource
from tools.bench.recording import Object


class Collection:
    """All objects of one kind with the watches on them."""

    def __init__(self, resource: Resource, objects: Iterable[Object]) -> None:
        """Encode the objects; their order is that of a list."""
        self.resource = resource
        self.documents: list[bytes] = []
        self.places: dict[tuple[str, str], int] = {}
        for found in objects:
            metadata = found["metadata"]
            self.places[metadata.get("namespace", ""), metadata["name"]] = len(self.documents)
            # Items of a list come without them.
            bare = {name: value for name, value in found.items() if name not in ("apiVersion", "kind")}
            self.documents.append(orjson.dumps(bare))
        self.events: list[tuple[int, bytes]] = []
        self.watches: set[asyncio.Queue[bytes]] = set()

    @property
    def head(self) -> bytes:
        """The fields that a single object has before its own."""
        resource = self.resource
        return f'{{"apiVersion":"{resource.group}/{resource.version}","kind":"{resource.kind}",'.encode()

    def alone(self, place: int) -> bytes:
        """Return an object as the response to a GET."""
        return self.head + self.documents[place][1:]

    def store(self, place: int, found: Object, version: int) -> bytes:
        """Replace an object and notify the watches; return it as the response to a GET."""
        self.documents[place] = orjson.dumps(found)
        document = self.alone(place)
        event = b'{"type":"MODIFIED","object":' + document + b"}\n"
        self.events.append((version, event))
        for queue in self.watches:
            queue.put_nowait(event)
        return document


@dataclass(slots=True)
class Seen:
    """Requests to the server; times are of ``time.monotonic``.

    Attributes:
        requests: By method and what it was about.
        placed: When each binding got its first clusters, by namespace and name.
        moved: The same of bindings that had some before.
        bytes_listed: Before compression.
    """

    requests: Counter[str] = field(default_factory=Counter)
    placed: dict[str, float] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=dict)
    conflicts: int = 0
    bytes_listed: int = 0
    updates: int = 0

    def as_fields(self) -> Object:
        times = sorted(self.placed.values())
        return {
            "requests": dict(self.requests),
            "placed": len(times),
            "first": times[0] if times else None,
            "last": times[-1] if times else None,
            "moved": len(self.moved),
            "conflicts": self.conflicts,
            "bytesListed": self.bytes_listed,
            "updates": self.updates,
            "cpu": time.process_time(),
        }
