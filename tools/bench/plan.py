"""Time and memory of plans: ``make bench-plan``

Runs the command on files: a policy edit that concerns every binding, a rebalance-only edit, the loss of a cluster, and a
new cluster. Every run is a process of its own; its time is that from start to end, with reading the files, and its
memory is the largest resident set.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from karmada_advisor.plan.decide import grouped
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, CLUSTER_POLICY_ID_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import cluster, framework

Manifest = dict[str, Any]

POLICIES: Final = 60
REQUESTS: Final = 20
_REGIONS: Final = 30
_REPLICAS: Final = (1, 2, 3, 3, 5, 5, 10, 20, 50)
_LIMITS: Final = {"drift": 15.0, "": 10.0}
_MEMORY_LIMIT: Final = 2**20
"""In KiB: 1 GiB."""


def main(arguments: list[str] | None = None) -> int:
    """Measure each change, print a row for it, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.plan", description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=5000)
    parser.add_argument("--bindings", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="directory for the files; they are made once")
    parser.add_argument("--only", default="", help="run the changes whose names have this text")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        if not (folder / "bindings.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, options.clusters, options.bindings)
        print(f"{options.bindings:,} bindings, {options.clusters:,} clusters, {os.cpu_count()} processors")
        print(f"{'change':<28} {'drift':<6} {'seconds':>8} {'cpu':>6} {'MiB':>6}  summary")
        measured = [
            row
            for row in (measure(folder, *each) for each in changes(folder) if options.only in each[0])
            if row is not None
        ]
    return int(any(not each.is_good for each in measured))


@dataclass(frozen=True)
class Measured:
    """One run: seconds, CPU seconds, KiB."""

    drift: bool
    seconds: float
    memory: int

    @property
    def is_good(self) -> bool:
        """Whether the bounds hold."""
        return self.seconds <= _LIMITS["drift" if self.drift else ""] and self.memory <= _MEMORY_LIMIT


def changes(folder: Path) -> Iterator[tuple[str, list[str], bool]]:
    """Yield name and flags of each change, without and with drift."""
    for name, flags in (
        ("policy edit, all move", ["-f", str(folder / "weights")]),
        ("policy edit, latent", ["-f", str(folder / "spread")]),
        ("loss of a cluster", ["--without", "c00042"]),
        ("new cluster", ["--add", "c99999=c00042"]),
        ("cordon", ["--cordon", "c00042"]),
    ):
        for drift in (False, True):
            yield name, flags, drift


def measure(folder: Path, name: str, flags: Sequence[str], drift: bool) -> Measured | None:
    """Run the command, and print a row."""
    files = [f"--{each}={folder / each}.json" for each in ("clusters", "bindings", "policies")]
    command = [sys.executable, "-m", "karmada_scheduler", "plan", *files, *flags, "--fail-on", "none"]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, *([] if drift else ["--no-drift"])], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if process.returncode:
        print(f"{name}: exit status {process.returncode}", file=sys.stderr)
        sys.exit(2)
    found = Measured(drift, seconds, usage.ru_maxrss)
    summary = output.rstrip().splitlines()[-1]
    mark = "" if found.is_good else "  ABOVE THE BOUND"
    print(
        f"{name:<28} {'yes' if drift else 'no':<6} {seconds:>8.1f} {usage.ru_utime + usage.ru_stime:>6.1f} "
        f"{usage.ru_maxrss / 1024:>6.0f}  {summary}{mark}",
        flush=True,
    )
    return found


def write(folder: Path, cluster_count: int, binding_count: int) -> None:
    """Write clusters, policies, placed bindings, and the changed policies."""
    dice = random.Random(f"plan/{cluster_count}/{binding_count}")
    clusters = [_cluster(index, dice) for index in range(cluster_count)]
    policies = [_policy(index, _placement(index)) for index in range(POLICIES)]
    _write(folder / "clusters.json", clusters)
    _write(folder / "policies.json", policies)
    _write(
        folder / "bindings.json", _placed(clusters, [_binding(each, dice) for each in range(binding_count)])
    )
    for name, edit in (("weights", _reversed_weights), ("spread", _wider)):
        (folder / name).mkdir(exist_ok=True)
        for policy in policies:
            changed = orjson.loads(orjson.dumps(policy))
            edit(changed["spec"]["placement"])
            path = folder / name / f"{policy['metadata']['name']}.json"
            path.write_bytes(orjson.dumps(changed))


def _write(path: Path, items: Sequence[Manifest]) -> None:
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _cluster(index: int, dice: random.Random) -> Manifest:
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
    weighted = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    dynamic = {**weighted, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    match index % 4:
        case 0 | 1:
            placement["replicaScheduling"] = dynamic
            placement["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 5}]
        case 2:
            placement["replicaScheduling"] = dynamic
            placement["spreadConstraints"] = [
                {"spreadByField": "region", "minGroups": 2, "maxGroups": 2},
                {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 4},
            ]
        case _:
            placement["replicaScheduling"] = {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Aggregated",
            }
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


def _binding(index: int, dice: random.Random) -> Manifest:
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


def _placed(clusters: Sequence[Manifest], bindings: Sequence[Manifest]) -> list[Manifest]:
    """Let the core place the bindings."""
    gates = FeatureGates()
    algorithm = SchedulingAlgorithm(gates, (GeneralEstimator(gates),))
    plugins, snapshot = framework(gates=gates), Snapshot.of(map(Cluster.from_manifest, clusters))
    by_key: dict[BindingKey, Manifest] = {}
    for manifest in bindings:
        by_key[Binding.from_manifest(manifest).key] = manifest
    for made in grouped(Binding.from_manifest(each) for each in bindings):
        decision = run_sync(algorithm.decide(made, snapshot, plugins))
        manifest = by_key[made.key]
        status = "True" if decision.error is None else "False"
        manifest["spec"]["clusters"] = [each._asdict() for each in decision.targets or ()]
        applied = Placement.from_manifest(manifest["spec"]["placement"]).to_json()
        manifest["metadata"]["annotations"][APPLIED_PLACEMENT_ANNOTATION] = applied
        manifest["status"] = {
            "lastScheduledTime": "2026-11-22T10:00:00Z",
            "schedulerObservedGeneration": 1,
            "conditions": [{"type": "Scheduled", "status": status, "reason": "Success"}],
        }
    return list(bindings)


if __name__ == "__main__":
    sys.exit(main())
