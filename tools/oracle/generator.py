"""Random worlds: clusters, bindings and settings, with every field that decides something.

A world is the JSON document that the oracle reads (see tools/controlplane/tools/oracle): settings,
clusters and some bindings that are judged independently of each other. Equal seeds give equal worlds
on every machine, and world `i` of a seed does not depend on the worlds before it, so that workers can
share a seed.

Values are odd on purpose, but not everywhere at once: each world draws how often its quantities are
odd, how strict its filters are and how tight its room is, because a world in which everything is odd
ends at the first filter and tells nothing about the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

Manifest = dict[str, Any]
World = dict[str, Any]
T = TypeVar("T")

DECISION_GATES = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
    "PriorityBasedScheduling",
)
PLUGIN_LISTS: tuple[list[str], ...] = (
    ["*", "-TaintToleration"],
    ["*", "-ClusterLocality"],
    ["*", "-ClusterAffinity", "-APIEnablement"],
    ["*", "--SpreadConstraint"],
    ["-ClusterEviction", "*"],
    ["ClusterAffinity", "SpreadConstraint", "ClusterLocality"],
    ["*", "-TaintToleration", "TaintToleration"],
    ["-TaintToleration"],
    ["nosuch"],
    [],
)

CPU = (
    "100m", "250m", "500m", "1", "1", "2", "2", "4", "0.5", "1500m", "1.5", "300m", "8", "7", "64", "3939m",
)  # fmt: skip
MEMORY = (
    "128Mi", "256Mi", "1Gi", "1Gi", "2Gi", "4Gi", "512Mi", "100M", "1G", "2G", "1073741824", "16Gi", "1e9", "64Gi",
)  # fmt: skip
COUNT = ("1", "2", "3", "5", "8", "10", "20", "40", "110", "100", "7")
NOTATIONS = (
    "0", "0m", "00", "+5", "5.", ".5", "1e3", "1E3", "1e0", "12e-1", "1.5Gi", "5.0Gi", "0.5Gi", "0.1Ki", "2k", "1M",
    "3n", "1u", "900u", "1000001", "999Ki", "1023", "1025", "1536Mi", "0.0000000001", "1.0000000001", "1.10", "010",
    "123456789.987654321", "100m", "0.1m", "1Ki", "3e2", "2E2", "1e-3", "1e-9",
)  # fmt: skip
EXTREME = (
    "-1", "-500m", "-1Gi", "-1.5Gi", "-20Gi", "-0.5", "100Ti", "120Ti", "125380Gi", "1Pi", "1Ei", "8Ei", "9Ei",
    "100000Gi", "99999999999Ki", "1P", "9P", "1E", "9.2e15", "1e15", "1e18", "9223372036854775807", "999999999999999999",
    "9300000000000000", "10P", "93e14", "12345678901234567890", "1e19", "1.5Pi", "7e18", "5E", "4Ei", "2e9", "3e9",
)  # fmt: skip
RESOURCES = (
    "cpu", "cpu", "cpu", "memory", "memory", "memory", "nvidia.com/gpu", "ephemeral-storage", "pods", "foo",
    "hugepages-2Mi", "requests.example.com/a", "kubernetes.io/b", "attachable-volumes-x",
)  # fmt: skip

LABELS = {
    "env": ("prod", "dev", "test"),
    "tier": ("gold", "silver"),
    "gpu": ("true",),
    "disk": ("ssd", "hdd", ""),
}
PROVIDERS = ("p1", "p2", "p3")
REGIONS = ("r1", "r2", "r3", "r4", "r5")
ZONES = ("z1", "z2", "z3", "z4")
TAINT_KEYS = ("key1", "gpu", "cluster.karmada.io/not-ready", "k")
TAINT_VALUES = ("", "a", "b")
WORKLOADS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
)
CONFIGS = (("v1", "ConfigMap"), ("v1", "Service"), ("rbac.authorization.k8s.io/v1", "ClusterRole"))
ODD_KINDS = (
    ("/v1", "Service"),
    ("", "Deployment"),
    ("/", "X"),
    ("a/b/c", "Y"),
    ("apps/v1", "deployment"),
    ("v1", ""),
)
OWNERS = ("other-job", "w1-deployment", "w2-deployment", "w3-deployment", "w4-statefulset")
GROUPS = ("app=a", "app=b", "team=x")
T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-02-01T12:30:00Z"


class Dice(Random):
    """Draws, in the words of this module."""

    def chance(self, probability: float) -> bool:
        """Tell whether something of this probability happens."""
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Draw one item."""
        return items[int(self.random() * len(items))]

    def upto(self, most: int) -> int:
        """Draw an integer from 0 to most."""
        return int(self.random() * (most + 1))

    def some(self, items: Sequence[T], most: int = 3, least: int = 0) -> list[T]:
        """Draw a few different items, in random order."""
        return self.sample(items, min(len(items), least + self.upto(most - least)))


