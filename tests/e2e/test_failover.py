"""Application failover: Karmada's controller reports a workload as unhealthy, and the scheduler moves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import Workload, named, placed
from tools.controlplane import ControlPlane, Object
from tools.controlplane.simulated import SimulatedMember, applied

WORKS = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-sick/works"


@pytest.fixture
def sick(controlplane: ControlPlane) -> Iterator[None]:
    """A member without an agent: the test reports the status of its Works, and removes their finalizers at the end."""
    controlplane.add(SimulatedMember("sick", labels={"kind": "sick"}, cpu="64"), agents=False)
    yield
    controlplane.client.delete("/apis/cluster.karmada.io/v1alpha1/clusters/sick")

    def released() -> bool:
        for work in controlplane.client.list(WORKS):
            path = f"{WORKS}/{work['metadata']['name']}"
            controlplane.client.patch(path, {"metadata": {"finalizers": None}})
        return controlplane.client.find("/apis/cluster.karmada.io/v1alpha1/clusters/sick") is None

    controlplane.wait_for(released, "the cluster to be gone", timeout=90)


def report_unhealthy(controlplane: ControlPlane, name: str) -> bool:
    """Report a Deployment as applied and unhealthy, as the agent of the sick member."""
    for work in controlplane.client.list(WORKS):
        manifests = work["spec"]["workload"]["manifests"]
        if [manifest["metadata"]["name"] for manifest in manifests] != [name]:
            continue
        status: Object | None = applied(work)
        assert status is not None
        status["manifestStatuses"][0]["health"] = "Unhealthy"
        controlplane.client.patch(f"{WORKS}/{work['metadata']['name']}/status", {"status": status})
        return True
    return False


@pytest.mark.usefixtures("sick")
def test_a_workload_that_stays_unhealthy_is_moved_to_another_cluster(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    web = Workload(controlplane, namespace)
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    web.create(named("sick", "sim-a1", spreadConstraints=spread), replicas=1)
    failover = {"application": {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Directly"}}
    controlplane.client.patch(web.policy_path, {"spec": {"propagateDeps": True, "failover": failover}})
    web.wait(
        lambda found: placed(found) == {"sick": 1} and found["spec"].get("failover"), "on the sick cluster"
    )

    controlplane.wait_for(lambda: report_unhealthy(controlplane, "web"), "the Work to report on")
    web.wait(lambda found: placed(found) == {"sim-a1": 1}, "on the healthy cluster", timeout=60)
    assert 'schedule_class="Failover"' in scheduler.scrape()
