"""The page at scale: memory, start, first view and lists with many users and changes at once: ``make bench-web``

    python -m tools.bench.web --clusters 5000 --bindings 100000 --users 200

The objects have the size of real ones: 5.5 kB per binding. The fast fake API server serves them, and changes ``--events`` bindings per second.
Each user asks for a list, with a filter in two of three cases, every ``--pause`` seconds on a connection of its own. Then one user asks
for plans, and another one for explanations until they are there.

start
    From the start of the process to its first answer, and to the first view of the fleet.
memory
    Of the page: resident at the end, and the largest. With the process of the plan: the largest sum of proportional shares.

The exit status is 1 if a target is exceeded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import aiohttp
import orjson

from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, CORDON_TAINT
from karmada_scheduler.testing import binding
from tools.bench.command_fleet import binding_manifest, cluster_manifest
from tools.bench.plane_meters import cpu_seconds, peak_mib, percentile, proportional_mib, resident_mib
from tools.controlplane.processes import free_port
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver.server import FastApiServer
from tools.manifests import DYNAMIC, Manifest, placement, spread

BYTES: Final = 5_500
"""Of a binding as JSON (docs/decisions/0010-cold-start.md)."""
_LOADED: Final = 5_000
"""Objects that are created at once."""
_UNPLACED: Final = 50
"""One of so many bindings is not placed."""

_PLACEMENTS: Final = [
    placement(DYNAMIC, spread("cluster", 1, 5), clusterAffinity={"exclude": [f"c{number:05}"]})
    for number in range(60)
]

MAX_MIB: Final = 2048
MAX_START: Final = 60.0
MAX_FIRST: Final = 1.0
MAX_LIST: Final = 0.2
MAX_PLAN: Final = 20.0
MAX_OTHERS: Final = 1.0
"""Targets: memory in MiB; seconds until the first view is ready, of it, of a list (p95), of a plan, and of an explanation
meanwhile."""

_CORDONED: Final = "c00002"
_CHANGES: Final = ("without=c00001", f"uncordon={_CORDONED}")
"""Changes that are planned. After the second one, every rebalance may use the cluster."""


Row = tuple[str, str, bool]
"""A figure: its name, the value for people, and whether it is within its target."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a row for each figure, and return 1 if a target is exceeded."""
    parser = argparse.ArgumentParser(prog="make bench-web", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, default=1000, metavar="N")
    parser.add_argument("--bindings", type=int, default=10_000, metavar="N")
    parser.add_argument("--users", type=int, default=20, metavar="N")
    parser.add_argument("--events", type=float, default=20.0, metavar="N", help="changes per second")
    parser.add_argument("--pause", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="SECONDS", help="how long users ask")
    options = parser.parse_args(arguments)
    print(
        f"{options.clusters:,} clusters, {options.bindings:,} bindings of {BYTES / 1000:g} kB, {options.users:,} users, "
        f"{options.events:g} events/s, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    with fast_apiserver.running() as server, tempfile.TemporaryDirectory() as folder:
        for objects in _loads(options.clusters, options.bindings):
            server.load(objects)
        rows = _measured(server, Path(folder), options)
    is_good = True
    for name, text, holds in rows:
        print(f"  {name:<30} {text}{'' if holds else '  ABOVE THE TARGET'}")
        is_good = is_good and holds
    return 0 if is_good else 1


def _loads(clusters: int, bindings: int) -> Iterator[list[Manifest]]:
    dice = random.Random(f"web/{clusters}/{bindings}")
    made = [cluster_manifest(index, dice) for index in range(clusters)]
    names = [each["metadata"]["name"] for each in made]
    for each in made:
        if each["metadata"]["name"] == _CORDONED:
            each["spec"]["taints"] = [{"key": CORDON_TAINT, "effect": "NoSchedule"}]
    yield made
    for first in range(0, bindings, _LOADED):
        yield [placed(index, names, dice) for index in range(first, min(first + _LOADED, bindings))]


def placed(index: int, clusters: list[str], dice: random.Random) -> Manifest:
    """Return a binding of the size of a real one, on up to three clusters; one of 50 is not placed.

    Args:
        index: Of the binding.
        clusters: The names of all clusters.
        dice: Chooses.
    """
    manifest = binding_manifest(index, dice, _PLACEMENTS)
    spec, is_placed = manifest["spec"], index % _UNPLACED != 0
    chosen = dice.sample(clusters, min(len(clusters), dice.randint(1, 3))) if is_placed else []
    spec["clusters"] = [{"name": name, "replicas": 1 + number} for number, name in enumerate(chosen)]
    spec["replicas"] = sum(each["replicas"] for each in spec["clusters"]) or spec["replicas"]
    condition = {
        "type": "Scheduled",
        "status": str(is_placed),
        "reason": "Success" if is_placed else "NoClusterFit",
        "message": "" if is_placed else f"0/{len(clusters)} clusters are available",
        "lastTransitionTime": "2026-11-22T10:00:00Z",
    }
    if is_placed:  # or a plan would decide about every binding, which a fleet at rest does not ask for
        manifest["metadata"]["annotations"][APPLIED_PLACEMENT_ANNOTATION] = _stored_placement(
            index % len(_PLACEMENTS)
        )
    manifest["status"] = {
        "lastScheduledTime": f"2026-11-22T{index % 24:02}:{index % 60:02}:00Z",
        "schedulerObservedGeneration": 1,
        "conditions": [condition],
        "aggregatedStatus": [
            {
                "clusterName": each["name"],
                "applied": True,
                "health": "Healthy",
                "status": {"replicas": each["replicas"], "readyReplicas": each["replicas"]},
            }
            for each in spec["clusters"]
        ],
    }
    manifest["metadata"]["managedFields"] = [{"manager": "karmada-controller-manager", "fieldsV1": {}}]
    fields = manifest["metadata"]["managedFields"][0]["fieldsV1"]
    while (missing := BYTES - len(orjson.dumps(manifest))) > 0:
        fields[f"f:{len(fields)}-{dice.getrandbits(32):08x}"] = {"f:name": {}} if missing > 40 else {}
    return manifest


@cache
def _stored_placement(policy: int) -> str:
    """Return the placement of a policy as the scheduler writes it into the annotation."""
    placed_ = binding("web").placement(_PLACEMENTS[policy]).build().spec.placement
    return "" if placed_ is None else placed_.to_json()


def _measured(server: FastApiServer, folder: Path, options: argparse.Namespace) -> list[Row]:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "karmada_scheduler", "web", f"--bind-address={address}"]
    command += [f"--kubeconfig={server.kubeconfig(folder)}", "--behind-proxy=127.0.0.1"]
    began = time.perf_counter()
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            return asyncio.run(_asked(f"http://{address}", server, process, began, options))
        except BaseException:
            print((folder / "log").read_text()[-2000:], file=sys.stderr)
            raise
        finally:
            process.terminate()


