"""How many replicas a cluster reports: a number counts if it is known and will stay as it is."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.binding_spec import ObjectReference, ReportedReplicas
from karmada_scheduler.api.workload import settled_replicas
from tests import manifests

DEPLOYMENT = ObjectReference("apps/v1", "Deployment", "demo", "web")
OBSERVED = {"generation": 2, "observedGeneration": 2}


@pytest.mark.parametrize(
    ("status", "replicas"),
    [
        pytest.param({"replicas": 3}, 3, id="a number"),
        pytest.param({"replicas": 0}, 0, id="zero"),
        pytest.param(OBSERVED, 0, id="no number after a generation was observed"),
        pytest.param({"unavailableReplicas": 2}, 0, id="none was created"),
        pytest.param(
            {"observedGeneration": 2, "readyReplicas": 1}, None, id="some are ready, but how many are there"
        ),
        pytest.param({}, None, id="nothing"),
        pytest.param(
            {"replicas": 3, "generation": 3, "observedGeneration": 2}, None, id="an older generation"
        ),
        pytest.param({"replicas": 4, "updatedReplicas": 1}, None, id="a roll-out"),
        pytest.param({"replicas": 3, "updatedReplicas": 3}, 3, id="a roll-out that has ended"),
        pytest.param({"replicas": -1}, None, id="a negative number"),
        pytest.param({"replicas": "3"}, None, id="a text"),
        pytest.param({"replicas": True}, None, id="a truth value"),
        pytest.param(["replicas"], None, id="a list"),
        pytest.param(None, None, id="null"),
    ],
)
def test_a_deployment(status: Any, replicas: int | None) -> None:
    found = settled_replicas({"applied": True, "status": status}, DEPLOYMENT)
    assert (None if found is None else found.total) == replicas
    assert settled_replicas({"applied": False, "status": status}, DEPLOYMENT) is None
    assert settled_replicas({"status": status}, DEPLOYMENT) is None


@pytest.mark.parametrize("kind", ["DaemonSet", "Job", "MyApp"])
def test_a_number_is_0_only_for_kinds_that_leave_out_a_0(kind: str) -> None:
    resource = DEPLOYMENT._replace(kind=kind)
    assert settled_replicas({"applied": True, "status": OBSERVED}, resource) is None
    assert settled_replicas({"applied": True, "status": {"replicas": 2}}, resource) == (2, None)


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        pytest.param({"readyReplicas": 2}, 2, id="a number"),
        pytest.param({}, 0, id="no number"),
        pytest.param({"readyReplicas": -1}, None, id="a negative number"),
        pytest.param({"readyReplicas": 4}, None, id="more than there are"),
        pytest.param({"readyReplicas": "2"}, None, id="a text"),
        pytest.param({"readyReplicas": None}, None, id="null"),
    ],
)
def test_the_ready_replicas_of_a_deployment(status: dict[str, Any], ready: int | None) -> None:
    item = {"applied": True, "status": {"replicas": 3, **status}}
    assert settled_replicas(item, DEPLOYMENT) == ReportedReplicas(3, ready)


def test_a_binding_has_the_numbers_in_the_order_of_its_reports_and_none_if_none_is_known() -> None:
    manifest = manifests.binding()
    items: list[Any] = [
        {"clusterName": "m2", "applied": True, "status": {"replicas": 2}},
        {"clusterName": "m1", "applied": False},
    ]
    manifest["status"] = {"aggregatedStatus": items}
    assert Binding.from_manifest(manifest).status.reported_replicas == ((2, 0), None)
    assert Binding.from_manifest(manifest).with_status(manifest).status.reported_replicas == ((2, 0), None)
    items[0]["applied"] = False
    assert Binding.from_manifest(manifest).status.reported_replicas == ()


def test_bindings_with_equal_numbers_share_them() -> None:
    manifests_of_two = [manifests.binding(name) for name in ("one", "two")]
    for manifest in manifests_of_two:
        item = {"clusterName": "m1", "applied": True, "status": {"replicas": 2, "readyReplicas": 1}}
        manifest["status"] = {"aggregatedStatus": [item]}
    one, two = (Binding.from_manifest(each).status.reported_replicas for each in manifests_of_two)
    assert one == ((2, 1),)
    assert one is two
