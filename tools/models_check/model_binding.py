"""The sequence in the simulation's models of Karmada's controllers, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any, Final

import orjson

from tools.apiserver_model import ApiServerModel, Write
from tools.models_check.history import State, state_of
from tools.models_check.sequences import CLUSTERS, TIMEOUT_SECONDS, task
from tools.simulation.bindings import new_binding
from tools.simulation.controllers import Controllers
from tools.simulation.environment import START
from tools.simulation.simulation import Simulation

_REST_SECONDS: Final = 8.0
_BINDING: Final = ("ResourceBinding", "default", "web-deployment")


class ModelBinding:
    """One binding, three clusters and the models.

    Attributes:
        states: Of the binding, one for each write.
    """

    def __init__(self) -> None:
        """Create the clusters and the binding."""
        self.states: list[State] = []
        self._simulation = Simulation(Random(0))
        uids = count(1)
        self._model = ApiServerModel(
            lambda: START + timedelta(seconds=self._simulation.now), lambda: f"uid-{next(uids)}"
        )
        self._model.observers.append(self._note)
        self._controllers = Controllers(self._simulation, self._model, task_seconds=TIMEOUT_SECONDS)
        for name in CLUSTERS:
            self._model.put({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": {},
            })  # fmt: skip
        self._model.put(new_binding("web-deployment", 2, _placement(*CLUSTERS)))
        self.rest()

    def place(self, targets: Mapping[str, int], leaving: Mapping[str, int]) -> None:
        self._patch({
            "spec": {
                "clusters": [{"name": name, "replicas": count} for name, count in targets.items()],
                "gracefulEvictionTasks": [task(name, seconds) for name, seconds in leaving.items()],
            }
        })  # fmt: skip

    def observe(self) -> None:
        found = self._model.get(*_BINDING)
        assert found is not None
        self._patch({"status": {"schedulerObservedGeneration": found["metadata"]["generation"]}}, "status")

    def report(self, cluster: str, health: str) -> None:
        self._controllers.report(cluster, health)
        self.rest()

    def taint(self, cluster: str, effect: str) -> None:
        self._controllers.taint(cluster, effect)
        self.rest()

    def edit(self, *clusters: str) -> None:
        self._patch({"spec": {"placement": _placement(*clusters)}})

    def scale(self, replicas: int) -> None:
        self._patch({"spec": {"replicas": replicas}})

    def rest(self, seconds: float = _REST_SECONDS) -> None:
        self._simulation.run(self._simulation.now + seconds)

    def _patch(self, patch: dict[str, Any], subresource: str = "") -> None:
        self._model.patch(*_BINDING, patch, subresource=subresource)
        self.rest()

    def _note(self, write: Write) -> None:
        if write.kind == _BINDING[0] and write.after is not None:
            self.states.append(state_of(orjson.loads(write.after), {}))


def _placement(*clusters: str) -> dict[str, Any]:
    return {"clusterAffinity": {"clusterNames": list(clusters)}}
