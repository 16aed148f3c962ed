"""``why-not`` on the control plane: its changes come true."""

from __future__ import annotations

import pytest

from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartScheduler
from tests.e2e.state import applying
from tests.e2e.workload import DYNAMIC, Workload, named
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_scheduler_does_what_a_change_of_why_not_promises(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler, number: int
) -> None:
    start_scheduler()
    web.create(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), replicas=4, cpu="1")
    web.wait_settled(replicas=4)
    taints = {"spec": {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}}
    controlplane.client.patch(f"{CLUSTERS}/sim-b1", taints)
    try:
        ask = Asking(reader(controlplane), web.namespace)
        answer = ask.why_not("deployment/web", "sim-b1", "--timeout=20s", "--max-runs=400")
        assert answer.status == 0
        remedies = answer.fields["remedies"]
        assert len(remedies) == 3
        promised = applying.promised(remedies[number])
        assert "sim-b1" in promised

        applying.apply(controlplane, remedies[number])

        assert applying.wait_placed(controlplane, web.binding_path, promised) == ""
    finally:
        controlplane.client.patch(f"{CLUSTERS}/sim-b1", {"spec": {"taints": None}})
