"""On the real detector and webhooks: workloads without a binding, and requests that come too late.

Which policy claims a workload is in ``test_state_situations.py``.
"""

from __future__ import annotations

import time

import pytest

from tests.e2e.asking import BINDINGS, CLUSTERS, POLICIES, WORKLOADS, Asking, reader
from tests.e2e.workload import DYNAMIC, Workload, is_settled, named
from tools.controlplane import ControlPlane, Object

PRIORITY_CLASSES: Object = {
    "apiGroups": ["scheduling.k8s.io"],
    "resources": ["priorityclasses"],
    "verbs": ["list"],
}
EVENTS: Object = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


def test_a_workload_whose_policy_names_no_priority_class_has_the_nearest_one(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    name = f"high-{web.namespace}"[:60]
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
    }
    controlplane.client.create({**priority_class, "value": 1000})
    asked = {"priorityClassSource": "KubePriorityClass", "priorityClassName": name.replace("high", "hgh")}
    web.create(named("sim-a1"), scheduler=None, schedulePriority=asked)
    rules = (CLUSTERS, BINDINGS, POLICIES, WORKLOADS, EVENTS)
    allowed = Asking(reader(controlplane, "priority-reader", *rules, PRIORITY_CLASSES), web.namespace)
    without_right = Asking(reader(controlplane, "event-reader", *rules), web.namespace)
    path = f"/api/v1/namespaces/{web.namespace}/events"
    controlplane.wait_for(
        lambda: any(each["reason"] == "ApplyPolicyFailed" for each in controlplane.client.get(path)["items"]),
        "the Event of the detector",
    )

    answer, forbidden = allowed.explain("deploy/web"), without_right.explain("deploy/web")

    assert (answer.status, answer.codes) == (1, ["PriorityClassMissing", "Reported"])
    assert answer.evidence["nearest"] == name
    assert forbidden.codes == ["NotClaimed", "Reported"]
    assert f'"{asked["priorityClassName"]}" not found' in forbidden.fields["causes"][1]["text"]
    assert 'cannot list resource "priorityclasses"' in forbidden.err

    controlplane.client.patch(web.policy_path, {"spec": {"schedulePriority": {"priorityClassName": name}}})
    web.wait_settled(replicas=4)


def test_a_rebalancer_is_too_old_if_the_binding_was_scheduled_after_it_was_made(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    def target(name: str) -> Object:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": web.namespace, "name": name}

    made = controlplane.client.create(
        {
            "apiVersion": "apps.karmada.io/v1alpha1",
            "kind": "WorkloadRebalancer",
            "metadata": {"name": web.namespace},
            "spec": {"workloads": [target("other")]},
        }
    )
    created = made["metadata"]["creationTimestamp"]
    controlplane.wait_for(
        lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > created, "a later second"
    )
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=None).wait_placed({"sim-a1": 4})
    web.apply_policy(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), scheduler=None)
    web.wait(lambda found: is_settled(found) and "sim-a2" in str(found["spec"]["placement"]), "edited")
    path = controlplane.client.path_of(made)
    controlplane.client.patch(path, {"spec": {"workloads": [target("other"), target("web")]}})
    web.wait(lambda found: found["spec"].get("rescheduleTriggeredAt") == created, "requested")

    answer = ask.explain()

    assert (answer.status, answer.codes) == (0, ["RebalancerTooOld", "NothingAsks"])
    assert answer.evidence["requested"] == created
    assert answer.evidence["lastScheduled"] == web.binding()["status"]["lastScheduledTime"]
    assert answer.evidence["resolution"] == "1s"
    assert web.placed() == {"sim-a1": 4}
