"""Random scenarios for the recorder: clusters, and bindings in the middle of their lives.

Equal seeds give equal scenarios. `metadata.deletionTimestamp` of a cluster, `status` of both and
`metadata.generation` of a binding say how it is to be once it is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tools.conformance.starts import (
    AFTER,
    BEFORE,
    EVENTS,
    LAST,
    Manifest,
    Start,
    any_placement,
    as_json,
    scheduled_condition,
)
from tools.controlplane import SimulatedMember
from tools.oracle.generator.clusters import draw_taint
from tools.oracle.generator.rng import Random
from tools.oracle.generator.values import LABELS, PROVIDERS, REGIONS, ZONES

NAMESPACE: Final = "recorded"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What to create, in the order in which it is created."""

    clusters: list[Manifest]
    bindings: list[Manifest]


def scenario(seed: int, *, clusters: int, bindings: int) -> Scenario:
    """Make a scenario; equal arguments give the same one on every machine."""
    rng = Random(f"recorder/{seed}")
    names = [f"m{number:04}" for number in range(clusters)]
    leaving = {name for name in names[1:] if rng.chance(0.12)}
    if clusters > 2 and not leaving:
        leaving = {names[-1]}
    fleet = [_cluster(rng, name, leaving=name in leaving) for name in names]
    return Scenario(
        fleet, [_binding(rng, names, sorted(leaving), number).manifest for number in range(bindings)]
    )


def _cluster(rng: Random, name: str, *, leaving: bool) -> Manifest:
    taints = (draw_taint(rng),) if rng.chance(0.15) else ()
    member = SimulatedMember(
        name,
        provider=rng.pick(PROVIDERS),
        region=rng.pick(REGIONS),
        zone=rng.pick((*ZONES, "")),
        labels={key: rng.pick(values) for key, values in LABELS.items() if rng.chance(0.6)},
        taints=tuple({"effect": "NoSchedule", **taint} for taint in taints),
        cpu=rng.pick(("4", "8", "16", "64")),
        memory=rng.pick(("16Gi", "64Gi", "100G")),
        pods=rng.pick(("20", "110", "220")),
        allocated={"cpu": rng.pick(("0", "1", "2500m")), "memory": "3Gi", "pods": rng.pick(("3", "12"))},
    )
    made = member.manifest() | {"status": member.status()}
    for condition in made["status"]["conditions"]:
        condition["lastTransitionTime"] = BEFORE
    if leaving:
        made["metadata"]["deletionTimestamp"] = AFTER
    return made


def _binding(rng: Random, clusters: Sequence[str], leaving: Sequence[str], number: int) -> Start:
    start = _at_rest(rng, clusters, leaving, number)
    rng.pick(EVENTS)(start)
    if rng.chance(0.15):
        event = rng.pick(EVENTS)
        if event is not Start.is_new:
            event(start)
    return start


def _at_rest(rng: Random, clusters: Sequence[str], leaving: Sequence[str], number: int) -> Start:
    cluster_scoped = rng.chance(0.1)
    workload = not cluster_scoped and rng.chance(0.9)
    version, kind = "rbac.authorization.k8s.io/v1", "ClusterRole"
    if not cluster_scoped:
        version, kind = ("apps/v1", "Deployment") if workload else ("v1", "ConfigMap")
    resource = {
        "apiVersion": version,
        "kind": kind,
        "name": f"w{number}",
        "resourceVersion": "1",
        "uid": f"{rng.getrandbits(32):08x}-0000-4000-8000-{number:012x}",
    }
    label = "propagationpolicy.karmada.io/permanent-id"
    metadata: Manifest = {"name": f"b{number:05}", "generation": 1}
    if cluster_scoped:
        label = "clusterpropagationpolicy.karmada.io/permanent-id"
    else:
        resource["namespace"] = metadata["namespace"] = NAMESPACE
    metadata["labels"] = {label: "11111111-0000-0000-0000-000000000000"}
    spec: Manifest = {"resource": resource}
    if workload or (cluster_scoped and rng.chance(0.5)):
        spec["replicas"] = 1 + rng.upto(8)
        spec["replicaRequirements"] = {"resourceRequest": {"cpu": rng.pick(("100m", "500m"))}}
    spec["placement"] = any_placement(rng, clusters, spec)
    kind = "ClusterResourceBinding" if cluster_scoped else "ResourceBinding"
    status: Manifest = {
        "lastScheduledTime": LAST,
        "schedulerObservedGeneration": 1,
        "conditions": [scheduled_condition("True", "Success", "Binding has been scheduled successfully.")],
    }
    if terms := spec["placement"].get("clusterAffinities"):
        status["schedulerObservingAffinityName"] = rng.pick(terms)["affinityName"]
    manifest = {"apiVersion": "work.karmada.io/v1alpha2", "kind": kind, "metadata": metadata}
    start = Start(rng, clusters, leaving, {**manifest, "spec": spec, "status": status})
    staying = [name for name in clusters if name not in leaving]
    start.settle(rng.some(staying, 3, 1))
    start.annotate(as_json(spec["placement"]))
    if rng.chance(0.4):
        metadata["generation"] = 2
    return start
