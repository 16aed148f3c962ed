"""How many Pods that do not run would fit on the nodes of another member, packed greedily, whatever their placements say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karmada_scheduler.api import quantity

Amounts = Mapping[str, int]
"""Resource name to thousandths of its unit."""
_ONE_POD: Final = {"pods": 1000}
_BLOCKING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Demand:
    """A replica that does not run.

    Attributes:
        member: Where it waits, "" if it has no member.
        requests: Of the Pod, with one of ``pods``.
        tolerations: As the Pod has them.
    """

    member: str
    requests: Amounts
    tolerations: Sequence[Mapping[str, str]] = ()


@dataclass(slots=True)
class FreeNode:
    """A node that accepts Pods, and what is free on it."""

    member: str
    free: dict[str, int]
    taints: Sequence[Mapping[str, str]] = ()

    def accepts(self, demand: Demand) -> bool:
        """Return whether a replica that waits elsewhere fits here."""
        return (
            demand.member != self.member
            and all(self.free.get(name, 0) >= amount for name, amount in demand.requests.items())
            and all(any(_tolerates(each, taint) for each in demand.tolerations) for taint in self.taints)
        )


def packed(demands: Iterable[Demand], nodes: Sequence[FreeNode]) -> int:
    """Return how many fit: the largest first, each on the node with the least cores left. The nodes are filled."""
    count = 0
    for demand in sorted(demands, key=_size, reverse=True):
        fitting = [node for node in nodes if node.accepts(demand)]
        if fitting:
            node = min(fitting, key=lambda each: each.free.get("cpu", 0))
            for name, amount in demand.requests.items():
                node.free[name] -= amount
            count += 1
    return count


def demand_of(template: Mapping[str, Any], member: str) -> Demand:
    """Return the demand of a Pod, or of the template of one."""
    spec = template["spec"]
    requests: dict[str, int] = dict(_ONE_POD)
    for container in spec["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            requests[name] = requests.get(name, 0) + quantity.parse(text).milli_value
    return Demand(member, requests, spec.get("tolerations", ()))


def free_nodes(
    member: str, nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> list[FreeNode]:
    """Return the nodes of a member that accept Pods, less what the Pods on them request."""
    made = {
        node["metadata"]["name"]: FreeNode(
            member,
            {name: quantity.parse(text).milli_value for name, text in node["status"]["allocatable"].items()},
            [taint for taint in node["spec"].get("taints", ()) if taint["effect"] in _BLOCKING],
        )
        for node in nodes
        if not node["spec"].get("unschedulable")
    }
    for pod in pods:
        node = made.get(pod["spec"].get("nodeName", ""))
        if node is not None and pod["status"].get("phase") not in {"Succeeded", "Failed"}:
            for name, amount in demand_of(pod, member).requests.items():
                node.free[name] = node.free.get(name, 0) - amount
    return list(made.values())


def _size(demand: Demand) -> tuple[int, ...]:
    return tuple(demand.requests.get(name, 0) for name in ("nvidia.com/gpu", "cpu", "memory"))


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    return (
        toleration.get("key", taint["key"]) == taint["key"]
        and toleration.get("effect", taint["effect"]) == taint["effect"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
    )
