"""The scheduler's own ceiling: backlogs on an API server that costs next to nothing. ``make bench-ceiling``

    python -m tools.fast_apiserver.ceiling --clusters 100 1000 --bindings 5000 --json FILE

Both schedulers run unchanged, in turns, with the clusters and bindings of ``tools.bench.scenarios``. The bindings exist
before the scheduler starts, with ``--settled`` many others as well, which are placed already: a cold start. ``bindings/s`` counts from the first placement to the last, ``CPU ms`` from the first placement
to the last write, Events included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from karmada_advisor.views.text import table
from tools.bench import scenarios
from tools.bench.plane import machine
from tools.bench.plane_meters import cpu_seconds
from tools.bench.scenarios import OURS, RECORDS
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver.schedulers import NAME, UPSTREAM, running, wait_until
from tools.fast_apiserver.server import FastApiServer

NAMESPACE: Final = "bench"
_WARM_UP: Final = 300.0
"""Seconds until the first placement, at most."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One backlog.

    Attributes:
        placed: How many bindings got clusters.
        rate: Bindings per second from the first placement to the last.
        first_seconds: From the start of the process to the first placement.
        cpu_ms: Of the scheduler per binding, from the first placement to the last write.
        server_cpu_ms: Of the API server in the same time.
        writes: Requests that write to a binding, per binding.
        events: Requests that write Events, per binding.
        peak_mib: Peak resident memory of the scheduler.
    """

    scheduler: str
    clusters: int
    placement: str
    bindings: int
    round: int
    placed: int
    rate: float
    first_seconds: float
    cpu_ms: float
    server_cpu_ms: float
    writes: float
    events: float
    peak_mib: float


def fleet(count: int) -> Iterator[dict[str, Any]]:
    """Yield the clusters of the benchmark, with their status."""
    for member in scenarios.fleet(0, count):
        yield {**member.manifest(), "status": member.status()}


def requests_of(times: dict[str, Any], *words: str) -> int:
    """Return how many requests that write had these resources."""
    counted: dict[str, int] = times["requests"]
    return sum(
        count
        for what, count in counted.items()
        if what.split()[0] in ("POST", "PUT", "PATCH") and what.split()[1] in words
    )


def measure(
    server: FastApiServer,
    scheduler: str,
    clusters: int,
    placement: str,
    count: int,
    number: int,
    window: float,
    settled: int = 0,
) -> Ceiling:
    """Measure one backlog, next to ``settled`` bindings that are placed already."""
    server.clear()
    server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    server.load(fleet(clusters))
    server.load(
        scenarios.placed(NAMESPACE, f"settled-{each}", each, placement, clusters, NAME)
        for each in range(settled)
    )
    server.load(scenarios.binding(NAMESPACE, f"work-{each}", each, placement, NAME) for each in range(count))
    server.reset()
    begun: float = server.times()["now"]

    def written() -> int:
        return requests_of(server.times(), "resourcebindings", "resourcebindings/status", "events")

    with running(server, scheduler) as found:
        if not wait_until(lambda: written() > 0, _WARM_UP, every=0.02):
            raise RuntimeError(f"{scheduler} placed nothing:\n{found.log.read_text()[-3000:]}")
        cpu, server_cpu, before = found.cpu, cpu_seconds(server.pid), written()
        last = -1

        def is_quiet() -> bool:
            nonlocal last
            last, previous = written(), last
            return last == previous and last >= 2 * count

        wait_until(is_quiet, window, every=1.0)
        spent, server_spent = found.cpu - cpu, cpu_seconds(server.pid) - server_cpu
        times = server.times(bindings=True)
        peak = found.peak
    work = [row for key, row in times["bindings"].items() if key.startswith(f"{NAMESPACE}/work-")]
    placed = sorted(row["placed"] for row in work if row["placed"])
    # At least 1: on a busy machine everything may have been written before the first look.
    done = max(1.0, len(placed) * (1 - before / max(1, last)))
    return Ceiling(
        scheduler,
        clusters,
        placement,
        count,
        number,
        len(placed),
        (len(placed) - 1) / max(placed[-1] - placed[0], 1e-9),
        placed[0] - begun,
        1e3 * spent / done,
        1e3 * server_spent / done,
        requests_of(times, "resourcebindings", "resourcebindings/status") / len(placed),
        requests_of(times, "events") / len(placed),
        peak,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="make bench-ceiling", description=(__doc__ or "").splitlines()[0])
    option = parser.add_argument
    option("--clusters", type=int, nargs="+", default=[100, 1000], metavar="N")
    names = tuple(scenarios.PLACEMENTS)
    option("--placements", nargs="+", default=names, choices=names)
    option("--schedulers", nargs="+", default=[UPSTREAM, OURS], choices=[UPSTREAM, OURS, RECORDS])
    option("--bindings", type=int, default=5000, metavar="N", help="of a backlog (5000)")
    option("--settled", type=int, default=0, metavar="N", help="further bindings that are placed already (0)")
    option("--rounds", type=int, default=1, metavar="N")
    option("--window", type=float, default=120.0, metavar="S", help="end of a backlog that is not done (120)")
    option("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    runs: list[Ceiling] = []
    with fast_apiserver.running() as server:
        for number in range(1, chosen.rounds + 1):
            for clusters in chosen.clusters:
                for placement in chosen.placements:
                    for scheduler in chosen.schedulers:
                        done = measure(
                            server,
                            scheduler,
                            clusters,
                            placement,
                            chosen.bindings,
                            number,
                            chosen.window,
                            chosen.settled,
                        )
                        runs.append(done)
                        print(done, file=sys.stderr, flush=True)
                        if chosen.json is not None:
                            document = {"machine": machine(), "runs": [asdict(each) for each in runs]}
                            chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    print(text(runs))
    return 0


def text(runs: Sequence[Ceiling]) -> str:
    """Return the table."""
    return table(*cells(runs))


def cells(runs: Sequence[Ceiling]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and the rows of the table."""
    heading = ("CLUSTERS", "PLACEMENT", "SCHEDULER", "PLACED", "BINDINGS/S", "CPU MS", "SERVER CPU MS", "WRITES", "EVENTS",
               "PEAK MIB")  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (f"{each.clusters:,}", each.placement, each.scheduler, f"{each.placed:,}", f"{each.rate:,.0f}", f"{each.cpu_ms:.2f}",
         f"{each.server_cpu_ms:.2f}", f"{each.writes:.2f}", f"{each.events:.2f}", f"{each.peak_mib:.0f}")
        for each in runs
    ]  # fmt: skip
    return heading, rows


if __name__ == "__main__":
    sys.exit(main())