@dataclass(frozen=True, slots=True)
class Temper:
    """What a world is like.

    Attributes:
        odd: Probability that a quantity is written in an unusual notation.
        extreme: Probability that a quantity is negative, huge, or both.
        strict: Probability that a filter-like field is set at all.
        room: How many units of each resource a cluster has, roughly.
        models: Probability that a cluster has resource models.
        vast: Whether a cluster may have room for 2**31 pods and more. It has no overflow affinities beside
            it: upstream would hand out seats by the billion, one by one.
        tiny: Probability that a field is an explicit empty value instead of missing.
    """

    odd: float
    extreme: float
    strict: float
    room: int
    models: float
    vast: bool
    tiny: float


def worlds(seed: int, *, cases: int, first: int = 0, step: int = 1) -> Iterator[World]:
    """Yield worlds first, first + step, ... of a seed that together have at least this many cases in all steps."""
    index = produced = 0
    while produced < cases:
        dice = Dice(f"{seed}/{index}")
        size = _size(dice)
        count = _bindings_for(dice, size)
        produced += count
        if index % step == first:
            yield world(dice, clusters=size, bindings=count, identity=f"{seed}/{index}")
        index += 1


def _size(dice: Dice) -> int:
    luck = dice.random()
    if luck < 0.72:
        return 1 + dice.upto(7)
    if luck < 0.95:
        return 9 + dice.upto(10)
    if luck < 0.995:
        return 20 + dice.upto(40)
    return 61 + dice.upto(439)


def _bindings_for(dice: Dice, clusters: int) -> int:
    return (20 if clusters < 20 else 8 if clusters < 61 else 3) + dice.upto(4)


def world(dice: Dice, *, clusters: int, bindings: int, identity: str) -> World:
    """Make one world."""
    temper = Temper(
        odd=dice.pick((0.0, 0.02, 0.02, 0.15, 0.4)),
        extreme=dice.pick((0.0, 0.0, 0.0, 0.005, 0.03, 0.15)),
        strict=dice.pick((0.05, 0.2, 0.35, 0.6)),
        room=dice.pick((2, 10, 40, 150, 1000)),
        models=dice.pick((0.0, 0.0, 0.0, 0.4, 1.0)),
        vast=dice.chance(0.1),
        tiny=dice.pick((0.0, 0.0, 0.02, 0.2)),
    )
    gates = {
        "CustomizedClusterResourceModeling": dice.chance(0.75),
        "MultiplePodTemplatesScheduling": dice.chance(0.4),
        "SchedulingOvercommitProtection": dice.chance(0.3),
        "WorkloadAffinity": dice.chance(0.25),
        "PriorityBasedScheduling": dice.chance(0.1),
    }
    names = _names(dice, clusters)
    made: World = {
        "id": identity,
        "gates": gates,
        "plugins": dice.pick(PLUGIN_LISTS) if dice.chance(0.15) else ["*"],
        "emptyWorkloadPropagation": dice.chance(0.2),
        "clusters": [_cluster(dice, temper, name) for name in names],
        "bindings": [],
    }
    if gates["WorkloadAffinity"] and dice.chance(0.8):
        made["peers"] = [_peer(dice, names, index) for index in range(1 + dice.upto(5))]
        if dice.chance(0.4):
            made["assigning"] = [_newer(dice, names, peer) for peer in made["peers"] if dice.chance(0.5)]
    if dice.chance((0.7 if temper.models == 0 else 0.3) if gates["SchedulingOvercommitProtection"] else 0.05):
        made["assumed"] = _assumed(dice, temper, names, several=temper.models == 0)
    if dice.chance(0.12):
        made["accurate"] = _accurate(dice, names)
    made["bindings"] = [binding(dice, temper, names, index, gates) for index in range(bindings)]
    return made


def _names(dice: Dice, count: int) -> list[str]:
    style: Callable[[int], str] = dice.pick(
        (
            lambda i: f"m{i}",
            lambda i: f"member{i:04}",
            lambda i: f"{'abc'[i % 3]}-{i}.x",
            lambda i: f"c{i * 7919 % 10007}",
        )
    )
    names = [style(i) for i in range(1, count + 1)]
    dice.shuffle(names)
    return names


# -- quantities --------------------------------------------------------------------------------------------


