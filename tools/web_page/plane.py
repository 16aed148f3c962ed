"""A control plane that is worth looking at: 30 simulated members in six regions, and workloads of all kinds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.controlplane import ControlPlane, Object
from tools.controlplane.ours import start_scheduler, start_web
from tools.controlplane.parallel import in_parallel
from tools.controlplane.processes import free_port
from tools.controlplane.simulated import SimulatedMember
from tools.manifests import AGGREGATED, CORDON, DUPLICATED, DYNAMIC, deployment, namespace, policy, spread

SCHEDULER: Final = "my-scheduler"
REGIONS: Final = ("ap-east", "ap-south", "eu-north", "eu-west", "us-east", "us-west")
CORDONED: Final = "us-west-5"
PROD: Final = {"labelSelector": {"matchLabels": {"tier": "prod"}}}


PLACEMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "shop": {
        "clusterAffinity": PROD,
        "spreadConstraints": [spread("region", 2, 2), spread("cluster", 2, 4)],
        "replicaScheduling": DYNAMIC,
    },
    "search": {
        "clusterAffinity": PROD,
        "spreadConstraints": [spread("cluster", 1, 5)],
        "replicaScheduling": DYNAMIC,
    },
    "batch": {"clusterAffinity": PROD, "replicaScheduling": AGGREGATED},
    "edge": {
        "clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "edge"}}},
        "replicaScheduling": DUPLICATED,
    },
    "pay": {
        "clusterAffinity": {"clusterNames": ["us-east-9", "us-west-5", "eu-west-7"]},
        "replicaScheduling": DYNAMIC,
    },
    "media": {
        "clusterAffinity": {
            "fieldSelector": {
                "matchExpressions": [{"key": "region", "operator": "In", "values": ["ap-east"]}]
            }
        },
        "spreadConstraints": [spread("region", 2, 2), spread("cluster", 2, 2)],
        "replicaScheduling": DYNAMIC,
    },
}
"""The placement of each namespace; nothing fits that of pay and media."""

_SHARES: Final = {"shop": 0.4, "search": 0.3, "batch": 0.15, "edge": 0.09, "pay": 0.03, "media": 0.03}


def members(count: int = 30) -> list[SimulatedMember]:
    """Return members of different sizes."""
    chance = random.Random(3)
    found = []
    for number in range(count):
        region = REGIONS[number % len(REGIONS)]
        index = number // len(REGIONS) + 1
        cpu, share = chance.choice((64, 128, 256)), chance.betavariate(2.5, 2)
        found.append(
            SimulatedMember(
                f"{region}-{index}",
                provider=chance.choice(("ash", "oak")),
                region=region,
                zone=f"{region}-{index}a",
                labels={"tier": "edge" if index == 5 and region[:2] != "us" else "prod"},
                cpu=str(cpu),
                memory=f"{4 * cpu}Gi",
                pods=str(8 * cpu),
                allocated={
                    "cpu": str(int(cpu * share)),
                    "memory": f"{int(4 * cpu * share * chance.uniform(0.6, 1))}Gi",
                    "pods": str(int(8 * cpu * share * 0.6)),
                },
            )
        )
    return found


def workloads(count: int) -> Iterator[tuple[str, str, int, str]]:
    """Yield namespace, name, replicas and cpu of each workload."""
    chance = random.Random(7)
    for space, share in _SHARES.items():
        for number in range(max(1, round(count * share))):
            name = f"{space}-{('api', 'web', 'worker', 'cache')[number % 4]}-{number:03}"
            yield space, name, chance.randrange(2, 30), chance.choice(("100m", "250m", "500m"))


def manifests(count: int) -> Iterator[tuple[Object, ...]]:
    """Yield the objects, in groups that have to exist before the next."""
    yield tuple(map(namespace, PLACEMENTS))
    yield tuple(
        policy(name, name, placement, scheduler=SCHEDULER, selector={})
        for name, placement in PLACEMENTS.items()
    )
    yield tuple(
        deployment(space, name, replicas, cpu=cpu, memory="128Mi")
        for space, name, replicas, cpu in workloads(count)
    )


@dataclass(frozen=True)
class Shown:
    """A control plane with its page.

    Attributes:
        plane: The control plane.
        url: The page, with the records of the scheduler.
        bindings: How many bindings there are.
    """

    plane: ControlPlane
    url: str
    bindings: int


def populate(plane: ControlPlane, count: int) -> int:
    """Create the workloads; return their number."""
    created = 0
    for group in manifests(count):
        in_parallel(plane.client.apply, group)
        created = len(group)
    return created


def settled(plane: ControlPlane) -> int:
    """Return how many bindings have a condition Scheduled."""
    found = plane.client.get("/apis/work.karmada.io/v1alpha2/resourcebindings")["items"]
    return sum(
        1
        for each in found
        if each["metadata"]["namespace"] in PLACEMENTS
        and any(
            condition["type"] == "Scheduled" for condition in each.get("status", {}).get("conditions", ())
        )
    )


@contextmanager
def shown(folder: Path, *, count: int = 240, say: Callable[[str], None] = print) -> Iterator[Shown]:
    """Run a control plane, our scheduler, and the page with a role that can only read."""
    with ControlPlane(folder, say=say) as plane:
        plane.add(*members())
        plane.client.patch(
            f"/apis/cluster.karmada.io/v1alpha1/clusters/{CORDONED}", {"spec": {"taints": [CORDON]}}
        )
        records = f"127.0.0.1:{free_port()}"
        start_scheduler(plane, f"--explain-bind-address={records}", name=SCHEDULER, wait_ready=False)
        created = populate(plane, count)
        plane.wait_for(
            lambda: settled(plane),
            "every binding to be scheduled",
            until=lambda found: found == created,
            timeout=300,
        )
        say(f"{created} workloads are scheduled")
        _, url = start_web(plane, f"--from=http://{records}")
        yield Shown(plane, url, created)
