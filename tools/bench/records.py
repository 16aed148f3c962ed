"""The cost of recording decisions: time and size of a record, and the CPU time of the process with and without. ``make bench-record``

    python -m tools.bench.records --sizes 100 1000 --rounds 3 --json FILE

The first part runs in this process: decisions about fleets that report in between, and the records of them, each timed on
its own. The second part starts the scheduler on a fake API server, in turns with and without records, and divides the CPU
time of the process by the bindings that it places. Decisions there include everything that a binding costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.output import table
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.http_server.messages import Request, Response
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.records.cluster_changes import ClusterChanges
from karmada_scheduler.records.endpoints import Endpoints
from karmada_scheduler.records.full_decisions import FullDecisions
from karmada_scheduler.records.record import Process
from karmada_scheduler.records.record_store import RecordStore
from karmada_scheduler.records.recorder import Recorder
from karmada_scheduler.testing import framework
from tests.fake_apiserver import FakeApiServer, start_scheduler, wait_for
from tests.fake_apiserver.objects import POLICY_ID
from tools.bench.fleet import PLACEMENTS, Bindings, Fleet
from tools.bench.plane_meters import cpu_seconds, percentile
from tools.controlplane.processes import free_port

_AT_ONCE: Final = 50
"""Records that are made one after the other, as in a backlog."""
_SECOND_PART_SECONDS: Final = 300.0
MAX_BYTES: Final = 32 * 2**20
"""The default of --explain-memory."""


@dataclass(frozen=True)
class Records:
    """The cost of records in one fleet.

    Attributes:
        decision_micros: A decision, without anything else that a binding costs.
        hot_micros: The work of the scheduling loop for a record, as a median.
        record_micros: Making and storing a record, as a median; ``record_p99`` is the 99th percentile.
        bytes_p50, bytes_p99: The size of a record as JSON.
        reader_micros: The longest time for which the thread of the HTTP server works on the largest responses without a
            pause in which the main thread gets the interpreter.
    """

    clusters: int
    decisions: int
    decision_micros: float
    hot_micros: float
    record_micros: float
    record_p99: float
    bytes_p50: int
    bytes_p99: int
    reader_micros: float


@dataclass(frozen=True)
class Processes:
    """CPU time per binding of the process, in milliseconds; medians over rounds of the same number of bindings.

    Attributes:
        ratio: With records to without, the median of the rounds; ``least`` and ``most`` are those of single rounds, which
            depend on the other load of the machine.
        share: CPU time for records to all CPU time of the same process, the median of the rounds with records; without
            the work of the scheduling loop for them (``hot_micros``).
    """

    clusters: int
    bindings: int
    rounds: int
    without_ms: float
    with_ms: float
    ratio: float
    least: float
    most: float
    share: float


class Recording:
    """A scheduling algorithm over a fleet, and the recorder of its decisions, in this process."""

    def __init__(self, size: int) -> None:
        """Start with a fleet of ``size`` clusters."""
        self.fleet, self.bindings = Fleet(size), Bindings(tuple(PLACEMENTS))
        gates = FeatureGates({})
        self._clusters, self._profile = ClusterCache(), framework(gates=gates)
        self._algorithm = SchedulingAlgorithm(gates, [GeneralEstimator(gates)])
        self.changes = ClusterChanges(time.time)
        self.store = RecordStore(max_bytes=MAX_BYTES, max_records=20_000)
        self.full = FullDecisions(max_bytes=8 * 2**20)
        self.report(self.fleet.clusters.values())
        self.recorder = Recorder(
            process=Process(
                name="karmada-pyscheduler-7d9f-x2x",
                config=lambda: "5e1a07",
                oldest_summary=self.changes.oldest_summary,
            ),
            store=self.store,
            full=self.full,
            write_line=None,
            metrics=Metrics().explain,
            clock=time.monotonic,
            now=time.time,
            idle=lambda: asyncio.sleep(0),
        )

    def report(self, manifests: Iterable[dict[str, object]]) -> None:
        """Take clusters as they are now."""
        for manifest in manifests:
            change = self._clusters.put(Cluster.from_manifest(manifest))
            if change is not None:
                self.changes.on_cluster(change.old, change.new)

    def draw(self, number: int) -> Binding:
        """Return a new binding, or a scaled one that has a placement; half of them each."""
        if number % 2:
            return Binding.from_manifest(self.bindings.scaled(self._placed))
        return Binding.from_manifest(self.bindings.draw())

    def _placed(self, manifest: dict[str, object]) -> Sequence[tuple[str, int]]:
        return self.decide(Binding.from_manifest(manifest)).targets or ()

    def decide(self, binding: Binding) -> Decision:
        """Decide about a binding."""
        return run_sync(self._algorithm.decide(binding, self._clusters.snapshot(), self._profile))

    def record(self, binding: Binding, decision: Decision) -> None:
        """Do the work of the scheduling loop for a record."""
        entry = self.recorder.decided(
            binding, decision, schedule_class="First", event="BindingAdd", seconds=0.001
        )
        self.recorder.ended(entry, "written")

    def make_all(self) -> list[float]:
        """Make the records of all waiting decisions, and return the seconds that each took."""
        seconds = []
        while self.recorder._waiting:
            start = time.thread_time()
            self.recorder._make(self.recorder._waiting.popleft())
            seconds.append(time.thread_time() - start)
        return seconds


def measure_records(size: int, *, decisions: int) -> Records:
    """Take decisions about all kinds of placements, half of the bindings scaled ones, and record each."""
    recording = Recording(size)
    deciding, hot, making = [], [], []
    for number, reports in enumerate(recording.fleet.reports(decisions)):
        recording.report(reports)
        binding = recording.draw(number)
        start = time.thread_time()
        decision = recording.decide(binding)
        decided = time.thread_time()
        recording.record(binding, decision)
        recorded = time.thread_time()
        deciding.append(decided - start)
        hot.append(recorded - decided)
        if len(recording.recorder._waiting) == _AT_ONCE:
            making += recording.make_all()
    making += recording.make_all()
    store, full = recording.store, recording.full
    sizes = [len(record.body) for record in store.last(decisions)]
    assert len(sizes) == len(making) == decisions
    return Records(
        size,
        decisions,
        decision_micros=1e6 * statistics.median(deciding),
        hot_micros=1e6 * statistics.median(hot),
        record_micros=1e6 * statistics.median(making),
        record_p99=1e6 * percentile(making, 0.99),
        bytes_p50=round(percentile(sizes, 0.5)),
        bytes_p99=round(percentile(sizes, 0.99)),
        reader_micros=1e6
        * asyncio.run(_longest_part(_largest_responses(store, full, recording.changes, binding.key))),
    )


def _largest_responses(
    store: RecordStore, full: FullDecisions, changes: ClusterChanges, key: BindingKey
) -> list[Callable[[], Response]]:
    """Return requests: for 500 records, for a full decision, for the state with all clusters."""
    routes = Endpoints(
        process="karmada-pyscheduler-7d9f-x2x",
        started=time.time(),
        store=store,
        full=full,
        leader=lambda: None,
        state=dict,
        queue_state=lambda _: {},
        cluster_times=changes.times,
    ).routes()
    assert full.get(key) is not None
    one = Request({"namespace": key.namespace, "name": key.name})
    return [
        partial(routes["/v1/decisions"], Request({}, {"since": "0", "limit": "500"})),
        partial(routes["/v1/decisions/{namespace}/{name}"], one),
        partial(routes["/v1/state"], Request({}, {"clusters": "true"})),
    ]


async def _longest_part(requests: Sequence[Callable[[], Response]]) -> float:
    """Return the longest CPU time, in seconds, of a handler or of one part of its response."""
    longest = 0.0
    for respond in requests:
        start = time.thread_time()
        parts = aiter(respond().body)
        longest = max(longest, time.thread_time() - start)
        while True:
            start = time.thread_time()
            part = await anext(parts, None)
            longest = max(longest, time.thread_time() - start)
            if part is None:
                break
    return longest


def measure_processes(size: int, *, bindings: int, rounds: int) -> Processes:
    """Start the scheduler with and without records in turns, and have it place a backlog."""
    pairs: list[tuple[float, float]] = []
    shares: list[float] = []
    for number in range(rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        cost = {records: _cpu_per_binding(size, bindings, records=records) for records in order}
        pairs.append((cost[False][0], cost[True][0]))
        shares.append(cost[True][1])
    ratios = [with_records / without for without, with_records in pairs]
    return Processes(
        size,
        bindings,
        rounds,
        without_ms=1e3 * statistics.median(pair[0] for pair in pairs),
        with_ms=1e3 * statistics.median(pair[1] for pair in pairs),
        ratio=statistics.median(ratios),
        least=min(ratios),
        most=max(ratios),
        share=statistics.median(shares),
    )


def _cpu_per_binding(size: int, count: int, *, records: bool) -> tuple[float, float]:
    """Return CPU seconds per binding, and the part of them for records."""
    fleet, bindings = Fleet(size), Bindings(tuple(PLACEMENTS))
    flags = [f"--explain-bind-address=127.0.0.1:{free_port()}"] if records else []
    with FakeApiServer() as server, tempfile.TemporaryDirectory() as folder:
        for manifest in fleet.clusters.values():
            server.put(manifest)
        with start_scheduler(server, Path(folder), *flags) as scheduler:
            time.sleep(1.0)
            before = cpu_seconds(scheduler.pid)
            names = []
            for _ in range(count):
                manifest = bindings.draw()
                manifest["metadata"] |= {"generation": 1, "labels": {POLICY_ID: "id-of-policy"}}
                manifest["spec"]["schedulerName"] = "my-scheduler"
                names.append(manifest["metadata"]["name"])
                server.put(manifest)
            wait_for(
                lambda: all(server.targets(name) for name in reversed(names)),
                "all bindings to be placed",
                scheduler,
                timeout=_SECOND_PART_SECONDS,
                every=0.5,
            )
            time.sleep(3.0)  # statuses, Events and records
            assert scheduler.metric("karmada_scheduler_explain_records_total") == (count if records else 0)
            used = cpu_seconds(scheduler.pid) - before
            return used / count, scheduler.metric("karmada_scheduler_explain_cpu_seconds_total") / used


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000], help="clusters")
    parser.add_argument("--decisions", type=int, default=1500, help="for each size, of the first part")
    parser.add_argument(
        "--process-sizes", type=int, nargs="*", default=[100, 1000], help="clusters, of the second part"
    )
    parser.add_argument("--bindings", type=int, default=1000, help="for each round of the second part")
    parser.add_argument("--rounds", type=int, default=5, help="of the second part")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    records = [measure_records(size, decisions=options.decisions) for size in options.sizes]
    _print(records)
    processes = [
        measure_processes(size, bindings=options.bindings, rounds=options.rounds)
        for size in options.process_sizes
    ]
    _print(processes)
    if options.json:
        machine = f"{os.cpu_count()} CPUs, {platform.platform()}, Python {platform.python_version()}"
        found = {
            "machine": machine,
            "records": list(map(asdict, records)),
            "processes": list(map(asdict, processes)),
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


def _print(rows: Sequence[Records | Processes]) -> None:
    if rows:
        lines = [
            [f"{value:.3g}" if isinstance(value, float) else str(value) for value in asdict(row).values()]
            for row in rows
        ]
        print(table([name.replace("_", " ") for name in asdict(rows[0])], lines))


if __name__ == "__main__":
    sys.exit(main())
