"""The objects of the demo, and their expected placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.manifests import AGGREGATED, DUPLICATED, DYNAMIC, deployment, policy, spread

from .api import Object

NAMESPACE = "demo"
DEFAULT, MINE = "default-scheduler", "my-scheduler"
Placed = Mapping[str, int]  # cluster name to replicas


@dataclass(frozen=True, slots=True)
class Case:
    """One Deployment with the policy of the same name."""

    name: str
    replicas: int
    policy_scheduler: str | None  # schedulerName in the policy, None for not given
    placement: Mapping[str, Any]
    belongs_to: str  # the scheduler that must place it
    user: str  # whom the API server must have seen writing the placement
    expected: str  # the placement that must come of it, in words
    as_expected: Callable[[Placed], bool]

    def manifests(self) -> list[Object]:
        """Return the policy and the Deployment, in the order to apply them."""
        return [
            policy(NAMESPACE, self.name, self.placement, scheduler=self.policy_scheduler),
            deployment(NAMESPACE, self.name, self.replicas, memory="256Mi"),
        ]


def _spread_over_two_regions(placed: Placed) -> bool:
    regions = {name.rstrip("0123456789") for name in placed}
    return len(placed) == 4 and len(regions) == 2 and _simulated(placed) and set(placed.values()) == {2}


def _simulated(placed: Placed) -> bool:
    return all(name.startswith("sim-") for name in placed)


KARMADA_SCHEDULER_USER = "system:karmada:karmada-scheduler"

CASES = (
    Case(
        name="web-unset",
        replicas=2,
        policy_scheduler=None,
        placement={
            "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "sim"}}},
            "spreadConstraints": [
                spread("region", 2, 2),
                spread("cluster", 2, 4),
            ],
            "replicaScheduling": DUPLICATED,
        },
        belongs_to=DEFAULT,
        user=KARMADA_SCHEDULER_USER,
        expected="2 replicas in each of 4 simulated clusters of 2 regions",
        as_expected=_spread_over_two_regions,
    ),
    Case(
        name="web-def",
        replicas=9,
        policy_scheduler=DEFAULT,
        placement={
            "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "sim"}}},
            "replicaScheduling": AGGREGATED,
        },
        belongs_to=DEFAULT,
        user=KARMADA_SCHEDULER_USER,
        expected="all 9 replicas in 1 simulated cluster",
        as_expected=lambda placed: list(placed.values()) == [9] and _simulated(placed),
    ),
    Case(
        name="web-my",
        replicas=12,
        policy_scheduler=MINE,
        placement={
            "clusterAffinity": {"labelSelector": {"matchLabels": {"kind": "real"}}},
            "replicaScheduling": DYNAMIC,
        },
        belongs_to=MINE,
        user=MINE,
        expected="real1:8, real2:4 (they can take 32 and 16)",
        as_expected=lambda placed: placed == {"real1": 8, "real2": 4},
    ),
)
