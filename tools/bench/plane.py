"""Throughput on one real control plane: a bare client, karmada-scheduler as it is and without limits, and ours.

    python -m tools.bench.plane --quick

Backlogs (bindings that wait when the scheduler starts) and streams (bindings created at a steady pace), at several
numbers of clusters, one scheduler after the other, in the opposite order every other round. How each figure is
measured: docs/benchmark.md. The table comes at the end, progress goes to standard error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tools.bench import report, scenarios
from tools.bench.plane_http import ROOT
from tools.bench.plane_meters import Quiet
from tools.bench.plane_run import Case, Runner
from tools.bench.scenarios import BARE, DEFAULT, RECORDS, SCHEDULERS
from tools.controlplane import ControlPlane, simulated
from tools.controlplane.binaries import TOOLS

CONTROLLERS = ("karmada-controller-manager", "kube-controller-manager")
ALL = ("bare", "default", "lifted", "ours")
SHORT = {**dict(zip(ALL, SCHEDULERS, strict=True)), "records": RECORDS}
WARM_UP = 300
QUICK = {
    "clusters": [100],
    "placements": ["dynamic"],
    "bindings": 400,
    "default_bindings": 100,
    "rates": [20.0],
    "stream_seconds": 10.0,
}


def cases(arguments: argparse.Namespace, clusters: int) -> list[list[Case]]:
    """Return the cases for a number of clusters; cases that are compared are in one list."""
    schedulers = [SHORT[name] for name in arguments.schedulers]
    groups: list[list[Case]] = []
    for placement in arguments.placements:
        group: list[Case] = []
        for scheduler in schedulers:
            limited = scheduler == DEFAULT
            if limited and placement != arguments.placements[0]:
                continue  # the rate of a limited scheduler is that of its limits, whatever it places
            count = min(arguments.bindings, arguments.default_bindings) if limited else arguments.bindings
            case = Case(scheduler, clusters, placement, count, window=arguments.window)
            flights = arguments.in_flight if scheduler == BARE else arguments.in_flight[:1]
            group += [replace(case, in_flight=in_flight) for in_flight in flights]
        groups.append(group)
    for rate in arguments.rates:
        count = round(rate * arguments.stream_seconds)
        placement = arguments.placements[0]
        groups.append([Case(name, clusters, placement, count, rate=rate) for name in schedulers])
    return groups


def measure(runner: Runner, groups: Sequence[Sequence[Case]], rounds: int) -> Iterator[dict[str, Any]]:
    """Measure all, and yield one entry of the JSON per run."""
    for number in range(1, rounds + 1):
        for group in groups:
            for case in group if number % 2 else reversed(group):
                began = time.monotonic()
                result = runner.measure(case)
                entry = {"round": number, "case": asdict(case), "result": asdict(result)}
                say(f"{report.line(entry)}  ({time.monotonic() - began:.0f} s in all)")
                yield entry


def add_clusters(plane: ControlPlane, present: int, count: int) -> None:
    """Create clusters up to ``count``, with a constant status."""
    members = scenarios.fleet(present, count - present)
    if any(process.name == CONTROLLERS[0] for process in plane.processes):
        simulated.register(plane.client, members, plane.check, timeout=600)
        return
    simulated.create(plane.client, members)


@contextmanager
def running(*, controllers: bool) -> Iterator[tuple[ControlPlane, Runner]]:
    """Start a control plane, without controllers unless they are requested."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder) / "plane") as plane:
        if not controllers:
            for process in [each for each in plane.processes if each.name in CONTROLLERS]:
                process.stop()
                plane.forget(process)
        etcd = next(process for process in plane.processes if process.name == "etcd")
        flag = "--listen-client-urls="
        url = next(part.removeprefix(flag) for part in etcd.argv if part.startswith(flag))
        with closing(Quiet(plane, url)) as quiet:
            yield plane, Runner(plane, quiet)


def machine() -> dict[str, Any]:
    """Return the machine and versions that the figures depend on."""
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    pins = (TOOLS / "go.mod").read_text()
    modules = {"karmada": "github.com/karmada-io/karmada", "etcd": "go.etcd.io/etcd/server/v3",
               "kubernetes": "k8s.io/kubernetes", "go": "go"}  # fmt: skip
    versions = {
        name: found[1] if (found := re.search(rf"^\s*{re.escape(module)} (\S+)", pins, re.MULTILINE)) else "?"
        for name, module in modules.items()
    }
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "cores": os.cpu_count(),
        "cpu": model[1] if model else platform.machine(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "commit": git.stdout.strip(),
        "load_before": os.getloadavg()[0],
        "versions": versions,
    }


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--clusters", type=int, nargs="+", default=[100, 1000], metavar="N", help="ascending (100 1000)")
    names = tuple(scenarios.PLACEMENTS)
    option("--placements", nargs="+", default=names, choices=names, help="the first is that of the streams")
    option("--schedulers", nargs="+", default=ALL, choices=tuple(SHORT),
           help="records is ours with records of decisions (bare default lifted ours)")  # fmt: skip
    option("--bindings", type=int, default=2000, metavar="N", help="of a backlog (2000)")
    option("--default-bindings", type=int, default=300, metavar="N",
           help="of a backlog for the scheduler with default limits, which is slow (300)")  # fmt: skip
    option("--rates", type=float, nargs="*", default=[20.0, 40.0], metavar="R",
           help="of the streams, in bindings per second (20 40)")  # fmt: skip
    option("--stream-seconds", type=float, default=30.0, metavar="S", help="length of a stream (30)")
    option("--window", type=float, default=120.0, metavar="S",
           help="end of a backlog that is not done, from the first placement on (120)")  # fmt: skip
    option("--in-flight", type=int, nargs="+", default=[32], metavar="N",
           help="how many bindings the bare client works on; several are compared (32)")  # fmt: skip
    option("--rounds", type=int, default=1, metavar="N", help="medians count (1)")
    option("--with-controllers", action="store_true", help="leave Karmada's controllers running")
    option("--quick", action="store_true", help="a few minutes, to see whether it works")
    option("--json", type=Path, metavar="FILE", help="where to write everything, after every run")
    arguments = parser.parse_args(words)
    if arguments.quick:
        for name, value in QUICK.items():
            if getattr(arguments, name) == parser.get_default(name):
                setattr(arguments, name, value)
    return arguments


def main() -> None:
    """Measure, write JSON, print tables."""
    arguments = parse()
    began = dt.datetime.now(dt.UTC)
    document: dict[str, Any] = {
        "date": began.strftime("%Y-%m-%d %H:%M UTC"),
        "arguments": {name: value for name, value in vars(arguments).items() if name != "json"},
        "machine": machine(),
        "runs": [],
    }
    with running(controllers=arguments.with_controllers) as (plane, runner):
        present = 0
        for clusters in arguments.clusters:
            add_clusters(plane, present, clusters)
            present = clusters
            # The first run after a start or after so many new objects is slower than the others.
            runner.measure(Case(BARE, clusters, arguments.placements[0], WARM_UP))
            say(f"{clusters} clusters, after {(dt.datetime.now(dt.UTC) - began).seconds} s")
            for entry in measure(runner, cases(arguments, clusters), arguments.rounds):
                document["runs"].append(entry)
                document["minutes"] = round((dt.datetime.now(dt.UTC) - began).seconds / 60, 1)
                if arguments.json is not None:
                    arguments.json.parent.mkdir(parents=True, exist_ok=True)
                    arguments.json.write_text(json.dumps(document, indent=1, default=str) + "\n")
    print(report.text(document))


if __name__ == "__main__":
    main()
