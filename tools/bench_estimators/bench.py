"""Throughput with estimators: ours under both policies and karmada-scheduler, one after the other on one control plane.

    python -m tools.bench_estimators.bench --estimators 10 50

Each run has as many bindings waiting as it is given, each with a request of its own, so that no answer can be
shared (``--equal-requests`` is the opposite). The rate is that of the time after the first deadline, so it is the
rate that lasts; ``stall`` is how long nothing was placed at the beginning. The machine's load changes the figures and
hardly their ratios. ``--first N`` measures the beginning instead: from the first request to an estimator until N
bindings are scheduled.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from karmada_advisor.cli.output import table
from tests import manifests
from tests.e2e.workload import DYNAMIC, WORK
from tools.bench_estimators.fleet import Fleet
from tools.controlplane import ControlPlane, Object, Process, SimulatedMember, karmada
from tools.controlplane.ours import Scheduler, start_scheduler

NO_LIMIT = ("--kube-api-qps=10000", "--kube-api-burst=10000")
DEADLINE_SECONDS = 3.0
LOOK_SECONDS = 1.0
_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """One case to measure."""

    scheduler: str
    estimators: bool = True
    hanging: bool = False

    @property
    def label(self) -> str:
        if not self.estimators:
            return "no estimators"
        return "one hangs" if self.hanging else "all answer"


@dataclass(frozen=True, slots=True)
class Result:
    """Results of a run; rate in bindings a second, stall in seconds."""

    rate: float
    stall: float
    placed: int
    calls: int


@dataclass(frozen=True, slots=True)
class Sample:
    """State of a run some seconds after its first request to an estimator."""

    seconds: float
    scheduled: float
    in_flight: float


OURS = {"ours, partial": "partial", "ours, upstream": "upstream"}
UPSTREAM = "karmada-scheduler"


class Bench:
    """One control plane with as many simulated members as estimators."""

    def __init__(self, plane: ControlPlane, fleet: Fleet, arguments: argparse.Namespace) -> None:
        self.plane = plane
        self.fleet = fleet
        self.arguments = arguments
        self._runs = 0

    def measure(self, case: Case) -> Result:
        """Have one scheduler place a backlog."""
        self._runs += 1
        name = f"run-{self._runs}"
        self.plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._create(name)
        if case.hanging:
            self.fleet.hang(0)
        before = self.fleet.calls()
        try:
            with self._running(case, name) as started:
                rate, stall, placed = self._watch(name, started)
        finally:
            self.fleet.answer(0)
            path = f"{WORK}/namespaces/{name}/resourcebindings"
            self.plane.client.request("DELETE", path, timeout=300)
        return Result(rate, stall, placed, self.fleet.calls() - before)

    def alternate(self, windows: int, seconds: float) -> tuple[list[float], list[float]]:
        """Have one estimator hang and answer in turns under ``partial``, within one run.

        What else the machine does changes slower than that, so the two lists of rates can be compared even on a
        busy machine. Each window is counted from the end of the first deadline on.
        """
        self._runs += 1
        name = f"run-{self._runs}"
        self.plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._create(name)
        rates: tuple[list[float], list[float]] = ([], [])
        flags = [*NO_LIMIT, *_estimator_flags(), "--estimator-failure-policy=partial"]
        scheduler = start_scheduler(self.plane, *flags, name=name)
        try:
            self.plane.wait_for(lambda: _attempts(scheduler) > 50, "the run to begin")
            for number in range(2 * windows):
                (self.fleet.hang if number % 2 else self.fleet.answer)(0)
                time.sleep(DEADLINE_SECONDS + 1)
                before, began = _attempts(scheduler), time.monotonic()
                time.sleep(seconds)
                after, ended = _attempts(scheduler), time.monotonic()
                if after >= self.arguments.bindings:
                    sys.exit("every binding was placed before the last window ended: --bindings MORE")
                rates[number % 2].append((after - before) / (ended - began))
        finally:
            self.fleet.answer(0)
            scheduler.process.stop()
            self.plane.forget(scheduler.process)
        return rates

    def first(self, policy: str, *, hanging: bool) -> list[Sample]:
        """Start a scheduler of ours with a backlog; return samples from its first request until all is scheduled."""
        self._runs += 1
        name = f"run-{self._runs}"
        self.plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._create(name)
        if hanging:
            self.fleet.hang(0)
        before = self.fleet.calls()
        flags = [*NO_LIMIT, *_estimator_flags(), f"--estimator-failure-policy={policy}"]
        scheduler = start_scheduler(self.plane, *flags, name=name, wait_ready=False)
        samples: list[Sample] = []
        try:
            self.plane.wait_for(lambda: self.fleet.calls() > before, "the first request")
            began = time.monotonic()
            while not samples or samples[-1].scheduled < self.arguments.bindings:
                in_flight = _metric(scheduler, "karmada_scheduler_writes_in_flight")
                samples.append(Sample(time.monotonic() - began, _attempts(scheduler), in_flight))
                if samples[-1].seconds > 180:
                    sys.exit(f"not scheduled within 180 s: {samples[-1]}")
                time.sleep(_SAMPLE_SECONDS)
        finally:
            self.fleet.answer(0)
            scheduler.process.stop()
            self.plane.forget(scheduler.process)
            path = f"{WORK}/namespaces/{name}/resourcebindings"
            self.plane.client.request("DELETE", path, timeout=300)
        return samples

    def _create(self, name: str) -> None:
        equal = self.arguments.equal_requests

        def create(number: int) -> None:
            cpu = "100m" if equal else f"{100 + number}m"
            self.plane.client.create(_binding(name, number, cpu))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(create, range(self.arguments.bindings)))

    @contextmanager
    def _running(self, case: Case, name: str) -> Iterator[float]:
        flags = [*NO_LIMIT]
        if case.estimators:
            flags += _estimator_flags()
        if case.scheduler == UPSTREAM:
            process: Process = self.plane.start_karmada_scheduler(name, *flags)
        else:
            flags.append(f"--estimator-failure-policy={OURS[case.scheduler]}")
            process = start_scheduler(self.plane, *flags, name=name).process
        try:
            yield time.monotonic()
        finally:
            process.stop()
            self.plane.forget(process)

    def _watch(self, name: str, started: float) -> tuple[float, float, int]:
        """Return the lasting rate, the time until the first was placed, and how many were."""
        samples: list[tuple[float, int]] = []
        first: float | None = None
        limit = None
        while True:
            items = self.plane.client.list(f"{WORK}/namespaces/{name}/resourcebindings", resourceVersion="0")
            now, placed = time.monotonic(), sum(bool(item["spec"].get("clusters")) for item in items)
            if placed and first is None:
                first = now
                limit = now + self.arguments.seconds
            samples.append((now, placed))
            done = placed >= self.arguments.bindings
            if done or (limit is not None and now > limit) or now - started > 180:
                break
            time.sleep(LOOK_SECONDS)
        if first is None:
            return 0.0, time.monotonic() - started, 0
        lasting = [each for each in samples if each[0] >= first + DEADLINE_SECONDS + 1]
        lasting = lasting if len(lasting) > 1 else [each for each in samples if each[0] >= first]
        (begin, few), (end, many) = lasting[0], lasting[-1]
        rate = (many - few) / (end - begin) if end > begin else float("nan")
        return rate, first - started, samples[-1][1]


def _estimator_flags() -> list[str]:
    return ["--enable-scheduler-estimator=true", f"--scheduler-estimator-timeout={DEADLINE_SECONDS:g}s"]


def _attempts(scheduler: Scheduler) -> float:
    """Return how many bindings a scheduler of ours has placed."""
    return _metric(scheduler, "karmada_scheduler_schedule_attempts_total")


def _metric(scheduler: Scheduler, name: str) -> float:
    lines = scheduler.scrape().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def _binding(namespace: str, number: int, cpu: str) -> Object:
    return manifests.untemplated(
        namespace,
        f"work-{number}",
        uid=f"uid-{number}",
        policy_id="bench",
        replicas=3,
        replicaRequirements={"resourceRequest": {"cpu": cpu}},
        schedulerName=namespace,
        placement={"replicaScheduling": DYNAMIC},
    )


@contextmanager
def _bench(count: int, arguments: argparse.Namespace) -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Fleet(count, answer=1000) as fleet,
        ControlPlane(Path(folder) / "plane") as plane,
    ):
        members = [
            SimulatedMember(f"m{number}", cpu="10000", memory="9000Gi", pods="100000")
            for number in range(count)
        ]
        plane.add(*members, agents=False)
        for member, port in zip(members, fleet.ports, strict=True):
            ports = [{"port": karmada.ESTIMATOR_PORT, "targetPort": port}]
            plane.client.apply(karmada.external_service(f"karmada-scheduler-estimator-{member.name}", ports))
        yield Bench(plane, fleet, arguments)


def _cases(schedulers: Sequence[str]) -> list[Case]:
    cases = [Case(scheduler, estimators=False) for scheduler in schedulers if scheduler != "ours, upstream"]
    # What is compared is measured one right after the other.
    cases += [Case(scheduler, hanging=hanging) for scheduler in schedulers for hanging in (False, True)]
    return cases


def main() -> None:
    """Measure, and print one table per number of estimators."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimators", type=int, nargs="+", default=[10, 50], metavar="N")
    schedulers = (UPSTREAM, *OURS)
    parser.add_argument("--schedulers", nargs="+", default=schedulers, choices=schedulers)
    parser.add_argument("--bindings", type=int, default=1500, help="waiting for each run (1500)")
    parser.add_argument(
        "--seconds", type=float, default=25, help="longest run, from the first placement on (25)"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often everything is measured; medians count"
    )
    parser.add_argument(
        "--alternate",
        type=int,
        default=0,
        metavar="N",
        help="instead: N pairs of windows within one run of ours",
    )
    parser.add_argument(
        "--first",
        type=int,
        default=0,
        metavar="N",
        help="instead: how long ours takes for N bindings after a start, in turns with all answering and one hanging",
    )
    parser.add_argument("--equal-requests", action="store_true", help="all bindings have equal requests")
    arguments = parser.parse_args()
    if arguments.first:
        arguments.bindings = arguments.first
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    for count in arguments.estimators:
        if arguments.alternate:
            with _bench(count, arguments) as bench:
                well, badly = bench.alternate(arguments.alternate, arguments.seconds)
            pairs = [bad / good for good, bad in zip(well, badly, strict=True)]
            print(f"{count} estimators, bindings/s: all answer {_listed(well)}; one hangs {_listed(badly)}")
            print(f"one hangs, of all answering: median of {len(pairs)} pairs {statistics.median(pairs):.0%}")
            continue
        if arguments.first:
            for scheduler in (each for each in arguments.schedulers if each in OURS):
                with _bench(count, arguments) as bench:
                    _compare_beginnings(bench, scheduler, say)
            continue
        results: dict[Case, list[Result]] = {case: [] for case in _cases(arguments.schedulers)}
        with _bench(count, arguments) as bench:
            for number in range(1, arguments.rounds + 1):
                for case, found in results.items():
                    found.append(bench.measure(case))
                    say(f"  round {number}, {count} estimators, {case.scheduler}, {case.label}: {found[-1]}")
        print(f"\n{count} estimators, {arguments.bindings} bindings"
              f"{' with equal requests' if arguments.equal_requests else ''}\n")  # fmt: skip
        print(table(["scheduler", "estimators", "bindings/s", "of all answering", "stall s"], _rows(results)))


