"""The figures of a scheduler process, from outside: from /proc, and from its metrics, with those of ``program``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

_STATUS: Final = {"VmRSS": "rss_kib", "Threads": "threads"}
_TASK: Final = "_asyncio.Task"
DEPTHS: Final = ("workqueue_depth", "karmada_scheduler_writes_in_flight")
"""The gauges of what is due, or is being written."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of a process.

    Attributes:
        pid: Of the process.
        events: The number of watch events that it has seen.
        figures: What must not grow, by name: ``rss_kib``, ``threads``, ``descriptors``, ``tasks``, ``series``, ``blocks``
            (of Python's allocator), ``malloc_bytes``, and the gauges of the scheduler.
        types: The number of objects by type, for types with some objects.
    """

    pid: int
    events: float
    figures: dict[str, float]
    types: dict[str, float]

    @property
    def due(self) -> float:
        """The number of bindings that are due, or are being written."""
        return sum(value for name, value in self.figures.items() if name.startswith(DEPTHS))


def sample(pid: int, exposition: str) -> Sample:
    """Take the figures of a process with its metrics in the text format."""
    figures, types, events = proc(pid), dict[str, float](), 0.0
    figures["series"] = 0
    for family in text_string_to_metric_families(exposition):
        for found in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(found.labels.items()))
            if family.name == "live_objects":
                types[found.labels["type"]] = found.value
            elif family.name.startswith("live_") and family.type == "gauge":
                figures[family.name.removeprefix("live_")] = found.value
            else:
                figures["series"] += 1
                events += found.value if found.name == "karmada_scheduler_watch_events_total" else 0
                if family.type == "gauge":
                    figures[f"{found.name}{{{labels}}}" if labels else found.name] = found.value
    figures["tasks"] = types.get(_TASK, 0)
    return Sample(pid, events, figures, types)


def proc(pid: int) -> dict[str, float]:
    """Return memory in KiB, threads and open file descriptors of a process."""
    found: dict[str, float] = {"descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir()))}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in _STATUS:
            found[_STATUS[name]] = int(value.split()[0])
    return found
