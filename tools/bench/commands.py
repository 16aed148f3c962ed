"""What the commands cost on generated fleets, each in a process of its own that reads files or an API server: ``make bench-adviser``

The best of some runs counts: others measure what else the machine does. ``explain`` and ``why-not`` are also measured without the
reading, and the page over HTTP. The exit status is 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import orjson

from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import framework
from tests.commands import run
from tools.bench import live_commands
from tools.bench.command_fleet import write, write_tests
from tools.bench.plane_meters import percentile
from tools.controlplane.processes import free_port
from tools.manifests import Manifest

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"
_QUESTIONS: Final = 30
_ROUNDS: Final = 7
_EXPLAIN_MS: Final = {1000: 100, 5000: 300}
_PAGE: Final = {1000: (300, 200), 5000: (1500, 1000)}
"""Milliseconds and kB of the first page, by number of clusters."""
_SURVIVE_SECONDS: Final = {100: 3.0, 1000: 10.0, 5000: 60.0}
_LAUNCHER: Final = """
import resource, subprocess, sys, time
began = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
seconds = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("", status, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, sep="\\n")
"""
"""A small process starts the one that is measured, because the peak of a child has that of its parent in it."""


class Bound(NamedTuple):
    """The most that a process may take: wall time and CPU time in seconds, its largest resident set in MiB."""

    seconds: float = math.inf
    cpu: float = math.inf
    mib: float = math.inf


class Cost(NamedTuple):
    """What a process took, as in ``Bound``, and how it ended."""

    seconds: float
    cpu: float
    mib: float
    status: int
    lines: Sequence[str]


Measure = Callable[[], tuple[str, bool]]
"""Returns the figures in words, and whether the bounds hold."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a row for each figure, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(prog="make bench-adviser", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--bindings-per-cluster", type=int, default=2, metavar="N")
    parser.add_argument("--keep", type=Path, help="directory for the files; they are made once")
    parser.add_argument("--only", default="", help="measure what has this text in its name")
    parser.add_argument("--runs", type=int, default=1, help="of which the best counts (default: %(default)s)")
    options = parser.parse_args(arguments)
    is_good = True
    with tempfile.TemporaryDirectory() as temporary:
        # A wheel has compiled modules; a source tree has none where PYTHONDONTWRITEBYTECODE is set.
        os.environ["PYTHONPYCACHEPREFIX"] = f"{temporary}/compiled"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        cost_of("--help")
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        folder = options.keep or Path(temporary)
        for name, measure in measures(
            folder, options.clusters, options.bindings_per_cluster, options.runs, options.only
        ):
            text, holds = measure()
            print(f"  {name:<44} {text}{'' if holds else '  ABOVE THE BOUND'}", flush=True)
            is_good = is_good and holds
    return 0 if is_good else 1


def measures(
    folder: Path, sizes: Sequence[int], per_cluster: int, runs: int, only: str
) -> Iterator[tuple[str, Measure]]:
    """Yield what is measured, with its name; a fleet is written when the first of its measures is wanted."""
    for name, arguments, bound in (*_starts(), *_placement_tests(folder, only)):
        if only in name:
            yield name, partial(_process, arguments, bound, runs)
    yield from live_commands.measures(folder, _live, only)
    for clusters in sizes:
        files, bindings = folder / str(clusters), clusters * per_cluster
        fleet: list[tuple[str, Measure]] = [
            ("explain", partial(_explain, files, clusters)),
            ("why-not", partial(_why_not, files)),
            ("page", partial(_page, files, clusters)),
        ]
        fleet += [
            (name, partial(_process, arguments, bound, runs))
            for name, arguments, bound in _on_a_fleet(files, clusters)
        ]
        for name, measure in fleet:
            title = f"{name}, {clusters:,} clusters"
            if only in title:
                write(files, clusters, bindings)
                yield title, measure


Row = tuple[str, Sequence[str], Bound]


def _starts() -> Iterator[Row]:
    """Yield commands about few objects: most of their time is the start of the process."""
    files = [f"--{kind}={EXAMPLES / 'fleet' / kind}.yaml" for kind in ("clusters", "bindings")]
    binding = ["checkout-deployment", "-n", "shop"]
    for words in (["--version"], ["--help"], ["explain", "--help"]):
        yield f"start, {' '.join(words)}", words, Bound(0.225)
    yield "start, explain, 8 clusters", ["explain", *binding, *files], Bound(0.6)
    yield "start, why-not, 8 clusters", ["why-not", *binding, "eu-west-1", *files], Bound(0.6)
    yield "start, test, docs/examples/tests", ["test", str(EXAMPLES / "tests")], Bound(cpu=1.2)


def _placement_tests(folder: Path, only: str) -> Iterator[Row]:
    for clusters, cases, steps, bound in (
        (8, 100, 0, Bound(cpu=1.5)),
        (8, 100, 2, Bound(cpu=2.25)),
        (100, 100, 0, Bound(cpu=1.65)),
        (1000, 1, 0, Bound(cpu=1.95)),
        (1000, 100, 0, Bound(cpu=4.5)),
        (1000, 1000, 0, Bound(mib=300)),
    ):
        name = f"test, {clusters:,} clusters, {cases:,} cases of {steps} steps"
        if only in name:
            yield name, ["test", str(write_tests(folder, clusters, cases, steps=steps))], bound


