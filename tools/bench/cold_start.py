"""From a cold start to the first decisions with 100,000 bindings and 5,000 Clusters, and a while of status updates.

    python -m tools.bench.cold_start --bindings 100000 --clusters 5000 --json FILE [-- FLAGS OF THE SCHEDULER]

The scheduler is the real process, ``python -m karmada_scheduler``, with its defaults: kopf, leader election, metrics,
every plugin. The API server is ``tools.bench.start_server``, a process of its own on the same two cores; its docstring
describes what of it is not real. One binding in a hundred waits for its first decision, the others are settled, and a fifth of these
is Duplicated and therefore decided again by any scheduler that starts. Memory is the kernel's account of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import requests

from karmada_advisor.cli.output import table
from tools.bench.plane_meters import cpu_seconds, peak_mib, resident_mib
from tools.bench.recording import Sizes
from tools.controlplane.api import local_session
from tools.controlplane.processes import Process, Supervisor, free_port

QUIET_SECONDS: Final = 3.0
QUIET_SHARE: Final = 0.05


@dataclass(slots=True)
class Result:
    """What was measured; seconds count from the start of the process, memory is in MiB.

    Attributes:
        settled_seconds: When the process became idle.
        start_cpu: CPU seconds until then.
        placed: Bindings that got their first clusters.
        moved: Bindings that got others than they had; there is no reason for any.
        event_micros: CPU time per status update of a Cluster.
        event_memory: Resident memory through the updates, one value a second.
    """

    bindings: int
    clusters: int
    ready_seconds: float = 0.0
    first_seconds: float = 0.0
    all_seconds: float = 0.0
    settled_seconds: float = 0.0
    ready_cpu: float = 0.0
    all_cpu: float = 0.0
    start_cpu: float = 0.0
    ready_memory: float = 0.0
    peak_memory: float = 0.0
    settled_memory: float = 0.0
    placed: int = 0
    moved: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    events: int = 0
    event_micros: float = 0.0
    event_memory: list[float] = field(default_factory=list)
    peak_memory_after: float = 0.0
    machine: str = ""


class Bench:
    """An API server with a large installation, and a scheduler on it."""

    def __init__(self, sizes: Sizes, folder: Path, supervisor: Supervisor) -> None:
        """Start the API server and wait until it serves."""
        self.sizes = sizes
        self._supervisor = supervisor
        self._kubeconfig = folder / "kubeconfig"
        self._session = local_session()
        arguments = [
            "--folder",
            str(folder),
            "--bindings",
            str(sizes.bindings),
            "--clusters",
            str(sizes.clusters),
        ]
        supervisor.spawn("server", [sys.executable, "-m", "tools.bench.start_server", *arguments])
        self._until(self._kubeconfig.exists, "the API server", 300)
        config = json.loads(self._kubeconfig.read_text())
        self._server = config["clusters"][0]["cluster"]["server"]
        self._session.verify = str(folder / "ca.crt")

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def run(self, *, rate: float, seconds: float, limit: float, flags: Sequence[str] = ()) -> Result:
        """Start the scheduler, wait until all bindings are placed and the process is idle, then let Clusters report.

        Args:
            rate: Status updates a second.
            seconds: For how long.
            limit: Seconds that a phase may take.
            flags: Further flags of the scheduler.
        """
        result = Result(self.sizes.bindings, self.sizes.clusters, machine=_machine())
        began = time.monotonic()
        with self._scheduler(flags) as (process, health, metrics):
            pid = process.pid
            self._until(lambda: self._answers(health + "/readyz"), "the scheduler to be ready", limit)
            result.ready_seconds = time.monotonic() - began
            result.ready_cpu, result.ready_memory = cpu_seconds(pid), resident_mib(pid)
            self._until(lambda: self._seen()["placed"] >= self.sizes.new, "everything to be placed", limit)
            result.all_cpu = cpu_seconds(pid)
            seen = self._seen()
            result.first_seconds, result.all_seconds = seen["first"] - began, seen["last"] - began
            result.settled_seconds = self._wait_for_quiet(pid, limit) - began
            result.start_cpu = cpu_seconds(pid)
            result.settled_memory, result.peak_memory = resident_mib(pid), peak_mib(pid)
            seen = self._seen()
            result.placed, result.moved, result.requests = seen["placed"], seen["moved"], seen["requests"]
            self._update(result, pid, metrics, rate=rate, seconds=seconds)
        return result

    def _update(self, result: Result, pid: int, metrics: str, *, rate: float, seconds: float) -> None:
        query = {"rate": str(rate), "seconds": str(seconds)}
        before, known, sent = cpu_seconds(pid), self._events(metrics), self._seen()["updates"]
        self._session.post(f"{self._server}/bench/updates", params=query, timeout=10).raise_for_status()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(1.0)
            result.event_memory.append(round(resident_mib(pid), 1))
        self._until(
            lambda: self._events(metrics) - known >= self._seen()["updates"] - sent,
            "the events to arrive",
            120,
        )
        result.events = self._events(metrics) - known
        result.event_micros = (cpu_seconds(pid) - before) / max(result.events, 1) * 1e6
        result.peak_memory_after = peak_mib(pid)

    @contextmanager
    def _scheduler(self, flags: Sequence[str]) -> Iterator[tuple[Process, str, str]]:
        metrics, health = free_port(), free_port()
        process = self._supervisor.spawn(
            "scheduler",
            [
                sys.executable,
                "-m",
                "karmada_scheduler",
                f"--kubeconfig={self._kubeconfig}",
                f"--metrics-bind-address=127.0.0.1:{metrics}",
                f"--health-probe-bind-address=127.0.0.1:{health}",
                *flags,
            ],
        )
        try:
            yield process, f"http://127.0.0.1:{health}", f"http://127.0.0.1:{metrics}/metrics"
        finally:
            process.stop(30)

    def _until(self, reached: Callable[[], bool], what: str, limit: float) -> None:
        ends = time.monotonic() + limit
        while not reached():
            self._supervisor.check()
            if time.monotonic() > ends:
                raise TimeoutError(f"gave up waiting for {what} after {limit:.0f}s")
            time.sleep(0.1)

    def _wait_for_quiet(self, pid: int, limit: float) -> float:
        """Wait until the process is idle; return since when."""
        ends = time.monotonic() + limit
        while time.monotonic() < ends:
            since, before = time.monotonic(), cpu_seconds(pid)
            time.sleep(QUIET_SECONDS)
            if cpu_seconds(pid) - before < QUIET_SHARE * QUIET_SECONDS:
                return since
            self._supervisor.check()
        raise TimeoutError(f"the scheduler was not idle after {limit:.0f}s")

    def _seen(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._session.get(f"{self._server}/bench/seen", timeout=60).json()
        return answer

    def _answers(self, url: str) -> bool:
        try:
            return self._session.get(url, timeout=60).status_code == 200
        except requests.ConnectionError:
            return False

    def _events(self, metrics: str) -> int:
        """Return how many changes of Clusters the scheduler has received."""
        text = self._session.get(metrics, timeout=60).text
        return sum(
            int(float(line.rpartition(" ")[2]))
            for line in text.splitlines()
            if "watch_events_total{" in line and 'kind="Cluster"' in line and 'event="MODIFIED"' in line
        )


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"


def report(result: Result) -> str:
    """Return the table."""
    rows = [
        ("ready (every kind listed)", f"{result.ready_seconds:.1f}", f"{result.ready_cpu:.1f}", f"{result.ready_memory:.0f}"),
        ("first binding placed", f"{result.first_seconds:.1f}", "", ""),
        (f"all {result.placed} placed", f"{result.all_seconds:.1f}", f"{result.all_cpu:.1f}", ""),
        ("nothing left to do", f"{result.settled_seconds:.1f}", f"{result.start_cpu:.1f}",
         f"{result.settled_memory:.0f} (peak {result.peak_memory:.0f})"),
    ]  # fmt: skip
    memory = result.event_memory or [0.0]
    lists = ", ".join(f"{name} {count}" for name, count in sorted(result.requests.items()))
    return "\n".join((
        f"{result.bindings} bindings, {result.clusters} clusters, {result.machine}",
        "",
        table(["after the start", "s", "CPU s", "memory MiB"], rows),
        "",
        f"  requests: {lists}; {result.moved} moved",
        (f"  status updates of Clusters: {result.events}, {result.event_micros:.0f} us CPU each, memory"
        f" {memory[0]:.0f} MiB after a second, {memory[-1]:.0f} at the end (peak {result.peak_memory_after:.0f})"),
    ))  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bindings", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=500.0, help="status updates a second (default 500)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of status updates (default 30)")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds that a phase may take (default 600)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep the logs of both processes")
    parser.add_argument("flags", nargs="*", help="flags of the scheduler, after --")
    arguments = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as folder,
        Supervisor(arguments.logs or Path(folder) / "logs") as supervisor,
    ):
        bench = Bench(Sizes(arguments.bindings, arguments.clusters), Path(folder), supervisor)
        try:
            result = bench.run(
                rate=arguments.rate, seconds=arguments.seconds, limit=arguments.limit, flags=arguments.flags
            )
        finally:
            bench.close()
    print(report(result))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(asdict(result), indent=1) + "\n")


if __name__ == "__main__":
    main()
