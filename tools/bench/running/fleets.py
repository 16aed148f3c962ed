"""Fleets and their workloads, drawn by seed: node shapes, taints, cordons, GPUs, loads, arrivals, lost nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tools import manifests
from tools.controlplane import Node, Object, RealMember
from tools.oracle.generator.rng import Random

GPU: Final = "nvidia.com/gpu"
GPU_TAINT: Final = {"key": GPU, "value": "present", "effect": "NoSchedule"}
MAINTENANCE: Final = {"key": "maintenance", "value": "true", "effect": "NoSchedule"}
_GIB: Final = 1024
_SHAPES: Final = ((4, 16), (8, 32), (16, 64), (32, 128), (32, 256))
"""Cores and GiB of a node."""
_KINDS: Final[Mapping[str, tuple[int, ...]]] = {
    "small": (48, 5, 16, 1, 5, 128, 512, 0),
    "node-sized": (10, 2, 8, 30, 30, 10 * _GIB, 10 * _GIB, 0),
    "large": (5, 1, 5, 60, 140, 24 * _GIB, 48 * _GIB, 0),
    "memory": (6, 1, 4, 10, 10, 20 * _GIB, 56 * _GIB, 0),
    "gpu": (9, 1, 4, 40, 40, 16 * _GIB, 16 * _GIB, 1),
    "none": (22, 4, 12, 0, 0, 0, 0, 0),
}
"""Kind of workload to its weight, and least and most replicas, tenths of a core, and MiB; and its GPUs."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment; requests in thousandths of a core, MiB and GPUs of one replica."""

    name: str
    replicas: int
    placement: Object
    cpu: int = 0
    memory: int = 0
    gpus: int = 0

    def manifest(self, space: str) -> Object:
        """Return the Deployment; one that wants GPUs tolerates their taint."""
        made = manifests.deployment(space, self.name, self.replicas)
        asked = {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi", GPU: str(self.gpus)}
        requests = {name: text for name, text in asked.items() if text[0] != "0"}
        pod = made["spec"]["template"]["spec"]
        limits = {GPU: asked[GPU]} if self.gpus else {}
        pod["containers"][0]["resources"] = {"requests": requests, "limits": limits}
        pod["terminationGracePeriodSeconds"] = 0
        if self.gpus:
            pod["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
        return made


@dataclass(frozen=True, slots=True)
class Fleet:
    """Members, and what is created on them.

    Attributes:
        name: Of the fleet.
        members: With their nodes.
        own: Member to the Deployment that it runs by itself, outside Karmada.
        workloads: In the order of creation.
        load: Which part of what is free on nodes for everyone they ask for, at least, of cores or of memory.
        interval: Seconds between two creations; 0 for all at once.
        loses: The member half of whose nodes become not ready, "" for none.
    """

    name: str
    members: tuple[RealMember, ...]
    own: dict[str, Workload]
    workloads: tuple[Workload, ...]
    load: float
    interval: float = 0.0
    loses: str = ""


def known(seed: int, *, load: float = 0.7) -> Fleet:
    """Return four members with 48 nodes, all workloads at once: usual sizes, cordons, taints and GPUs."""
    small, medium = _node(8, 32), _node(16, 64)
    gpu = replace(_node(32, 256), devices={GPU: "8"}, taints=(GPU_TAINT,))
    nodes = {
        "big": [_node(32, 128)] * 4,
        "small": [_node(4, 16)] * 24,
        "mixed": [medium] * 2 + [replace(medium, unschedulable=True)] * 2 + _tainted(small, 2) + [small] * 6,
        "gpu": [gpu] * 4 + [small] * 4,
    }
    members = tuple(_member(name, listed) for name, listed in nodes.items())
    own = {"mixed": Workload("own", 12, {}, cpu=2000, memory=6 * _GIB)}
    return _loaded(Fleet(f"A{load * 100:.0f}", members, own, (), load), Random(seed))


def drawn(seed: int) -> Fleet:
    """Draw a fleet of three or four members with 48 nodes at most."""
    choices = Random(seed)
    nodes: dict[str, list[Node]] = {}
    count_of_members = choices.between(3, 4)
    for number in range(1, count_of_members + 1):
        listed: list[Node] = []
        for _ in range(choices.between(1, 2)):
            shape = _node(*choices.pick(_SHAPES))
            count = choices.between(2, 4) if int(shape.cpu) > 8 else choices.between(4, 12)
            listed += [shape] * count
        held = choices.between(0, len(listed) // 3)
        listed[:held] = (
            _tainted(listed[0], held)
            if choices.chance(0.5)
            else [replace(node, unschedulable=True) for node in listed[:held]]
        )
        if choices.chance(0.35):
            listed += [replace(_node(32, 256), devices={GPU: "8"}, taints=(GPU_TAINT,))] * choices.between(
                1, 3
            )
        nodes[f"member{number}"] = listed[: 48 // count_of_members]
    members = tuple(_member(name, listed) for name, listed in nodes.items())
    own = {
        member.name: Workload("own", max(1, _free(member)[0] // 8000), {}, cpu=2000, memory=4 * _GIB)
        for member in members
        if choices.chance(0.4)
    }
    fleet = Fleet(
        f"seed {seed}",
        members,
        own,
        (),
        load=round(choices.uniform(0.5, 1.1), 2),
        interval=choices.pick((0.0, 0.5)),
        loses=choices.pick(members).name if choices.chance(0.3) else "",
    )
    return _loaded(fleet, choices)


def _node(cpu: int, memory: int) -> Node:
    return Node(cpu=str(cpu), memory=f"{memory}Gi")


def _tainted(node: Node, count: int) -> list[Node]:
    return [replace(node, taints=(MAINTENANCE,))] * count


def _member(name: str, nodes: Sequence[Node]) -> RealMember:
    return RealMember(name, nodes=tuple(nodes), runs_pods=True)


def _free(member: RealMember) -> tuple[int, int]:
    """Return thousandths of cores and MiB of the nodes that everyone may use."""
    usable = [node for node in member.nodes if not node.taints and not node.unschedulable]
    cpu = sum(int(node.cpu) * 1000 for node in usable)
    return cpu, sum(int(node.memory.removesuffix("Gi")) * _GIB for node in usable)


def _loaded(fleet: Fleet, choices: Random) -> Fleet:
    """Return the fleet with workloads up to its load; GPUs are loaded likewise."""
    free = [sum(amounts) for amounts in zip(*(_free(member) for member in fleet.members), strict=True)]
    for own in fleet.own.values():
        free = [free[0] - own.replicas * own.cpu, free[1] - own.replicas * own.memory]
    free.append(sum(int(node.devices.get(GPU, 0)) for member in fleet.members for node in member.nodes))
    names = [member.name for member in fleet.members]
    workloads: list[Workload] = []
    asked = [0, 0, 0]
    while max(asked[0] / free[0], asked[1] / free[1]) < fleet.load:
        made = _workload(choices, len(workloads), _placement(choices, names))
        if made.gpus:
            if asked[2] + made.gpus * made.replicas > fleet.load * free[2]:
                continue
            asked[2] += made.gpus * made.replicas
        else:
            asked[:2] = asked[0] + made.cpu * made.replicas, asked[1] + made.memory * made.replicas
        workloads.append(made)
    return replace(fleet, workloads=tuple(workloads))


def _workload(choices: Random, number: int, placement: Object) -> Workload:
    [kind] = choices.choices(list(_KINDS), [each[0] for each in _KINDS.values()])
    _, *bounds, gpus = _KINDS[kind]
    replicas, cpu, memory = (choices.between(*bounds[at : at + 2]) for at in (0, 2, 4))
    return Workload(f"{kind}-{number}", replicas, placement, cpu * 100, memory, gpus)


def _placement(choices: Random, names: Sequence[str]) -> Object:
    luck = choices.random()
    if luck < 0.45:
        return manifests.placement(manifests.DYNAMIC)
    if luck < 0.7:
        return manifests.placement(manifests.AGGREGATED)
    if luck < 0.85:
        chosen = choices.sample(list(names), choices.between(2, len(names)))
        weights: dict[tuple[str, ...], int] = {(name,): choices.between(1, 3) for name in chosen}
        return manifests.placement(manifests.static(weights))
    return manifests.placement(manifests.DYNAMIC, manifests.spread("cluster", 2, 3))
