"""What etcd does: objects with one revision counter for all kinds, the history of every kind, backups.

An object is stored as the bytes of its JSON. They begin with ``apiVersion``, ``kind`` and ``metadata``, in this order,
and nobody changes them: a state is a shallow copy of a dict.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import orjson

from tools.apiserver_model.kinds import BY_NAME, KINDS, Key, Kind, Object
from tools.apiserver_model.requests import Request

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"

_CHECKPOINT: Final = 256
"""The least number of writes between two states that are kept as a whole."""

State = Mapping[Key, bytes]
"""The objects of a kind."""


class Author(NamedTuple):
    """Who changes something, and how.

    Attributes:
        user: The user of the request.
        subresource: ``status`` or "".
        request: The request, None for a change that came without one.
    """

    user: str
    subresource: str = ""
    request: Request | None = None


class Write(NamedTuple):
    """An accepted change of one object.

    Attributes:
        epoch: The number of restores before it.
        revision: Its revision, unique within the epoch.
        time: When it was accepted.
        user: Who made it.
        kind: The name of the kind.
        key: Namespace and name of the object.
        subresource: ``status`` or "".
        before: The object before, None if there was none.
        after: The object as stored, None for a deletion.
        request: The request, None for a change that came without one.
        event: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        shown: The object of the watch event: ``after``, or the last state with the revision of the deletion.
    """

    epoch: int
    revision: int
    time: datetime
    user: str
    kind: str
    key: Key
    subresource: str
    before: bytes | None
    after: bytes | None
    request: Request | None
    event: str
    shown: bytes


@dataclass(frozen=True, slots=True)
class Backup:
    """The objects of a moment; see ``Store.restore``."""

    revision: int
    objects: Mapping[str, State]


def _revision(write: Write) -> int:
    return write.revision


def position(key: Key) -> str:
    """Return the text that lists are ordered by: the end of etcd's key."""
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


class Collection:
    """The objects of one kind in one epoch, with their history.

    Attributes:
        objects: The newest state.
        log: The writes that are kept, by revision.
        floor: The oldest revision whose state is kept.
        oldest: The oldest revision that requests may name: that of the last compaction, and not below ``floor``.
    """

    def __init__(self, kind: Kind, objects: State, revision: int) -> None:
        """Begin with a state at a revision."""
        self.kind = kind
        self.objects = dict(objects)
        self.log: list[Write] = []
        self.floor = revision
        self.oldest = revision
        self._order: list[Key] | None = None
        self._checkpoints: list[tuple[int, State]] = []
        self._since_checkpoint = 0

    def add(self, write: Write) -> None:
        """Apply a write."""
        if write.after is None:
            del self.objects[write.key]
        else:
            self.objects[write.key] = write.after
        if write.event != MODIFIED:
            self._order = None
        self.log.append(write)
        self._since_checkpoint += 1
        if self._since_checkpoint >= max(_CHECKPOINT, len(self.objects)):
            self._checkpoints.append((write.revision, dict(self.objects)))
            self._since_checkpoint = 0

    def corrupt(self, key: Key, text: bytes) -> None:
        """Replace the text of an object in the newest state, without a write."""
        self.objects[key] = text
        self._order = None

    def after(self, revision: int) -> Sequence[Write]:
        """Return the writes after a revision, which is not below ``floor``."""
        if not self.log or self.log[-1].revision <= revision:
            return ()
        return self.log[bisect.bisect_right(self.log, revision, key=_revision) :]

    def at(self, revision: int) -> State:
        """Return the state at a revision; LookupError below ``floor``."""
        if revision < self.floor:
            raise LookupError(
                f"the state of {self.kind.plural} at {revision} is not kept, the oldest is {self.floor}"
            )
        end = len(self.log)
        if not end or self.log[-1].revision <= revision:
            return self.objects
        state: State = self.objects
        place = bisect.bisect_left(self._checkpoints, revision, key=lambda entry: entry[0])
        if place < len(self._checkpoints):
            newest, state = self._checkpoints[place]
            end = bisect.bisect_right(self.log, newest, key=_revision)
        found = dict(state)
        for index in range(end - 1, -1, -1):
            write = self.log[index]
            if write.revision <= revision:
                break
            if write.before is None:
                del found[write.key]
            else:
                found[write.key] = write.before
        return found

    def order(self) -> Sequence[Key]:
        """Return the keys of ``objects`` in the order of lists."""
        if self._order is None:
            self._order = ordered(self.objects)
        return self._order

    def forget(self, revision: int) -> None:
        """Drop the history up to a revision."""
        if revision <= self.floor:
            return
        self.floor = revision
        self.oldest = max(self.oldest, revision)
        del self.log[: bisect.bisect_right(self.log, revision, key=_revision)]
        self._checkpoints = [entry for entry in self._checkpoints if entry[0] >= revision]


