"""Karmada's controllers that act on bindings, in runs with PlacementGuard or FailBack.

- Members run a workload some seconds after their cluster became a target, and go on until it is neither a target nor
  leaves gracefully. The binding status controller reports them. A task to purge ``Directly`` ends a copy at once, and no
  other copy is made or changed meanwhile.
- The graceful-eviction controller stamps new tasks, and ends them when all targets are healthy and the generation is
  observed, or when their time is over. Without targets, an observed generation ends them. A suppressed deletion stays
  until a person allows it. Tasks of a binding that is being deleted are left alone.
- The taint manager evicts bindings from clusters with a NoExecute taint, also those that are placed there later, when
  nothing tolerates the taint any more (``taint_manager``).

``make check-models`` compares them with the real ones.

Source: karmada v1.18.2 pkg/controllers/gracefuleviction/evictiontask.go, rb_graceful_eviction_controller.go,
pkg/controllers/status, pkg/controllers/binding/binding_controller.go.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from karmada_scheduler.api.manifest import format_time, parse_time
from tools.apiserver_model import BY_NAME, ApiServerModel, Key, Write
from tools.manifests import targets_of
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.environment import START
from tools.simulation.simulation import Simulation
from tools.simulation.taint_manager import evict_from, new_taint, seconds_tolerated

Object = dict[str, Any]

_REACTION_SECONDS: Final = 0.3
_START_SECONDS: Final = 3.0
"""How long a copy takes to become healthy."""
_LOOK_SECONDS: Final = 10.0
"""Between two looks for bindings on a cluster with a NoExecute taint."""
_PURGE_SECONDS: Final = 5.0
"""How long other copies are neither made nor changed when some are purged ``Directly``."""
_DIRECTLY: Final = ("Directly", "Immediately")
_TASK_SECONDS: Final = 20
"""Of tasks without a period of their own, as those of the taint manager are (``--graceful-eviction-timeout``)."""


class Controllers:
    """Reacts to every change of a binding."""

    def __init__(
        self,
        simulation: Simulation,
        model: ApiServerModel,
        *,
        task_seconds: float = _TASK_SECONDS,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """Start without bindings.

        Args:
            simulation: Has the time.
            model: Has the objects.
            task_seconds: When tasks without a period of their own end.
            look_seconds: Between two looks at a cluster with a NoExecute taint; infinity for those of ``look`` only.
        """
        self._simulation = simulation
        self._model = model
        self._task_seconds = task_seconds
        self._look_seconds = look_seconds
        self._copies: dict[tuple[str, Key, str], tuple[float, int]] = {}
        """When each copy started, and its replicas."""
        self._purged: dict[tuple[str, Key], float] = {}
        """Until when no copy is made or changed."""
        self._due: dict[tuple[str, Key], float] = {}
        self._health: dict[str, str] = {}
        model.observers.append(self._on_write)

    def taint(self, name: str, effect: str) -> None:
        """Give a cluster one taint, or none for an empty text."""
        found = self._model.get("Cluster", "", name)
        if found is not None:
            found["spec"]["taints"] = [new_taint(effect, self._now())] if effect else []
            self._model.put(found)

    def look(self, name: str, seconds: float) -> None:
        """Let the taint manager look at a cluster in so many seconds."""
        self._later("Cluster", BY_NAME["Cluster"].key("", name), seconds)

    def report(self, name: str, health: str) -> None:
        """Let the copies on a cluster be ``Healthy``, ``Unhealthy``, or silent (an empty text)."""
        self._health[name] = health
        for kind in BINDING_KINDS:
            for key in self._model.state(kind):
                self._later(kind, key, _REACTION_SECONDS)

    def _evict(self, cluster: Key, found: Object) -> None:
        """Evict what does not tolerate the NoExecute taint of a cluster, and look again some seconds later."""
        taint = next(iter(found["spec"].get("taints") or ()), None)
        if taint is None or taint["effect"] != "NoExecute":
            return
        name, left = found["metadata"]["name"], self._look_seconds
        for kind in BINDING_KINDS:
            for raw in list(self._model.state(kind).values()):
                binding = orjson.loads(raw)
                if all(each["name"] != name for each in binding["spec"].get("clusters") or ()):
                    continue
                tolerated = seconds_tolerated(binding, taint, self._now())
                left = min(left, tolerated or math.inf)
                if not tolerated:
                    evict_from(name, binding["spec"])
                    self._model.put(binding)
        self._later("Cluster", cluster, left)

    def _now(self) -> datetime:
        return START + timedelta(seconds=self._simulation.now)

    def _on_write(self, write: Write) -> None:
        if write.kind in (*BINDING_KINDS, "Cluster") and write.after is not None:
            self._later(write.kind, write.key, _REACTION_SECONDS)

    def _later(self, kind: str, key: Key, seconds: float) -> None:
        due = self._simulation.now + seconds
        if due < self._due.get((kind, key), float("inf")):
            self._due[kind, key] = due
            self._simulation.at(due, lambda: self._reconcile(kind, key, due))

    def _reconcile(self, kind: str, key: Key, due: float) -> None:
        if self._due.get((kind, key)) != due:
            return  # it was done earlier
        del self._due[kind, key]
        raw = self._model.state(kind).get(key)
        if raw is None:
            return
        found = orjson.loads(raw)
        if kind == "Cluster":
            self._evict(key, found)
            return
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
        targets = targets_of(found)
        tasks = spec.get("gracefulEvictionTasks") or ()
        purged = {each["fromCluster"] for each in tasks if each.get("purgeMode") in _DIRECTLY}
        leaving = {each["fromCluster"] for each in tasks} - purged
        before = {
            each["clusterName"]: each for each in (found.get("status") or {}).get("aggregatedStatus") or ()
        }
        copies = {name: since for (*of, name), (since, _) in self._copies.items() if of == [kind, key]}
        running = {name for name, since in copies.items() if since <= now}
        if running & purged - targets.keys():
            self._purged[kind, key] = now + _PURGE_SECONDS
        begin = max(now, self._purged.get((kind, key), now))
        if begin > now:
            left = begin - now
        for name in copies.keys() - targets.keys() - (leaving & running):
            del self._copies[kind, key, name]
        items: list[Object] = []
        for name in sorted({*targets, *(leaving & running)}):
            since, replicas = self._copies.get((kind, key, name), (begin, 0))
            if begin == now:
                replicas = targets.get(name, replicas)  # a copy that leaves does not change
            self._copies[kind, key, name] = since, replicas
            health = self._health.get(name, "Healthy")
            item: Object = {"clusterName": name, "applied": True, "health": health}
            if (rest := since + _START_SECONDS - now) > 0 or (not health and name not in before):
                item |= {"applied": False, "health": "Unknown"}
                left = min(left, rest) if rest > 0 else left
            elif not health:  # the last report stays
                item = before[name]
            else:
                item["status"] = {"readyReplicas": replicas if health == "Healthy" else 0}
            items.append(item)
        if items or before:
            found.setdefault("status", {})["aggregatedStatus"] = items
        return left

    def _end_tasks(self, found: Object) -> float:
        """Stamp and end the eviction tasks; return in how many seconds the next one ends."""
        tasks: list[Object] = found["spec"].get("gracefulEvictionTasks") or []
        if found["metadata"].get("deletionTimestamp"):
            return float("inf")
        status, now = found.get("status") or {}, self._now()
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
            if (suppressed := task.get("suppressDeletion")) is not None:
                kept += [task] if suppressed else []
                continue
            age = (now - parse_time(task["creationTimestamp"])).total_seconds()
            rest = task.get("gracePeriodSeconds", self._task_seconds) - age
            if rest > 0 and not (is_observed and targets <= healthy):
                kept.append(task)
                left = min(left, rest)
        if tasks:
            found["spec"]["gracefulEvictionTasks"] = kept
        return left
