"""Latency and memory of the adviser on the files of a generated fleet: ``make bench-adviser``

explain and why-not
    CPU time of an explanation and seconds of a search, after the files were read, in this process.
the page
    The first request after the start of the process and the median of further ones, over HTTP, with the bytes of the page.
plan, for the largest number of clusters
    Whole processes, reading the files included: a policy edit that concerns every binding, a rebalance-only edit, the loss of
    a cluster, and a new cluster. Memory is the largest resident set.

The exit status is 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import orjson

from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, CLUSTER_POLICY_ID_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import cluster, framework
from tools.bench import files
from tools.bench.files import Manifest, cost_of, decided
from tools.bench.plane_meters import percentile
from tools.controlplane.processes import free_port
from tools.manifests import AGGREGATED, DYNAMIC, spread
from tools.why_not_check.check import Checker
from tools.why_not_check.questions import CheckedQuestion

POLICIES: Final = 60
REQUESTS: Final = 20
PAGES: Final = ("/", "/clusters", "/bindings", "/b/team-1/web-1-deployment")
_REGIONS: Final = 30
_REPLICAS: Final = (1, 2, 3, 3, 5, 5, 10, 20, 50)
_QUESTIONS: Final = 30
_ROUNDS: Final = 7
_PLAN_SECONDS: Final = {True: 15.0, False: 10.0}
_PLAN_MIB: Final = 1024
_EXPLAIN_MS: Final = {1000: 100, 5000: 300}
_PAGE: Final = {1000: (300, 200), 5000: (1500, 1000)}
"""Milliseconds and kB of the first page, by number of clusters."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a row for each figure, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(prog="make bench-adviser", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--bindings-per-cluster", type=int, default=2, metavar="N")
    parser.add_argument("--keep", type=Path, help="directory for the files; they are made once")
    parser.add_argument("--only", default="", help="measure what has this text in its name")
    options = parser.parse_args(arguments)
    is_good = True
    for count in options.clusters:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep / str(count) if options.keep else Path(temporary)
            if not (folder / "bindings.json").exists():
                folder.mkdir(parents=True, exist_ok=True)
                write(folder, count, options.bindings_per_cluster * count)
            print(
                f"{count:,} clusters, {options.bindings_per_cluster * count:,} bindings, {os.cpu_count()} cores"
            )
            for name, measure in _measurements(folder, count, with_plans=count == max(options.clusters)):
                if options.only in name:
                    text, holds = measure()
                    print(f"  {name:<34} {text}{'' if holds else '  ABOVE THE BOUND'}", flush=True)
                    is_good = is_good and holds
    return 0 if is_good else 1


Measure = Callable[[], tuple[str, bool]]
"""Returns the figures in words, and whether the bounds hold."""


def _measurements(folder: Path, count: int, *, with_plans: bool) -> Iterator[tuple[str, Measure]]:
    yield "explain", lambda: _explain(folder, count)
    yield "why-not", lambda: _why_not(folder)
    yield "page", lambda: _page(folder, count)
    if not with_plans:
        return
    for name, flags in (
        ("plan, policy edit, all move", ["-f", str(folder / "weights")]),
        ("plan, policy edit, latent", ["-f", str(folder / "spread")]),
        ("plan, loss of a cluster", ["--without", "c00042"]),
        ("plan, new cluster", ["--add", "c99999=c00042"]),
        ("plan, cordon", ["--cordon", "c00042"]),
    ):
        yield name, lambda flags=flags: _plan(folder, flags, drift=False)  # type: ignore[misc]
        yield f"{name}, with drift", lambda flags=flags: _plan(folder, flags, drift=True)  # type: ignore[misc]


def _items(folder: Path, name: str) -> list[Manifest]:
    found: list[Manifest] = orjson.loads((folder / f"{name}.json").read_bytes())["items"]
    return found


