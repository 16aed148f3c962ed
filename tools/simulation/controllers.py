"""Karmada's controllers that act on bindings, in runs with PlacementGuard or FailBack.

- Members run a workload some seconds after their cluster became a target, and go on until it is neither a target nor
  leaves gracefully. The binding status controller reports them.
- The graceful-eviction controller stamps new tasks, and ends them when all targets are healthy and the generation is
  observed, or when their time is over.
- The taint manager evicts bindings from clusters that fail.

Source: karmada v1.18.2 pkg/controllers/gracefuleviction/evictiontask.go, pkg/controllers/status.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import orjson

from karmada_scheduler.api.manifest import format_time, parse_time
from tools.apiserver_model import ApiServerModel, Key, Write
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.environment import START
from tools.simulation.simulation import Simulation

Object = dict[str, Any]

_REACTION_SECONDS: Final = 0.3
_START_SECONDS: Final = 3.0
"""How long a copy takes to become healthy."""
_LONGEST_TASK_SECONDS: Final = 600
"""Of tasks without a period of their own."""
_TASK_SECONDS: Final = 20
"""Of the tasks of the taint manager."""


class Controllers:
    """Reacts to every change of a binding."""

    def __init__(self, simulation: Simulation, model: ApiServerModel) -> None:
        """Start without bindings."""
        self._simulation = simulation
        self._model = model
        self._started: dict[tuple[str, Key, str], float] = {}
        self._due: set[tuple[str, Key]] = set()
        self.sick: set[str] = set()
        """The clusters whose copies are not healthy."""
        model.observers.append(self._on_write)

    def fail(self, name: str) -> None:
        """Taint a cluster, and evict all bindings from it."""
        self._taint(name, [{"key": "down", "value": "", "effect": "NoSchedule"}])
        self._simulation.after(_REACTION_SECONDS, lambda: self._evict_from(name))

    def recover(self, name: str) -> None:
        """Remove the taint."""
        self._taint(name, [])

    def reconcile_all(self) -> None:
        """Report all bindings again."""
        for kind in BINDING_KINDS:
            for key in self._model.state(kind):
                self._later(kind, key, _REACTION_SECONDS)

    def _taint(self, name: str, taints: list[Object]) -> None:
        found = self._model.get("Cluster", "", name)
        if found is not None:
            found["spec"]["taints"] = taints
            self._model.put(found)

    def _evict_from(self, name: str) -> None:
        for kind in BINDING_KINDS:
            for raw in list(self._model.state(kind).values()):
                found = orjson.loads(raw)
                targets = found["spec"].get("clusters") or []
                for gone in [each for each in targets if each["name"] == name]:
                    targets.remove(gone)
                    found["spec"].setdefault("gracefulEvictionTasks", []).append({
                        "fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager",
                        "replicas": gone.get("replicas", 0), "gracePeriodSeconds": _TASK_SECONDS,
                    })  # fmt: skip
                    self._model.put(found)

    def _on_write(self, write: Write) -> None:
        if write.kind in BINDING_KINDS and write.after is not None:
            self._later(write.kind, write.key, _REACTION_SECONDS)

    def _later(self, kind: str, key: Key, seconds: float) -> None:
        if (kind, key) not in self._due:
            self._due.add((kind, key))
            self._simulation.after(seconds, lambda: self._reconcile(kind, key))

    def _reconcile(self, kind: str, key: Key) -> None:
        self._due.discard((kind, key))
        raw = self._model.state(kind).get(key)
        if raw is None:
            return
        found = orjson.loads(raw)
        left = self._report(kind, key, found)
        left = min(left, self._end_tasks(found))
        if found != orjson.loads(raw):
            self._model.put(found)
        elif left < float("inf"):
            self._later(kind, key, max(_REACTION_SECONDS, left))

    def _report(self, kind: str, key: Key, found: Object) -> float:
        """Write the aggregated status; return in how many seconds it changes by itself."""
        now, left = self._simulation.now, float("inf")
        spec = found["spec"]
        targets = {each["name"]: each.get("replicas", 0) for each in spec.get("clusters") or ()}
        leaving = {each["fromCluster"] for each in spec.get("gracefulEvictionTasks") or ()}
        before = {
            each["clusterName"]: each for each in (found.get("status") or {}).get("aggregatedStatus") or ()
        }
        running = {name for one, other, name in self._started if (one, other) == (kind, key)}
        for name in running - targets.keys() - leaving:
            del self._started[kind, key, name]
        items = []
        for name in sorted({*targets, *(leaving & running)}):
            rest = self._started.setdefault((kind, key, name), now) + _START_SECONDS - now
            health, ready = "Healthy", targets.get(name, 0)
            if rest > 0:
                health, ready, left = "Unknown", 0, min(left, rest)
            elif name in self.sick:
                health, ready = "Unhealthy", 0
            item = {
                "clusterName": name,
                "applied": True,
                "health": health,
                "status": {"readyReplicas": ready},
            }
            if name not in targets and name in before:  # a copy that leaves does not change
                item["status"] = before[name]["status"]
            items.append(item)
        if items or before:
            found.setdefault("status", {})["aggregatedStatus"] = items
        return left

    def _end_tasks(self, found: Object) -> float:
        """Stamp and end the eviction tasks; return in how many seconds the next one ends."""
        tasks: list[Object] = found["spec"].get("gracefulEvictionTasks") or []
        status, now = found.get("status") or {}, START + timedelta(seconds=self._simulation.now)
        is_observed = status.get("schedulerObservedGeneration") == found["metadata"]["generation"]
        healthy = {
            each["clusterName"]
            for each in status.get("aggregatedStatus") or ()
            if each["health"] == "Healthy"
        }
        targets = {each["name"] for each in found["spec"].get("clusters") or ()}
        kept, left = [], float("inf")
        for task in tasks:
            if not task.get("creationTimestamp"):
                kept.append({**task, "creationTimestamp": format_time(now)})
                continue
            age = (now - parse_time(task["creationTimestamp"])).total_seconds()
            rest = task.get("gracePeriodSeconds", _LONGEST_TASK_SECONDS) - age
            if rest > 0 and not (is_observed and targets and targets <= healthy):
                kept.append(task)
                left = min(left, rest)
        if tasks:
            found["spec"]["gracefulEvictionTasks"] = kept
        return left
