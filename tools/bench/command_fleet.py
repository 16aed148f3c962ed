"""Generated fleets and placement tests for the benchmark of commands.

Policies have twelve kinds of placement: dynamic division with and without constraints, by region, Aggregated, static weights,
Duplicated by name, by region and by cluster, several affinity terms, one cluster alone, and a minimum that one loss makes
impossible. Bindings are where the core puts them.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from karmada_advisor.whatif.placement_tests.model import API_VERSION, KIND
from karmada_advisor.whatif.plan.decide import grouped
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION, CLUSTER_POLICY_ID_LABEL
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import cluster, framework
from tools import manifests
from tools.manifests import AGGREGATED, DUPLICATED, DYNAMIC, Manifest, placement, spread, static

POLICIES: Final = 60
_PER_REGION: Final = 30
_REQUESTS: Final = 20
_REPLICAS: Final = (1, 2, 3, 3, 5, 5, 10, 20, 50)


def write(folder: Path, clusters: int, bindings: int) -> None:
    """Write clusters, policies, placed bindings, and two sets of changed policies, unless the folder has them."""
    if (folder / "bindings.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(f"commands/{clusters}/{bindings}")
    fleet = [
        cluster_manifest(index, dice, regions=max(2, clusters // _PER_REGION)) for index in range(clusters)
    ]
    placements = policy_placements(fleet, dice)
    policies = [_policy(index, chosen) for index, chosen in enumerate(placements)]
    made = [binding_manifest(index, dice, placements) for index in range(bindings)]
    _place(fleet, made)
    for kind, items in (("clusters", fleet), ("policies", policies), ("bindings", made), ("few", made[:20])):
        _write_list(folder / f"{kind}.json", items)
    for name, edit in (("weights", _half), ("spread", _wider)):
        (folder / name).mkdir(exist_ok=True)
        _write_list(folder / name / "policies.json", [_edited(policy, edit) for policy in policies])


def _write_list(path: Path, items: Sequence[Manifest]) -> None:
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def cluster_manifest(index: int, dice: random.Random, *, regions: int = _PER_REGION) -> Manifest:
    """Return a cluster in one of some regions, with three zones each."""
    region, size = index % regions, 64 + 16 * (index % 13)
    made = cluster(f"c{index:05}").region(f"r{region:03}").zones(f"z{region:03}-{index // regions % 3}")
    made.provider(("alpha", "beta", "gamma")[region % 3])
    made.labels(part=str(index % POLICIES), tier=str(dice.randrange(4)))
    made.capacity(cpu=size, memory=f"{4 * size}Gi", pods=20 * size)
    used = dice.uniform(0.1, 0.9)
    made.allocated(
        {"cpu": f"{int(1000 * size * used)}m", "memory": f"{int(4 * size * used)}Gi", "pods": str(size)}
    )
    return made.manifest()


def policy_placements(fleet: Sequence[Manifest], dice: random.Random) -> list[Manifest]:
    """Return the placement of each policy."""
    return [_placement(index, fleet, dice) for index in range(POLICIES)]


def _placement(index: int, fleet: Sequence[Manifest], dice: random.Random) -> Manifest:
    names = [chosen["metadata"]["name"] for chosen in dice.sample(fleet, 8)]
    regions = sorted({chosen["spec"]["region"] for chosen in dice.sample(fleet, 3)})
    field = {"key": "region", "operator": "In", "values": regions}
    by_region = {"fieldSelector": {"matchExpressions": [field]}}
    tier = {"labelSelector": {"matchLabels": {"tier": str(index % 4)}}}
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
    return kinds[index % len(kinds)]


def _half(chosen: Manifest) -> None:
    """Divide among a few of another third of the clusters, so that most bindings move."""
    parts = {"key": "part", "operator": "In", "values": [str(part) for part in range(40, 60)]}
    others = {"labelSelector": {"matchExpressions": [parts]}}
    chosen.clear()
    chosen |= placement(DYNAMIC, spread("cluster", 1, 5), clusterAffinity=others)


def _wider(chosen: Manifest) -> None:
    """Allow more clusters, which steady division does not use before a rebalance."""
    for constraint in chosen.get("spreadConstraints", ()):
        constraint["maxGroups"] += 1


def _policy(index: int, chosen: Manifest) -> Manifest:
    selector = {"labelSelector": {"matchLabels": {"policy": f"p{index:02}"}}}
    made = manifests.policy("", f"p{index:02}", chosen, selector=selector)
    metadata = {"name": f"p{index:02}", "labels": {CLUSTER_POLICY_ID_LABEL: f"id-{index}"}}
    return {**made, "kind": "ClusterPropagationPolicy", "metadata": metadata}


def _edited(policy: Manifest, edit: Callable[[Manifest], None]) -> Manifest:
    changed = copy.deepcopy(policy)
    edit(changed["spec"]["placement"])
    return changed


def binding_manifest(index: int, dice: random.Random, placements: Sequence[Manifest]) -> Manifest:
    """Return a binding that is not placed yet, of one of the policies."""
    policy, request = index % len(placements), dice.randrange(_REQUESTS)
    name, namespace = f"web-{index}", f"team-{index % 97}"
    requests = {"cpu": f"{100 * (1 + request)}m", "memory": f"{128 * (1 + request % 7)}Mi"}
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
            "placement": placements[policy],
            "replicas": dice.choice(_REPLICAS),
            "replicaRequirements": {"resourceRequest": requests},
        },
        "status": {},
    }


def _place(fleet: Sequence[Manifest], bindings: Sequence[Manifest]) -> None:
    """Let the core place the bindings; those that no cluster takes are left without clusters."""
    gates = FeatureGates()
    algorithm = SchedulingAlgorithm(gates, (GeneralEstimator(gates),))
    plugins, snapshot = framework(gates=gates), Snapshot.of(map(Cluster.from_manifest, fleet))
    by_key = {Binding.from_manifest(manifest).key: manifest for manifest in bindings}
    for binding in grouped(map(Binding.from_manifest, bindings)):
        decision, manifest = run_sync(algorithm.decide(binding, snapshot, plugins)), by_key[binding.key]
        manifest["spec"]["clusters"] = [target._asdict() for target in decision.targets or ()]
        if decision.applied_placement is not None:
            manifest["metadata"]["annotations"][APPLIED_PLACEMENT_ANNOTATION] = decision.applied_placement
        manifest["status"] = {
            "lastScheduledTime": "2026-11-22T10:00:00Z",
            "schedulerObservedGeneration": 1,
            "schedulerObservingAffinityName": decision.affinity_name or "",
            "conditions": [_scheduled(decision.error)],
        }


def _scheduled(error: Exception | None) -> Manifest:
    said = ("True", "Success", "") if error is None else ("False", "NoClusterFit", str(error))
    condition = dict(zip(("status", "reason", "message"), said, strict=True))
    return {"type": "Scheduled", **condition, "lastTransitionTime": "2026-11-22T10:00:00Z"}


def write_tests(folder: Path, clusters: int, cases: int, *, steps: int) -> Path:
    """Write a fleet, a policy, a workload and cases; return the test file."""
    root = folder / f"tests-{clusters}-{cases}-{steps}"
    root.mkdir(parents=True, exist_ok=True)
    fleet = [
        cluster(f"m{number:04d}")
        .region(f"r{number % 10}")
        .labels(tier="prod")
        .capacity(cpu=400, memory="900Gi")
        .manifest()
        for number in range(clusters)
    ]
    tier = {"labelSelector": {"matchLabels": {"tier": "prod"}}}
    chosen = placement(DYNAMIC, spread("cluster", 2, 6), clusterAffinity=tier)
    then = [
        {"scale": {"shop/web": 30 + number}, "expect": {"shop/web": {"placed": True}}}
        for number in range(steps)
    ]
    case: dict[str, Any] = {"expect": {"shop/web": {"replicas": 24}}, **({"then": then} if then else {})}
    content = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "fleet": {"files": ["fleet.yaml"]},
        "policies": ["policy.yaml"],
        "workloads": [manifests.deployment("shop", "web", 24)],
        "cases": [{"name": f"case {number}", **case} for number in range(cases)],
    }
    path = root / "web_test.yaml"
    for file, value in (
        (root / "fleet.yaml", {"apiVersion": "v1", "kind": "List", "items": fleet}),
        (root / "policy.yaml", manifests.policy("shop", "web", chosen)),
        (path, content),
    ):
        file.write_text(yaml.dump(orjson.loads(orjson.dumps(value)), sort_keys=False))
    return path
