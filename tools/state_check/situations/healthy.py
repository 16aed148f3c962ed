"""Healthy bindings: every one has to be placed, with exit status 0 and nothing to repair."""

from __future__ import annotations

from tests.e2e.workload import AGGREGATED, DUPLICATED, DYNAMIC, labelled, named
from tools.controlplane import Object
from tools.manifests import static
from tools.state_check.model import Also, Expected, Situation
from tools.state_check.scene import Scene
from tools.state_check.situations.spread import spread

STATIC: Object = static({("sim-a1",): 2, ("sim-b1",): 1})


def _placed(
    scene: Scene, placement: Object, *, scheduler: str | None = "my-scheduler", replicas: int = 4
) -> None:
    scene.web(placement, scheduler=scheduler, replicas=replicas)
    scene.wait_applied()


def _dynamic(scene: Scene) -> None:
    _placed(scene, named("real1", "real2", replicaScheduling=DYNAMIC))


def _duplicated(scene: Scene) -> None:
    _placed(scene, named("sim-a1", "real1", replicaScheduling=DUPLICATED), replicas=2)


def _aggregated(scene: Scene) -> None:
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=AGGREGATED))


def _static(scene: Scene) -> None:
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=STATIC), replicas=6)


def _by_stock(scene: Scene) -> None:
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), scheduler=None)


def _spread(scene: Scene) -> None:
    constraints = [spread("region", 2, 2), spread("cluster", 2, 2)]
    _placed(scene, labelled("sim", replicaScheduling=DYNAMIC, spreadConstraints=constraints))


def _config_map(scene: Scene) -> None:
    metadata = {"name": "web", "namespace": scene.namespace}
    scene.notes["binding"] = "web-configmap"
    scene.policy(
        named("sim-a1", "sim-b1", replicaScheduling=DUPLICATED),
        selector={"apiVersion": "v1", "kind": "ConfigMap", "name": "web"},
    )
    scene.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    scene.wait_applied(name="web-configmap")


def _scaled(scene: Scene) -> None:
    _placed(scene, named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=2)
    scene.scale(6)
    scene.wait(lambda found: found["spec"]["replicas"] == 6, "scaled")
    scene.wait_applied()


SITUATIONS = (
    Situation(
        "healthy-dynamic",
        "healthy: divided by available replicas on real members",
        _dynamic,
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
            Also(["plan", "--cordon", "sim-c2"], 0),
        ),
        page="^placed$",
    ),
    Situation(
        "healthy-dynamic-and-the-process",
        "healthy: divided by available replicas, and the process is asked",
        _dynamic,
        Expected("placed", "all", headline=r"real1 \d.*real2 \d", fields={"provenance.record.agrees": True}),
        flags=("--from={from my-scheduler}",),
    ),
    Situation(
        "healthy-duplicated",
        "healthy: on every cluster",
        _duplicated,
        Expected("placed", "all", headline=r"real1 2.*sim-a1 2"),
    ),
    Situation(
        "healthy-aggregated",
        "healthy: on as few clusters as possible",
        _aggregated,
        Expected("placed", "all", headline=r"sim-[ab]1 4", cause=r"^$|^AggregatedFewest|^TieByUid|^NameTie"),
    ),
    Situation(
        "healthy-static",
        "healthy: static weights 2 : 1",
        _static,
        Expected("placed", "all", headline=r"sim-a1 4.*sim-b1 2"),
    ),
    Situation(
        "healthy-spread",
        "healthy: two regions of three",
        _spread,
        Expected(
            "placed",
            "all",
            headline=r"sim-\w+ \d.*sim-\w+ \d",
            cause=r"^$|Tie|LessRoom|Region|MaxGroupsReached",
        ),
    ),
    Situation(
        "healthy-of-the-stock-scheduler",
        "healthy: placed by karmada-scheduler",
        _by_stock,
        Expected(
            "placed",
            "all",
            headline=r"sim-a1 2.*sim-b1 2",
            fields={"state.scheduler.name": "default-scheduler"},
        ),
    ),
    Situation(
        "healthy-config-map",
        "healthy: an object without replicas",
        _config_map,
        Expected("placed", "all", headline="sim-a1.*sim-b1"),
        ask="configmap/web",
    ),
    Situation(
        "healthy-scaled",
        "healthy: scaled from 2 to 6",
        _scaled,
        Expected("placed", "all", headline=r"sim-a1 3.*sim-b1 3"),
        page="^placed$",
    ),
)