def _quantity(dice: Dice, temper: Temper, usual: Sequence[str]) -> str:
    luck = dice.random()
    if luck < temper.extreme:
        return dice.pick(EXTREME)
    if luck < temper.extreme + temper.odd:
        return dice.pick(NOTATIONS)
    return dice.pick(usual)


def _pods(dice: Dice, temper: Temper, usual: Sequence[str]) -> str:
    """Draw a number of pods, below 2**31 unless the world is vast."""
    text = _quantity(dice, temper, usual)
    if temper.vast or (text not in EXTREME and text != "5.0Gi"):
        return text
    return dice.pick(("-1", "-500m", "-0.5", "0"))


def _usual(resource: str) -> Sequence[str]:
    if resource == "cpu":
        return CPU
    if resource in {"memory", "ephemeral-storage", "hugepages-2Mi"}:
        return MEMORY
    return COUNT


def _request(dice: Dice, temper: Temper) -> Manifest:
    shape = dice.random()
    if shape < 0.5:
        resources: Sequence[str] = ("cpu", "memory")[: 1 + dice.upto(1)]
    elif shape < 0.55:
        resources = ()
    else:
        resources = list(dict.fromkeys(dice.pick(RESOURCES) for _ in range(1 + dice.upto(2))))
    return {name: _quantity(dice, temper, _usual(name)[:8]) for name in resources}


# -- clusters ----------------------------------------------------------------------------------------------


def _cluster(dice: Dice, temper: Temper, name: str) -> Manifest:
    metadata: Manifest = {"name": name}
    labels = {key: dice.pick(values) for key, values in LABELS.items() if dice.chance(0.5)}
    if labels or dice.chance(temper.tiny):
        metadata["labels"] = labels
    if dice.chance(0.04):
        metadata["deletionTimestamp"] = T0
    spec: Manifest = {"syncMode": dice.pick(("Push", "Pull"))}
    if dice.chance(0.85):
        spec["provider"] = dice.pick(PROVIDERS)
    if dice.chance(0.9):
        spec["region"] = dice.pick(REGIONS)
    if dice.chance(0.85):
        spec["zones"] = dice.some(ZONES, 3, 1)
    elif dice.chance(0.5):
        spec["zone"] = dice.pick(ZONES)
    if dice.chance(temper.strict * 0.5):
        spec["taints"] = [_taint(dice) for _ in range(1 + dice.upto(1))]
    status: Manifest = {"kubernetesVersion": "v1.35.3"}
    if dice.chance(temper.models):
        spec["resourceModels"] = _models(dice, temper)
    _enablements(dice, temper, status)
    if dice.chance(0.97):
        status["resourceSummary"] = _summary(dice, temper, spec.get("resourceModels", ()))
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _taint(dice: Dice) -> Manifest:
    taint: Manifest = {"key": dice.pick(TAINT_KEYS)}
    if value := dice.pick(TAINT_VALUES):
        taint["value"] = value
    if effect := dice.pick(("NoSchedule", "NoSchedule", "NoExecute", "NoExecute", "PreferNoSchedule", "")):
        taint["effect"] = effect
    return taint


def _enablements(dice: Dice, temper: Temper, status: Manifest) -> None:
    apis: dict[str, list[Manifest]] = {}
    for version, kind in dict.fromkeys((*WORKLOADS, *CONFIGS)):
        if not dice.chance(temper.strict * 0.12):
            apis.setdefault(version, []).append({"kind": kind, "name": kind.lower() + "s"})
    if apis:
        status["apiEnablements"] = [
            {"groupVersion": version, "resources": kinds} for version, kinds in apis.items()
        ]
    if dice.chance(0.8):
        status["conditions"] = [
            {
                "type": "Ready",
                "status": "True",
                "reason": "ClusterReady",
                "message": "",
                "lastTransitionTime": T0,
            },
            {
                "type": "CompleteAPIEnablements",
                "status": dice.pick(("True", "True", "True", "False", "Unknown")),
                "reason": "X",
                "message": "",
                "lastTransitionTime": T0,
            },
        ]


