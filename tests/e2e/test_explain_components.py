"""A workload of several components, of which whole sets are counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests import manifests
from tests.e2e.asking import Asking, reader
from tests.e2e.conftest import StartEither
from tests.e2e.workload import DYNAMIC, WORK, condition
from tools.controlplane import ControlPlane, Object

GATE = "--feature-gates=MultiplePodTemplatesScheduling=true"


def _component(name: str, replicas: int, cpu: str) -> Object:
    return {
        "name": name,
        "replicas": replicas,
        "replicaRequirements": {"resourceRequest": {"cpu": cpu}},
    }


def _binding(namespace: str, scheduler: str, *components: Object) -> Object:
    """A binding as the detector makes it for a workload whose interpreter names its components."""
    spread: dict[str, Any] = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
    return manifests.untemplated(
        namespace,
        "job",
        uid="uid-job",
        policy_id="components",
        components=list(components),
        schedulerName=scheduler,
        placement={
            "clusterAffinity": {"clusterNames": ["sim-c1"]},
            "replicaScheduling": DYNAMIC,
            "spreadConstraints": [spread],
        },
    )


@pytest.mark.parametrize("too_large", [False, True], ids=["a set fits", "no set fits"])
def test_components_fit_as_a_set_or_not_at_all(
    too_large: bool, controlplane: ControlPlane, namespace: str, start_either: StartEither
) -> None:
    """karmada-io/karmada#7550: every component would fit on its own, and both together do not."""
    scheduler = "components"
    start_either(scheduler, GATE)
    free = 16  # CPUs of a simulated member
    workers = _component("worker", 2, f"{free // 2 if too_large else 2}")
    path = f"{WORK}/namespaces/{namespace}/resourcebindings"
    controlplane.client.create(_binding(namespace, scheduler, _component("manager", 1, "1"), workers))

    found = controlplane.wait_for(
        lambda: controlplane.client.get(f"{path}/job"),
        "the condition of the binding",
        until=lambda binding: bool(condition(binding)),
    )

    answer = Asking(reader(controlplane), namespace).explain("rb/job", GATE)
    if too_large:
        assert condition(found)["reason"] == "SchedulerError"
        assert "no enough resource" in condition(found)["message"]
        assert not found["spec"].get("clusters")
        assert (answer.status, answer.codes[0]) == (1, "ComponentSets")
    else:
        assert [each["name"] for each in found["spec"]["clusters"]] == ["sim-c1"]
        assert answer.status == 0