async def _asked(
    url: str,
    server: FastApiServer,
    process: subprocess.Popen[bytes],
    began: float,
    options: argparse.Namespace,
) -> list[Row]:
    pid = process.pid
    async with aiohttp.ClientSession(
        url, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(600)
    ) as session:
        rows = await _started(session, process, began)
        changes = threading.Thread(target=_change, args=(server, options), daemon=True)
        changes.start()
        lists, filters = list[float](), list[float]()
        before, asked_at = cpu_seconds(pid), time.perf_counter()
        refused = sum(
            await asyncio.gather(
                *(_user(session, number, options, lists, filters) for number in range(options.users))
            )
        )
        cpu_share = (cpu_seconds(pid) - before) / (time.perf_counter() - asked_at)
        changes.join()
        for name, found in (("list", lists), ("filter", filters)):
            p50, p95, p99 = (1000 * percentile(found, share) for share in (0.5, 0.95, 0.99))
            text = f"{p50:.0f}/{p95:.0f}/{p99:.0f} ms (p50/p95/p99 of {len(found):,})"
            rows.append((name, text, p95 <= 1000 * MAX_LIST))
        peak = peak_mib(pid)
        rows += [
            ("refused requests", f"{refused:,}", not refused),
            ("CPU while users ask", f"{100 * cpu_share:.0f} % of a core", True),
            ("memory", f"{resident_mib(pid):.0f} MiB, at most {peak:.0f} MiB", peak <= MAX_MIB),
        ]
        for change in _CHANGES:
            rows += await _planned(session, pid, change)
        return rows


