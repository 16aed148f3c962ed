"""Our scheduler as the live tool runs it: the real command, with gauges of what its process holds, and maybe a planted fault.

    python -m tools.live.program NAMES FLAG...

``NAMES`` are of planted bugs (``tools.simulation.planted_bugs``) and leaks, with commas between them, or ``-``.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

from prometheus_client import Counter as CounterFamily
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler import command
from karmada_scheduler.process.process_exit import TERMINATION
from tools.simulation.planted_bugs import BUGS

_LEAST: Final = 50
"""Types with fewer objects than this are not counted."""

COUNTED_SECONDS: Final = 1.0
"""For how long objects that were counted are not counted again: it takes a tenth of a second."""

_held: list[object] = []
_by_name = CounterFamily("live_leak", "A series for each object", ["name"], registry=None)


class MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc: the sums over all arenas, in bytes or counts."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
        )
    ]  # fmt: skip


class ProcessContents(Collector):
    """What the process holds: blocks of Python's allocator, bytes of malloc, and objects by type."""

    def __init__(self) -> None:
        self._types: Counter[str] = Counter()
        self._counted = 0.0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Count, for an answer of the metrics server."""
        yield GaugeMetricFamily("live_blocks", "Blocks of Python's allocator", sys.getallocatedblocks())
        yield GaugeMetricFamily("live_malloc_bytes", "Bytes in use of malloc", malloc_bytes())
        if time.monotonic() - self._counted > COUNTED_SECONDS:
            self._types, self._counted = _types(), time.monotonic()
        objects = GaugeMetricFamily("live_objects", "Objects by type", labels=["type"])
        for name, count in self._types.items():
            if count >= _LEAST or name == "_asyncio.Task":
                objects.add_metric([name], count)
        yield objects


def malloc_bytes() -> int:
    """Return the bytes that are in use of glibc's heaps, and of blocks that are mapped alone; 0 without glibc."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    mallinfo2.restype = MallInfo
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)


def _types() -> Counter[str]:
    return Counter(f"{type(found).__module__}.{type(found).__qualname__}" for found in gc.get_objects())


def _keep(_kind: str, _event: str, found: Any) -> None:
    _held.append(dict(found))


def _name(_kind: str, _event: str, found: Any) -> None:
    _by_name.labels(found["metadata"]["name"]).inc()


def _begin_task(_kind: str, event: str, _found: Any) -> None:
    if event == "DELETED":
        _held.append(asyncio.get_running_loop().create_task(asyncio.Event().wait()))


def _open_sockets(_kind: str, event: str, _found: Any) -> None:
    """Open two, because the idle connections to the API server vary by dozens."""
    if event == "DELETED":
        _held.extend((socket.socket(), socket.socket()))


LEAKS: Final[dict[str, Callable[[str, str, Any], None]]] = {
    "objects": _keep,
    "series": _name,
    "tasks": _begin_task,
    "descriptors": _open_sockets,
}
"""What is held for each event that the informer delivers, to see that the judge of growth finds it."""


def main() -> int:
    """Run until it ends; what is planted is never removed."""
    TERMINATION.install()
    names, *flags = sys.argv[1:]
    chosen = set(names.split(","))
    original_metrics, original_event = Metrics.__init__, EventHandlers.on_event

    def init(self: Metrics) -> None:
        original_metrics(self)
        self.registry.register(ProcessContents())
        self.registry.register(_by_name)

    def on_event(self: EventHandlers, kind: str, event: str, found: Any) -> None:
        for name, leak in LEAKS.items():
            if name in chosen:
                leak(kind, event, found)
        original_event(self, kind, event, found)

    Metrics.__init__ = init  # type: ignore[method-assign]
    EventHandlers.on_event = on_event  # type: ignore[method-assign,assignment]
    with ExitStack() as stack:
        for bug in BUGS:
            if bug.name in chosen:
                stack.enter_context(bug.planted())
        return command.main(flags)


if __name__ == "__main__":
    sys.exit(main())
