"""Files of generated fleets, bindings that the core places, and what a process that reads them costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from karmada_advisor.plan.decide import grouped
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import framework

Manifest = dict[str, Any]

_LAUNCHER: Final = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("", status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, sep="\\n")
"""
"""A small process starts the one that is measured, because the peak of a child has that of its parent in it."""


class Cost(NamedTuple):
    """What a process took: wall time and CPU time in seconds, and its largest resident set."""

    status: int
    seconds: float
    cpu: float
    mib: float
    lines: Sequence[str]


def cost_of(*arguments: str, environment: Mapping[str, str] | None = None) -> Cost:
    """Run our command with arguments, and return what it took, with the lines it printed."""
    command = [sys.executable, "-m", "karmada_scheduler", *arguments]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    *lines, status, cpu, mib = done.stdout.splitlines()
    return Cost(int(status), time.perf_counter() - began, float(cpu), float(mib), lines)


def write(path: Path, items: Sequence[Manifest]) -> None:
    """Write objects as a List."""
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def decided(
    clusters: Sequence[Manifest], bindings: Sequence[Manifest]
) -> Iterator[tuple[Manifest, Decision]]:
    """Let the core decide about each binding."""
    gates = FeatureGates()
    algorithm = SchedulingAlgorithm(gates, (GeneralEstimator(gates),))
    plugins, snapshot = framework(gates=gates), Snapshot.of(map(Cluster.from_manifest, clusters))
    by_key = {Binding.from_manifest(each).key: each for each in bindings}
    for made in grouped(Binding.from_manifest(each) for each in bindings):
        yield by_key[made.key], run_sync(algorithm.decide(made, snapshot, plugins))
