"""Records of a run, as files of JSON lines, and the watches of etcd that make the largest of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Final

import orjson
import requests

from tools.chaos.etcd import CompactedError, Etcd, EtcdError

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
        self._recorded = dict.fromkeys(WATCHED, 0)
        self._threads = [
            threading.Thread(target=self._follow, args=(name, prefix), name=f"record {name}", daemon=True)
            for name, prefix in WATCHED.items()
        ]

    def start(self) -> None:
        """Start the threads; what is stored already is recorded first."""
        for thread in self._threads:
            thread.start()

    def is_current(self) -> bool:
        """Return whether every stored version is recorded, so that etcd may compact them."""
        newest = {
            name: max((each.revision for each in self._etcd.read(prefix)[1]), default=0)
            for name, prefix in WATCHED.items()
        }
        return all(self._recorded[name] >= revision for name, revision in newest.items())

    def stop(self) -> None:
        """Record nothing more; the threads end with etcd's connections."""
        self._stop.set()

    def _follow(self, name: str, prefix: str) -> None:
        journal = Journal(self._folder / f"{name}.jsonl")
        next_revision = 0
        while not self._stop.is_set():
            try:
                if not next_revision:
                    revision, found = self._etcd.read(prefix)
                    journal.add(gap=revision)
                    for each in found:
                        journal.add(key=each.key, revision=each.revision, value=each.value)
                    next_revision = revision + 1
                    self._recorded[name] = revision
                for each in self._etcd.watch(prefix, next_revision):
                    if self._stop.is_set():
                        return
                    journal.add(key=each.key, revision=each.revision, value=each.value)
                    next_revision = each.revision + 1
                    self._recorded[name] = each.revision
            except CompactedError:
                next_revision = 0
            except (EtcdError, requests.RequestException, ValueError, KeyError):
                self._stop.wait(0.2)
