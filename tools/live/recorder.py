"""Records of a run, as files of JSON lines, and the watches of etcd that make the largest of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Final

import orjson
import requests

from tools.live.etcd import CompactedError, Etcd, EtcdError

WATCHED: Final = {
    "bindings": "/registry/work.karmada.io/resourcebindings/",
    "clusters": "/registry/cluster.karmada.io/clusters/",
    "leases": "/registry/leases/karmada-system/",
}
"""What is recorded in every stored version, by the name of its file, as prefixes of etcd's keys."""


class Journal:
    """One file of JSON lines, each with the time at which it was written. Threads may share it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._lock = threading.Lock()

    def add(self, **fields: Any) -> None:
        """Write a line."""
        line = orjson.dumps({"at": round(time.time(), 4), **fields}) + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


class StateRecorder:
    """Records every stored version of bindings, clusters and Leases, as etcd has them.

    A lost connection is made again from the next revision on, so nothing is missing, unless etcd has compacted it
    meanwhile: then there is a line with ``gap``.
    """

    def __init__(self, folder: Path, etcd: Etcd) -> None:
        self._etcd = etcd
        self._folder = folder
        self._stop = threading.Event()
        self._next = dict.fromkeys(WATCHED, 0)
        self._revisions: dict[str, dict[str, int]] = {name: {} for name in WATCHED}
        self._threads = [
            threading.Thread(target=self._follow, args=(name, prefix), name=f"record {name}", daemon=True)
            for name, prefix in WATCHED.items()
        ]

    def start(self) -> None:
        """Start the threads; what is stored already is recorded first."""
        for thread in self._threads:
            thread.start()

    def current_revision(self) -> int | None:
        """Return a revision up to which every version is recorded, so that etcd may be compacted; None if some are not.

        A watch that is lost continues after this revision.
        """
        revisions = []
        for name, prefix in WATCHED.items():
            revision, found = self._etcd.read(prefix)
            if {each.key: each.revision for each in found} != self._revisions[name]:
                return None
            revisions.append(revision)
        revision = min(revisions)
        for name in WATCHED:
            self._next[name] = max(self._next[name], revision + 1)
        return revision

    def stop(self) -> None:
        """Record nothing more; the threads end with etcd's connections."""
        self._stop.set()

    def _follow(self, name: str, prefix: str) -> None:
        journal = Journal(self._folder / f"{name}.jsonl")
        while not self._stop.is_set():
            try:
                if not self._next[name]:
                    revision, found = self._etcd.read(prefix)
                    journal.add(gap=revision)
                    self._revisions[name] = {each.key: each.revision for each in found}
                    for each in found:
                        journal.add(key=each.key, revision=each.revision, value=each.value)
                    self._next[name] = revision + 1
                for each in self._etcd.watch(prefix, self._next[name]):
                    if self._stop.is_set():
                        return
                    journal.add(key=each.key, revision=each.revision, value=each.value)
                    if each.value is None:
                        self._revisions[name].pop(each.key, None)
                    else:
                        self._revisions[name][each.key] = each.revision
                    self._next[name] = max(self._next[name], each.revision + 1)
            except CompactedError:
                self._next[name] = 0
            except (EtcdError, requests.RequestException, ValueError, KeyError):
                self._stop.wait(0.2)