async def _started(
    session: aiohttp.ClientSession, process: subprocess.Popen[bytes], began: float
) -> list[Row]:
    """Wait until the page is ready, and view the fleet."""
    answers_after = ready_after = 0.0
    while not ready_after:
        await asyncio.sleep(0.1)
        if process.poll() is not None:
            raise SystemExit("the page could not be started")
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get("/readyz") as found:
                answers_after = answers_after or time.perf_counter() - began
                ready_after = time.perf_counter() - began if found.status == 200 else 0.0
    start = f"{ready_after:.1f} s, {cpu_seconds(process.pid):.1f} s CPU"
    view = await _seconds(session, "/")
    return [
        ("first answer after the start", f"{answers_after:.1f} s", True),
        ("first view after the start", start, ready_after <= MAX_START),
        ("first view", f"{1000 * view:.0f} ms", view <= MAX_FIRST),
    ]


async def _planned(session: aiohttp.ClientSession, pid: int, change: str) -> list[Row]:
    """Ask for a plan, and for explanations as somebody else until it is there."""

    async def ask() -> tuple[int, float]:
        async with session.get(f"/v1/plan?{change}", headers={"X-Forwarded-For": "192.0.2.1"}) as found:
            await found.read()
            return found.status, time.perf_counter() - began

    began, seconds, memory = time.perf_counter(), list[float](), 0.0
    plan = asyncio.create_task(ask())
    while not plan.done():
        index = len(seconds) + 1
        seconds.append(await _seconds(session, f"/b/team-{index % 97}/web-{index}-deployment"))
        memory = max(memory, proportional_mib(pid))
        await asyncio.sleep(0.2)
    p50, most = (1000 * percentile(seconds, share) for share in (0.5, 1.0))
    status, duration = await plan
    return [
        (f"plan {change}", f"{duration:.1f} s, status {status}", status == 200 and duration <= MAX_PLAN),
        ("memory, with its process", f"{memory:.0f} MiB", memory <= MAX_MIB),
        (
            "explanations meanwhile",
            f"{p50:.0f}/{most:.0f} ms (p50/most of {len(seconds):,})",
            most <= 1000 * MAX_OTHERS,
        ),
    ]


async def _user(
    session: aiohttp.ClientSession,
    number: int,
    options: argparse.Namespace,
    lists: list[float],
    filters: list[float],
) -> int:
    """Ask every few seconds until the time is over; return how many requests were refused."""
    dice, refused = random.Random(number), 0
    end = time.perf_counter() + options.seconds
    await asyncio.sleep(dice.random() * min(options.pause, options.seconds))
    while time.perf_counter() < end:
        choice = dice.choice(("list", "namespace", "text"))
        path = {
            "list": "/bindings",
            "namespace": f"/bindings?namespace=team-{dice.randrange(97)}&state=placed",
            "text": f"/bindings?q=web-{dice.randrange(options.bindings)}",
        }[choice]
        try:
            (lists if choice == "list" else filters).append(await _seconds(session, path))
        except aiohttp.ClientResponseError:
            refused += 1
        await asyncio.sleep(options.pause)
    return refused


async def _seconds(session: aiohttp.ClientSession, path: str) -> float:
    """Return how long an answer takes. As a browser, ask again if the connection was closed in the meantime."""
    began = time.perf_counter()
    for is_last in (False, True):
        try:
            async with session.get(path, headers={"Accept": "text/html"}, raise_for_status=True) as found:
                await found.read()
                break
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            if is_last:
                raise
    return time.perf_counter() - began


def _change(server: FastApiServer, options: argparse.Namespace) -> None:
    """Change bindings while users ask."""
    dice = random.Random("events")
    count = int(options.events * options.seconds)
    patches = []
    for number in range(count):
        index = dice.randrange(options.bindings)
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/team-{index % 97}/resourcebindings/web-{index}-deployment"
        patches.append((path, {"metadata": {"labels": {"changed": str(number), "of": str(count)}}}))
    if patches:
        server.patch(patches, rate=options.events)


if __name__ == "__main__":
    sys.exit(main())
