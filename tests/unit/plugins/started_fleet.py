"""A scheduler with StartedCapacity in the real loop on a fake API server, and members that start Pods where they fit on a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.runtime.observing import Observing
from karmada_scheduler.testing import cluster, make
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from karmada_scheduler_plugins.started_capacity import StartedCapacity
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.scheduler_harness import SchedulerHarness

START, COOL_DOWN, TRIAL = 60, 120, 300
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


@dataclass
class Pod:
    """A Pod of a binding: its request, its node (None: it waits for one), and whether it is ready once it has one."""

    name: str
    cpu: int
    node: int | None = None


@dataclass
class Member:
    """A member cluster.

    Attributes:
        nodes: The cpu of each node that takes Pods.
        closed: The cpu of nodes that take none, and that the summary counts.
        pulls: Whether images are being pulled, so that no Pod becomes ready.
        nonsense: What is reported of each Deployment instead of its Pods.
    """

    nodes: list[int]
    closed: int = 0
    pods: list[Pod] = field(default_factory=list)
    pulls: bool = False
    nonsense: Any = None

    def follow(self, shares: dict[str, tuple[int, int]]) -> None:
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
        return self.nodes[node] - sum(pod.cpu for pod in self.pods if pod.node == node)

    def manifest(self, name: str, version: int) -> dict[str, Any]:
        """Return what Karmada reports about the cluster."""
        amounts = []
        for placed in (True, False):
            pods = [pod for pod in self.pods if (pod.node is not None) == placed]
            amounts.append({"cpu": sum(pod.cpu for pod in pods), "pods": len(pods)})
        builder = cluster(name).capacity(cpu=sum(self.nodes) + self.closed, memory="1000Gi")
        builder.allocated(amounts[0]).allocating(amounts[1]).ready_nodes(len(self.nodes))
        return builder.resource_version(str(version)).manifest()

    def report(self, name: str) -> Any:
        """Return the status of the Deployment of a binding."""
        if self.nonsense is not None:
            return self.nonsense
        pods = [pod for pod in self.pods if pod.name == name]
        ready = 0 if self.pulls else sum(pod.node is not None for pod in pods)
        counts = {"replicas": len(pods), "updatedReplicas": len(pods), "readyReplicas": ready}
        return {"observedGeneration": 1, **{key: count for key, count in counts.items() if count}}


class Fleet(SchedulerHarness):
    """A scheduler with StartedCapacity, members, and Deployments whose replicas are divided among them."""

    def __init__(
        self,
        members: dict[str, Member],
        *,
        more: Sequence[Any] = (),
        server: FakeApiServer | None = None,
        guard: dict[str, Any] | None = None,
        **args: Any,
    ) -> None:
        def made(handle: Any) -> list[Any]:
            self.plugin = make(StartedCapacity, args, handle=handle)
            self.observing = Observing(self.plugin, handle)
            plugins: list[Any] = [self.plugin]
            return plugins if guard is None else [make(PlacementGuard, guard, handle=handle), *plugins]

        super().__init__(*more, made=made, server=server, estimators=[GeneralEstimator(FeatureGates())])
        self.members = members
        self.reconsiderations.start()
        self.versions, self.reported = 1, dict[str, Any]()
        self.observing.start()
        self.report()

    def deploy(
        self, name: str = "web", *, replicas: int, cpu: int = 1, scheduling: Any = DYNAMIC, **spec: Any
    ) -> None:
        """Create a Deployment whose replicas request so many cpu."""
        self.put(
            name,
            replicas=replicas,
            replicaRequirements={"resourceRequest": {"cpu": str(cpu)}},
            placement={"clusterAffinity": {"clusterNames": [*self.members]}, "replicaScheduling": scheduling},
            **spec,
        )

    async def pass_(self, seconds: float = 0.0) -> None:
        """Let time pass; every five seconds members report, and proposals are looked for."""
        end = self.now + seconds
        while True:
            await self.run()
            self.report()
            await self.reconsiderations.look()
            await self.run()
            if self.now >= end:
                return
            self.sleep(min(5.0, end - self.now))

    def report(self) -> None:
        """Let members follow the bindings, and report what has changed."""
        for name, member in self.members.items():
            member.follow(
                {
                    binding: (share, self._cpu(binding))
                    for binding in self.server.stored
                    if (share := self.shares(binding).get(name, 0))
                }
            )
            found = member.manifest(name, 0)
            if self.reported.get(name) != found:
                self.reported[name] = found
                self.versions += 1
                self.handlers.on_event("Cluster", "MODIFIED", member.manifest(name, self.versions))
        for binding, manifest in list(self.server.stored.items()):
            items = [
                {"clusterName": name, "applied": True, "health": self._health(status), "status": status}
                for name in self.shares(binding)
                if (status := self.members[name].report(binding)) is not None
            ]
            if items and manifest.get("status", {}).get("aggregatedStatus") != items:
                self.server.change(binding, status=True, aggregatedStatus=items)

    def _health(self, status: Any) -> str:
        """Return what Karmada makes of the status of a Deployment."""
        is_ready = isinstance(status, dict) and status.get("readyReplicas") == status.get("replicas", 0)
        return "Healthy" if is_ready else "Unhealthy"

    def shares(self, name: str = "web") -> dict[str, int]:
        """Return the replicas of a binding by cluster."""
        clusters = self.server.stored[name]["spec"].get("clusters", ())
        return {each["name"]: each["replicas"] for each in clusters}

    def running(self, name: str = "web") -> int:
        pods = [pod for member in self.members.values() for pod in member.pods]
        return sum(pod.node is not None for pod in pods if pod.name == name)

    def moves(self, name: str = "web") -> int:
        """Return how many times the clusters of a binding were written after the first."""
        written = [kind for kind, found, body in self.server.requests if found == name and "clusters" in body]
        return written.count("spec") - 1

    def _cpu(self, name: str) -> int:
        requirements = self.server.stored[name]["spec"]["replicaRequirements"]
        return int(requirements["resourceRequest"]["cpu"])
