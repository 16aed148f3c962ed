"""Losses for which there is too little capacity elsewhere, without and with the gate SchedulingOvercommitProtection.

Equal workloads are all on one member, and more than fit on the two others. Without the gate every one moves, and more is asked
of a member than it has. With the gate those that come last are refused. Which ones these are follows from the order of the
evictions, so their number is compared. Nothing becomes healthy there, so what is placed stays assumed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from karmada_advisor.survive.loss import UNREACHABLE
from tools import manifests
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.members import Node, RealMember
from tools.manifests import DYNAMIC
from tools.plan_check.objects import SCHEDULER
from tools.survive_check.placed import REST_SECONDS, PlacedWorkloads, Placement, outcomes

GATE: Final = "--feature-gates=SchedulingOvercommitProtection=true"
_SPACE: Final = "full"
_LOST: Final = "f1"
_CPUS: Final = {_LOST: 64, "f2": 20, "f3": 11}
_LABEL: Final = {"room": "yes"}
_NAMES: Final = tuple(f"w{number:02}" for number in range(12))
_REPLICAS: Final = 4


class FullMembers(PlacedWorkloads):
    """A control plane on which the only member with enough capacity is lost."""

    def __init__(self, plane: ControlPlane) -> None:
        """Take a control plane with the members and a scheduler, and place the workloads."""
        affinity = {
            "clusterAffinity": {"labelSelector": {"matchLabels": _LABEL}},
            "replicaScheduling": DYNAMIC,
        }
        super().__init__(
            plane,
            _SPACE,
            [manifests.policy(_SPACE, name, affinity, scheduler=SCHEDULER) for name in _NAMES],
            [manifests.deployment(_SPACE, name, _REPLICAS, cpu="1") for name in _NAMES],
        )
        # Only now the others match, so that nothing that is assumed there is left from before.
        for name in _CPUS:
            plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": _LABEL}})
        time.sleep(REST_SECONDS)

    def check(self, *flags: str, is_protected: bool) -> None:
        """Ask about the loss, make it real, and compare."""
        wanted, overcommitted = self._forecast(*flags)
        refused = sum(not targets for targets in wanted.values())
        self.expect("forecast: some are refused", bool(refused), is_protected)
        self.expect("forecast: more is asked than is free", bool(overcommitted), not is_protected)
        taint = {"key": UNREACHABLE, "effect": "NoExecute"}
        self.plane.client.patch(f"{CLUSTERS}/{_LOST}", {"spec": {"taints": [taint]}})
        self.plane.wait_for(
            self.targets,
            "all workloads to be evicted, and decided",
            timeout=240,
            until=lambda found: (
                sum(bool(each) for each in found.values()) >= len(_NAMES) - refused
                and not any(_LOST in each for each in found.values())
            ),
        )
        time.sleep(REST_SECONDS)
        found = self.targets()
        asked = Counter[str]()
        for each in found.values():
            asked.update(each)
        print(f"asked of clusters: {dict(asked)}, which have {_CPUS}", flush=True)
        self.expect("refused", sum(not targets for targets in found.values()), refused)
        self.expect(
            "clusters of which more is asked than they have",
            sorted(name for name, count in asked.items() if count > _CPUS[name]),
            overcommitted,
        )
        if not is_protected:
            wrong = sum(found[name] != targets for name, targets in wanted.items())
            self.expect(f"different of {len(wanted)} bindings", wrong, 0)

    def _forecast(self, *flags: str) -> tuple[Mapping[str, Placement], list[str]]:
        """Return where each workload will be, and the clusters of which more will be asked than they have."""
        report = self.forecast(_LOST, *flags)
        [domain] = report["domains"]
        print(
            f"forecast: { {name: count for name, count in domain['chosen']['counts'].items() if count} }",
            flush=True,
        )
        wanted = {name: after for name, (_, after) in outcomes(report).items()}
        return wanted, sorted(each["name"] for each in domain["overcommitted"])


def check_full(folder: Path, start: Callable[..., object], *, is_protected: bool) -> bool:
    """Check one of both; return whether everything is as forecast.

    Args:
        folder: Where the files of the control plane go.
        start: Starts the scheduler with further flags.
        is_protected: Whether the gate is on.
    """
    flags = [GATE] if is_protected else []
    with ControlPlane(folder, feature_gates={"Failover": True}) as plane:
        plane.add(
            *(
                RealMember(
                    name,
                    nodes=(Node(cpu=str(cpu)),),
                    labels=_LABEL if name == _LOST else {},
                    reports_ready=False,  # what becomes healthy is not assumed any more, and no node runs it
                )
                for name, cpu in _CPUS.items()
            )
        )
        start(plane, *flags)
        made = FullMembers(plane)
        made.check(*flags, is_protected=is_protected)
    print(f"{'with' if is_protected else 'without'} the gate: {made.different} different", flush=True)
    return not made.different