def _models(dice: Dice, temper: Temper) -> list[Manifest]:
    # Some extreme minima keep upstream busy for ever (see known.py), so they stay rare.
    temper = replace(temper, extreme=temper.extreme * 0.1)
    if dice.chance(0.3):
        cpu = (0, 1, 2, 4, 8, 16, 32, 64, 128)
        memory = (0, 4, 16, 32, 64, 128, 256, 512, 1024)
        return [
            {
                "grade": grade,
                "ranges": [
                    {"name": "cpu", "min": str(cpu[grade]), "max": str(2 * cpu[grade] or 1)},
                    {
                        "name": "memory",
                        "min": f"{memory[grade]}Gi" if grade else "0",
                        "max": f"{memory[grade] or 2}Gi",
                    },
                ],
            }
            for grade in range(9)
        ]
    models = []
    for grade in range(1 + dice.upto(4)):
        resources = [
            r
            for r in ("cpu", "memory", "nvidia.com/gpu", "pods", "foo")
            if dice.chance(0.75 if r < "n" else 0.15)
        ]
        if dice.chance(0.05):
            resources.append("cpu")  # the last of equal names counts
        ranges = [{"name": r, "min": _quantity(dice, temper, _usual(r)), "max": "1000"} for r in resources]
        models.append({"grade": dice.upto(4) if dice.chance(0.1) else grade, "ranges": ranges})
    if dice.chance(0.2):
        dice.shuffle(models)
    return models


