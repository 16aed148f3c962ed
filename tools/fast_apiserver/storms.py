"""What a scheduler does when everything changes at once, on the fast fake API server. ``make bench-storm``

    python -m tools.fast_apiserver.storms --scenarios lost deleted relabelled --json FILE

lost        A cluster that every binding uses gets a NoExecute taint, and all bindings lose it and get the eviction tasks that
            Karmada's taint manager writes.
deleted     The same cluster gets a deletion timestamp, and nothing else changes.
relabelled  One label of one cluster changes, so all bindings are decided again, and none has to move.

Meanwhile new bindings are created, five per second, and their time to a placement is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from karmada_advisor.views.text import table
from tools.bench import scenarios
from tools.bench.plane import machine
from tools.bench.plane_meters import percentile
from tools.bench.scenarios import FRESH_FIRST, OURS
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver.ceiling import NAMESPACE, fleet, requests_of
from tools.fast_apiserver.schedulers import NAME, UPSTREAM, Running, running, wait_until
from tools.fast_apiserver.server import FastApiServer

LOST: Final = "m0"
CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
BINDINGS: Final = f"/apis/work.karmada.io/v1alpha2/namespaces/{NAMESPACE}/resourcebindings"
ATTEMPTS: Final = "karmada_scheduler_schedule_attempts_total"
_PER_SECOND: Final = 5.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A storm.

    Attributes:
        placement: One of ``scenarios.PLACEMENTS``.
        bindings: How many, by default.
        clusters: How many.
        upstream_bindings: How many for karmada-scheduler, which takes too long with more; ours is measured with both numbers.
        moves: Whether each binding gets another placement.
        begin: Causes it.
    """

    placement: str
    bindings: int
    clusters: int
    upstream_bindings: int
    moves: bool
    begin: Callable[[FastApiServer, int, float], None]


@dataclass(frozen=True, slots=True)
class Storm:
    """What was measured.

    Attributes:
        done: How many bindings were placed again, or decided again if none has to move.
        seconds: From the begin until the last of them, or until the end of the time.
        fresh: Created meanwhile.
        fresh_placed: How many of them were placed, at the latest five seconds after the end.
        fresh_ms: Time from their creation to their placement: p50, p99, max. One that was not placed counts with its age, so
            these are then lower bounds.
        writes: Requests that wrote a binding, without those for new bindings.
        cpu_ms: Of the scheduler per binding that is done.
        resident_before, resident_after, peak: MiB.
        renewal: The longest time between two renewals of the Lease, in seconds.
    """

    scenario: str
    scheduler: str
    bindings: int
    clusters: int
    done: int
    seconds: float
    fresh: int
    fresh_placed: int
    fresh_ms: tuple[float, float, float]
    writes: int
    cpu_ms: float
    resident_before: float
    resident_after: float
    peak: float
    renewal: float


def _evictions(bindings: int, clusters: int) -> Iterator[tuple[str, dict[str, Any]]]:
    task = {"fromCluster": LOST, "purgeMode": "Gracefully", "reason": "TaintUntolerated", "producer": "TaintManager",
            "replicas": 1, "creationTimestamp": "2026-01-02T03:04:05Z"}  # fmt: skip
    for number in range(bindings):
        left = scenarios.targets_of(number, "dynamic", clusters)[1:]
        yield f"{BINDINGS}/work-{number}", {"spec": {"clusters": left, "gracefulEvictionTasks": [task]}}


def _lose(server: FastApiServer, bindings: int, rate: float) -> None:
    taint = {
        "key": "cluster.karmada.io/not-ready",
        "effect": "NoExecute",
        "timeAdded": "2026-01-02T03:04:05Z",
    }
    server.patch([(f"{CLUSTERS}/{LOST}", {"spec": {"taints": [taint]}})])
    server.patch(_evictions(bindings, SCENARIOS["lost"].clusters), rate=rate)


def _delete(server: FastApiServer, bindings: int, rate: float) -> None:
    server.request("DELETE", f"{CLUSTERS}/{LOST}")


def _relabel(server: FastApiServer, bindings: int, rate: float) -> None:
    server.patch([(f"{CLUSTERS}/{LOST}", {"metadata": {"labels": {"tier": "other"}}})])


