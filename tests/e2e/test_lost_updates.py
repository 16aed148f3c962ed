"""What is taken and given back at once arrives at the clusters, in spite of the cache of Karmada's binding controller."""

from __future__ import annotations

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DYNAMIC, WORK, Workload, is_settled, named, placed, running
from tools import manifests
from tools.controlplane import ControlPlane, Object
from tools.controlplane.parallel import in_parallel

COUNT = 52
ROUNDS = 3
CLUSTER = "sim-a1"
WORKS = f"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{CLUSTER}/works"


def in_works(plane: ControlPlane, namespace: str) -> dict[str, int]:
    """The replicas of each Deployment of a namespace in its Work for the cluster."""
    found = map(_manifest, plane.client.list(WORKS))
    return {
        each["metadata"]["name"]: each["spec"]["replicas"]
        for each in found
        if each["kind"] == "Deployment" and each["metadata"].get("namespace") == namespace
    }


def _manifest(work: Object) -> Object:
    found: Object = work["spec"]["workload"]["manifests"][0]
    return found


def test_what_another_program_takes_is_given_back_and_arrives(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    space = web.namespace
    selector = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "labelSelector": {"matchLabels": {"take": "it"}},
    }
    web.apply_policy(named(CLUSTER, replicaScheduling=DYNAMIC), resourceSelectors=[selector])
    deployments = [
        manifests.deployment(space, f"web-{number}", 3, cpu="1m", labels={"take": "it"})
        for number in range(COUNT)
    ]
    in_parallel(controlplane.client.create, deployments)
    bindings = f"{WORK}/namespaces/{space}/resourcebindings"

    def is_whole(found: list[Object]) -> bool:
        return len(found) == COUNT and all(placed(each) == {CLUSTER: 3} for each in found)

    def take(binding: Object) -> None:
        path = f"{bindings}/{binding['metadata']['name']}"
        controlplane.client.patch(path, {"spec": {"clusters": [{"name": CLUSTER, "replicas": 0}]}})

    for _ in range(ROUNDS):
        controlplane.wait_for(
            lambda: controlplane.client.list(bindings), "all to be placed", until=is_whole, timeout=60
        )
        controlplane.wait_for(
            lambda: in_works(controlplane, space), "all Works", until=lambda found: set(found.values()) == {3}
        )
        in_parallel(take, controlplane.client.list(bindings))
    controlplane.wait_for(
        lambda: controlplane.client.list(bindings), "all to be placed", until=is_whole, timeout=60
    )
    controlplane.wait_for(
        lambda: in_works(controlplane, space), "all Works", until=lambda found: set(found.values()) == {3}
    )
    assert not [
        event
        for event in controlplane.client.list(f"/api/v1/namespaces/{space}/events")
        if event["reason"] == "BindingResynced"
    ]


def test_replicas_that_did_not_reach_a_cluster_are_applied_again(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    """A Work with another number is what Karmada's controller leaves behind when its cache is old."""
    start_scheduler()
    web.create(named(CLUSTER, replicaScheduling=DYNAMIC), replicas=3)
    web.wait_placed({CLUSTER: 3})

    def works() -> list[Object]:
        found = controlplane.client.list(WORKS)
        return [each for each in found if _manifest(each)["metadata"].get("namespace") == web.namespace]

    (work,) = controlplane.wait_for(works, "the Work")
    _manifest(work)["spec"]["replicas"] = 0
    controlplane.client.patch(f"{WORKS}/{work['metadata']['name']}", {"spec": work["spec"]})
    web.wait(lambda found: running(found, CLUSTER) == 0, "reported without replicas")
    found = web.wait(lambda found: running(found, CLUSTER) == 3 and is_settled(found), "whole", timeout=40)
    assert placed(found) == {CLUSTER: 3}
    assert [each["message"] for each in web.events("BindingResynced")] == [
        f"Karmada is to apply it once more, as {CLUSTER} reports 0 of 3 replicas"
    ]
