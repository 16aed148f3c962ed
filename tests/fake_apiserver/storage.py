"""The stored objects by kind, with versions and the events of their changes."""

from __future__ import annotations

import asyncio
import copy
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from .kinds import KINDS, Object


@dataclass(slots=True)
class Collection:
    """The objects of one kind by namespace and name, encoded, and their events."""

    kind: str
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    history: list[tuple[int, bytes]] = field(default_factory=list)
    watches: set[asyncio.Queue[bytes | None]] = field(default_factory=set)


class Storage:
    """All objects, in memory. Methods may be called from any thread.

    Objects that are put get a uid, a creation time and a resourceVersion; the generation grows when the spec changes, and
    a status is kept when only the rest is put.

    Attributes:
        version: The newest resourceVersion.
        collections: The objects by kind.
        lock: Held by each method.
        oldest_version: The oldest resourceVersion from which a watch may begin.
        pages: The rest of each list under way by continue token: its objects, its version, and the next position.
        numbers: For names that have to differ.
        loop: The event loop of the watches.
    """

    loop: asyncio.AbstractEventLoop  # from the start of the server

    def __init__(self, *, version: int) -> None:
        """Start empty at a version."""
        self.version = version
        self.collections = {kind: Collection(kind) for kind in KINDS}
        self.lock = threading.RLock()
        self.oldest_version = 0
        self.pages: dict[str, tuple[list[bytes], int, int]] = {}
        self.numbers = itertools.count(1)

    def put(self, manifest: Object) -> Object:
        """Create or replace an object; return it as stored."""
        with self.lock:
            collection, key = self._place_of(manifest)
            known = collection.objects.get(key)
            old = orjson.loads(known) if known is not None else None
            new = copy.deepcopy(manifest)
            metadata = new["metadata"]
            if old is not None:
                metadata.setdefault("uid", old["metadata"]["uid"])
                generation = old["metadata"].get("generation", 1)
                if old.get("spec") != new.get("spec"):
                    generation += 1
                metadata["generation"] = generation
            self.store(collection, key, new, "ADDED" if old is None else "MODIFIED")
            return new

    def put_raw(self, manifest: bytes) -> None:
        """Create or replace an object that is stored unchanged except for its ``metadata``.

        uid and resourceVersion must not be given, and ``"metadata":{`` must be its first occurrence in the text.
        """
        with self.lock:
            self._put_raw(manifest)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object as stored; cluster-scoped kinds have no namespace whatever is given."""
        with self.lock:
            raw = self.collections[kind].objects.get(self.key(kind, namespace, name))
            found: Object | None = None if raw is None else orjson.loads(raw)
            return found

    def all(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        with self.lock:
            return [orjson.loads(raw) for raw in self.collections[kind].objects.values()]

    def change(
        self, kind: str, name: str, change: Callable[[Object], object], namespace: str = "default"
    ) -> None:
        """Change an object in place, as another client would."""
        with self.lock:
            found = self.get(kind, name, namespace)
            assert found is not None, f"{kind} {namespace}/{name} is not there"
            change(found)
            self.put(found)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object at once."""
        with self.lock:
            collection = self.collections[kind]
            found = orjson.loads(collection.objects.pop(self.key(kind, namespace, name)))
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
            self.notify(collection, "DELETED", orjson.dumps(found))

    def targets(self, name: str, namespace: str = "default") -> dict[str, int] | None:
        """Return the replicas of a ResourceBinding by cluster name; None without clusters."""
        found = self.get("ResourceBinding", name, namespace)
        clusters = (found or {}).get("spec", {}).get("clusters")
        return {each["name"]: each.get("replicas", 0) for each in clusters} if clusters else None

    def condition(self, name: str, namespace: str = "default") -> Object:
        """Return the ``Scheduled`` condition of a ResourceBinding, {} if it has none."""
        found = self.get("ResourceBinding", name, namespace) or {}
        conditions = found.get("status", {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == "Scheduled"), {})

    def lease(self, name: str = "my-scheduler") -> Object:
        """Return the spec of a Lease of karmada-system, {} if there is none."""
        found = self.get("Lease", name, "karmada-system") or {}
        spec: Object = found.get("spec", {})
        return spec

    def watching(self, kind: str) -> int:
        """Return the number of open watches of a kind; a closed connection is noticed at the next write."""
        with self.lock:
            return len(self.collections[kind].watches)

    def end_watches(self, kind: str | None = None) -> None:
        """End the watches of a kind, or all, as a server does after some minutes."""
        with self.lock:
            for collection in self.collections.values():
                if kind in (None, collection.kind):
                    for queue in collection.watches:
                        self.loop.call_soon_threadsafe(queue.put_nowait, None)

    def send(self, kind: str, line: bytes) -> None:
        """Send any line to the watches of a kind; the line break is added."""
        with self.lock:
            for queue in self.collections[kind].watches:
                self.loop.call_soon_threadsafe(queue.put_nowait, line + b"\n")

    def backup(self) -> Any:
        """Return the state for ``restore``."""
        with self.lock:
            return self.version, {
                kind: dict(collection.objects) for kind, collection in self.collections.items()
            }

    def restore(self, state: Any) -> None:
        """Go back to a state, versions included, as etcd does from a backup; all connections of watches end."""
        with self.lock:
            self.version, objects = state
            for kind, collection in self.collections.items():
                collection.objects = dict(objects[kind])
                collection.history = []
            self.oldest_version = self.version
            self.pages.clear()
            self.end_watches()

    def key(self, kind: str, namespace: str, name: str) -> tuple[str, str]:
        """Return the key of an object in its collection."""
        return (namespace if KINDS[kind][2] else "", name)

    def store(self, collection: Collection, key: tuple[str, str], new: Object, event: str) -> bytes:
        """Store an object under the next version, and notify the watches; return it as stored."""
        self.version += 1
        metadata = new["metadata"]
        metadata.setdefault("uid", f"uid-{next(self.numbers)}-of-{key[1]}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        metadata.setdefault("generation", 1)
        metadata["resourceVersion"] = str(self.version)
        raw = collection.objects[key] = orjson.dumps(new)
        self.notify(collection, event, raw)
        return raw

    def notify(self, collection: Collection, event: str, raw: bytes) -> None:
        """Add an event to the history of a collection, and send it to the watches."""
        line = b'{"type":"' + event.encode() + b'","object":' + raw + b"}\n"
        collection.history.append((self.version, line))
        for queue in collection.watches:
            self.loop.call_soon_threadsafe(queue.put_nowait, line)

    def _place_of(self, manifest: Object) -> tuple[Collection, tuple[str, str]]:
        kind, metadata = manifest["kind"], manifest["metadata"]
        key = self.key(kind, metadata.get("namespace", ""), metadata["name"])
        return self.collections[kind], key

    def _put_raw(self, manifest: bytes) -> None:
        head, mark, rest = manifest.partition(b'"metadata":{')
        kind = orjson.loads(manifest[manifest.index(b'"kind":') + 7 :].split(b",")[0].rstrip(b"}"))
        fields = {
            name: orjson.loads(rest.split(b'"' + name.encode() + b'":')[1].split(b",")[0].rstrip(b"}"))
            for name in ("name", "namespace")
            if b'"' + name.encode() + b'":' in rest
        }
        collection = self.collections[kind]
        key = self.key(kind, fields.get("namespace", ""), fields["name"])
        event = "MODIFIED" if key in collection.objects else "ADDED"
        self.version += 1
        added = f'"uid":"uid-{kind}-{key[1]}","resourceVersion":"{self.version}",'.encode()
        collection.objects[key] = raw = head + mark + added + rest
        self.notify(collection, event, raw)
