"""Keeps bindings in flight through Karmada's own controllers: templates, policies, taints and labels of clusters."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import requests

from tools.chaos.plane import OTHER, SCHEDULER
from tools.chaos.recorder import Journal
from tools.controlplane import ApiError, Client, Object, SimulatedMember
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import deployment, namespace, policy
from tools.oracle.generator.rng import Random
from tools.placements import LABELS, TAINTS, for_policy

NAMESPACE: Final = "chaos"
_OURS: Final = 0.8
"""The share of bindings that are our scheduler's."""

_TRIES: Final = 5
_STEPS_PER_SECOND: Final = 1.6
_TAINT: Final = {"key": TAINTS[0][0], "value": TAINTS[0][1]}


class Workload:
    """Templates with a policy each, and random steps on them.

    The steps are drawn from the seed whatever comes of the requests: a step that fails is repeated a few times, then left
    out.

    Attributes:
        taken: How often each kind of step was taken.
        failed: How often each kind failed.
    """

    def __init__(
        self, client: Client, members: list[SimulatedMember], journal: Journal, *, seed: int, bindings: int
    ) -> None:
        self._client = client
        self._clusters = [member.name for member in members]
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
        self._client.apply(namespace(NAMESPACE))
        for number, name in enumerate(self._clusters):
            labels = {key: values[number % len(values)] for key, values in LABELS.items()}
            self._client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": labels}})
        drawn = [
            (name, for_policy(self._random, self._clusters), self._random.randint(1, 9))
            for name in self._names
        ]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: self._create(*each), drawn))

    def start(self) -> None:
        """Take steps in a thread until ``stop``."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more steps."""
        self._stop.set()
        self._thread.join(timeout=60)

    def _create(self, name: str, drawn: Object, replicas: int) -> None:
        self._client.apply(self._policy(name, drawn))
        self._client.apply(_deployment(name, replicas))

    def _policy(self, name: str, drawn: Object) -> Object:
        return policy(NAMESPACE, name, drawn, scheduler=SCHEDULER if name in self._ours else OTHER)

    def _run(self) -> None:
        steps = {
            "scale": (50, self._scale),
            "placement": (20, self._change_placement),
            "recreate": (10, self._recreate),
            "burst": (3, self._burst),
            "taint": (8, self._change_taint),
            "label": (4, self._change_label),
        }
        kinds, weights = list(steps), [weight for weight, _ in steps.values()]
        while not self._stop.wait(self._random.expovariate(_STEPS_PER_SECOND)):
            (kind,) = self._random.choices(kinds, weights)
            for what, request in steps[kind][1]():
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

    def _scale(self) -> list[tuple[str, Callable[[], Any]]]:
        name, replicas = self._random.choice(self._names), self._random.randint(0, 12)
        body = {"spec": {"replicas": replicas}}
        return [(f"{name} to {replicas}", lambda: self._client.patch(_path(name), body))]

    def _burst(self) -> list[tuple[str, Callable[[], Any]]]:
        return [step for _ in range(25) for step in self._scale()]

    def _change_placement(self) -> list[tuple[str, Callable[[], Any]]]:
        name, drawn = self._random.choice(self._names), for_policy(self._random, self._clusters)
        return [(name, lambda: self._client.apply(self._policy(name, drawn)))]

    def _recreate(self) -> list[tuple[str, Callable[[], Any]]]:
        name, replicas = self._random.choice(self._names), self._random.randint(1, 9)
        return [
            (f"delete {name}", lambda: self._client.delete(_path(name))),
            (f"create {name}", lambda: self._client.apply(_deployment(name, replicas))),
        ]

    def _change_taint(self) -> list[tuple[str, Callable[[], Any]]]:
        """Taint a cluster, two at most, or take a taint away."""
        if len(self._taints) >= 2 or (self._taints and self._random.random() < 0.4):
            name = self._random.choice(sorted(self._taints))
            del self._taints[name]
            taints: list[Object] = []
        else:
            name = self._random.choice(self._clusters)
            self._taints[name] = self._random.choice(("NoSchedule", "NoSchedule", "NoExecute"))
            taints = [{**_TAINT, "effect": self._taints[name]}]
        body = {"spec": {"taints": taints}}
        return [(f"{name}: {taints}", lambda: self._client.patch(f"{CLUSTERS}/{name}", body))]

    def _change_label(self) -> list[tuple[str, Callable[[], Any]]]:
        name, tier = self._random.choice(self._clusters), self._random.choice(LABELS["tier"])
        body = {"metadata": {"labels": {"tier": tier}}}
        return [(f"{name}: {tier}", lambda: self._client.patch(f"{CLUSTERS}/{name}", body))]


def _path(name: str) -> str:
    return f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"


def _deployment(name: str, replicas: int) -> Object:
    return deployment(NAMESPACE, name, replicas, cpu="50m", memory="16Mi")
