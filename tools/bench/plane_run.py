"""One run: one scheduler, one namespace, one backlog or one stream."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tools.bench import plane_meters as meters
from tools.bench.bare_client import Job
from tools.bench.plane_http import BINDINGS, ROOT
from tools.bench.plane_observer import Observer
from tools.bench.scenarios import BARE, LIFTED, OURS, RECORDS
from tools.controlplane import ControlPlane, Process
from tools.controlplane.ours import Scheduler, start_scheduler
from tools.controlplane.processes import free_port

NO_LIMIT = ("--kube-api-qps=10000", "--kube-api-burst=10000")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/karmada-scheduler"
WARM_UP = 20
RECORDS_CPU = "karmada_scheduler_explain_cpu_seconds_total"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Case:
    """What to measure.

    Attributes:
        scheduler: One of scenarios.SCHEDULERS.
        clusters: How many there are.
        placement: One of scenarios.PLACEMENTS.
        bindings: How many are to be placed.
        rate: Created per second while the scheduler runs; None when all wait for it to start.
        in_flight: How many bindings the bare client works on at once.
        window: Seconds from the first placement of a backlog after which it is over, done or not.
    """

    scheduler: str
    clusters: int
    placement: str
    bindings: int
    rate: float | None = None
    in_flight: int = 32
    window: float = 120.0


@dataclass(slots=True)
class Result:
    """The result. CPU times are milliseconds per binding placed while they were counted.

    Attributes:
        load: Load average of the last minute, before.
        idle_cores: What the idle control plane used, before.
        placed: How many bindings got clusters.
        unsettled: How many of them have a status that has not caught up.
        rate: Bindings per second between the first placement and the last.
        status_rate: The same between the first placement and the last status; None for a stream.
        first_seconds: From the start of the scheduler to the first placement; None for a stream.
        total_seconds: From the start of the scheduler to the last placement; None for a stream.
        latency: Milliseconds from ``answered`` (the creation), ``sent`` and ``seen`` (by the observer) to
            placed: p50, p90, p99, max. A binding that was never placed counts with the time it waited.
        scheduler_cpu: Of the scheduler; None for a bare client that creates, too.
        records_cpu: The part of it that made records of decisions, by its own metric; None without records.
        startup_cpu: Seconds of CPU of the scheduler up to the first placement; None for a stream.
        servers_cpu: Of the control plane's processes.
        writes: Per binding, by what was written.
        requests: All requests by verb, resource and status code.
        peak_mib: Peak resident memory of the scheduler; None as scheduler_cpu.
        targets: Clusters per binding, on average.
        late_ms: By how much the latest creation was late; None for a backlog.
    """

    load: float
    idle_cores: float
    placed: int = 0
    unsettled: int = 0
    rate: float | None = None
    status_rate: float | None = None
    first_seconds: float | None = None
    total_seconds: float | None = None
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    scheduler_cpu: float | None = None
    records_cpu: float | None = None
    startup_cpu: float | None = None
    servers_cpu: dict[str, float] = field(default_factory=dict)
    writes: dict[str, float] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    peak_mib: float | None = None
    targets: float = 0.0
    late_ms: float | None = None


@dataclass(frozen=True, slots=True)
class _Cpu:
    scheduler: float | None
    servers: dict[str, float]


class Runner:
    """Measures cases one after the other on one control plane."""

    def __init__(self, plane: ControlPlane, quiet: meters.Quiet) -> None:
        self._plane = plane
        self._quiet = quiet
        self._runs = 0
        self._name = ""
        self._scheduler: Process | None = None
        self._ours: Scheduler | None = None
        self._first: _Cpu | None = None

    def measure(self, case: Case) -> Result:
        """Measure one case, and delete its bindings."""
        self._runs += 1
        self._name = f"bench-{self._runs}"
        self._first = None
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._name}}
        self._plane.client.create(space)
        try:
            return self._backlog(case) if case.rate is None else self._stream(case)
        finally:
            self._stop_scheduler()
            for path in (BINDINGS, "/api/v1/namespaces/{namespace}/events"):
                collection = path.format(namespace=self._name)
                self._plane.client.request("DELETE", collection, timeout=600)

    def _backlog(self, case: Case) -> Result:
        self._create(case, count=case.bindings)
        kubeconfig = self._plane.kubeconfig_for_scheduler(self._name)
        observer = self._observer(case)
        result = Result(idle_cores=self._quiet.wait_idle(), load=os.getloadavg()[0])
        before, started = self._requests(), time.monotonic()
        self._start(case, kubeconfig, wait_ready=False)
        self._wait(observer, "first", START_SECONDS)
        done = self._wait(observer, "all", case.window)
        end = self._end(before, result, keeps_up=done)
        found = observer.finish()
        placed = sorted(found["placed"].values())
        if self._first is None or len(placed) < 2:
            return result
        result.first_seconds, result.total_seconds = placed[0] - started, placed[-1] - started
        result.startup_cpu = self._first.scheduler
        if reported := found["settled"].values():
            result.status_rate = (len(reported) - 1) / (max(reported) - placed[0])
        self._fill(result, found, len(placed) - 1, self._first, end)
        return result

    def _stream(self, case: Case) -> Result:
        assert case.rate is not None
        bare = case.scheduler == BARE
        self._start(case, self._plane.kubeconfig_for_scheduler(self._name), wait_ready=True)
        observer = self._observer(case)
        self._create(case, count=WARM_UP, prefix="warm", place=bare)
        result = Result(idle_cores=self._quiet.wait_idle(), load=os.getloadavg()[0])
        before, begin = self._requests(), self._cpu()
        answer = self._create(case, count=case.bindings, rate=case.rate, place=bare)
        done = self._wait(observer, "all", 2.0)
        end = self._end(before, result, keeps_up=done)
        found, given_up = observer.finish(), time.monotonic()
        self._fill(result, found, len(found["placed"]), begin, end)
        result.late_ms = answer["late"] * 1e3
        result.latency = latencies(answer["created"], found, given_up)
        return result

    def _end(self, before: dict[str, int], result: Result, *, keeps_up: bool) -> _Cpu:
        """Wait for the last write, unless there is no end of them, and read the meters."""
        if keeps_up:
            self._quiet.wait_written()
        end = self._cpu()
        after = self._requests()
        result.requests = {key: n - before.get(key, 0) for key, n in after.items() if n > before.get(key, 0)}
        if self._scheduler is not None:
            result.peak_mib = meters.peak_mib(self._scheduler.pid)
        return end

    def _fill(self, result: Result, found: dict[str, Any], counted: int, begin: _Cpu, end: _Cpu) -> None:
        placed = sorted(found["placed"].values())
        result.placed, result.targets = len(placed), found["targets"]
        result.unsettled = len(placed) - len(found["settled"])
        if len(placed) < 2:
            return
        result.rate = (len(placed) - 1) / (placed[-1] - placed[0])
        result.servers_cpu = {
            name: (used - begin.servers[name]) * 1e3 / counted for name, used in end.servers.items()
        }
        result.writes = {what: count / len(placed) for what, count in meters.writes(result.requests).items()}
        if end.scheduler is not None and begin.scheduler is not None:
            result.scheduler_cpu = (end.scheduler - begin.scheduler) * 1e3 / counted
        if self._ours is not None and (used := meters.sample(self._ours.scrape(), RECORDS_CPU)):
            result.records_cpu = used * 1e3 / len(placed)

    # -- the parts of a run ---------------------------------------------------------------------

    def _observer(self, case: Case) -> Observer:
        def first() -> None:
            self._first = self._cpu()

        return Observer(self._plane.kubeconfig, self._name, case.bindings, first=first)

    def _create(
        self, case: Case, *, count: int, prefix: str = "work", rate: float | None = None, place: bool = False
    ) -> dict[str, Any]:
        job = self._job(case, count, create=True, place=place, prefix=prefix, rate=rate)
        done = subprocess.run(job.argv(), cwd=ROOT, stdout=subprocess.PIPE, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def _job(self, case: Case, count: int, **more: Any) -> Job:
        return Job(
            kubeconfig=str(self._plane.kubeconfig),
            namespace=self._name,
            scheduler=self._name,
            placement=case.placement,
            clusters=case.clusters,
            count=count,
            **{"in_flight": case.in_flight, **more},
        )

    def _start(self, case: Case, kubeconfig: Path, *, wait_ready: bool) -> None:
        if case.scheduler in (OURS, RECORDS):
            flags = [f"--explain-bind-address=127.0.0.1:{free_port()}"] if case.scheduler == RECORDS else []
            self._ours = start_scheduler(
                self._plane,
                *flags,
                name=self._name,
                kubeconfig=kubeconfig,
                wait_ready=wait_ready,
                started=lambda scheduler: setattr(self, "_scheduler", scheduler.process),
            )
            self._scheduler = self._ours.process
        elif case.scheduler == BARE:
            if case.rate is None:
                # The identity of ours: what is allowed by roles, and queued as fairness has it, costs the server more.
                job = self._job(case, case.bindings, create=False, place=True, linger=True)
                job = replace(job, kubeconfig=str(kubeconfig))
                self._scheduler = self._plane.spawn(self._name, job.argv())
        else:
            self._plane.client.delete(LEASE)  # the one before did not give it back
            limits = NO_LIMIT if case.scheduler == LIFTED else ()
            self._scheduler = self._plane.start_karmada_scheduler(self._name, *limits, leader_elect=True)

    def _stop_scheduler(self) -> None:
        if self._scheduler is not None:
            self._scheduler.stop()
            self._plane.forget(self._scheduler)
            self._scheduler = self._ours = None

    def _wait(self, observer: Observer, word: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not observer.reported(word, 0.2):
            self._plane.check()
            if time.monotonic() > deadline:
                return False
        return True

    def _requests(self) -> dict[str, int]:
        return dict(meters.counted_requests(self._plane.client.request("GET", "/metrics").text))

    def _cpu(self) -> _Cpu:
        # start_karmada_scheduler returns once it is healthy, which may be after its first placement.
        names = (self._name, f"karmada-scheduler-{self._name}")
        pid = next((process.pid for process in self._plane.processes if process.name in names), None)
        return _Cpu(
            None if pid is None else meters.cpu_seconds(pid),
            meters.servers_cpu(self._plane),
        )


def latencies(
    created: dict[str, list[float]], found: dict[str, Any], given_up: float
) -> dict[str, dict[str, float]]:
    """Return percentiles in milliseconds, by where they are counted from.

    Args:
        created: Name to when the creation was sent and answered, in seconds.
        found: The observer's results.
        given_up: When waiting ended; counts as the time of placement of what was never placed.
    """
    begins: dict[str, dict[str, float]] = {
        "answered": {name: times[1] for name, times in created.items()},
        "sent": {name: times[0] for name, times in created.items()},
        "seen": found["seen"],
    }
    result = {}
    for kind, begin in begins.items():
        waits = [1e3 * (found["placed"].get(name, given_up) - at) for name, at in begin.items()]
        result[kind] = {
            label: meters.percentile(waits, share)
            for label, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
        }
    return result