def _explain(folder: Path, count: int) -> tuple[str, bool]:
    """Explain placed bindings without a cached decision; CPU time in milliseconds."""
    gates = FeatureGates()
    local = (GeneralEstimator(gates),)
    clusters = tuple(map(Cluster.from_manifest, _items(folder, "clusters")))
    spent = []
    for manifest in _items(folder, "bindings")[:_ROUNDS]:
        asked, algorithm = Binding.from_manifest(manifest), SchedulingAlgorithm(gates, local)
        began = time.process_time()
        plugins, snapshot = framework(gates=gates), Snapshot.of(clusters)
        explain(ExplainInputs(asked, snapshot, plugins, gates, algorithm, local))
        spent.append(1000 * (time.process_time() - began))
    return f"{median(spent):.0f} ms CPU", median(spent) <= _EXPLAIN_MS.get(count, 1000)


def _why_not(folder: Path) -> tuple[str, bool]:
    """Ask why bindings are not on random clusters; the seconds are those of the search."""
    clusters, bindings = _items(folder, "clusters"), _items(folder, "bindings")[:20]
    dice, seconds, answered = random.Random("why-not"), list[float](), 0
    with tempfile.TemporaryDirectory() as asked:
        checker = Checker(Path(asked), timeout="2s")
        for number in range(_QUESTIONS):
            name = dice.choice(clusters)["metadata"]["name"]
            question = CheckedQuestion("", clusters, bindings, bindings[number % len(bindings)], name, ())
            _, answer = checker.ask(question)
            if answer and not answer["nextHolds"]:
                answered += bool(answer["remedies"])
                seconds.append(answer["search"]["seconds"])
    shares = "/".join(f"{percentile(seconds, share):.2f}" for share in (0.5, 0.99))
    return f"{shares} s (p50/p99), {answered} of {len(seconds)} answered", True