SCENARIOS: Final = {
    "lost": Scenario("dynamic", 20_000, 100, 20_000, moves=True, begin=_lose),
    "deleted": Scenario("dynamic", 20_000, 100, 20_000, moves=True, begin=_delete),
    "relabelled": Scenario("duplicated", 100_000, 1_000, 2_000, moves=False, begin=_relabel),
}


class _Creator:
    """Creates new bindings at a steady rate in a thread of its own."""

    def __init__(self, server: FastApiServer, placement: str) -> None:
        self._server, self._placement = FastApiServer(server.pid, server.url), placement
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="creator", daemon=True)
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._ended.wait(max(0.0, begin + self.count / _PER_SECOND - time.monotonic())):
            name = f"fresh-{self.count}"
            manifest = scenarios.binding(NAMESPACE, name, self.count, self._placement, NAME)
            self._server.request("POST", BINDINGS, json=manifest)
            self.count += 1


def _attempts(found: Running) -> float:
    return sum(found.samples(ATTEMPTS).values())


_IDLE_CPU_SECONDS: Final = 0.1
"""A scheduler with nothing to do uses less CPU time in three seconds."""


def rest(server: FastApiServer, found: Running, bindings: int, seconds: float) -> None:
    """Wait until the scheduler leads, and has finished what it does at its start: it also skips what needs no attempt.

    Raises:
        TimeoutError: It has not after so many seconds.
    """
    last = (-1.0, -1, 0.0)

    def is_quiet() -> bool:
        nonlocal last
        try:
            now = (_attempts(found), requests_of(server.times(), "resourcebindings"), found.cpu)
        except OSError:  # it does not serve metrics yet
            return False
        last, previous = now, last
        is_idle = now[:2] == previous[:2] and now[2] - previous[2] < _IDLE_CPU_SECONDS
        return is_idle and bool(server.times()["longest"])

    if not wait_until(is_quiet, seconds, every=3.0):
        raise TimeoutError(
            f"{last[0]:.0f} attempts after {seconds:.0f} s, for {bindings} bindings, and no rest"
        )


def _after_last_write(server: FastApiServer) -> dict[str, Any]:
    """Return the times of the bindings after five seconds, or once half a second has passed without a write."""
    last = -1

    def is_quiet() -> bool:
        nonlocal last
        last, previous = requests_of(server.times(), "resourcebindings", "resourcebindings/status"), last
        return last == previous

    wait_until(is_quiet, 5.0, every=0.5)
    return server.times(bindings=True)


