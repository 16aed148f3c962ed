"""Fleets that move and bindings to place on them, as manifests: the same for the Go core and ours.

Everything is drawn from a seed. Clusters report few APIs, as the simulated members of ``tools.controlplane`` do; real
ones report three times as many, which costs the Go core more (it copies every cluster for every decision) and ours
nothing.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tools.controlplane.simulated import SimulatedMember
from tools.manifests import AGGREGATED, DUPLICATED, DYNAMIC, spread

Manifest = dict[str, Any]

SHAPES: Final = 20
"""Different requests of the workloads behind one policy."""

REGIONS: Final = 10
WRITES_PER_SECOND: Final = 0.1
"""Seconds between two status updates of a cluster."""

DECISIONS_PER_SECOND: Final = 100

PLACEMENTS: Final[dict[str, Manifest]] = {
    "dynamic weight": {"clusterAffinity": {}, "replicaScheduling": DYNAMIC},
    "duplicated": {
        "clusterAffinity": {},
        "replicaScheduling": DUPLICATED,
        "spreadConstraints": [spread("cluster", 1, 5)],
    },
    "by region": {
        "clusterAffinity": {},
        "replicaScheduling": AGGREGATED,
        "spreadConstraints": [spread("region", 1, 2), spread("cluster", 2, 4)],
    },
}
_CPU: Final = ("100m", "200m", "250m", "500m", "1", "1500m", "2", "4")
_MEMORY: Final = ("128Mi", "200Mi", "256Mi", "512Mi", "1Gi", "3Gi", "4Gi", "8Gi")
_REPLICAS: Final = (1, 2, 3, 3, 5, 5, 10, 20, 50)
# The default grades of Karmada: the least cpu and memory (Gi) of a node.
_GRADES: Final = ((0, 0), (1, 4), (2, 16), (4, 32), (8, 64), (16, 128), (32, 256), (64, 512), (128, 1024))


_TRANSITION = "2026-01-01T00:00:00Z"


@dataclass
class Fleet:
    """Clusters by name, as they are now.

    Attributes:
        size: How many.
        models: Whether every third has resource models.
    """

    size: int
    models: bool = False
    seed: int = 1
    clusters: dict[str, Manifest] = field(default_factory=dict)
    _version: int = 0

    def __post_init__(self) -> None:
        self._dice = random.Random(f"fleet/{self.seed}/{self.size}/{self.models}")
        for number in range(self.size):
            self.clusters[f"m{number:04}"] = self.manifest(number)

    def manifest(self, number: int) -> Manifest:
        """Draw a cluster."""
        nodes = self._dice.choice((2, 3, 4, 6, 10))
        member = SimulatedMember(
            f"m{number:04}",
            provider=self._dice.choice(("alpha", "beta")),
            region=f"region-{number % REGIONS}",
            zone=f"zone-{number % (3 * REGIONS)}",
            labels={"environment": self._dice.choice(("test", "production")), "tier": str(number % 4)},
            taints=({"key": "dedicated", "value": "batch", "effect": "NoSchedule"},)
            if number % 50 == 7
            else (),
            cpu=str(nodes * 16),
            memory=f"{nodes * 64}Gi",
            pods=str(nodes * 110),
            allocated={
                "cpu": f"{self._dice.randrange(nodes * 2000, nodes * 14000)}m",
                "memory": f"{self._dice.randrange(nodes * 8192, nodes * 57344)}Mi",
                "pods": str(self._dice.randrange(nodes * 10, nodes * 90)),
            },
        )
        self._version += 1
        manifest = member.manifest()
        manifest["metadata"] |= {
            "uid": f"uid-{number}",
            "resourceVersion": str(self._version),
            "generation": 1,
        }
        manifest["status"] = member.status()
        for condition in manifest["status"]["conditions"]:
            condition["lastTransitionTime"] = _TRANSITION  # the same fleet at any time of day
        if self.models and number % 3 == 0:
            manifest["spec"]["resourceModels"] = [_model(grade) for grade in range(len(_GRADES))]
            manifest["status"]["resourceSummary"]["allocatableModelings"] = [
                {"grade": grade, "count": self._dice.randrange(0, 1 + nodes // 2) if 0 < grade < 6 else 0}
                for grade in range(len(_GRADES))
            ]
        return manifest

    def changes(self, count: int) -> list[Manifest]:
        """Change the status of some clusters, as if workloads had come and gone; return the clusters."""
        return [self._reported(name) for name in self._dice.sample(sorted(self.clusters), count)]

    def _reported(self, name: str) -> Manifest:
        manifest = copy.deepcopy(self.clusters[name])
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        summary = manifest["status"]["resourceSummary"]
        taken, most = summary["allocated"], summary["allocatable"]
        pods = self._dice.choice((-3, -2, -1, 1, 2, 3))
        for key, unit, each, limit in (
            ("pods", "", 1, int(most["pods"])),
            ("cpu", "m", 250, int(most["cpu"]) * 1000),
            ("memory", "Mi", 256, int(most["memory"].removesuffix("Gi")) * 1024),
        ):
            now = int(taken[key].removesuffix(unit)) if unit else int(taken[key])
            taken[key] = f"{min(limit, max(0, now + pods * each))}{unit}"
        for modeling in summary.get("allocatableModelings", ())[1:6]:
            modeling["count"] = max(0, modeling["count"] + self._dice.choice((-1, 0, 0, 1)))
        self.clusters[name] = manifest
        return manifest

    def reports(self, decisions: int) -> list[list[Manifest]]:
        """Return, per decision, the clusters that report a new status before it."""
        per_decision = self.size * WRITES_PER_SECOND / DECISIONS_PER_SECOND
        due = [int(number * per_decision) for number in range(decisions + 1)]
        return [self.changes(after - before) for before, after in itertools.pairwise(due)]


def _model(grade: int) -> Manifest:
    cpu, memory = _GRADES[grade]
    above = _GRADES[grade + 1] if grade + 1 < len(_GRADES) else (9223372036854775807, 8388607)
    return {
        "grade": grade,
        "ranges": [
            {"name": "cpu", "min": str(cpu), "max": str(above[0])},
            {"name": "memory", "min": f"{memory}Gi", "max": f"{above[1]}Gi"},
        ],
    }


def requests(choices: random.Random) -> Iterator[Manifest]:
    """Draw requests that are all different."""
    pairs = [(cpu, memory) for cpu in _CPU for memory in _MEMORY]
    choices.shuffle(pairs)
    yield from ({"cpu": cpu, "memory": memory} for cpu, memory in pairs)
    number = 0
    while True:
        number += 1
        yield {"cpu": f"{1000 + number}m", "memory": choices.choice(_MEMORY)}


class Bindings:
    """Draws unscheduled bindings."""

    def __init__(self, placements: Sequence[str], *, unlike: bool = False, seed: int = 1) -> None:
        """Take names of PLACEMENTS, used in turn; each ``unlike`` binding has a different request."""
        self._placements = placements
        self._dice = random.Random(f"bindings/{placements}/{seed}")
        self._drawn = requests(self._dice)
        self._shapes = None if unlike else [next(self._drawn) for _ in range(SHAPES)]
        self._number = 0

    def draw(self) -> Manifest:
        """Return the next binding."""
        self._number += 1
        number = self._number
        request = next(self._drawn) if self._shapes is None else self._dice.choice(self._shapes)
        return {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": f"w{number}-deployment", "namespace": "default", "uid": f"rb-{number}"},
            "spec": {
                "resource": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "namespace": "default",
                    "name": f"w{number}",
                    "uid": f"{self._dice.getrandbits(128):032x}",
                },
                "replicas": self._dice.choice(_REPLICAS),
                "replicaRequirements": {"resourceRequest": request},
                "placement": PLACEMENTS[self._placements[number % len(self._placements)]],
            },
        }

    def scaled(self, place: Callable[[Manifest], Sequence[tuple[str, int]]]) -> Manifest:
        """Return the next binding, scheduled and then scaled."""
        binding = self.draw()
        targets = place(binding)
        spec = binding["spec"]
        spec["clusters"] = [{"name": name, "replicas": replicas} for name, replicas in targets]
        before = spec["replicas"]
        spec["replicas"] = self._dice.choice([count for count in _REPLICAS if count != before])
        return binding
