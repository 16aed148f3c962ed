"""Time and memory of ``survive`` on generated fleets: ``make bench-survive``

Twelve kinds of policies: dynamic division with and without constraints, by region, Aggregated, static weights, Duplicated
by name, by region and by cluster, several affinity terms, one cluster alone, and a minimum that one loss makes impossible.
Each figure is of a process of its own that reads the files, so it has the start of the interpreter in it.

The exit status is 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.testing import cluster
from tools.bench import files
from tools.bench.files import Manifest, cost_of, decided
from tools.manifests import AGGREGATED, DUPLICATED, DYNAMIC, placement, spread, static

SIZES: Final = {(100, 1_000): (2.0, 700), (1_000, 5_000): (10.0, 700), (5_000, 10_000): (60.0, 700)}
"""Clusters and bindings, with the seconds and MiB that ``survive`` of all clusters may take, without remedies."""

_PER_REGION: Final = 30
_PER_POLICY: Final = 24
_REPLICAS: Final = (1, 2, 3, 3, 5, 5, 10, 20)
_CPU: Final = ("100m", "250m", "500m", "1", "2")
_MEMORY: Final = ("128Mi", "256Mi", "512Mi", "1Gi", "3Gi")
_PROVIDERS: Final = ("alpha", "beta", "gamma")


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a row for each figure, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(prog="make bench-survive", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clusters", type=int, nargs="+", default=[size[0] for size in SIZES])
    parser.add_argument("--keep", type=Path, help="directory for the files; they are made once")
    options = parser.parse_args(arguments)
    is_good = True
    for (clusters, bindings), bounds in SIZES.items():
        if clusters not in options.clusters:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep / str(clusters) if options.keep else Path(temporary)
            if not (folder / "bindings.json").exists():
                folder.mkdir(parents=True, exist_ok=True)
                write(folder, clusters, bindings)
            print(f"{clusters:,} clusters, {bindings:,} bindings")
            bounded, without = ["--domain=cluster", "--no-remedies"], "--no-remedies"
            for flags in (bounded, ["--domain=region", without], [without], ["--domain=cluster"]):
                cost = cost_of(
                    "survive",
                    *[f"--{each}={folder / each}.json" for each in ("clusters", "bindings")],
                    *flags,
                    "-o",
                    "json",
                )
                assert cost.status in {0, 1}, cost.status
                is_within = flags != bounded or (cost.seconds <= bounds[0] and cost.mib <= bounds[1])
                name = " ".join(flags) or "all kinds"
                mark = "" if is_within else "  ABOVE THE BOUND"
                print(
                    f"  {name:<32} {cost.seconds:.1f} s, {cost.cpu:.1f} s CPU, {cost.mib:.0f} MiB{mark}",
                    flush=True,
                )
                is_good = is_good and is_within
    return 0 if is_good else 1


def write(folder: Path, clusters: int, bindings: int) -> None:
    """Write the files of a fleet: clusters, and bindings where a decision puts them."""
    dice = random.Random(f"survive/{clusters}/{bindings}")
    members = [_cluster(number, clusters, dice) for number in range(clusters)]
    placements = [_placement(number, members, dice) for number in range(max(12, bindings // _PER_POLICY))]
    made = [_binding(number, number % len(placements), placements, dice) for number in range(bindings)]
    _place(members, made)
    files.write(folder / "clusters.json", members)
    files.write(folder / "bindings.json", made)


def _cluster(number: int, count: int, dice: random.Random) -> Manifest:
    regions = max(2, count // _PER_REGION)
    region = number % regions
    made = (
        cluster(f"c{number:04}")
        .region(f"region-{region:03}")
        .zones(f"zone-{region:03}-{number // regions % 3}")
    )
    made = made.provider(_PROVIDERS[region % len(_PROVIDERS)]).label("tier", str(dice.randrange(4)))
    nodes = dice.choice((4, 6, 10, 20))
    made.capacity(cpu=nodes * 16, memory=f"{nodes * 64}Gi", pods=nodes * 110)
    used = dice.uniform(0.3, 0.95)
    made.allocated(
        {
            "cpu": f"{int(nodes * 16000 * used)}m",
            "memory": f"{int(nodes * 65536 * used)}Mi",
            "pods": str(int(nodes * 110 * used)),
        }
    )
    return made.manifest()


def _placement(number: int, clusters: Sequence[Manifest], dice: random.Random) -> Manifest:
    names = [each["metadata"]["name"] for each in dice.sample(list(clusters), 8)]
    own = sorted({each["spec"]["region"] for each in dice.sample(list(clusters), 3)})
    by_region = {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": own}]}}
    tier = {"labelSelector": {"matchLabels": {"tier": str(number % 4)}}}
    weights: dict[tuple[str, ...], int] = {(name,): weight for weight, name in enumerate(names[:3], 1)}
    terms = [
        {"affinityName": "primary", "clusterNames": names[:2]},
        {"affinityName": "backup", "clusterNames": names[2:5]},
    ]
    kinds = (
        placement(DYNAMIC, spread("cluster", 1, 8), clusterAffinity=by_region),
        placement(DYNAMIC, spread("cluster", 2, 4), clusterAffinity=tier),
        placement(DYNAMIC, spread("region", 2, 2), spread("cluster", 2, 6), clusterAffinity={}),
        placement(AGGREGATED, clusterAffinity=tier),
        placement(AGGREGATED, spread("cluster", 2, 4), clusterAffinity=by_region),
        placement(static(weights), clusterAffinity={"clusterNames": names[:3]}),
        placement(DUPLICATED, clusterAffinity={"clusterNames": names[:4]}),
        placement(DUPLICATED, spread("region", 1, 1), spread("cluster", 1, 2), clusterAffinity=tier),
        placement(DUPLICATED, spread("region", 2, 3), spread("cluster", 2, 4), clusterAffinity={}),
        placement(DYNAMIC, clusterAffinities=terms),
        placement(DYNAMIC, clusterAffinity={"clusterNames": names[:1]}),
        placement(DYNAMIC, spread("cluster", 2, 2), clusterAffinity={"clusterNames": names[:2]}),
    )
    return kinds[number % len(kinds)]


def _binding(number: int, policy: int, placements: Sequence[Manifest], dice: random.Random) -> Manifest:
    namespace = f"team-{policy % 40}"
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"w{number}-deployment",
            "namespace": namespace,
            "uid": f"rb-{number}",
            "generation": 1,
            "annotations": {
                "propagationpolicy.karmada.io/name": f"p{policy}",
                "propagationpolicy.karmada.io/namespace": namespace,
            },
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": namespace,
                "name": f"w{number}",
                "uid": f"{dice.getrandbits(128):032x}",
            },
            "replicas": dice.choice(_REPLICAS),
            "replicaRequirements": {
                "resourceRequest": {"cpu": dice.choice(_CPU), "memory": dice.choice(_MEMORY)}
            },
            "placement": placements[policy],
        },
        "status": {"lastScheduledTime": "2026-11-20T10:00:00Z", "schedulerObservedGeneration": 1},
    }


def _place(clusters: Sequence[Manifest], bindings: Sequence[Manifest]) -> None:
    """Put bindings where a decision puts them; those that no cluster takes are left without."""
    for manifest, found in decided(clusters, bindings):
        if found.targets:
            manifest["spec"]["clusters"] = [target._asdict() for target in found.targets]
            manifest["metadata"]["annotations"][APPLIED_PLACEMENT_ANNOTATION] = found.applied_placement
            if found.affinity_name:
                manifest["status"]["schedulerObservingAffinityName"] = found.affinity_name


if __name__ == "__main__":
    sys.exit(main())
