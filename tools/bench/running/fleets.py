"""Fleets and their workloads, drawn by seed: node shapes, taints, cordons, GPUs, loads, arrivals, lost nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
            count = choices.between(2, 6) if int(shape.cpu) > 8 else choices.between(4, 12)
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
    gpus = sum(int(node.devices.get(GPU, 0)) for member in fleet.members for node in member.nodes)
    names = [member.name for member in fleet.members]
    workloads: list[Workload] = []
    asked, asked_gpus = [0, 0], 0
    while max(asked[0] / free[0], asked[1] / free[1]) < fleet.load:
        made = _KINDS[choices.choices(range(len(_KINDS)), _WEIGHTS)[0]](choices)
        made = replace(made, name=f"{made.name}-{len(workloads)}", placement=_placement(choices, names))
        if made.gpus:
            if asked_gpus + made.gpus * made.replicas > fleet.load * gpus:
                continue
            asked_gpus += made.gpus * made.replicas
        else:
            asked = [asked[0] + made.cpu * made.replicas, asked[1] + made.memory * made.replicas]
        workloads.append(made)
    return replace(fleet, workloads=tuple(workloads))


def _small(choices: Random) -> Workload:
    cpu, memory = choices.between(1, 5) * 100, choices.between(1, 4) * 128
    return Workload("small", choices.between(5, 16), {}, cpu=cpu, memory=memory)


def _node_sized(choices: Random) -> Workload:
    return Workload("node-sized", choices.between(2, 8), {}, cpu=3000, memory=10 * _GIB)


def _large(choices: Random) -> Workload:
    cpu, memory = choices.between(6, 14) * 1000, choices.between(24, 48) * _GIB
    return Workload("large", choices.between(1, 5), {}, cpu=cpu, memory=memory)


def _memory_heavy(choices: Random) -> Workload:
    memory = choices.between(20, 56) * _GIB
    return Workload("memory", choices.between(1, 4), {}, cpu=1000, memory=memory)


def _gpu(choices: Random) -> Workload:
    gpus = choices.between(1, 2)
    return Workload("gpu", choices.between(1, 4), {}, cpu=4000, memory=16 * _GIB, gpus=gpus)


def _without_requests(choices: Random) -> Workload:
    return Workload("none", choices.between(4, 12), {})


_KINDS: Final[tuple[Callable[[Random], Workload], ...]] = (
    _small, _node_sized, _large, _memory_heavy, _gpu, _without_requests,
)  # fmt: skip
_WEIGHTS: Final = (48, 10, 5, 6, 9, 22)


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
