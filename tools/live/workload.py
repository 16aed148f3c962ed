"""Keeps bindings in flight through Karmada's own controllers: templates, policies, taints and labels of clusters."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import requests

from tools import manifests
from tools.controlplane import ApiError, ControlPlane, Object
from tools.controlplane.karmada import CLUSTERS
from tools.live.plane import OTHER, SCHEDULER
from tools.live.recorder import Journal
from tools.oracle.generator.rng import Random
from tools.placements import LABELS, TAINTS, for_policy

NAMESPACE: Final = "live"
WEIGHTS: Final = {
    "scale": 50,
    "placement": 20,
    "recreate": 10,
    "burst": 3,
    "taint": 8,
    "label": 4,
}
"""How often each kind of step is taken, compared with the others."""

_OURS: Final = 0.8
"""The share of bindings that are our scheduler's."""

_TRIES: Final = 5
_STEPS_PER_SECOND: Final = 1.6
_TAINT: Final = {"key": TAINTS[0][0], "value": TAINTS[0][1]}

Requests = list[tuple[str, Callable[[], Any]]]
"""What a step is about, and what it sends, one after the other."""


class Workload:
    """Templates with a policy each, and random steps on them.

    The steps are drawn from the seed whatever comes of the requests: a step that fails is repeated a few times, then left
    out.

    Attributes:
        taken: How often each kind of step was taken.
        failed: How often each kind failed.
    """

    def __init__(self, karmada: ControlPlane, journal: Journal, *, seed: int, bindings: int) -> None:
        self._client = karmada.client
        self._clusters = list(karmada.simulated)
        self._journal = journal
        self._random = Random(f"{seed}:workload")
        self._names = [f"w{number}" for number in range(bindings)]
        self._ours = set(self._names[: int(bindings * _OURS)])
        self._taints: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self.taken: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def create(self) -> None:
        """Create all templates and policies, and label the clusters."""
        self._client.apply(manifests.namespace(NAMESPACE))
        for number, name in enumerate(self._clusters):
            labels = {key: values[number % len(values)] for key, values in LABELS.items()}
            self._client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": labels}})
        drawn = [(self._policy(name), self._deployment(name)) for name in self._names]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda manifests: [*map(self._client.apply, manifests)], drawn))

    def start(self) -> None:
        """Take steps in a thread until ``stop``."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more steps."""
        self._stop.set()
        self._thread.join(timeout=60)

    def _run(self) -> None:
        while not self._stop.wait(self._random.expovariate(_STEPS_PER_SECOND)):
            (kind,) = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            drawn: Requests = getattr(self, f"_{kind}")()
            for what, request in drawn:
                done = self._try(request)
                (self.taken if done else self.failed)[kind] += 1
                self._journal.add(step=kind, what=what, done=done)

    def _try(self, request: Callable[[], Any]) -> bool:
        for _ in range(_TRIES):
            try:
                request()
            except (ApiError, requests.RequestException):
                if self._stop.wait(1.0):
                    return False
            else:
                return True
        return False

    def _policy(self, name: str) -> Object:
        placement = for_policy(self._random, self._clusters)
        scheduler = SCHEDULER if name in self._ours else OTHER
        return manifests.policy(NAMESPACE, name, placement, scheduler=scheduler)

    def _deployment(self, name: str) -> Object:
        return manifests.deployment(NAMESPACE, name, self._random.randint(1, 9), cpu="50m", memory="16Mi")

    def _patch_cluster(self, name: str, body: Object) -> Requests:
        return [(f"{name}: {body}", lambda: self._client.patch(f"{CLUSTERS}/{name}", body))]

    def _scale(self) -> Requests:
        name, replicas = self._random.choice(self._names), self._random.randint(0, 12)
        body = {"spec": {"replicas": replicas}}
        return [(f"{name} to {replicas}", lambda: self._client.patch(_path(name), body))]

    def _burst(self) -> Requests:
        return [request for _ in range(25) for request in self._scale()]

    def _placement(self) -> Requests:
        name = self._random.choice(self._names)
        policy = self._policy(name)
        return [(name, lambda: self._client.apply(policy))]

    def _recreate(self) -> Requests:
        name = self._random.choice(self._names)
        deployment = self._deployment(name)
        return [
            (f"delete {name}", lambda: self._client.delete(_path(name))),
            (f"create {name}", lambda: self._client.apply(deployment)),
        ]

    def _taint(self) -> Requests:
        """Taint a cluster, two at most, or take a taint away."""
        if len(self._taints) >= 2 or (self._taints and self._random.random() < 0.4):
            name = self._random.choice(sorted(self._taints))
            del self._taints[name]
            return self._patch_cluster(name, {"spec": {"taints": []}})
        name = self._random.choice(self._clusters)
        self._taints[name] = self._random.choice(("NoSchedule", "NoSchedule", "NoExecute"))
        return self._patch_cluster(name, {"spec": {"taints": [{**_TAINT, "effect": self._taints[name]}]}})

    def _label(self) -> Requests:
        tier = self._random.choice(LABELS["tier"])
        return self._patch_cluster(
            self._random.choice(self._clusters), {"metadata": {"labels": {"tier": tier}}}
        )


def _path(name: str) -> str:
    return f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