def ordered(keys: Iterable[Key]) -> list[Key]:
    """Return keys in the order of lists: that of etcd's keys, ``namespace/name``."""
    return sorted(keys, key=position)


def encoded(found: Object, revision: int) -> bytes:
    """Return an object as it is stored with a revision; changes its ``metadata.resourceVersion``."""
    found["metadata"]["resourceVersion"] = str(revision)
    if list(found)[:3] == ["apiVersion", "kind", "metadata"]:
        return orjson.dumps(found)
    head = {name: found[name] for name in ("apiVersion", "kind", "metadata")}
    return orjson.dumps(head | found)


class Store:
    """All collections.

    Attributes:
        revision: Of the newest write.
        epoch: The number of restores.
        writes: The kept writes of all epochs and kinds, in order.
        on_write: Called with every write, after it was applied.
    """

    def __init__(self, now: Callable[[], datetime], *, revision: int, kept_writes: int | None) -> None:
        """Start empty at a revision.

        Args:
            now: The time for ``Write.time``.
            revision: Where the counter begins.
            kept_writes: At least so many writes are kept of each kind and of ``writes``, and at most twice as many;
                None for all. Watches and lists of dropped revisions have expired, and ``state`` does not know them.
        """
        self.revision = revision
        self.epoch = 0
        self.writes: list[Write] = []
        self.on_write: Callable[[Write], None] = lambda write: None
        self._now = now
        self._kept = kept_writes
        self._collections = {kind.name: Collection(kind, {}, revision) for kind in KINDS}
        self._past: list[dict[str, Collection]] = []

    def collection(self, kind: Kind) -> Collection:
        """Return the collection of a kind in this epoch; a restore replaces it."""
        return self._collections[kind.name]

    def get(self, kind: Kind, key: Key) -> bytes | None:
        """Return an object, None if there is none."""
        return self._collections[kind.name].objects.get(key)

    def put(self, kind: Kind, key: Key, found: Object, author: Author) -> bytes:
        """Store an object under the next revision and return it; changes its resourceVersion."""
        return self.put_encoded(kind, key, encoded(found, self.revision + 1), author)

    def put_encoded(self, kind: Kind, key: Key, after: bytes, author: Author) -> bytes:
        """Store bytes, which have the next revision as their resourceVersion."""
        before = self._collections[kind.name].objects.get(key)
        self._commit(kind, key, before, after, author, after)
        return after

    def remove(self, kind: Kind, key: Key, shown: bytes, author: Author) -> bytes:
        """Remove an object; ``shown`` is its last state with the next revision as its resourceVersion."""
        before = self._collections[kind.name].objects[key]
        self._commit(kind, key, before, None, author, shown)
        return shown

    def _commit(
        self, kind: Kind, key: Key, before: bytes | None, after: bytes | None, author: Author, shown: bytes
    ) -> None:
        self.revision += 1
        event = DELETED if after is None else ADDED if before is None else MODIFIED
        user, subresource, request = author
        write = Write(
            self.epoch, self.revision, self._now(), user, kind.name, key, subresource,
            before, after, request, event, shown,
        )  # fmt: skip
        collection = self._collections[kind.name]
        collection.add(write)
        self.writes.append(write)
        if self._kept is not None:
            self._trim(collection, self._kept)
        self.on_write(write)

    def _trim(self, collection: Collection, kept: int) -> None:
        if len(self.writes) >= 2 * kept:
            del self.writes[: len(self.writes) - kept]
        if len(collection.log) >= 2 * kept:
            collection.forget(collection.log[len(collection.log) - kept - 1].revision)

    def state(self, kind: Kind, epoch: int, revision: int) -> State:
        """Return the objects of a kind at a revision of an epoch; LookupError if that is not kept."""
        if epoch == self.epoch:
            return self._collections[kind.name].at(revision)
        if not 0 <= epoch < self.epoch:
            raise LookupError(f"there is no epoch {epoch}, only 0 to {self.epoch}")
        return self._past[epoch][kind.name].at(revision)

    def compact(self, revision: int) -> None:
        """Let requests no longer name revisions below this one; the history is kept for ``state``."""
        for collection in self._collections.values():
            collection.oldest = max(collection.oldest, revision)

    def backup(self) -> Backup:
        """Return the objects of now."""
        objects = {name: dict(each.objects) for name, each in self._collections.items()}
        return Backup(self.revision, objects)

    def restore(self, backup: Backup) -> None:
        """Begin an epoch with the objects and the revision of a backup, and without a history."""
        self._past.append(self._collections)
        self.epoch += 1
        self.revision = backup.revision
        self._collections = {
            name: Collection(BY_NAME[name], objects, backup.revision)
            for name, objects in backup.objects.items()
        }
