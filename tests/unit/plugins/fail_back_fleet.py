"""A scheduler with FailBack in the real loop on a fake API server, with three clusters."""

from __future__ import annotations

import json
from typing import Any

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.testing import cluster, make
from karmada_scheduler_plugins.fail_back import FailBack
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.scheduler_harness import SchedulerHarness

FAIL_BACK = "pyscheduler.karmada.io/fail-back"
LAST_MOVE = "pyscheduler.karmada.io/last-move"
CHECK, WAIT = 10, 60
TAINT = [{"key": "down", "effect": "NoSchedule"}]


def terms(*names: str, kind: str = "Divided") -> dict[str, Any]:
    """Return a placement with a term for each cluster, named as the cluster."""
    return {
        "clusterAffinities": [{"affinityName": f"on-{name}", "clusterNames": [name]} for name in names],
        "replicaScheduling": {"replicaSchedulingType": kind, "replicaDivisionPreference": "Aggregated"},
    }


class Fleet(SchedulerHarness):
    """A scheduler with FailBack and clusters m1, m2 and m3, and bindings that prefer m1, then m2, then m3."""

    def __init__(
        self,
        *more: Any,
        server: FakeApiServer | None = None,
        guard: dict[str, Any] | None = None,
        **args: Any,
    ) -> None:
        chosen = {"checkSeconds": CHECK, "stabilizationSeconds": WAIT, **args}

        def made(handle: Any) -> list[Any]:
            plugins: list[Any] = [make(FailBack, chosen, handle=handle)]
            return plugins if guard is None else [make(PlacementGuard, guard, handle=handle), *plugins]

        super().__init__(*more, made=made, server=server, estimators=[GeneralEstimator(FeatureGates())])
        self.reconsiderations.start()
        self.versions = 1
        self.change("m3")

    def change(self, name: str, *, down: bool = False, effect: str = "NoSchedule", cpu: int = 1000) -> None:
        """Let a cluster take nothing, or take workloads again, as many as fit into its CPUs."""
        self.versions += 1
        manifest = cluster(name).manifest()
        manifest["metadata"] |= {"resourceVersion": str(self.versions), "generation": self.versions}
        manifest["status"]["resourceSummary"]["allocatable"]["cpu"] = str(cpu)
        if down:
            manifest["spec"] |= {"taints": [TAINT[0] | {"effect": effect}]}
        self.handlers.on_event("Cluster", "MODIFIED", manifest)

    async def start(self, name: str = "web", *, kind: str = "Divided", **spec: Any) -> None:
        await self.put_and_run(name, placement=terms("m1", "m2", "m3", kind=kind), **spec)

    async def fail_over(self, name: str = "web") -> None:
        """Taint the cluster of a binding and evict it, as Karmada's taint manager does, and let the eviction end."""
        at = self.placed(name)[0]
        self.change(at, down=True)
        task = {"fromCluster": at, "producer": "TaintManager", "reason": "TaintUntolerated"}
        self.server.change(name, clusters=[], gracefulEvictionTasks=[task])
        await self.run()
        self.server.change(name, gracefulEvictionTasks=[])
        await self.run()

    async def check(self, seconds: float = 0.0) -> None:
        """Let time pass in intervals of the checks."""
        end = self.now + seconds
        while True:
            await self.reconsiderations.look()
            await self.run()
            if self.now >= end:
                return
            self.sleep(min(CHECK, end - self.now))

    async def placed_after(self, seconds: float = 0.0) -> list[str]:
        """Let time pass in intervals of the checks, and return the clusters of the binding."""
        await self.check(seconds)
        return self.placed()

    def term(self, name: str = "web") -> str:
        found: str = self.server.stored[name]["status"].get("schedulerObservingAffinityName", "")
        return found

    def record_of(self, name: str = "web") -> Any:
        text = self.server.stored[name]["metadata"].get("annotations", {}).get(FAIL_BACK)
        return None if text is None else json.loads(text)

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.events]
