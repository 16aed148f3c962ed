"""Members that start Pods where they fit on a node, and what Karmada reports of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from karmada_scheduler.testing import cluster


@dataclass
class Pod:
    """A Pod of a binding: its request, and its node (None: it waits for one)."""

    name: str
    cpu: int
    node: int | None = None


@dataclass
class Member:
    """A member cluster.

    Attributes:
        nodes: The cpu of each node that takes Pods.
        closed: The cpu of nodes that take none, and that the summary counts.
        cordoned: How many of the nodes were cordoned; they are counted as ready before and after.
        pulls: Whether images are being pulled, so that no Pod becomes ready.
        nonsense: What is reported of each Deployment instead of its Pods.
    """

    nodes: list[int]
    closed: int = 0
    pods: list[Pod] = field(default_factory=list)
    pulls: bool = False
    nonsense: Any = None
    cordoned: int = 0

    def follow(self, shares: Mapping[str, tuple[int, int]]) -> None:
        """Have as many Pods of each binding as its share (replicas, cpu), and give nodes to those that fit."""
        for name in sorted({*shares, *(pod.name for pod in self.pods)}):
            replicas, cpu = shares.get(name, (0, 0))
            pods = sorted((pod for pod in self.pods if pod.name == name), key=lambda pod: pod.node is None)
            self.pods = [pod for pod in self.pods if pod.name != name] + pods[:replicas]
            self.pods += [Pod(name, cpu) for _ in range(replicas - len(pods))]
        for pod in self.pods:
            fits = [each for each in range(len(self.nodes)) if self.left(each) >= pod.cpu]
            if pod.node is None and fits:
                pod.node = fits[0]

    def left(self, node: int) -> int:
        """Return the cpu that is free on a node."""
        return self.nodes[node] - sum(pod.cpu for pod in self.pods if pod.node == node)

    @property
    def available(self) -> int:
        """The cpu that Pods leave by the summary; those that wait count."""
        return sum(self.nodes) + self.closed - sum(pod.cpu for pod in self.pods)

    def manifest(self, name: str, version: int) -> dict[str, Any]:
        """Return what Karmada reports about the cluster."""
        amounts = []
        for placed in (True, False):
            pods = [pod for pod in self.pods if (pod.node is not None) == placed]
            amounts.append({"cpu": sum(pod.cpu for pod in pods), "pods": len(pods)})
        builder = cluster(name).capacity(cpu=sum(self.nodes) + self.closed, memory="1000Gi")
        builder.allocated(amounts[0]).allocating(amounts[1]).ready_nodes(len(self.nodes) - self.cordoned)
        return builder.resource_version(str(version)).manifest()

    def report(self, name: str) -> Any:
        """Return the status of the Deployment of a binding."""
        if self.nonsense is not None:
            return self.nonsense
        pods = [pod for pod in self.pods if pod.name == name]
        ready = 0 if self.pulls else self.running(name)
        counts = {"replicas": len(pods), "updatedReplicas": len(pods), "readyReplicas": ready}
        return {"observedGeneration": 1, **{key: count for key, count in counts.items() if count}}

    def running(self, name: str) -> int:
        """Return how many Pods of a binding have a node."""
        return sum(pod.node is not None for pod in self.pods if pod.name == name)
