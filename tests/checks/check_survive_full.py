"""Losses for which there is too little capacity elsewhere, without and with the gate SchedulingOvercommitProtection.

Equal workloads are all on one member, and more than fit on the two others. Without the gate every one moves, and more is asked
of a member than it has. With the gate those that come last are refused. Which ones these are follows from the order of the
evictions, so their number is compared. Nothing becomes healthy there, so what is placed stays assumed.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import pytest

from karmada_advisor.whatif.survive.loss import UNREACHABLE
from tests.checks.conftest import StartAny
from tests.checks.workloads import REST_SECONDS, SCHEDULER, Workloads, control_plane, losses_of
from tools import manifests
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.members import Node, RealMember
from tools.manifests import DYNAMIC

_GATE: Final = "--feature-gates=SchedulingOvercommitProtection=true"
_SPACE: Final = "full"
_LOST: Final = "f1"
_CPUS: Final = {_LOST: 64, "f2": 20, "f3": 11}
_LABEL: Final = {"room": "yes"}
_NAMES: Final = tuple(f"w{number:02}" for number in range(12))
_REPLICAS: Final = 4


@pytest.mark.parametrize("flags", [(), (_GATE,)], ids=["full", "full, protected"])
def test_as_many_are_refused_as_forecast(
    start_scheduler: StartAny, flags: tuple[str, ...], subtests: pytest.Subtests
) -> None:
    with control_plane("check-survive-full", feature_gates={"Failover": True}) as plane:
        plane.add(*(_member(name, cpus) for name, cpus in _CPUS.items()))
        start_scheduler(plane, *flags)
        chosen = {"clusterAffinity": {"labelSelector": {"matchLabels": _LABEL}}, "replicaScheduling": DYNAMIC}
        workloads = Workloads(
            plane,
            _SPACE,
            [manifests.policy(_SPACE, name, chosen, scheduler=SCHEDULER) for name in _NAMES],
            [manifests.deployment(_SPACE, name, _REPLICAS, cpu="1") for name in _NAMES],
        )
        # Only now the others match, so that nothing that is assumed there is left from before.
        for name in _CPUS:
            plane.client.patch(f"{CLUSTERS}/{name}", {"metadata": {"labels": _LABEL}})
        time.sleep(REST_SECONDS)
        report = workloads.ask(
            "survive", _LOST, "--domain=cluster", "--all", "--no-remedies", f"--namespace={_SPACE}", *flags
        )
        [domain] = report["domains"]
        wanted = {name: after for name, (_, after) in losses_of(report).items()}
        overcommitted = sorted(cluster["name"] for cluster in domain["overcommitted"])
        refused = sum(not after for after in wanted.values())
        with subtests.test("some are refused with the gate, and more is asked than is free without it"):
            assert (bool(refused), bool(overcommitted)) == ((True, False) if flags else (False, True))
        taint = {"key": UNREACHABLE, "effect": "NoExecute"}
        plane.client.patch(f"{CLUSTERS}/{_LOST}", {"spec": {"taints": [taint]}})
        plane.wait_for(
            workloads.targets,
            "all workloads to be evicted, and decided",
            timeout=240,
            until=lambda found: (
                sum(map(bool, found.values())) >= len(_NAMES) - refused
                and not any(_LOST in targets for targets in found.values())
            ),
        )
        time.sleep(REST_SECONDS)
        found = workloads.targets()
    asked = sum(map(Counter, found.values()), Counter[str]())
    print(f"asked of clusters: {dict(asked)}, which have {_CPUS}")
    with subtests.test("refused"):
        assert sum(not targets for targets in found.values()) == refused
    with subtests.test("clusters of which more is asked than they have"):
        assert sorted(name for name, count in asked.items() if count > _CPUS[name]) == overcommitted
    if not flags:
        assert found == wanted


def _member(name: str, cpus: int) -> RealMember:
    """Return a member where nothing becomes healthy: what is healthy is not assumed any more, and no node runs it."""
    labels = _LABEL if name == _LOST else {}
    return RealMember(name, nodes=(Node(cpu=str(cpus)),), labels=labels, reports_ready=False)
