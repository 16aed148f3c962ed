"""A scheduler with StartedCapacity in the real loop on a fake API server, and members that start Pods where they fit on a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework.runtime.observing import Observing
from karmada_scheduler.testing import make
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from karmada_scheduler_plugins.started_capacity import StartedCapacity
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.scheduler_harness import SchedulerHarness
from tools.simulation.members import Member

START, COOL_DOWN, TRIAL = 60, 120, 300
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}


class Fleet(SchedulerHarness):
    """A scheduler with StartedCapacity, members, and Deployments whose replicas are divided among them."""

    def __init__(
        self,
        members: dict[str, Member],
        *,
        more: Sequence[Any] = (),
        server: FakeApiServer | None = None,
        guard: dict[str, Any] | None = None,
        gates: FeatureGates | None = None,
        **args: Any,
    ) -> None:
        def made(handle: Any) -> list[Any]:
            self.plugin = make(StartedCapacity, args, handle=handle)
            self.observing = Observing(self.plugin, handle)
            plugins: list[Any] = [self.plugin]
            return plugins if guard is None else [make(PlacementGuard, guard, handle=handle), *plugins]

        chosen = gates or FeatureGates()
        super().__init__(
            *more, made=made, server=server, estimators=[GeneralEstimator(chosen)], feature_gates=chosen
        )
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
        return sum(member.running(name) for member in self.members.values())

    def moves(self, name: str = "web") -> int:
        """Return how many times the clusters of a binding were written after the first."""
        written = [kind for kind, found, body in self.server.requests if found == name and "clusters" in body]
        return written.count("spec") - 1

    def _cpu(self, name: str) -> int:
        requirements = self.server.stored[name]["spec"]["replicaRequirements"]
        return int(requirements["resourceRequest"]["cpu"])
