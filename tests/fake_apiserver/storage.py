"""The stored objects: the model of an API server, for many threads, with shorthands for tests."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from tools.apiserver_model import ApiServerModel, Backup, WatchRules

Object = dict[str, Any]

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Storage:
    """All objects, in memory. Methods may be called from any thread.

    Attributes:
        model: The model of the API server; code that uses it directly holds the lock.
        lock: Held by each method.
    """

    def __init__(self, *, version: int, kept_writes: int | None = None) -> None:
        """Start empty at a version; ``kept_writes`` bounds the history as in ``ApiServerModel``, None for all."""
        numbers = itertools.count(1)
        self.model = ApiServerModel(
            lambda: _NOW, lambda: f"uid-{next(numbers)}", revision=version, kept_writes=kept_writes
        )
        # A restore takes no time here. A list from before it and the watch that follows would otherwise be accepted, and
        # the watch would be silent. From a real server the client gets an error in between.
        self.model.watch_rules = WatchRules(refuses_future=True)
        self.lock = threading.RLock()

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        with self.lock:
            return self.model.revision

    @property
    def rules(self) -> list[Object]:
        """The permissions that SelfSubjectRulesReviews report."""
        return self.model.rules

    @rules.setter
    def rules(self, rules: list[Object]) -> None:
        self.model.rules = rules

    def put(self, manifest: Object) -> Object:
        """Create or replace an object; return it as stored. See ``ApiServerModel.put``."""
        with self.lock:
            return self.model.put(manifest)

    def put_raw(self, manifest: bytes) -> None:
        """Create or replace an object by its text; see ``ApiServerModel.put_raw``."""
        with self.lock:
            self.model.put_raw(manifest)

    def corrupt(self, kind: str, name: str, text: bytes, namespace: str = "default") -> None:
        """Give an object any text, without an event; see ``ApiServerModel.corrupt``."""
        with self.lock:
            self.model.corrupt(kind, namespace, name, text)

    def text(self, kind: str, name: str, namespace: str = "default") -> bytes:
        """Return the JSON of an object, {} without one; for objects that cannot be decoded."""
        with self.lock:
            return self.model.state(kind).get((namespace, name), b"{}")

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object as stored; cluster-scoped kinds have no namespace whatever is given."""
        with self.lock:
            return self.model.get(kind, namespace, name)

    def all(self, kind: str) -> list[Object]:
        """Return all objects of a kind."""
        with self.lock:
            found = [self.model.get(kind, *key) for key in self.model.state(kind)]
            return [each for each in found if each is not None]

    def change(
        self, kind: str, name: str, change: Callable[[Object], object], namespace: str = "default"
    ) -> None:
        """Change an object in place, as another client would."""
        with self.lock:
            found = self.get(kind, name, namespace)
            assert found is not None, f"{kind} {namespace}/{name} is not there"
            change(found)
            self.put(found)

    def delete(self, kind: str, name: str, namespace: str = "default", *, force: bool = True) -> None:
        """Delete an object at once; without ``force``, one with finalizers waits for them."""
        with self.lock:
            self.model.delete(kind, namespace, name, force=force)

    def patches(self, name: str) -> int:
        """Return the number of stored patches of objects with a name."""
        with self.lock:
            requests = [write.request for write in self.model.writes if write.key[1] == name]
            return sum(request is not None and request.method == "PATCH" for request in requests)

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
            return len(self.model.watches.of(kind))

    def end_watches(self, kind: str | None = None) -> None:
        """End the watches of a kind, or all, as a server does after some minutes."""
        with self.lock:
            for watch in self.model.watches.of(kind):
                watch.end()

    def send(self, kind: str, line: bytes) -> None:
        """Send any line to the watches of a kind; the line break is added."""
        with self.lock:
            for watch in self.model.watches.of(kind):
                watch.send(line + b"\n")

    def backup(self) -> Backup:
        """Return the state for ``restore``."""
        with self.lock:
            return self.model.backup()

    def restore(self, backup: Backup) -> None:
        """Go back to a state, versions included, as etcd does from a backup; all connections of watches end."""
        with self.lock:
            self.model.restore(backup)