def _on_a_fleet(folder: Path, clusters: int) -> Iterator[Row]:
    read = [f"--{kind}={folder / kind}.json" for kind in ("clusters", "bindings")]
    policies = [*read, f"--policies={folder / 'policies.json'}", "--fail-on=none"]
    for name, flags in (
        ("plan, policy edit, all move", ["-f", str(folder / "weights")]),
        ("plan, policy edit, latent", ["-f", str(folder / "spread")]),
        ("plan, loss of a cluster", ["--without=c00042"]),
        ("plan, new cluster", ["--add=c99999=c00042"]),
        ("plan, cordon", ["--cordon=c00042"]),
    ):
        yield name, ["plan", *policies, *flags, "--no-drift"], Bound(10.0, mib=1024)
        yield f"{name}, with drift", ["plan", *policies, *flags], Bound(15.0, mib=1024)
    survive = ["survive", *read, "--fail-on=none"]
    bound = Bound(_SURVIVE_SECONDS.get(clusters, 60.0), mib=700)
    yield "survive, clusters", [*survive, "--domain=cluster", "--no-remedies"], bound
    yield "survive, regions", [*survive, "--domain=region", "--no-remedies"], Bound()
    yield "survive, all kinds", [*survive, "--no-remedies"], Bound()
    yield "survive, clusters, with remedies", [*survive, "--domain=cluster"], Bound()


def cost_of(*arguments: str) -> Cost:
    """Run our command with arguments, and return what it took, with the lines it printed."""
    program = str(Path(sys.executable).with_name("karmada-pyscheduler"))
    command = [sys.executable, "-c", _LAUNCHER, program, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *lines, status, seconds, cpu, mib = done.stdout.splitlines()
    return Cost(float(seconds), float(cpu), float(mib), int(status), lines)


def _process(arguments: Sequence[str], bound: Bound, runs: int) -> tuple[str, bool]:
    cost = min(cost_of(*arguments) for _ in range(runs))
    assert not cost.status, cost.lines[-1:]
    holds = cost.seconds <= bound.seconds and cost.cpu <= bound.cpu and cost.mib <= bound.mib
    summary = [line for line in cost.lines if line][-1:] if arguments[0] == "plan" else []
    return f"{cost.seconds:.2f} s, {cost.cpu:.2f} s CPU, {cost.mib:.0f} MiB  {''.join(summary)}", holds


def _live(*arguments: str) -> tuple[float, float]:
    """Run a command whose exit status is that of what it found; return seconds and MiB."""
    cost = cost_of(*arguments)
    assert cost.lines, arguments
    return cost.seconds, cost.mib


def _items(folder: Path, kind: str) -> list[Manifest]:
    found: list[Manifest] = orjson.loads((folder / f"{kind}.json").read_bytes())["items"]
    return found


def _explain(folder: Path, clusters: int) -> tuple[str, bool]:
    """Explain placed bindings without a cached decision, after the files were read."""
    gates = FeatureGates()
    local = (GeneralEstimator(gates),)
    fleet = tuple(map(Cluster.from_manifest, _items(folder, "clusters")))
    spent = []
    for manifest in _items(folder, "bindings")[:_ROUNDS]:
        binding, algorithm = Binding.from_manifest(manifest), SchedulingAlgorithm(gates, local)
        began = time.process_time()
        plugins, snapshot = framework(gates=gates), Snapshot.of(fleet)
        explain(ExplainInputs(binding, snapshot, plugins, algorithm))
        spent.append(1000 * (time.process_time() - began))
    return f"{median(spent):.0f} ms CPU", median(spent) <= _EXPLAIN_MS.get(clusters, 1000)


def _why_not(folder: Path) -> tuple[str, bool]:
    """Ask why bindings are not on random clusters; the seconds are those of the search."""
    clusters, bindings = _items(folder, "clusters"), _items(folder, "few")
    files = [f"--clusters={folder / 'clusters.json'}", f"--bindings={folder / 'few.json'}"]
    dice, seconds, answered = random.Random("why-not"), list[float](), 0
    for number in range(_QUESTIONS):
        metadata = bindings[number % len(bindings)]["metadata"]
        words = [f"rb/{metadata['name']}", dice.choice(clusters)["metadata"]["name"]]
        answer = run("why-not", *words, "-n", metadata["namespace"], *files, "-o=json", "--timeout=2s").fields
        if not answer["nextHolds"]:
            answered += bool(answer["remedies"])
            seconds.append(answer["search"]["seconds"])
    shares = "/".join(f"{percentile(seconds, share):.2f}" for share in (0.5, 0.99))
    return f"{shares} s (p50/p99), {answered} of {len(seconds)} answered", True


def _page(folder: Path, clusters: int) -> tuple[str, bool]:
    """Ask for pages, the first time and again."""
    address, rows = f"127.0.0.1:{free_port()}", list[tuple[float, float, str]]()
    command = [sys.executable, "-m", "karmada_scheduler", "web", f"--bind-address={address}"]
    command += [f"--{kind}={folder / kind}.json" for kind in ("clusters", "bindings")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            next(line for line in process.stderr if "The page is on" in line)
            for path in ("/", "/clusters", "/bindings", "/b/team-1/web-1-deployment"):
                first, size = _get(f"http://{address}{path}")
                again = median(_get(f"http://{address}{path}")[0] for _ in range(_ROUNDS))
                rows.append((first, size, f"{path} {first:.0f} ms, again {again:.0f} ms, {size:.0f} kB"))
        finally:
            process.terminate()
    most = _PAGE.get(clusters, (1500, 1000))
    return "; ".join(text for _, _, text in rows), rows[0][0] <= most[0] and rows[0][1] <= most[1]


def _get(url: str) -> tuple[float, float]:
    """Return milliseconds and kB of a page."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=120) as answer:
        body = answer.read()
    return 1000 * (time.perf_counter() - began), len(body) / 1000


if __name__ == "__main__":
    sys.exit(main())
