"""Healthy bindings: every one has to be placed, with exit status 0 and nothing to repair."""

from __future__ import annotations

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.scene import Scene
from tests.e2e.workload import AGGREGATED, DUPLICATED, DYNAMIC, labelled, named
from tools.controlplane import Object
from tools.manifests import spread, static

STATIC: Object = static({("sim-a1",): 2, ("sim-b1",): 1})


def _placed(
    scene: Scene, placement: Object, *, scheduler: str | None = "my-scheduler", replicas: int = 4
) -> None:
    scene.web_applied(placement, scheduler=scheduler, replicas=replicas)


def _ready_replicas(binding: Object) -> int:
    reports = binding.get("status", {}).get("aggregatedStatus") or ()
    return sum((report.get("status") or {}).get("readyReplicas") or 0 for report in reports)


def _dynamic(scene: Scene) -> None:
    _placed(scene, named("real1", "real2", replicaScheduling=DYNAMIC))


@situation(
    Expected(
        "placed",
        "all",
        headline=r"real1 \d.*real2 \d",
        quiet="PLACED",
        fields={
            "state.wanted": 4,
            "wouldBe.differs": False,
            "state.rows.0.applied": "yes",
            "state.rows.1.health": "Healthy",
        },
    ),
    also=(
        Also(["why-not", "deployment/web", "--placed"], 0, "  PLACED  "),
        Also(["plan", "--cordon", "sim-c2"], None),
    ),
    page="^placed$",
)
def healthy_dynamic(scene: Scene) -> None:
    """Healthy: divided by available replicas on real members."""
    _dynamic(scene)


@situation(
    Expected("placed", "all", headline=r"real1 \d.*real2 \d", fields={"provenance.record.agrees": True}),
    flags=("--from={from my-scheduler}",),
)
def healthy_dynamic_and_the_process(scene: Scene) -> None:
    """Healthy: divided by available replicas, and the process is asked."""
    _dynamic(scene)


@situation(Expected("placed", "all", headline=r"real1 2.*sim-a1 2"))
def healthy_duplicated(scene: Scene) -> None:
    """Healthy: on every cluster."""
    _placed(scene, named("sim-a1", "real1", replicaScheduling=DUPLICATED), replicas=2)


@situation(
    Expected("placed", "all", headline=r"sim-[ab]1 4", cause=r"^$|^AggregatedFewest|^TieByUid|^NameTie")
)
def healthy_aggregated(scene: Scene) -> None:
    """Healthy: on as few clusters as possible."""
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=AGGREGATED))


@situation(Expected("placed", "all", headline=r"sim-a1 4.*sim-b1 2"))
def healthy_static(scene: Scene) -> None:
    """Healthy: static weights 2 : 1."""
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=STATIC), replicas=6)


@situation(
    Expected(
        "placed",
        "all",
        headline=r"sim-\w+ \d.*sim-\w+ \d",
        cause=r"^$|Tie|LessRoom|Region|MaxGroupsReached",
    )
)
def healthy_spread(scene: Scene) -> None:
    """Healthy: two regions of three."""
    constraints = [spread("region", 2, 2), spread("cluster", 2, 2)]
    _placed(scene, labelled("sim", replicaScheduling=DYNAMIC, spreadConstraints=constraints))


@situation(
    Expected(
        "placed",
        "all",
        headline=r"sim-a1 2.*sim-b1 2",
        fields={"state.scheduler.name": "default-scheduler"},
    )
)
def healthy_of_the_stock_scheduler(scene: Scene) -> None:
    """Healthy: placed by karmada-scheduler."""
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), scheduler=None)


@situation(
    Expected("placed", "all", headline="sim-a1.*sim-b1"),
    ask="configmap/web",
)
def healthy_config_map(scene: Scene) -> None:
    """Healthy: an object without replicas."""
    metadata = {"name": "web", "namespace": scene.namespace}
    scene.notes["binding"] = "web-configmap"
    scene.policy(
        named("sim-a1", "sim-b1", replicaScheduling=DUPLICATED),
        selector={"apiVersion": "v1", "kind": "ConfigMap", "name": "web"},
    )
    scene.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    scene.wait_applied(name="web-configmap")


@situation(
    Expected("placed", "all", headline=r"sim-a1 3.*sim-b1 3"),
    page="^placed$",
)
def healthy_scaled(scene: Scene) -> None:
    """Healthy: scaled from 2 to 6."""
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=2)
    scene.scale(6)
    scene.wait(lambda found: found["spec"]["replicas"] == 6, "scaled")
    scene.wait_applied()
    scene.wait(lambda found: _ready_replicas(found) == 6, "6 replicas are reported as ready")
