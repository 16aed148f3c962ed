"""The members of the fleet: they run what bindings give them, report every ten seconds, and jobs end in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson

from tests.fake_apiserver.objects import DYNAMIC, binding, cluster
from tools.apiserver_model import ApiServerModel, Write
from tools.contention.jobs import CLUSTERS, CPUS, Job
from tools.manifests import AGGREGATED, targets_of
from tools.simulation.simulation import Simulation

REPORT_SECONDS: Final = 10.0
"""Karmada's ``--cluster-status-update-frequency``."""
_KNOWN_SECONDS: Final = 0.5
"""So long after its creation no decision is made without a job; one that was made before may still be written."""


@dataclass(slots=True)
class Figures:
    """What a run has shown.

    Attributes:
        waits: Seconds from creation to placement, by job; of one that was not placed, so far.
        unplaced: The jobs that were never placed.
        placements: How many jobs were placed.
        inversions: How many placements made the shortage of a waiting job of higher priority worse that the scheduler
            could know. One that needs a single cluster may wait for any, as long as nobody takes anything of that one.
        cpu_seconds: What was used, from the first job of high priority on.
    """

    waits: dict[Job, float] = field(default_factory=dict)
    unplaced: set[Job] = field(default_factory=set)
    placements: int = 0
    inversions: int = 0
    cpu_seconds: float = 0.0


class Members:
    """Ten clusters, and the jobs that are created, wait, run and end."""

    def __init__(self, simulation: Simulation, model: ApiServerModel, counted_from: float) -> None:
        """Create the clusters; utilization counts from a time on."""
        self.figures = Figures()
        self.used = {f"m{index}": 0 for index in range(CLUSTERS)}
        self.on_capacity: Callable[[], None] = lambda: None
        self._simulation = simulation
        self._model = model
        self._counted_from = counted_from
        self._waiting: dict[str, Job] = {}
        self._running: dict[str, tuple[Job, Mapping[str, int]]] = {}
        self._untouched: dict[str, set[str]] = {}
        """The clusters of which no lower priority has taken anything since a job waits."""
        self._starting: dict[str, set[str]] = {name: set() for name in self.used}
        """The jobs that a member has not reported healthy yet."""
        self._reported = dict.fromkeys(self.used, -1)
        for index, name in enumerate(self.used):
            model.put(cluster(name, cpu=str(CPUS)))
            simulation.after(1.0 + index * REPORT_SECONDS / CLUSTERS, partial(self._report, name))
        model.observers.append(self._on_write)

    def create(self, job: Job) -> None:
        """Create the binding of a job."""
        placement: dict[str, Any] = {"replicaScheduling": AGGREGATED}
        if job.one_cluster:
            placement = {
                "replicaScheduling": DYNAMIC,
                "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
            }
        found = binding(job.name, replicas=job.replicas, placement=placement, requests={"cpu": "1"})
        found["spec"]["schedulePriority"] = {"priority": job.priority}
        self._waiting[job.name] = job
        self._untouched[job.name] = set(self.used)
        self._model.put(found)

    def finish(self) -> Figures:
        """Return the figures at the end of the run."""
        figures, now = self.figures, self._simulation.now
        for job in self._waiting.values():
            figures.waits[job] = now - job.created
            figures.unplaced.add(job)
        for job, _ in self._running.values():
            self._count_usage(job, now)
        return figures

    def _on_write(self, write: Write) -> None:
        if write.kind != "ResourceBinding" or write.after is None or write.key[1] not in self._waiting:
            return
        targets = targets_of(orjson.loads(write.after))
        if targets:
            self._place(self._waiting.pop(write.key[1]), targets)

    def _place(self, job: Job, targets: Mapping[str, int]) -> None:
        figures, now, before = self.figures, self._simulation.now, self._free()
        for name, replicas in targets.items():
            self.used[name] += replicas
            self._starting[name].add(job.name)
        known = [other for other in self._waiting.values() if other.created + _KNOWN_SECONDS <= now]
        better = [other for other in known if other.priority > job.priority]
        suffering = [other for other in better if self._suffers(other, before, targets)]
        figures.waits[job] = now - job.created
        figures.placements += 1
        figures.inversions += bool(suffering)
        self._running[job.name] = job, targets
        self._simulation.after(job.seconds, partial(self._end, job.name))

    def _end(self, name: str) -> None:
        job, targets = self._running.pop(name)
        for member, replicas in targets.items():
            self.used[member] -= replicas
            self._starting[member].discard(name)
        self._count_usage(job, self._simulation.now)
        self._model.delete("ResourceBinding", "default", name)

    def _count_usage(self, job: Job, until: float) -> None:
        since = max(self._counted_from, job.created + self.figures.waits[job])
        self.figures.cpu_seconds += max(0.0, until - since) * job.replicas

    def _report(self, name: str) -> None:
        """Report what is used, and then the jobs that run, so that nothing counts as free in between."""
        before, now = self._reported[name], self.used[name]
        if now != before:
            self._reported[name] = now
            found = self._model.get("Cluster", "", name)
            assert found is not None
            found["status"]["resourceSummary"]["allocated"]["cpu"] = str(now)
            self._model.put(found)
        for job in sorted(self._starting[name]):
            self._report_healthy(job, name)
        self._starting[name].clear()
        if now < before:
            self.on_capacity()
        self._simulation.after(REPORT_SECONDS, partial(self._report, name))

    def _report_healthy(self, job: str, member: str) -> None:
        found = self._model.get("ResourceBinding", "default", job)
        assert found is not None
        items = found.setdefault("status", {}).setdefault("aggregatedStatus", [])
        items.append({"clusterName": member, "applied": True, "health": "Healthy"})
        self._model.put(found)

    def _suffers(self, job: Job, before: int, targets: Mapping[str, int]) -> bool:
        """Return whether a placement on some clusters makes the shortage of a waiting job worse."""
        if not job.one_cluster:
            return self._free() < min(before, job.replicas)
        untouched = self._untouched[job.name]
        untouched -= {name for name in targets if CPUS - self.used[name] < job.replicas}
        return not untouched

    def _free(self) -> int:
        return sum(max(0, CPUS - each) for each in self.used.values())
