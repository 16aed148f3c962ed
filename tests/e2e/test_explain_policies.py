"""On the real detector and webhooks: who schedules a binding, and which policy claims it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.e2e.asking import BINDINGS, CLUSTERS, WORKLOADS, Asking, reader
from tests.e2e.asking import POLICIES as POLICIES_RULE
from tests.e2e.workload import DUPLICATED, DYNAMIC, Workload, is_settled, named
from tools.controlplane import ControlPlane, Object

SELECTOR: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
PRIORITY_CLASSES: Object = {
    "apiGroups": ["scheduling.k8s.io"],
    "resources": ["priorityclasses"],
    "verbs": ["list"],
}
EVENTS: Object = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces"


@pytest.fixture
def ask(controlplane: ControlPlane, namespace: str) -> Asking:
    return Asking(reader(controlplane), namespace)


def policy(namespace: str, name: str, *clusters: str, selector: Object = SELECTOR, **spec: Any) -> Object:
    """Return a policy for web, which karmada-scheduler serves."""
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "resourceSelectors": [selector],
            "placement": named(*clusters, replicaScheduling=DUPLICATED),
            **spec,
        },
    }


def wait_detected(web: Workload) -> None:
    """Wait until the detector has seen all policies of the namespace so far: it claims by those that it has seen."""
    name = {"name": "seen", "namespace": web.namespace}
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "seen"}
    web.plane.client.create(policy(web.namespace, "seen", "sim-a1", selector=selector))
    web.plane.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
    bindings = web.binding_path.rpartition("/")[0]
    web.plane.wait_for(
        lambda: web.plane.client.find(f"{bindings}/seen-configmap"), "the binding of a ConfigMap"
    )


def deployed(web: Workload, *policies: Object) -> Workload:
    """Create policies, then the Deployment."""
    for each in policies:
        web.plane.client.create(each)
    if len(policies) > 1:
        wait_detected(web)
    labels = {"app": web.name}
    container: Object = {"name": "web", "image": "nginx:1.29"}
    web.plane.client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": web.name, "namespace": web.namespace},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )
    return web


def test_the_edit_of_a_lazy_policy_waits_for_the_template(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    lazy = policy(web.namespace, "web", "sim-a1", activationPreference="Lazy")
    deployed(web, lazy).wait_placed({"sim-a1": 2})
    controlplane.client.apply(policy(web.namespace, "web", "sim-a1", "sim-a2", activationPreference="Lazy"))

    answer = ask.explain()

    assert answer.status == 0
    assert answer.codes[0] == "PolicyLazy"
    assert web.placed() == {"sim-a1": 2}
    web.scale(3)
    web.wait_placed({"sim-a1": 3, "sim-a2": 3})
    controlplane.wait_for(
        lambda: ask.explain().fields["causes"],
        "the copies in the members to be reported",
        until=lambda causes: causes == [],
    )


def test_a_suspended_binding_says_that_no_policy_suspended_it(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    web.create(named("sim-a1"), scheduler="nobody")
    controlplane.wait_for(lambda: controlplane.client.find(web.binding_path), "the binding")
    controlplane.client.patch(web.binding_path, {"spec": {"suspension": {"scheduling": True}}})

    answer = ask.explain()

    assert (answer.status, answer.fields["state"]["heldBy"]) == (1, "suspension")
    assert answer.codes == ["Suspended"]
    assert answer.evidence["setBy"]  # the program that has patched the binding, by its managed fields
    assert answer.evidence["clusterChangeSchedules"]["karmada-scheduler"] is True


def test_a_binding_of_another_scheduler_names_it(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    web.create(named("sim-a1"), scheduler="nobody")
    controlplane.wait_for(lambda: controlplane.client.find(web.binding_path), "the binding")

    answer = ask.explain("deployment/web", "--scheduler-name=default-scheduler")

    assert (answer.status, answer.fields["wouldBe"]) == (1, None)
    assert answer.fields["state"]["name"] == "not decided yet"
    assert answer.codes == ["OtherScheduler"]
    assert answer.evidence["schedulerName"] == "nobody"


def test_of_two_policies_the_order_that_chose_is_named(web: Workload, ask: Asking) -> None:
    every = {key: value for key, value in SELECTOR.items() if key != "name"}
    policies = [
        policy(web.namespace, "a-all", "sim-a2", selector=every),
        policy(web.namespace, "z-web", "sim-a1"),
    ]
    deployed(web, *policies).wait_placed({"sim-a1": 2})

    answer = ask.explain()

    assert (answer.status, answer.codes) == (0, ["PolicyChosen"])
    assert answer.evidence["chosen"] == f"PropagationPolicy {web.namespace}/z-web"
    assert answer.evidence["criterion"] == "selector"


def test_a_policy_of_higher_priority_does_not_take_what_another_holds(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    deployed(web, policy(web.namespace, "web", "sim-a1")).wait_placed({"sim-a1": 2})
    controlplane.client.create(policy(web.namespace, "urgent", "sim-a2", priority=9))
    web.scale(3)  # has the detector look at the template again
    web.wait_placed({"sim-a1": 3})

    answer = ask.explain()

    assert (answer.status, answer.codes) == (0, ["ClaimHeld"])
    assert answer.evidence["first"] == f"PropagationPolicy {web.namespace}/urgent"
    assert answer.evidence["heldBy"] == f"PropagationPolicy {web.namespace}/web"


def test_a_workload_that_no_policy_matches_has_the_nearest_one(web: Workload, ask: Asking) -> None:
    deployed(web, policy(web.namespace, "wep", "sim-a1", selector={**SELECTOR, "name": "wep"}))

    answer = ask.explain("deploy/web")

    assert (answer.status, answer.fields["state"]["name"]) == (1, "not claimed")
    assert answer.codes == ["NotClaimed"]
    assert answer.evidence["nearest"][f"PropagationPolicy {web.namespace}/wep"] == "name is wep"
    assert ask.explain("deploy/wepp").status == 2


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
    deployed(web, policy(web.namespace, "web", "sim-a1", schedulePriority=asked))
    rules = (CLUSTERS, BINDINGS, POLICIES_RULE, WORKLOADS, EVENTS)
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
    web.wait_settled(replicas=2)


def test_the_placement_stays_when_the_policy_is_deleted(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    deployed(web, policy(web.namespace, "web", "sim-a1")).wait_placed({"sim-a1": 2})
    controlplane.client.delete(f"{POLICIES}/{web.namespace}/propagationpolicies/web")
    web.wait(
        lambda found: "propagationpolicy.karmada.io/permanent-id" not in found["metadata"].get("labels", {}),
        "released",
    )

    answer = ask.explain()

    assert (answer.status, answer.fields["state"]["name"]) == (1, "not claimed")
    assert answer.codes == ["Released"]
    assert answer.fields["state"]["clusters"] == [{"name": "sim-a1", "replicas": 2}]


def test_a_dependency_follows_the_binding_that_requires_it(
    controlplane: ControlPlane, web: Workload, ask: Asking
) -> None:
    settings: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": web.namespace},
    }
    controlplane.client.create(settings)
    deployed(web, policy(web.namespace, "web", "sim-a1", propagateDeps=True)).wait_placed({"sim-a1": 2})
    source = [{"name": "settings", "configMap": {"name": "settings"}}]
    template = {"spec": {"template": {"spec": {"volumes": source}}}}
    controlplane.client.patch(web.deployment_path, template)
    path = web.binding_path.replace("web-deployment", "settings-configmap")
    controlplane.wait_for(lambda: controlplane.client.find(path), "the binding of the ConfigMap")

    answer = ask.explain("configmap/settings")

    assert (answer.status, answer.fields["state"]["name"]) == (1, "no placement")
    assert answer.codes == ["NoPlacement"]
    assert answer.evidence["requiredBy"] == [f"{web.namespace}/web-deployment"]


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
    web.create(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=None)
    web.wait_placed({"sim-a1": 4})
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