def _page(folder: Path, count: int) -> tuple[str, bool]:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "karmada_scheduler", "web", f"--bind-address={address}"]
    command += [f"--{each}={folder / each}.json" for each in ("clusters", "bindings")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            next(line for line in process.stderr if "The page is on" in line)
            rows = []
            for path in PAGES:
                first, size = _get(f"http://{address}{path}")
                again = median(_get(f"http://{address}{path}")[0] for _ in range(_ROUNDS))
                rows.append((path, first, again, size))
        finally:
            process.terminate()
    _, first, _, size = rows[0]
    most_ms, most_kb = _PAGE.get(count, (1500, 1000))
    text = "; ".join(f"{path} {ms:.0f} ms, again {again:.0f} ms, {kb:.0f} kB" for path, ms, again, kb in rows)
    return text, first <= most_ms and size <= most_kb


def _get(url: str) -> tuple[float, float]:
    """Return milliseconds and kB of a page."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=120) as answer:
        body = answer.read()
    return 1000 * (time.perf_counter() - began), len(body) / 1000


def _plan(folder: Path, flags: Sequence[str], *, drift: bool) -> tuple[str, bool]:
    read = [f"--{each}={folder / each}.json" for each in ("clusters", "bindings", "policies")]
    cost = cost_of("plan", *read, *flags, "--fail-on", "none", *([] if drift else ["--no-drift"]))
    assert not cost.status, cost
    summary = [each for each in cost.lines if each][-1]
    holds = cost.seconds <= _PLAN_SECONDS[drift] and cost.mib <= _PLAN_MIB
    return f"{cost.seconds:.1f} s, {cost.cpu:.1f} s CPU, {cost.mib:.0f} MiB  {summary}", holds


def write(folder: Path, cluster_count: int, binding_count: int) -> None:
    """Write clusters, policies, placed bindings, and the changed policies."""
    dice = random.Random(f"plan/{cluster_count}/{binding_count}")
    clusters = [cluster_manifest(index, dice) for index in range(cluster_count)]
    policies = [_policy(index, _placement(index)) for index in range(POLICIES)]
    files.write(folder / "clusters.json", clusters)
    files.write(folder / "policies.json", policies)
    files.write(
        folder / "bindings.json",
        _placed(clusters, [binding_manifest(each, dice) for each in range(binding_count)]),
    )
    for name, edit in (("weights", _reversed_weights), ("spread", _wider)):
        (folder / name).mkdir(exist_ok=True)
        for policy in policies:
            changed = orjson.loads(orjson.dumps(policy))
            edit(changed["spec"]["placement"])
            path = folder / name / f"{policy['metadata']['name']}.json"
            path.write_bytes(orjson.dumps(changed))


def cluster_manifest(index: int, dice: random.Random) -> Manifest:
    made = cluster(f"c{index:05}").region(f"r{index % _REGIONS:02}").label("part", str(index % POLICIES))
    size = 64 + 16 * (index % 13)
    made.capacity(cpu=size, memory=f"{4 * size}Gi", pods=20 * size)
    made.allocated(
        {"cpu": dice.randrange(size), "memory": f"{dice.randrange(4 * size)}Gi", "pods": str(size)}
    )
    return made.manifest()


def _placement(index: int) -> Manifest:
    """Return the placement of a policy: each excludes other clusters, and the ways to divide take turns."""
    placement: Manifest = {"clusterAffinity": {"exclude": [f"c{index:05}"]}}
    match index % 4:
        case 0 | 1:
            placement["replicaScheduling"] = DYNAMIC
            placement["spreadConstraints"] = [spread("cluster", 1, 5)]
        case 2:
            placement["replicaScheduling"] = DYNAMIC
            placement["spreadConstraints"] = [spread("region", 2, 2), spread("cluster", 2, 4)]
        case _:
            placement["replicaScheduling"] = AGGREGATED
    return placement


def _reversed_weights(placement: Manifest) -> None:
    """Make every binding move: only the later half of the clusters is allowed."""
    placement["clusterAffinity"] = {
        "labelSelector": {
            "matchExpressions": [
                {"key": "part", "operator": "In", "values": [str(each) for each in range(40, 60)]}
            ]
        }
    }


def _wider(placement: Manifest) -> None:
    """Allow more clusters, which steady division does not use before a rebalance."""
    for constraint in placement.get("spreadConstraints", ()):
        constraint["maxGroups"] += 1


def _policy(index: int, placement: Manifest) -> Manifest:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": f"p{index:02}", "labels": {CLUSTER_POLICY_ID_LABEL: f"id-{index}"}},
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "labelSelector": {"matchLabels": {"policy": f"p{index:02}"}},
                }
            ],
            "placement": placement,
        },
    }


def binding_manifest(index: int, dice: random.Random) -> Manifest:
    policy, request = index % POLICIES, dice.randrange(REQUESTS)
    name, namespace = f"web-{index}", f"team-{index % 97}"
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-deployment",
            "namespace": namespace,
            "uid": f"b-{index}",
            "generation": 1,
            "labels": {CLUSTER_POLICY_ID_LABEL: f"id-{policy}"},
            "annotations": {"clusterpropagationpolicy.karmada.io/name": f"p{policy:02}"},
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": namespace,
                "name": name,
                "uid": f"{dice.getrandbits(128):032x}",
            },
            "placement": _placement(policy),
            "replicas": dice.choice(_REPLICAS),
            "replicaRequirements": {
                "resourceRequest": {
                    "cpu": f"{100 * (1 + request)}m",
                    "memory": f"{128 * (1 + request % 7)}Mi",
                }
            },
        },
        "status": {},
    }


def _placed(clusters: Sequence[Manifest], bindings: Sequence[Manifest]) -> Sequence[Manifest]:
    """Let the core place the bindings."""
    for manifest, decision in decided(clusters, bindings):
        status = "True" if decision.error is None else "False"
        manifest["spec"]["clusters"] = [each._asdict() for each in decision.targets or ()]
        applied = Placement.from_manifest(manifest["spec"]["placement"]).to_json()
        manifest["metadata"]["annotations"][APPLIED_PLACEMENT_ANNOTATION] = applied
        manifest["status"] = {
            "lastScheduledTime": "2026-11-22T10:00:00Z",
            "schedulerObservedGeneration": 1,
            "conditions": [{"type": "Scheduled", "status": status, "reason": "Success"}],
        }
    return bindings


if __name__ == "__main__":
    sys.exit(main())
