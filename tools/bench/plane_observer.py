"""The stopwatch: one watch on the bindings of one namespace, the same for every scheduler.

    python -m tools.bench.plane_observer KUBECONFIG NAMESPACE COUNT

It prints ``watching``, ``first`` and ``all`` on lines of their own: when the watch has started, when the first binding
named ``work-...`` has clusters, when COUNT of them have. At the end of its standard input it prints one line of JSON: when
each was first seen, when it was first seen with clusters, when its status had caught up (``time.monotonic``), and how
many clusters a binding got on average.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import uvloop

from tools.bench.plane_http import BINDINGS, ROOT, session


class Stopwatch:
    """Times at which a watch has shown bindings."""

    def __init__(self, count: int) -> None:
        """Prepare for ``count`` bindings named ``work-...``."""
        self._count = count
        self.seen: dict[str, float] = {}
        self.placed: dict[str, float] = {}
        self._targets: dict[str, int] = {}
        self._settled: dict[str, float] = {}

    def note(self, binding: Mapping[str, Any], now: float) -> str | None:
        """Note a watch event of a binding; return ``first`` or ``all`` when that is reached."""
        metadata = binding["metadata"]
        name: str = metadata["name"]
        if not name.startswith("work-"):
            return None
        self.seen.setdefault(name, now)
        if binding.get("status", {}).get("schedulerObservedGeneration") == metadata["generation"]:
            self._settled.setdefault(name, now)
        clusters = binding["spec"].get("clusters") or []
        if name in self.placed or not clusters:
            return None
        self.placed[name] = now
        self._targets[name] = len(clusters)
        if len(self.placed) == self._count:
            return "all"
        return "first" if len(self.placed) == 1 else None

    def results(self) -> dict[str, object]:
        """Return everything."""
        mean = sum(self._targets.values()) / len(self._targets) if self._targets else 0.0
        return {"seen": self.seen, "placed": self.placed, "settled": self._settled, "targets": mean}


class Observer:
    """A process of this module, from outside."""

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        count: int,
        *,
        first: Callable[[], None] = lambda: None,
    ) -> None:
        """Start it, and wait until it watches; ``first`` is called in a thread at the first placement."""
        self._reported: dict[str, threading.Event] = {
            word: threading.Event() for word in ("watching", "first", "all")
        }
        self._first = first
        self._results: dict[str, Any] = {}
        argv = [sys.executable, "-m", "tools.bench.plane_observer", str(kubeconfig), namespace, str(count)]
        self._process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self.reported("watching", 30):
            raise RuntimeError("the observer does not watch")

    def reported(self, word: str, timeout: float = 0.0) -> bool:
        """Return whether it has reported a word, waiting up to the timeout (seconds)."""
        return self._reported[word].wait(timeout)

    def finish(self) -> dict[str, Any]:
        """End it and return its results."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(30)
        self._process.wait(30)
        return self._results

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._results = json.loads(line)
                return
            if line.strip() == "first":
                self._first()
            self._reported[line.strip()].set()


async def _watch(kubeconfig: Path, namespace: str, stopwatch: Stopwatch) -> None:
    async with session(kubeconfig, connections=1) as http:
        path = BINDINGS.format(namespace=namespace)
        async with http.get(path, params={"watch": "true", "timeoutSeconds": "3600"}) as answer:
            answer.raise_for_status()
            print("watching", flush=True)
            async for line in answer.content:
                now = time.monotonic()
                event = orjson.loads(line)
                if event["type"] not in ("ADDED", "MODIFIED"):
                    continue
                if word := stopwatch.note(event["object"], now):
                    print(word, flush=True)


async def _observe(kubeconfig: Path, namespace: str, stopwatch: Stopwatch) -> None:
    watch = asyncio.create_task(_watch(kubeconfig, namespace, stopwatch))
    end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait({watch, end}, return_when=asyncio.FIRST_COMPLETED)
    watch.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watch


def main() -> None:
    """Observe until the end of standard input."""
    stopwatch = Stopwatch(int(sys.argv[3]))
    uvloop.run(_observe(Path(sys.argv[1]), sys.argv[2], stopwatch))
    print(orjson.dumps(stopwatch.results()).decode(), flush=True)


if __name__ == "__main__":
    main()