def _summary(dice: Dice, temper: Temper, models: Sequence[Manifest]) -> Manifest:
    room = max(1, dice.upto(temper.room))
    usual = {
        "cpu": (str(room), f"{room * 500}m", str(room * 2)),
        "memory": (f"{room}Gi", f"{room * 512}Mi", f"{room}G"),
        "pods": (str(room), "110", str(room * 3)),
        "ephemeral-storage": (f"{room * 10}Gi",),
        "nvidia.com/gpu": (str(room // 4), str(room)),
        "foo": (str(room),),
        "hugepages-2Mi": (f"{room}Gi",),
    }
    summary: Manifest = {}
    present = [name for name in usual if dice.chance(0.97 if name in {"cpu", "memory", "pods"} else 0.3)]
    allocatable = {name: _quantity(dice, temper, usual[name]) for name in present}
    if "pods" in allocatable:
        allocatable["pods"] = _pods(dice, temper, usual["pods"])
    if allocatable or dice.chance(temper.tiny):
        summary["allocatable"] = allocatable
    for part, share in (("allocated", 0.6), ("allocating", 0.25)):
        if dice.chance(share):
            summary[part] = {
                name: (_pods if name == "pods" else _quantity)(dice, temper, _used(dice, name, room))
                for name in usual
                if dice.chance(share)
            }
    if models and dice.chance(0.9):
        grades = [model["grade"] for model in models]
        counts = [
            {"grade": grade, "count": -1 if dice.chance(0.005) else dice.pick((0, 0, 1, 1, 2, 3))}
            for grade in grades
            if dice.chance(0.8)
        ]
        if dice.chance(0.1):
            counts.append({"grade": dice.upto(9), "count": dice.upto(3)})
        summary["allocatableModelings"] = counts
    return summary


def _used(dice: Dice, name: str, room: int) -> Sequence[str]:
    used = dice.upto(room)
    if name == "cpu":
        return (str(used), f"{used * 333}m")
    if name == "memory":
        return (f"{used * 700}Mi", f"{used}G", f"{used * 715827882}")
    return (str(used), str(used // 2))


# -- what else the scheduler knows -------------------------------------------------------------------------


def _peer(dice: Dice, names: Sequence[str], index: int) -> Manifest:
    kind = "Deployment"
    name = f"{dice.pick('wwp')}{index}"
    groups: Manifest = {}
    if dice.chance(0.8):
        groups["affinityGroup"] = dice.pick(GROUPS)
    if dice.chance(0.5):
        groups["antiAffinityGroup"] = dice.pick(GROUPS)
    spec: Manifest = {
        "resource": {"apiVersion": "apps/v1", "kind": kind, "name": name, "namespace": "default"},
        "clusters": [
            {"name": n, "replicas": dice.upto(3)} for n in dice.some(names, max(1, len(names) * 3 // 4))
        ],
    }
    if groups or dice.chance(0.5):
        spec["workloadAffinityGroups"] = groups
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-{kind.lower()}",
            "namespace": "default" if dice.chance(0.8) else "other",
            "resourceVersion": dice.pick(("5", "10", "99")) if dice.chance(0.2) else "100",
        },
        "spec": spec,
    }


def _newer(dice: Dice, names: Sequence[str], peer: Manifest) -> Manifest:
    copy: Manifest = json.loads(json.dumps(peer))
    copy["metadata"]["resourceVersion"] = dice.pick(("5", "101", "101", "99", "100", "1000"))
    copy["spec"]["clusters"] = [{"name": n} for n in dice.some(names, len(names))]
    return copy


def _assumed(dice: Dice, temper: Temper, names: Sequence[str], *, several: bool) -> list[Manifest]:
    """Make footprints of workloads on their way.

    Args:
        several: Whether a cluster may have more than one: their order is random upstream, and with
            resource models it decides (first fit). Sums do not depend on it.
    """
    entries = []
    for name in names:
        for owner in dice.some(OWNERS, 3 if several else 1):
            components = [_component(dice, temper, index) for index in range(dice.upto(2))]
            entries.append(
                {
                    "binding": f"default/{owner}",
                    "cluster": name,
                    "namespace": "default",
                    "components": components,
                }
            )
    return entries


def _accurate(dice: Dice, names: Sequence[str]) -> Manifest:
    if dice.chance(0.15):
        return {"error": "estimator is away"}
    answers = {name: -1 if dice.chance(0.1) else dice.upto(dice.pick((3, 10, 50, 1000))) for name in names}
    if dice.chance(0.1):
        del answers[dice.pick(names)]
    return {"replicas": answers}


# -- bindings ----------------------------------------------------------------------------------------------


def binding(dice: Dice, temper: Temper, names: Sequence[str], index: int, gates: dict[str, bool]) -> Manifest:
    """Make one binding for these clusters."""
    cluster_scoped = dice.chance(0.12)
    version, kind = dice.pick(WORKLOADS if dice.chance(0.75) else CONFIGS)
    if dice.chance(0.01):
        version, kind = dice.pick(ODD_KINDS)
    resource: Manifest = {"apiVersion": version, "kind": kind, "name": f"w{dice.upto(6)}"}
    if not cluster_scoped:
        resource["namespace"] = "default" if dice.chance(0.9) else "other"
    if dice.chance(0.85):
        resource["uid"] = f"{dice.getrandbits(32):08x}-0000-4000-8000-{dice.getrandbits(48):012x}"
    spec: Manifest = {"resource": resource}
    _demand(dice, temper, spec, gates)
    if dice.chance(0.6):
        spec["clusters"] = _previous(dice, temper, names, spec.get("replicas", 0))
    if dice.chance(temper.strict * 0.3):
        spec["gracefulEvictionTasks"] = [
            {"fromCluster": dice.pick(names), "reason": "x", "producer": "y"} for _ in range(1 + dice.upto(1))
        ]
    if dice.chance(0.25):
        spec["rescheduleTriggeredAt"] = dice.pick((T0, T1, T2))
    if gates["WorkloadAffinity"] and dice.chance(0.6):
        groups = {
            field: dice.pick(GROUPS) for field in ("affinityGroup", "antiAffinityGroup") if dice.chance(0.5)
        }
        spec["workloadAffinityGroups"] = groups
    if not dice.chance(0.003):
        spec["placement"] = placement(dice, temper, names, spec)
    metadata: Manifest = {
        "name": _binding_name(dice, resource, index, fixed="workloadAffinityGroups" in spec),
        "generation": 1 + dice.upto(2),
        "uid": f"b{index}",
    }
    if not cluster_scoped:
        metadata["namespace"] = resource["namespace"]
        metadata["resourceVersion"] = "100"
    if (applied := _applied(dice, temper, names, spec)) is not None:
        metadata["annotations"] = {"policy.karmada.io/applied-placement": applied}
    if dice.chance(0.01):
        metadata["deletionTimestamp"] = T0
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ClusterResourceBinding" if cluster_scoped else "ResourceBinding",
        "metadata": metadata,
        "spec": spec,
        "status": _status(dice, spec),
    }


def _binding_name(dice: Dice, resource: Manifest, index: int, *, fixed: bool) -> str:
    """Name a binding as the detector does; one that belongs to groups finds itself by that name."""
    detected = f"{resource['name']}-{resource['kind'].lower()}"
    return detected if fixed or dice.chance(0.7) else f"b{index}"


def _demand(dice: Dice, temper: Temper, spec: Manifest, gates: dict[str, bool]) -> None:
    if dice.chance(0.8):
        spec["replicas"] = _replicas(dice)
    elif dice.chance(0.3):
        spec["replicas"] = 0
    if dice.chance(0.65):
        requirements: Manifest = {}
        if dice.chance(0.9):
            requirements["resourceRequest"] = _request(dice, temper)
        if dice.chance(0.1):
            requirements["nodeClaim"] = {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "a", "operator": "Exists"}],
            }
        if dice.chance(0.1):
            requirements |= {"namespace": "default", "priorityClassName": "high"}
        spec["replicaRequirements"] = requirements
    if dice.chance(0.3 if gates["MultiplePodTemplatesScheduling"] else 0.05):
        spec["components"] = [
            _component(dice, temper, number) for number in range(dice.pick((0, 1, 1, 2, 2, 2, 3)))
        ]
        if spec["components"] and dice.chance(0.8):  # as the detector leaves them
            spec.pop("replicas", None)
            spec.pop("replicaRequirements", None)


def _replicas(dice: Dice) -> int:
    luck = dice.random()
    if luck < 0.05:
        return 0
    if luck < 0.5:
        return 1 + dice.upto(9)
    if luck < 0.9:
        return 1 + dice.upto(60)
    return dice.pick((100, 128, 500, 1000, 3000)) + dice.upto(20)


def _component(dice: Dice, temper: Temper, number: int) -> Manifest:
    component: Manifest = {"name": f"part{number}"}
    if dice.chance(0.95):
        component["replicas"] = dice.pick((0, 1, 1, 1, 2, 3, 5))
    if dice.chance(0.85):
        component["replicaRequirements"] = (
            {"resourceRequest": _request(dice, temper)} if dice.chance(0.95) else {}
        )
    return component


def _previous(dice: Dice, temper: Temper, names: Sequence[str], replicas: int) -> list[Manifest]:
    chosen = dice.some(names, 6)
    if dice.chance(0.08):
        chosen.append("gone")
    if chosen and dice.chance(0.02):
        chosen.append(chosen[0])
    targets: list[Manifest] = []
    share = max(1, replicas // max(1, len(chosen)))
    for name in chosen:
        target: Manifest = {"name": name}
        count = dice.pick((0, share, share, dice.upto(2 * share), dice.upto(20), replicas))
        if count or dice.chance(temper.tiny):
            target["replicas"] = count
        targets.append(target)
    if targets and dice.chance(0.2):  # exactly what is asked for
        targets[0]["replicas"] = max(0, replicas - sum(target.get("replicas", 0) for target in targets[1:]))
    return targets


def _status(dice: Dice, spec: Manifest) -> Manifest:
    status: Manifest = {}
    if dice.chance(0.6):
        status["lastScheduledTime"] = dice.pick((T0, T1, T1, T2))
    if dice.chance(0.5):
        status["schedulerObservedGeneration"] = 1 + dice.upto(2)
    terms = (spec.get("placement") or {}).get("clusterAffinities") or ()
    if dice.chance(0.5 if terms else 0.05):
        names = [term["affinityName"] for term in terms if "affinityName" in term] or ["stale"]
        status["schedulerObservingAffinityName"] = dice.pick(names) if dice.chance(0.85) else "unknown"
    if dice.chance(0.5):
        status["conditions"] = [
            {
                "type": "Scheduled",
                "status": dice.pick(("True", "False")),
                "reason": dice.pick(("Success", "NoClusterFit", "Unschedulable")),
                "message": "Binding has been scheduled successfully." if dice.chance(0.5) else "x",
                "lastTransitionTime": T0,
            }
        ]
        if dice.chance(0.3):
            status["conditions"].append(
                {
                    "type": "FullyApplied",
                    "status": "True",
                    "reason": "Y",
                    "message": "",
                    "lastTransitionTime": T0,
                }
            )
    return status


# -- placements --------------------------------------------------------------------------------------------


def placement(dice: Dice, temper: Temper, names: Sequence[str], spec: Manifest) -> Manifest:
    """Make a placement, mostly one that admission would let pass."""
    made: Manifest = {}
    strategy = _strategy(dice, temper, names)
    dynamic = strategy is not None and (
        strategy.get("replicaDivisionPreference") == "Aggregated"
        or "dynamicWeight" in strategy.get("weightPreference", {})
    )
    luck = dice.random()
    if luck < 0.35 + temper.strict * 0.3:
        made["clusterAffinity"] = _affinity(dice, temper, names)
    elif luck < 0.8:
        made["clusterAffinities"] = _terms(
            dice, temper, names, overflow=not temper.vast and (dynamic or dice.chance(0.05))
        )
    if dice.chance(0.01):
        made["clusterAffinity"] = _affinity(dice, temper, names)
    if dice.chance(0.3 + temper.strict * 0.4):
        made["clusterTolerations"] = [_toleration(dice) for _ in range(dice.upto(2) or 1)]
    elif dice.chance(temper.tiny * 0.2):
        made["clusterTolerations"] = []
    sets = bool(spec.get("components")) and dice.chance(0.7)
    if sets or dice.chance(0.5):
        made["spreadConstraints"] = _constraints(dice, temper, one_cluster=sets)
    if strategy is not None:
        made["replicaScheduling"] = strategy
    if "workloadAffinityGroups" in spec and dice.chance(0.5):
        made["workloadAffinity"] = {"affinity": {"groupByLabelKey": "app"}}
    return made


def _affinity(dice: Dice, temper: Temper, names: Sequence[str]) -> Manifest:
    affinity: Manifest = {}
    if dice.chance(0.3 + temper.strict * 0.5):
        affinity["clusterNames"] = dice.some(names, len(names), 1 + len(names) // 2) + (
            ["gone"] if dice.chance(0.1) else []
        )
    elif dice.chance(temper.tiny * 0.3):
        affinity["clusterNames"] = []
    if dice.chance(temper.strict * 0.4):
        affinity["exclude"] = dice.some(names, 2, 1)
    if dice.chance(temper.strict * 0.5):
        affinity["labelSelector"] = _label_selector(dice)
    if dice.chance(temper.strict * 0.5):
        count = 0 if dice.chance(temper.tiny) else 1 + dice.upto(1)
        affinity["fieldSelector"] = {"matchExpressions": [_field_expression(dice) for _ in range(count)]}
    return affinity


def _label_selector(dice: Dice) -> Manifest:
    selector: Manifest = {}
    if dice.chance(0.4):
        selector["matchLabels"] = {key: dice.pick(LABELS[key]) for key in dice.some(tuple(LABELS), 2, 1)}
        if dice.chance(0.02):
            selector["matchLabels"][dice.pick(("", "bad key", "-x", "a/b/c", "a" * 64, "x.io/y"))] = "v"
    if dice.chance(0.6):
        selector["matchExpressions"] = [_label_expression(dice) for _ in range(1 + dice.upto(1))]
    return selector


def _label_expression(dice: Dice) -> Manifest:
    key = dice.pick(tuple(LABELS))
    operator = dice.pick(("In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"))
    expression: Manifest = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        expression["values"] = dice.some(LABELS[key], 3, 1)
    if dice.chance(0.03):
        expression |= dice.pick(
            (
                {"values": []},
                {"operator": "Gt", "values": ["1"]},
                {"operator": ""},
                {"values": ["not valid!"]},
                {"key": "Bad/"},
            )
        )
    return expression


def _field_expression(dice: Dice) -> Manifest:
    key, values = dice.pick((("provider", PROVIDERS), ("region", REGIONS), ("zone", ZONES)))
    operator = dice.pick(("In", "In", "In", "NotIn", "NotIn", "NotIn", "Exists", "DoesNotExist"))
    expression: Manifest = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        expression["values"] = dice.some(values, 3, 1)
    if dice.chance(0.05):
        expression |= dice.pick(
            (
                {"values": []},
                {"operator": "Gt", "values": ["1"]},
                {"operator": "Lt", "values": ["x"]},
                {"operator": "", "values": ["p1"]},
                {"key": "metadata.name", "values": ["m1"]},
                {"operator": "Exists", "values": ["p1"]},
                {"values": ["not valid!"]},
            )
        )
    return expression


def _terms(dice: Dice, temper: Temper, names: Sequence[str], *, overflow: bool) -> list[Manifest]:
    if dice.chance(0.01):
        return []
    terms = []
    for number in range(1 + dice.upto(2)):
        term: Manifest = {"affinityName": f"term{number}", **_affinity(dice, temper, names)}
        if overflow and dice.chance(0.6):
            term["clusterNames"] = dice.some(names, max(1, len(names) // 2), 1)
            term["overflowAffinities"] = [
                {"affinityName": f"over{tier}", **_affinity(dice, temper, names)}
                for tier in range(dice.upto(2) or 1)
            ]
            if dice.chance(0.03):
                term["overflowAffinities"] = []
        terms.append(term)
    if len(terms) > 1 and dice.chance(0.02):
        terms[1]["affinityName"] = "term0"
    return terms


def _toleration(dice: Dice) -> Manifest:
    toleration: Manifest = {}
    if dice.chance(0.6):
        toleration["key"] = dice.pick(TAINT_KEYS)
    if dice.chance(0.7):
        toleration["operator"] = dice.pick(
            ("Exists", "Exists", "Equal", "Gt", "Lt", "X") if dice.chance(0.1) else ("Exists", "Equal")
        )
    if dice.chance(0.4) and toleration.get("operator") != "Exists":
        toleration["value"] = dice.pick(("a", "b"))
    if dice.chance(0.3):
        toleration["effect"] = dice.pick(("NoSchedule", "NoExecute"))
    return toleration


def _constraints(dice: Dice, temper: Temper, *, one_cluster: bool) -> list[Manifest]:
    if one_cluster:
        constraints = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
        if dice.chance(0.1):
            constraints.append({"spreadByField": "region", "minGroups": 1, "maxGroups": 1})
        return constraints
    if dice.chance(temper.tiny * 0.2):
        return []
    fields = dice.pick(
        (
            ("cluster",), ("cluster",), ("cluster",), ("cluster",), ("region", "cluster"), ("region", "cluster"),
            ("cluster", "region"), ("region",), ("zone", "cluster"), ("provider", "cluster"), ("zone", "region", "cluster"),
            ("provider", "region"), ("zone",), ("provider",), ("", "cluster"), ("cluster", "cluster"), ("region", "region"),
            ("zone", "region", "provider", "cluster"),
        )
    )  # fmt: skip
    constraints = []
    for field in fields:
        low = (
            dice.pick((0, 1, 1, 1, 1, 2, 2, 3)) if field != "cluster" else dice.pick((0, 1, 1, 1, 2, 2, 3, 4))
        )
        high = low + dice.upto(4)
        constraint: Manifest = {"spreadByField": field} if field else {"spreadByLabel": "env"}
        if low or dice.chance(temper.tiny):
            constraint["minGroups"] = low
        if high and not dice.chance(0.06):
            constraint["maxGroups"] = high
        constraints.append(constraint)
    return constraints


def _strategy(dice: Dice, temper: Temper, names: Sequence[str]) -> Manifest | None:
    luck = dice.random()
    if luck < 0.12:
        return None
    if luck < 0.27:
        return {"replicaSchedulingType": "Duplicated"}
    if luck < 0.285:
        return dice.pick(
            (
                {"replicaSchedulingType": "Divided"},
                {"replicaSchedulingType": "Other", "replicaDivisionPreference": "Odd"},
                {},
                {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Odd"},
                {"replicaSchedulingType": "Duplicated", "replicaDivisionPreference": "Weighted"},
            )
        )
    if luck < 0.55:
        return {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    strategy: Manifest = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    if luck < 0.78:
        strategy["weightPreference"] = {"dynamicWeight": "AvailableReplicas"}
        if dice.chance(0.04):
            strategy["weightPreference"]["staticWeightList"] = _weights(dice, temper, names)
    elif luck < 0.95:
        strategy["weightPreference"] = {"staticWeightList": _weights(dice, temper, names)}
    elif luck < 0.97:
        strategy["weightPreference"] = {}
    return strategy


def _weights(dice: Dice, temper: Temper, names: Sequence[str]) -> list[Manifest]:
    rules = []
    for _ in range(0 if dice.chance(temper.tiny) else 1 + dice.upto(3)):
        luck = dice.random()
        if luck < 0.6:
            target: Manifest = {"clusterNames": dice.some(names, max(2, len(names) // 2), 1)}
        else:
            target = _affinity(dice, temper, names)
        weight = (
            dice.pick((1, 1, 2, 3, 5, 10, 100))
            if dice.chance(0.95)
            else dice.pick((0, 999999937, 2**40, 2**62))
        )
        rules.append({"targetCluster": target, "weight": weight})
    return rules


def _applied(dice: Dice, temper: Temper, names: Sequence[str], spec: Manifest) -> str | None:
    luck = dice.random()
    current: Manifest = spec.get("placement") or {}
    if luck < 0.3:
        return None
    if luck < 0.75:
        return json.dumps(current, separators=(",", ":"))
    if luck < 0.8:
        return dice.pick(
            (
                "",
                "null",
                "{}",
                "[]",
                "not json",
                '{"clusterAffinity": 5}',
                '{"spreadConstraints": {}}',
                '"x"',
                "5",
            )
        )
    other: Manifest = json.loads(json.dumps(current))
    field = dice.pick(tuple(current) or ("clusterTolerations",))
    if luck < 0.88:
        other.pop(field, None)
    elif luck < 0.94:
        replacement = placement(dice, temper, names, spec)
        if field in replacement:
            other[field] = replacement[field]
        else:
            other["clusterTolerations"] = [{"operator": "Exists"}]
    elif other.get("clusterAffinities"):
        term = dice.pick(other["clusterAffinities"])
        edit = dice.upto(3)
        if edit == 0:
            term["clusterNames"] = dice.some(names, 2)
        elif edit == 1:
            other["clusterAffinities"].reverse()
        elif edit == 2:
            other["clusterAffinities"].remove(term)
        else:
            term["affinityName"] = "renamed"
    else:
        other["unknownField"] = 1
        if dice.chance(temper.tiny):
            other.setdefault("clusterTolerations", [])
    return json.dumps(other)
