"""Watches: who gets which line.

A line is one JSON object and a line break. Everything happens within the call that causes it: there is no queue for a
slow client, so a caller that wants one puts it behind ``on_line``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import orjson

from tools.apiserver_model import messages
from tools.apiserver_model.kinds import Kind
from tools.apiserver_model.raw_objects import metadata_only
from tools.apiserver_model.store import Write

OnLine = Callable[[bytes | None], None]
"""Gets each line with its line break, and None when the server ends the watch."""


class Watch:
    """An open watch.

    Attributes:
        kind: The watched kind.
        namespace: The watched namespace, "" for all.
        user: Of the request.
        revision: Of the newest line; the watch gets newer writes only.
        is_open: Whether it gets lines.
    """

    def __init__(
        self,
        kind: Kind,
        namespace: str,
        on_line: OnLine,
        *,
        user: str,
        revision: int,
        as_metadata: bool,
        bookmarks: bool,
        hub: Watches,
    ) -> None:
        """Begin open; ``Watches.open`` makes them."""
        self.kind = kind
        self.namespace = namespace
        self.user = user
        self.revision = revision
        self.is_open = True
        self.as_metadata = as_metadata
        self._on_line = on_line
        self._bookmarks = bookmarks
        self._hub = hub

    def wants(self, write: Write) -> bool:
        """Return whether a write is one that the watch has not shown and that it is about."""
        return write.revision > self.revision and (not self.namespace or write.key[0] == self.namespace)

    def send(self, line: bytes, revision: int | None = None) -> None:
        """Send a line, with its line break; a line about a write has its revision."""
        if revision is not None:
            self.revision = revision
        if self.is_open:
            self._on_line(line)

    def bookmark(self) -> bool:
        """Send a BOOKMARK with the newest revision; False if the client wants none, or a line is still to come."""
        revision = self._hub.newest(self.kind.name)
        if not self._bookmarks or not self.is_open or self._hub.is_delivering or revision < self.revision:
            return False
        api_version, name = (
            ("meta.k8s.io/v1", "PartialObjectMetadata")
            if self.as_metadata
            else (self.kind.api_version, self.kind.name)
        )
        metadata = {"resourceVersion": str(revision)}
        found = {"kind": name, "apiVersion": api_version, "metadata": metadata}
        self.send(_line("BOOKMARK", orjson.dumps(found)), revision)
        return True

    def fail(self, code: int, reason: str, message: str) -> None:
        """Send an ERROR and end."""
        self.send(_line("ERROR", orjson.dumps(messages.status(code, reason, message))))
        self.end()

    def end(self) -> None:
        """End it as a server does: the client gets the end of the stream."""
        if self.is_open:
            self.close()
            self._on_line(None)

    def close(self) -> None:
        """End it as a client does: no more lines, and no end of the stream."""
        if self.is_open:
            self.is_open = False
            self._hub.closed(self)


class Watches:
    """The open watches of one front end.

    Attributes:
        newest: Returns the revision up to which the front end knows a kind.
        is_delivering: Whether a write is being sent, so that not every watch has every line.
    """

    def __init__(self, newest: Callable[[str], int]) -> None:
        """Begin without any."""
        self.newest = newest
        self.is_delivering = False
        self._by_kind: dict[str, dict[Watch, None]] = {}
        self._waiting: deque[Write] = deque()

    def open(
        self,
        kind: Kind,
        namespace: str,
        on_line: OnLine,
        *,
        user: str,
        revision: int,
        as_metadata: bool,
        bookmarks: bool,
    ) -> Watch:
        """Add a watch of writes after a revision."""
        watch = Watch(
            kind, namespace, on_line, user=user, revision=revision, as_metadata=as_metadata,
            bookmarks=bookmarks, hub=self,
        )  # fmt: skip
        self._by_kind.setdefault(kind.name, {})[watch] = None
        return watch

    def closed(self, watch: Watch) -> None:
        """Forget a watch."""
        del self._by_kind[watch.kind.name][watch]

    def of(self, kind: str | None = None) -> list[Watch]:
        """Return the open watches of a kind by its name, or all, in the order in which they were opened."""
        if kind is not None:
            return list(self._by_kind.get(kind, ()))
        return [watch for opened in self._by_kind.values() for watch in opened]

    def deliver(self, write: Write) -> None:
        """Send a write to the watches that want it.

        ``on_line`` may write to the model. Its writes are sent when every watch has the line of this one, so each watch
        gets lines in the order of revisions.
        """
        self._waiting.append(write)
        if self.is_delivering:
            return
        self.is_delivering = True
        try:
            while self._waiting:
                self._send(self._waiting.popleft())
        finally:
            self.is_delivering = False

    def _send(self, write: Write) -> None:
        full = narrow = b""
        for watch in self.of(write.kind):
            if not watch.wants(write):
                continue
            if watch.as_metadata:
                narrow = narrow or _line(write.event, metadata_only(write.shown))
                watch.send(narrow, write.revision)
            else:
                full = full or _line(write.event, write.shown)
                watch.send(full, write.revision)

    def end_all(self) -> None:
        """End every watch as a server does; writes that were not delivered yet are not."""
        self._waiting.clear()
        for watch in self.of():
            watch.end()


def replay(watch: Watch, writes: Iterable[Write]) -> None:
    """Send past writes to a watch."""
    for write in writes:
        if watch.wants(write):
            shown = metadata_only(write.shown) if watch.as_metadata else write.shown
            watch.send(_line(write.event, shown), write.revision)


def show(watch: Watch, items: Iterable[bytes]) -> None:
    """Send the objects of a state to a watch as ADDED; the watch has the revision of the state already."""
    for item in items:
        watch.send(_line("ADDED", metadata_only(item) if watch.as_metadata else item))


def _line(event: str, found: bytes) -> bytes:
    return b'{"type":"' + event.encode() + b'","object":' + found + b"}\n"