def measure(
    server: FastApiServer, name: str, scheduler: str, bindings: int, window: float, rate: float = 0.0
) -> Storm:
    """Measure one storm.

    Raises:
        TimeoutError: The scheduler did not finish its start.
    """
    scenario = SCENARIOS[name]
    server.clear()
    server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    server.load(
        {**each, "metadata": {**each["metadata"], "finalizers": ["karmada.io/cluster-controller"]}}
        for each in fleet(scenario.clusters)
    )
    server.load(
        scenarios.placed(NAMESPACE, f"work-{number}", number, scenario.placement, scenario.clusters, NAME)
        for number in range(bindings)
    )
    with running(server, scheduler) as found:
        rest(server, found, bindings, window)
        server.reset()
        with _Creator(server, scenario.placement) as creator:
            time.sleep(2.0)  # so that new bindings arrive before the storm as well
            attempts, cpu, before = _attempts(found), found.cpu, found.resident
            first, begun = creator.count, server.times()["now"]
            scenario.begin(server, bindings, rate)

            def decided() -> float:
                return _attempts(found) - attempts - (creator.count - first)

            def placed_again() -> int:
                # The eviction is one change of the clusters, the result another.
                return server.changed(f"{NAMESPACE}/work-", least=2 if name == "lost" else 1)

            if scenario.moves:
                wait_until(lambda: placed_again() >= bindings, window, every=0.5)
            else:
                wait_until(lambda: decided() >= bindings, window, every=0.5)
            done = placed_again() if scenario.moves else int(min(decided(), bindings))
            end, spent = server.times()["now"], found.cpu - cpu
        # Those that were created before the end are placed soon, if the storm is over.
        wait_until(lambda: server.changed(f"{NAMESPACE}/fresh-", least=1) >= creator.count, 5.0)
        times = _after_last_write(server)
        after, peak = found.resident, found.peak
    rows: dict[str, dict[str, Any]] = times["bindings"]
    fresh = {key: each for key, each in rows.items() if "/fresh-" in key}
    new = [each for each in fresh.values() if begun <= each["created"] <= end]
    ages = [1e3 * ((each["placed"] or times["now"]) - each["created"]) for each in new] or [math.nan]
    if scenario.moves and done >= bindings:
        end = max(each["changed"] for key, each in rows.items() if key not in fresh)
    writes = requests_of(times, "resourcebindings", "resourcebindings/status")
    return Storm(
        name,
        scheduler,
        bindings,
        scenario.clusters,
        done,
        end - begun,
        len(new),
        sum(1 for each in new if each["placed"]),
        (percentile(ages, 0.5), percentile(ages, 0.99), max(ages)),
        writes - sum(1 + each["writes"] for each in fresh.values()),
        1e3 * spent / max(1, done),
        before,
        after,
        peak,
        max(times["longest"].values(), default=0.0),
    )


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="make bench-storm", description=(__doc__ or "").splitlines()[0])
    option = parser.add_argument
    option("--scenarios", nargs="+", default=tuple(SCENARIOS), choices=tuple(SCENARIOS))
    every = (UPSTREAM, OURS, FRESH_FIRST)
    option("--schedulers", nargs="+", default=every, choices=every)
    option("--bindings", type=int, metavar="N", help="instead of the scenario's numbers")
    option("--evictions", type=float, default=1000.0, metavar="N",
           help="written per second when a cluster is lost; 0 for as fast as possible (1000)")  # fmt: skip
    option("--window", type=float, default=300.0, metavar="S", help="end of a storm that is not over (300)")
    option("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    runs: list[Storm] = []
    with fast_apiserver.running() as server:
        for name, scheduler, count in _planned(chosen.scenarios, chosen.schedulers, chosen.bindings):
            try:
                runs.append(measure(server, name, scheduler, count, chosen.window, chosen.evictions))
            except (TimeoutError, RuntimeError) as problem:
                print(f"{name}, {scheduler}: {problem}", file=sys.stderr, flush=True)
                continue
            print(runs[-1], file=sys.stderr, flush=True)
            if chosen.json is not None:
                document = {"machine": machine(), "runs": [asdict(each) for each in runs]}
                chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    print(text(runs))
    return 0


def _planned(
    names: Sequence[str], schedulers: Sequence[str], bindings: int | None
) -> Iterator[tuple[str, str, int]]:
    """Yield scenarios, schedulers and numbers of bindings."""
    for name in names:
        scenario = SCENARIOS[name]
        for scheduler in schedulers:
            if bindings is not None:
                yield name, scheduler, bindings
                continue
            if scheduler != UPSTREAM:
                yield name, scheduler, scenario.bindings
            if scheduler == UPSTREAM or (
                scheduler == OURS and scenario.upstream_bindings != scenario.bindings
            ):
                yield name, scheduler, scenario.upstream_bindings


def text(runs: Sequence[Storm]) -> str:
    """Return the table."""
    return table(*cells(runs))


def cells(runs: Sequence[Storm]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and the rows of the table."""
    heading = ("SCENARIO", "SCHEDULER", "BINDINGS", "DONE", "SECONDS", "NEW P50 MS", "P99", "MAX", "WRITES", "CPU MS", "MIB BEFORE",
               "AFTER", "PEAK", "LEASE S")  # fmt: skip
    rows = [
        (each.scenario, each.scheduler, f"{each.bindings:,}", f"{each.done / each.bindings:.1%}", f"{each.seconds:.1f}",
         *(f"{value:,.0f}" for value in each.fresh_ms), f"{each.writes:,}", f"{each.cpu_ms:.2f}",
         f"{each.resident_before:.0f}", f"{each.resident_after:.0f}", f"{each.peak:.0f}", f"{each.renewal:.1f}")
        for each in runs
    ]  # fmt: skip
    return heading, rows


if __name__ == "__main__":
    sys.exit(main())
