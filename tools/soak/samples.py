"""The figures of a scheduler process at rest: from /proc, from /metrics, and from inside."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import requests

from tests.fake_apiserver import SchedulerProcess
from tools.soak.memory import USED, mapped

_SAMPLE: Final = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?P<labels>\{.*\})? (?P<value>\S+)$")
_STATUS: Final = {"VmRSS": "rss_kib", "VmHWM": "peak_kib", "Threads": "threads"}


@dataclass(slots=True)
class Exposition:
    """What /metrics returned.

    Attributes:
        gauges: The values of all gauges, by sample.
        counters: The values of all counters, by sample.
        series: The number of samples.
    """

    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    series: int = 0

    @classmethod
    def parse(cls, text: str) -> Exposition:
        """Read the text format."""
        found, types = cls(), dict[str, str]()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                types[name] = kind
            elif not line.startswith("#") and (match := _SAMPLE.match(line)):
                found.series += 1
                name, sample = match["name"], match["name"] + (match["labels"] or "")
                if types.get(name) == "gauge":
                    found.gauges[sample] = float(match["value"])
                elif types.get(name) == "counter":
                    found.counters[sample] = float(match["value"])
        return found

    def total(self, family: str) -> float:
        """Return the sum of the counters of a family."""
        return sum(value for sample, value in self.counters.items() if sample.split("{")[0] == family)

    @property
    def pending(self) -> float:
        """The number of bindings that are due, or are being written."""
        depth = sum(value for sample, value in self.gauges.items() if sample.startswith("workqueue_depth"))
        return depth + self.gauges.get("karmada_scheduler_writes_in_flight", 0.0)


@dataclass(slots=True)
class Sample:
    """The figures of a process at rest.

    Attributes:
        events: The number of watch events so far.
        seconds: Since the start of the run.
        process: The number of the process; another one after each takeover.
        figures: What must not grow, by name: ``rss_kib``, ``threads``, ``descriptors``, ``series``, ``tasks``,
            ``objects`` (of the garbage collector), ``blocks`` (of Python's allocator), ``memory used`` (bytes in use of
            all allocators), ``gauge ...`` and ``size ...``; and ``memory ...``, which explains ``rss_kib``.
        bounded: The number of entries and the bound of each ``lru_cache``.
        types: The number of objects by type, for types with some objects.
        other: What may grow.
    """

    events: int
    seconds: float
    process: int
    figures: dict[str, float]
    bounded: dict[str, tuple[int, int]] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)


def take(
    scheduler: SchedulerProcess, inside: Path, *, walk: bool, events: int, seconds: float, process: int
) -> Sample:
    """Take the figures of a process; first those that the others would change.

    Args:
        scheduler: The process.
        inside: The socket of ``program``.
        walk: Whether all objects of the process are walked through, which takes memory of the process.
        events: The number of watch events so far.
        seconds: Since the start of the run.
        process: The number of the process.
    """
    figures: dict[str, float] = dict(proc(scheduler.pid))
    figures.update({f"memory rss_{name}_kib": value for name, value in mapped(scheduler.pid).items()})
    totals = inspect(inside, b"m")
    figures |= {name: totals.pop(name) for name in ("blocks", "tasks")}
    figures["memory used"] = sum(totals.get(name, 0) for name in USED)
    figures.update({f"memory {name}": value for name, value in totals.items()})
    metrics = scrape(scheduler)
    report: dict[str, Any] = {"sizes": {}, "bounded": {}, "types": {}, "collections": [], "collected": 0}
    if walk:
        report = inspect(inside)
        figures |= {name: report[name] for name in ("tasks", "objects", "blocks")}
    figures["series"] = metrics.series
    figures.update({f"gauge {name}": value for name, value in metrics.gauges.items()})
    figures.update({f"size {name}": value for name, value in report["sizes"].items()})
    return Sample(
        events,
        round(seconds, 1),
        process,
        figures,
        {name: (count, bound) for name, (count, bound) in report["bounded"].items()},
        report["types"],
        {
            "peak_kib": figures.pop("peak_kib"),
            "collections": report["collections"],
            "collected": report["collected"],
            "scheduler_events": metrics.total("karmada_scheduler_watch_events_total"),
            "writes": {
                name.partition("{")[2].rstrip("}"): value
                for name, value in metrics.counters.items()
                if name.startswith("karmada_scheduler_api_writes_total")
            },
            "attempts": metrics.total("karmada_scheduler_schedule_attempts_total"),
            "cpu_seconds": metrics.counters.get("process_cpu_seconds_total", 0.0),
        },
    )


def scrape(scheduler: SchedulerProcess, *, attempts: int = 20) -> Exposition:
    """Return what /metrics returns; on a busy machine it may take several attempts."""
    for _ in range(attempts - 1):
        try:
            return Exposition.parse(scheduler.scrape())
        except requests.Timeout:
            continue
    return Exposition.parse(scheduler.scrape())


def proc(pid: int) -> dict[str, int]:
    """Return memory in KiB, threads and open file descriptors of a process."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in _STATUS:
            found[_STATUS[name]] = int(value.split()[0])
    return {**found, "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir()))}


def inspect(path: Path, wanted: bytes = b"r", *, timeout: float = 600.0) -> dict[str, Any]:
    """Return what ``program`` answers at its socket.

    Raises:
        RuntimeError: It could not be made.
    """
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(str(path))
        connection.sendall(wanted)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
            if time.monotonic() > deadline:
                raise TimeoutError
    report: dict[str, Any] = orjson.loads(b"".join(parts))
    if "error" in report:
        raise RuntimeError(report["error"])
    return report
