"""Members that run what bindings give them, and report it every ten seconds; some workloads end after a while.

What a cluster reports as allocated is what bindings have on it. Reports of bindings follow those of clusters. A binding
with the annotation ``lasts`` is deleted so many seconds after all its replicas have been placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import orjson

from karmada_scheduler.api.quantity import parse
from tools.apiserver_model import ApiServerModel, Write
from tools.manifests import targets_of
from tools.simulation.simulation import Simulation

LASTS: Final = "lasts"
REPORT_SECONDS: Final = 10.0
"""Karmada's ``--cluster-status-update-frequency``."""
_FIRST_SECONDS: Final = 1.0

Object = dict[str, Any]


def cpu_of(binding: Mapping[str, Any]) -> int:
    """Return the thousandths of a CPU that a replica asks for."""
    asked = (binding["spec"].get("replicaRequirements") or {}).get("resourceRequest") or {}
    return parse(asked.get("cpu", "0")).milli_value


class ClusterReports:
    """The members of a run."""

    def __init__(self, simulation: Simulation, model: ApiServerModel, *, until: float) -> None:
        """Start to report; nothing ends after a time."""
        self._simulation = simulation
        self._model = model
        self._until = until
        self._ends: set[str] = set()
        """The uids of the bindings whose end is known."""
        model.observers.append(self._on_write)
        simulation.after(_FIRST_SECONDS, self._report)

    def _on_write(self, write: Write) -> None:
        if write.kind != "ResourceBinding" or write.after is None or b'"lasts"' not in write.after:
            return
        found = orjson.loads(write.after)
        uid, targets = found["metadata"]["uid"], targets_of(found)
        if uid not in self._ends and targets and sum(targets.values()) >= found["spec"]["replicas"]:
            self._ends.add(uid)
            self._simulation.after(
                float(found["metadata"]["annotations"][LASTS]), lambda: self._end(write.key, uid)
            )

    def _end(self, key: tuple[str, str], uid: str) -> None:
        found = self._model.get("ResourceBinding", *key)
        is_early = self._simulation.now < self._until
        if is_early and found is not None and found["metadata"]["uid"] == uid:
            self._model.delete("ResourceBinding", *key)

    def _report(self) -> None:
        bindings = [orjson.loads(raw) for raw in self._model.state("ResourceBinding").values()]
        used = Counter[str]()
        for found in bindings:
            for name, replicas in targets_of(found).items():
                used[name] += replicas * cpu_of(found)
        for raw in list(self._model.state("Cluster").values()):
            found = orjson.loads(raw)
            self._put(
                found,
                found["status"]["resourceSummary"]["allocated"],
                cpu=f"{used[found['metadata']['name']]}m",
            )
        for found in bindings:
            items = [
                {"clusterName": name, "applied": True, "health": "Healthy", "status": {"replicas": replicas}}
                for name, replicas in sorted(targets_of(found).items())
            ]
            status = found.setdefault("status", {})
            if items or status.get("aggregatedStatus"):
                self._put(found, status, aggregatedStatus=items)
        self._simulation.after(REPORT_SECONDS, self._report)

    def _put(self, found: Object, part: Object, **new: Any) -> None:
        """Store an object with new fields in a part of it, if they are new."""
        if any(part.get(name) != value for name, value in new.items()):
            part.update(new)
            self._model.put(found)
