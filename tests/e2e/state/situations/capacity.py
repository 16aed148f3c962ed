"""More replicas, or larger ones, than the clusters can take; and none at all."""

from __future__ import annotations

from typing import Any

from tests import manifests
from tests.e2e.state.model import Expected, situation
from tests.e2e.state.plane import GATED
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import not_placed
from tests.e2e.workload import DYNAMIC, WORK, condition, named
from tools.controlplane import Object
from tools.controlplane.karmada import CLUSTERS
from tools.manifests import spread

OFF = r"[Nn]o requests|equal weights|[Dd]uplicated|drop (all|the) "


def _failed(scene: Scene, placement: Object, *, reason: str = "Unschedulable", **fields: Any) -> None:
    scene.web(placement, **fields)
    scene.wait_refused(reason)


def _range(name: str, least: str, most: str) -> Object:
    return {"name": name, "min": least, "max": most}


@situation(
    not_placed(
        headline=r"enough|available|replicas",
        cause=r"^NotEnoughRoom: .*cpu",
        remedy=r"request|\d+m? cpu|clusterNames",
        never=rf"^[^(]*({OFF})[^(]*$",
        fields={"condition.agrees": True},
    ),
    page="not placed",
)
@situation(
    not_placed(
        headline=r"enough|available|replicas",
        cause=r"^NotEnoughRoom: .*cpu",
        remedy=r"request|\d+m? cpu|clusterNames",
        fields={"provenance.record.agrees": True},
    ),
    name="request-too-large-and-the-process-agrees",
    source="200 cpu requested, and the process is asked.",
    flags=("--from={from my-scheduler}",),
    applies=False,
)
def request_too_large(scene: Scene) -> None:
    """200 cpu requested."""
    _failed(scene, named("real1", "real2", replicaScheduling=DYNAMIC), cpu="200")


@situation(
    not_placed(
        headline=r"enough|available|replicas",
        cause=r"^NotEnoughRoom: ",
        remedy=r"\d+ replicas",
    )
)
def replicas_too_many(scene: Scene) -> None:
    """300 replicas, fewer fit."""
    _failed(scene, named("real1", "real2", "sim-c1", replicaScheduling=DYNAMIC), replicas=300)


@situation(
    Expected(
        "stuck",
        "part",
        headline=r"4 of 300.*real1.*real2|real1.*real2",
        cause=r"^(NotEnoughRoom|KeptOnFailure): ",
        remedy=r"\d+ replicas",
        fields={"state.wanted": 300},
    ),
    page="stuck",
)
def replicas_too_many_after_placing(scene: Scene) -> None:
    """4 replicas are placed, scaled to 300."""
    scene.web_applied(named("real1", "real2", replicaScheduling=DYNAMIC), replicas=4)
    scene.scale(300)
    scene.wait_refused("Unschedulable")


@situation(
    Expected(
        "stuck",
        "part",
        headline=r"2 of 3.*\w+ 2",
        cause=r"^(NotEnoughRoom|KeptOnFailure): ",
        remedy=r"replicas|request|cpu|clusterNames",
    )
)
def request_raised_after_placing(scene: Scene) -> None:
    """A placed workload asks for more than fits, and for one more replica.

    A placed workload asks for more than any cluster has, and for one more replica.
    """
    scene.web_applied(named(scene.cluster(), replicaScheduling=DYNAMIC), replicas=2, cpu="1")
    path = f"/apis/apps/v1/namespaces/{scene.namespace}/deployments/web"
    template = scene.client.get(path)["spec"]["template"]
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "40"
    scene.client.patch(path, {"spec": {"replicas": 3, "template": template}})
    scene.wait_refused("Unschedulable")


@situation(
    not_placed(
        headline=r"enough|available|replicas",
        cause=r"^\w+: .*example.com/fpga",
        remedy=r"^$|fpga",
        never=rf"^[^(]*({OFF})[^(]*$",
    ),
    applies=False,
)
def resource_of_no_cluster(scene: Scene) -> None:
    """A resource that no cluster reports is requested."""
    _failed(scene, named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), requests={"example.com/fpga": "1"})


