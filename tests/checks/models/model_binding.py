"""The sequence in the simulation's models of Karmada's controllers, in virtual time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any, Final

import orjson

from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from tests.checks.models.history import State, state_of
from tests.checks.models.sequences import CLUSTERS, TIMEOUT_SECONDS, Grace, confirmed, task
from tools.apiserver_model import ApiServerModel, Write
from tools.simulation.bindings import new_binding
from tools.simulation.controllers import Controllers
from tools.simulation.environment import START
from tools.simulation.simulation import Simulation
from tools.simulation.taint_manager import tolerations

_REST_SECONDS: Final = 12.0
"""More than the real one takes for a step, so that nothing ends by time earlier there."""
_BINDING: Final = ("ResourceBinding", "default", "web-deployment")


class ModelBinding:
    """One binding, three clusters and the models.

    Attributes:
        states: Of the binding, one for each write.
    """

    def __init__(self, looks: Sequence[Sequence[float]] = ()) -> None:
        """Create the clusters and the binding.

        Args:
            looks: For each placement: in how many seconds the taint manager looks at each target with a NoExecute taint.
                At once if there are none.
        """
        self.states: list[State] = []
        self._looks = list(looks)
        self._simulation = Simulation(Random(0))
        uids = count(1)
        self._model = ApiServerModel(
            lambda: START + timedelta(seconds=self._simulation.now), lambda: f"uid-{next(uids)}"
        )
        self._model.observers.append(self._note)
        self._controllers = Controllers(
            self._simulation, self._model, task_seconds=TIMEOUT_SECONDS, look_seconds=math.inf
        )
        self._tainted: set[str] = set()
        self._placement: dict[str, Any] = {"clusterAffinity": {"clusterNames": list(CLUSTERS)}}
        for name in CLUSTERS:
            self._model.put({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": {},
            })  # fmt: skip
        self._model.put(new_binding("web-deployment", 2, self._placement))
        self.rest()

    def place(self, targets: Mapping[str, int], leaving: Mapping[str, Grace]) -> None:
        tainted = [name for name in targets if name in self._tainted]
        for name, seconds in zip(tainted, self._looks.pop(0) if self._looks else [0.1] * 2, strict=False):
            self._controllers.look(name, seconds)
        self._patch({
            "metadata": {"annotations": {APPLIED_PLACEMENT_ANNOTATION: orjson.dumps(self._placement).decode()}},
            "spec": {
                "clusters": [{"name": name, "replicas": count} for name, count in targets.items()],
                "gracefulEvictionTasks": [task(name, grace) for name, grace in leaving.items()],
            },
        })  # fmt: skip

    def observe(self) -> None:
        self._patch(
            {"status": {"schedulerObservedGeneration": self._stored()["metadata"]["generation"]}}, "status"
        )

    def report(self, cluster: str, health: str) -> None:
        self._controllers.report(cluster, health)
        self.rest()

    def taint(self, cluster: str, effect: str) -> None:
        self._tainted -= {cluster}
        self._tainted |= {cluster} if effect == "NoExecute" else set()
        self._controllers.taint(cluster, effect)
        self.rest()

    def edit(self, *clusters: str) -> None:
        self._change({"clusterAffinity": {"clusterNames": list(clusters)}})

    def scale(self, replicas: int) -> None:
        self._patch({"spec": {"replicas": replicas}})

    def tolerate(self, seconds: float) -> None:
        self._change({"clusterTolerations": tolerations(seconds)})

    def fail_over(self, mode: str) -> None:
        self._patch({"spec": {"failover": {"cluster": {"purgeMode": mode}} if mode else None}})

    def confirm(self) -> None:
        self._patch(confirmed(self._stored()["spec"]))

    def rest(self, seconds: float = _REST_SECONDS) -> None:
        self._simulation.run(self._simulation.now + seconds)

    def _change(self, placement: dict[str, Any]) -> None:
        self._placement |= placement
        self._patch({"spec": {"placement": self._placement}})

    def _stored(self) -> dict[str, Any]:
        found = self._model.get(*_BINDING)
        assert found is not None
        return found

    def _patch(self, patch: dict[str, Any], subresource: str = "") -> None:
        self._model.patch(*_BINDING, patch, subresource=subresource)
        self.rest()

    def _note(self, write: Write) -> None:
        if write.kind == _BINDING[0] and write.after is not None:
            self.states.append(state_of(orjson.loads(write.after), {}))