def _compare_beginnings(bench: Bench, scheduler: str, say: Callable[[str], None]) -> None:
    """Print how long the first bindings take, with all estimators answering and with one hanging."""
    rates: tuple[list[float], list[float]] = ([], [])
    for _ in range(bench.arguments.rounds):
        for hanging in (False, True):
            samples = bench.first(OURS[scheduler], hanging=hanging)
            rates[hanging].append(samples[-1].scheduled / samples[-1].seconds)
            say(f"  {scheduler}, one hangs: {hanging}; seconds: scheduled, in flight")
            say(f"    {', '.join(_timeline(samples))}")
    pairs = [bad / good for good, bad in zip(*rates, strict=True)]
    print(f"{scheduler}, first {bench.arguments.first} bindings, bindings/s: "
          f"all answer {_listed(rates[0])}; one hangs {_listed(rates[1])}")  # fmt: skip
    print(f"one hangs, of all answering: median of {len(pairs)} pairs {statistics.median(pairs):.0%}")


def _timeline(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield about two samples per second, and the last one."""
    due = 0.0
    for sample in samples:
        if sample.seconds >= due or sample is samples[-1]:
            yield f"{sample.seconds:.1f}: {sample.scheduled:g}, {sample.in_flight:g}"
            due = sample.seconds + 0.5


def _listed(rates: Sequence[float]) -> str:
    return f"{statistics.median(rates):.1f} ({', '.join(f'{rate:.1f}' for rate in rates)})"


def _rows(results: dict[Case, list[Result]]) -> list[list[object]]:
    rates = {case: statistics.median(each.rate for each in found) for case, found in results.items()}
    rows: list[list[object]] = []
    for case, found in results.items():
        healthy = rates[Case(case.scheduler)]
        stall = statistics.median(each.stall for each in found)
        share = f"{rates[case] / healthy:.0%}" if healthy else "-"
        rows.append([case.scheduler, case.label, f"{rates[case]:.1f}", share, f"{stall:.1f}"])
    return rows


if __name__ == "__main__":
    main()
