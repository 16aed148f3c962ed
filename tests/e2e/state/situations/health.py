"""After the placement: workloads that do not become ready, and clusters that are down."""

from __future__ import annotations

from typing import Any

from tests.e2e.state.model import Expected, situation
from tests.e2e.state.plane import ABSENT_IMAGE
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import not_running
from tests.e2e.state.situations.works import table, wait_reported
from tests.e2e.workload import AGGREGATED, DUPLICATED, named
from tools.controlplane.karmada import CLUSTERS


def _override(scene: Scene, cluster: str, **overriders: Any) -> None:
    rule = {"targetCluster": {"clusterNames": [cluster]}, "overriders": overriders}
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scene.client.apply(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "OverridePolicy",
            "metadata": {"name": "images", "namespace": scene.namespace},
            "spec": {"resourceSelectors": [selector], "overrideRules": [rule]},
        }
    )


@situation(
    not_running(
        headline=r"real3 2.*0 of 2 ready",
        cause=r"^\w+: .*0 of 2 (are )?ready.*real3|real3.*0 of 2",
        remedy="^$|.",
        fields=table("real3", wanted=2, applied='"yes"', ready=0, health='"Unhealthy"'),
    ),
    applies=False,
    page="not running",
)
def override_breaks_the_image(scene: Scene) -> None:
    """An override names an image that cannot be pulled."""
    registry = {"component": "Registry", "operator": "replace", "value": ABSENT_IMAGE.rstrip("/")}
    _override(scene, "real3", imageOverrider=[registry])
    scene.web(named("real3", replicaScheduling=AGGREGATED), replicas=2)
    wait_reported(scene, "real3", applied=True, health="Unhealthy")


@situation(
    not_running(
        headline=r"real1 2.*real3 2.*0 of 2 ready.*real3|real3.*0 of 2 ready",
        cause=r"^\w+: .*real3",
        remedy="^$|.",
        fields=table("real1", wanted=2, applied='"yes"', ready=2, health='"Healthy"'),
    ),
    applies=False,
)
def override_breaks_the_image_on_one(scene: Scene) -> None:
    """An override breaks the image on one of two clusters."""
    registry = {"component": "Registry", "operator": "replace", "value": ABSENT_IMAGE.rstrip("/")}
    _override(scene, "real3", imageOverrider=[registry])
    scene.web(named("real1", "real3", replicaScheduling=DUPLICATED), replicas=2)
    wait_reported(scene, "real3", applied=True, health="Unhealthy")
    wait_reported(scene, "real1", applied=True, health="Healthy")


@situation(
    not_running(
        headline=r"real3 2.*0 of 2 ready",
        cause=r"^\w+: .*0 of 2",
        remedy="^$|.",
    ),
    applies=False,
)
def image_absent(scene: Scene) -> None:
    """The workload itself names an image that cannot be pulled."""
    scene.web(named("real3", replicaScheduling=AGGREGATED), replicas=2, image=f"{ABSENT_IMAGE}web:1")
    wait_reported(scene, "real3", applied=True, health="Unhealthy")


@situation(
    Expected(
        "placed",
        "all",
        headline=r"\w+ 2",
        cause=r"^$|report",
        fields={"state.rows.0.applied": "not reported"},
    ),
    applies=False,
)
def not_reported(scene: Scene) -> None:
    """Placed a moment ago, and the member has not reported anything yet."""
    name = scene.cluster(agents=False)
    scene.web(named(name, replicaScheduling=AGGREGATED), replicas=2)
    scene.wait_placed({name: 2})


@situation(
    not_running(
        headline=r"\w+ 2.*not ready",
        cause=r"^(NoEviction|ClusterNotReady): .*not ready",
        remedy="^$|.",
        quiet="not ready",
    ),
    applies=False,
    page="not running",
)
def cluster_not_ready(scene: Scene) -> None:
    """The cluster is not ready, and its replicas stay."""
    name = scene.cluster()
    scene.web_applied(named(name, replicaScheduling=AGGREGATED), replicas=2)
    scene.set_ready(name, ready=False)


@situation(
    not_running(
        headline=r"real4 2.*not ready", cause=r"^(NoEviction|ClusterNotReady): .*not ready", remedy="^$|."
    ),
    applies=False,
    alone=True,
)
def member_killed(scene: Scene) -> None:
    """The API server of the member is killed under running replicas."""
    scene.web_applied(named("real4", replicaScheduling=AGGREGATED), replicas=2)
    member = scene.karmada.members["real4"]
    process = next(each for each in scene.karmada.processes if each.name == "real4")
    member.kill()
    scene.karmada.forget(process)
    scene.karmada.wait_for(
        lambda: [each["key"] for each in scene.client.get(f"{CLUSTERS}/real4")["spec"].get("taints") or ()],
        "Karmada to taint real4",
        until=lambda keys: any(key.startswith("cluster.karmada.io/") for key in keys),
        timeout=90,
    )
