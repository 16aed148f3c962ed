"""Karmada's binding controller, which compares with a cache that lacks its own last writes, and the status that follows.

The controller gets to a binding some time after its generation has changed, and writes the Works that differ from what
its cache has. The cache has them up to ``lag`` seconds late. A real one is 0.7 to 4 ms late; here it is later, so that
histories meet it. Clusters do what their Works say, and report it.

Source: karmada v1.18.2 pkg/controllers/binding/binding_controller.go, pkg/controllers/ctrlutil/work.go,
pkg/controllers/status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import orjson

from tools.apiserver_model import ApiServerModel, Key, Write
from tools.manifests import targets_of
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.simulation import Simulation

_DELAYS: Final = (0.003, 0.03, 1.2)
"""How long the controller takes at most to get to a binding, idle or busy."""
_LAG: Final = 0.3
_REPORT_SECONDS: Final = 2.0
_APPLIED: Final = {"type": "FullyApplied", "status": "True"}


class Works:
    """The replicas in the Works of all bindings.

    Attributes:
        status_of: Returns the status that a cluster reports of a binding with so many replicas.
    """

    def __init__(self, simulation: Simulation, model: ApiServerModel, draw: Random) -> None:
        """Start without Works."""
        self._simulation = simulation
        self._model = model
        self._draw = draw
        self._writes: dict[tuple[str, Key], list[tuple[float, dict[str, int]]]] = {}
        """The Works of a binding after each write, with its time."""
        self._due: set[tuple[str, Key]] = set()
        self.status_of: Callable[[str, Key, int], Any] = lambda _cluster, _key, replicas: {
            "replicas": replicas
        }
        model.observers.append(self._on_write)

    def wrong(self) -> Iterator[str]:
        """Yield the bindings whose Works have other clusters or replicas."""
        for kind in BINDING_KINDS:
            for key, raw in self._model.state(kind).items():
                wanted, works = targets_of(orjson.loads(raw)), self.replicas(kind, key)
                if wanted != works:
                    yield f"{kind} {key}: the Works have {works}, and the binding has {wanted}"

    def replicas(self, kind: str, key: Key) -> dict[str, int]:
        """Return the replicas in the Works of a binding, by cluster."""
        return self._works_at(kind, key, self._simulation.now)

    def _works_at(self, kind: str, key: Key, at: float) -> dict[str, int]:
        writes = self._writes.get((kind, key), ())
        return next((works for time, works in reversed(writes) if time <= at), {})

    def _on_write(self, write: Write) -> None:
        if write.kind not in BINDING_KINDS:
            return
        if write.after is None:
            self._writes.pop((write.kind, write.key), None)
        elif write.before is None or _generation(write.before) != _generation(write.after):
            self._later(write.kind, write.key, self._draw.uniform(0.0, self._draw.choice(_DELAYS)))

    def _later(self, kind: str, key: Key, seconds: float) -> None:
        if (kind, key) not in self._due:
            self._due.add((kind, key))
            self._simulation.at(self._simulation.now + seconds, lambda: self._reconcile(kind, key))

    def _reconcile(self, kind: str, key: Key) -> None:
        self._due.discard((kind, key))
        raw = self._model.state(kind).get(key)
        if raw is None:
            return
        now, wanted = self._simulation.now, targets_of(orjson.loads(raw))
        cached = self._works_at(kind, key, now - self._draw.uniform(0.0, _LAG))
        works = dict(self.replicas(kind, key))
        for name in cached.keys() | wanted.keys():
            if cached.get(name) == wanted.get(name):
                continue  # up to date
            if name in wanted:
                works[name] = wanted[name]
            else:
                works.pop(name, None)
        self._writes.setdefault((kind, key), []).append((now, works))
        self._simulation.at(now + self._draw.uniform(0.1, _REPORT_SECONDS), lambda: self.report(kind, key))

    def report(self, kind: str, key: Key) -> None:
        """Report what clusters have of a binding, if that has changed."""
        raw = self._model.state(kind).get(key)
        if raw is None:
            return
        found: dict[str, Any] = orjson.loads(raw)
        status = found.setdefault("status", {})
        status["aggregatedStatus"] = [
            {"clusterName": name, "applied": True, "status": self.status_of(name, key, replicas)}
            for name, replicas in sorted(self.replicas(kind, key).items())
        ]
        others = [each for each in status.get("conditions") or () if each["type"] != _APPLIED["type"]]
        status["conditions"] = [*others, _APPLIED]
        if found != orjson.loads(raw):
            self._model.put(found)


def _generation(raw: bytes) -> int:
    return int(orjson.loads(raw)["metadata"]["generation"])