@situation(
    not_placed(
        headline=r"enough|available|replicas",
        cause=r"^\w+: .*nvidia.com/gpu.*model",
        remedy=r"model|by grade|CustomizedClusterResourceModeling|clusterNames",
    ),
    flags=("--from={from north-scheduler}",),
    applies=False,
)
def resource_of_no_model(scene: Scene) -> None:
    """A GPU is requested that no resource model of the cluster names."""
    name = scene.cluster(cpu="64")
    models = [
        {"grade": 0, "ranges": [_range("cpu", "0", "8"), _range("memory", "0", "16Gi")]},
        {"grade": 1, "ranges": [_range("cpu", "8", "9223372036854775807"), _range("memory", "16Gi", "9223372036854775807")]},
    ]  # fmt: skip
    scene.client.patch(f"{CLUSTERS}/{name}", {"spec": {"resourceModels": models}})
    summary = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "220", "nvidia.com/gpu": "8"},
        "allocated": {"cpu": "1", "memory": "1Gi", "pods": "5"},
        "allocatableModelings": [{"grade": 0, "count": 0}, {"grade": 1, "count": 4}],
    }
    scene.client.patch(f"{CLUSTERS}/{name}/status", {"status": {"resourceSummary": summary}})
    scene.karmada.wait_for(
        lambda: scene.client.get(f"{CLUSTERS}/{name}")["status"]["resourceSummary"],
        "the models",
        until=lambda found: len(found.get("allocatableModelings") or ()) == 2,
    )
    _failed(
        scene,
        named(name, replicaScheduling=DYNAMIC),
        scheduler=GATED,
        replicas=2,
        requests={"nvidia.com/gpu": "1"},
    )


@situation(Expected("placed", "all", headline=r"\w+ 1", cause=r"^SummaryCounts: .*4"))
def request_larger_than_a_node(scene: Scene) -> None:
    """A replica larger than an average node is placed, because summaries add up nodes."""
    name = scene.cluster()
    nodes = {"totalNum": 16, "readyNum": 16}
    scene.client.patch(f"{CLUSTERS}/{name}/status", {"status": {"nodeSummary": nodes}})
    scene.web_applied(named(name, replicaScheduling=DYNAMIC), replicas=1, cpu="4")


@situation(
    not_placed(
        headline=r"set of all|enough|fit",
        cause=r"^PluginsNotKnown: decided by north-scheduler",
        remedy="",
    ),
    ask="rb/job",
    name="components-without-the-gate-here",
    source="Components do not fit as a set, and the command knows neither gates nor plugins of the scheduler.",
    applies=False,
)
@situation(
    not_placed(
        headline=r"set of all|enough|fit",
        cause=r"^ComponentSets: ",
        remedy=r"cpu|clusterNames|add ",
        never=r"^[^(]*(drop the cluster|spread constraint)[^(]*$",
    ),
    ask="rb/job",
    name="components-with-the-gate",
    source="Components do not fit as a set, and the command is given the gate.",
    flags=("--feature-gates=MultiplePodTemplatesScheduling=true",),
)
@situation(
    not_placed(
        headline=r"set of all|enough|fit",
        cause=r"^ComponentSets: ",
        remedy=r"cpu|clusterNames|add ",
        never=r"^[^(]*(drop the cluster|spread constraint)[^(]*$",
        fields={"provenance.record.agrees": True},
    ),
    ask="rb/job",
    flags=("--from={from north-scheduler}",),
)
def components_and_the_process(scene: Scene) -> None:
    """Components do not fit as a set, and the process is asked.

    A manager with 1 cpu and two workers with 8 each, on a cluster with 16 - 1 free.
    """
    name = scene.cluster()
    parts = [("manager", 1, "1"), ("worker", 2, "8")]
    components = [
        {"name": each, "replicas": count, "replicaRequirements": {"resourceRequest": {"cpu": cpu}}}
        for each, count, cpu in parts
    ]
    placement = named(name, replicaScheduling=DYNAMIC, spreadConstraints=[spread("cluster", 1, 1)])
    binding = manifests.untemplated(
        scene.namespace,
        "job",
        uid=f"uid-{scene.namespace}",
        policy_id="components",
        components=components,
        schedulerName=GATED,
        placement=placement,
    )
    scene.notes["binding"] = "job"
    scene.client.create(binding)
    scene.karmada.wait_for(
        lambda: scene.client.get(f"{WORK}/namespaces/{scene.namespace}/resourcebindings/job"),
        "the condition of the binding",
        until=lambda found: condition(found).get("status") == "False",
    )


@situation(
    Expected("nothing to place", "none", headline="", cause="^$|^ZeroReplicas: ", fields={"state.wanted": 0}),
    page="nothing to place",
)
def no_replicas_wanted(scene: Scene) -> None:
    """0 replicas."""
    scene.web(named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=0)
    scene.wait(lambda found: bool(condition(found)), "decided")


@situation(
    Expected("nothing to place", "none", headline="", cause="^$|^ZeroReplicas: ", fields={"state.wanted": 0})
)
def scaled_to_zero(scene: Scene) -> None:
    """Scaled from 2 replicas to 0."""
    scene.web_applied(named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=2)
    scene.scale(0)
    scene.wait(lambda found: found["spec"].get("replicas", 0) == 0 and condition(found).get("status") == "True" and found["status"].get("schedulerObservedGeneration") == found["metadata"]["generation"], "scaled")  # fmt: skip
