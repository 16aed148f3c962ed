"""The objects at the start: clusters, bindings, and the barrier objects that show when a plane is at rest."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from tools.controlplane import Object, SimulatedMember
from tools.oracle.generator.rng import Random
from tools.placements import LABELS, PROVIDERS, REGIONS, placement

NAMESPACE = "fuzz"
SCHEDULER = "default-scheduler"
POLICY_LABEL = "propagationpolicy.karmada.io/permanent-id"
APPLIED = "policy.karmada.io/applied-placement"
WORK = "/apis/work.karmada.io/v1alpha2"
HOLD = "fuzz.karmada-pyscheduler.io/hold"  # a finalizer, so that the run itself ends a deletion
CLUSTERS = tuple(f"m{number}" for number in range(1, 9))
BARRIER = "barrier"  # names of the barrier objects; no other placement tolerates the taint
BARRIER_TAINT = {"key": "barrier", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A binding: ``rb`` or ``crb`` and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def path(self) -> str:
        """Its path on the API server."""
        return f"{COLLECTIONS[self.kind]}/{self.name}"


COLLECTIONS = {
    "rb": f"{WORK}/namespaces/{NAMESPACE}/resourcebindings",
    "crb": f"{WORK}/clusterresourcebindings",
}
MADE = (
    *(Key("rb", f"b{number}") for number in range(1, 12)),
    *(Key("crb", f"c{number}") for number in (1, 2, 3)),
)
"""Bindings without a template, created by the run: only the eviction controllers change them."""

WORKLOADS = ("web1", "web2")
"""Deployments with a policy each; Karmada's controllers make their bindings."""

BARRIERS = (Key("rb", BARRIER), Key("crb", BARRIER), Key("crb", "barrier-label"))


def binding_of(workload: str) -> Key:
    """Return the binding that the detector makes for a Deployment."""
    return Key("rb", f"{workload}-deployment")


def members(choices: Random) -> list[SimulatedMember]:
    """Draw the clusters."""
    return [member(choices, name) for name in CLUSTERS]


def member(choices: Random, name: str) -> SimulatedMember:
    """Draw one cluster."""
    return SimulatedMember(
        name,
        provider=choices.pick(PROVIDERS),
        region=choices.pick(REGIONS),
        labels={key: choices.pick(values) for key, values in LABELS.items() if choices.chance(0.8)},
        cpu=choices.pick(("2", "6", "12", "20")),
        allocated={"cpu": "1", "memory": "1Gi", "pods": "5"},
        modelings=modelings(choices) if choices.chance(0.4) else (),
    )


def modelings(choices: Random) -> tuple[int, ...]:
    """Draw how many nodes of each grade a cluster has; those of grade 3 have 4 CPUs at least."""
    return tuple(choices.pick((0, 0, 1, 2, 5)) for _ in range(choices.between(2, 6)))


def binding(choices: Random, key: Key, *, grouped: bool = False) -> Object:
    """Draw a binding. Its resource has a uid of its own, for the division's ties depend on it.

    With `grouped`, most are members of workload groups, suspended until it is their turn (group_steps).
    """
    luck = choices.random()
    workload = luck < 0.8
    spec: Object = {
        "resource": {
            "apiVersion": "apps/v1" if workload else "v1",
            "kind": "Deployment" if workload else "ConfigMap",
            "name": f"no-{key.name}",
            "uid": str(uuid.UUID(int=choices.getrandbits(128))),
        },
        "schedulerName": SCHEDULER,
        "placement": placement(choices, CLUSTERS),
        "conflictResolution": "Abort",
    }
    if key.kind == "rb":
        spec["resource"]["namespace"] = NAMESPACE
    if luck < 0.15:
        spec["components"] = [component(choices, number) for number in range(choices.between(1, 3))]
    elif workload:
        spec["replicas"] = choices.between(1, 9)
        spec["replicaRequirements"] = {"resourceRequest": {"cpu": choices.pick(("500m", "1", "2"))}}
    if grouped and key.kind == "rb" and choices.chance(0.7):
        spec["workloadAffinityGroups"] = groups(choices)
        spec["suspension"] = {"scheduling": True}
        # Rarely too large: a binding that is tried again and again would keep its turn for good.
        spec["placement"] = {
            **spec["placement"],
            "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        }
    return _manifest(key, spec, finalizers=[HOLD] if choices.chance(0.3) else [])


def groups(choices: Random) -> Object:
    """Draw an affinity group, an anti-affinity group, or both."""
    luck = choices.random()
    made: Object = {}
    if luck < 0.6:
        made["affinityGroup"] = choices.pick(("team=red", "team=blue"))
    if luck > 0.4:
        made["antiAffinityGroup"] = choices.pick(("app=big", "app=small"))
    return made


def component(choices: Random, number: int) -> Object:
    """Draw one of several pod templates of a workload."""
    request = {"cpu": choices.pick(("250m", "1", "2")), "memory": choices.pick(("128Mi", "2Gi"))}
    return {
        "name": f"part{number}",
        "replicas": choices.between(0, 4),
        "replicaRequirements": {"resourceRequest": request},
    }


def barriers() -> list[Object]:
    """Return three bindings whose reaction shows that a scheduler has read all earlier changes.

    The first two follow a change of themselves with one status patch. The third follows the label
    `barrier` of the cluster `barrier`, on or off it.
    """
    made = []
    for key in BARRIERS:
        labelled = key.name != BARRIER
        affinity: Object = {"clusterNames": [BARRIER]}
        if labelled:
            affinity["labelSelector"] = {"matchLabels": {"barrier": "on"}}
        divided: Object = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {
                "staticWeightList": [{"targetCluster": {"clusterNames": [BARRIER]}, "weight": 1}]
            },
        }
        duplicated = {"replicaSchedulingType": "Duplicated"}
        made.append(
            _manifest(
                key,
                {
                    "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"no-{key.name}"},
                    "schedulerName": SCHEDULER,
                    "replicas": 1,
                    "conflictResolution": "Abort",
                    "placement": {
                        "clusterAffinity": affinity,
                        "clusterTolerations": [{"key": "barrier", "operator": "Exists"}],
                        "replicaScheduling": duplicated if labelled else divided,
                    },
                },
            )
        )
    return made


def barrier_member() -> SimulatedMember:
    """Return the cluster of the barriers, where no other binding may go."""
    return SimulatedMember(BARRIER, labels={"barrier": "off"}, taints=(BARRIER_TAINT,))


def _manifest(key: Key, spec: Object, finalizers: list[str] | None = None) -> Object:
    metadata: Object = {"name": key.name, "labels": {POLICY_LABEL: f"policy-{key.name}"}}
    if key.kind == "rb":
        metadata["namespace"] = NAMESPACE
    if finalizers:
        metadata["finalizers"] = finalizers
    kind = "ResourceBinding" if key.kind == "rb" else "ClusterResourceBinding"
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": kind, "metadata": metadata, "spec": spec}
