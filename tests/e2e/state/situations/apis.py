"""Kinds that the chosen clusters do not serve."""

from __future__ import annotations

from tests.e2e.state.model import situation
from tests.e2e.state.plane import STOCK
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import REFUSED, not_placed
from tests.e2e.state.situations.filters import NO_FIT
from tests.e2e.workload import DUPLICATED, named
from tools.controlplane import Object
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.simulated import API_ENABLEMENTS

GADGET = "example.com/v1"


def install_gadgets(scene: Scene) -> None:
    """Serve a kind of its own on the control plane."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    scene.client.apply(gadget_definition(version))
    path = "/apis/example.com/v1"
    scene.karmada.wait_for(lambda: scene.client.find(path), "the API server to serve gadgets")


def gadget_definition(version: Object) -> Object:
    """Return the CustomResourceDefinition of gadgets."""
    names = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def make_gadget(scene: Scene, *clusters: str, scheduler: str | None) -> None:
    """Create a Gadget web and its policy."""
    install_gadgets(scene)
    selector = {"apiVersion": GADGET, "kind": "Gadget", "name": "web"}
    scene.policy(named(*clusters, replicaScheduling=DUPLICATED), selector=selector, scheduler=scheduler)
    metadata = {"name": "web", "namespace": scene.namespace}
    scene.notes["binding"] = "web-gadget"
    scene.client.create({"apiVersion": GADGET, "kind": "Gadget", "metadata": metadata, "spec": {"size": 3}})


def _serve_gadgets(scene: Scene, name: str) -> None:
    served = [
        {"groupVersion": group, "resources": [{"name": plural, "kind": kind} for plural, kind in kinds]}
        for group, kinds in {**API_ENABLEMENTS, GADGET: (("gadgets", "Gadget"),)}.items()
    ]
    scene.client.patch(f"{CLUSTERS}/{name}/status", {"status": {"apiEnablements": served}})


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^ApiMissing: .*example.com/v1",
        remedy=r"install|serve|API|clusterNames",
    ),
    ask="gadget/web",
)
def api_missing(scene: Scene) -> None:
    """A custom resource whose API no chosen cluster has."""
    name = scene.cluster()
    make_gadget(scene, name, scheduler="my-scheduler")
    scene.wait_refused(NO_FIT, name="web-gadget")


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^NotRetried: ",
        remedy="rebalancer|Rebalancer|label|cluster",
        would_be='"replicas": 0|"name": ',
        fields={"state.scheduler.name": STOCK},
    ),
    ask="gadget/web",
)
def api_arrived(scene: Scene) -> None:
    """The missing API arrives, and karmada-scheduler is not notified of it."""
    name = scene.cluster()
    make_gadget(scene, name, scheduler=None)
    scene.wait_refused(NO_FIT, name="web-gadget")
    _serve_gadgets(scene, name)


@situation(not_placed(headline=REFUSED, cause=r"^ApiListIncomplete: .*apps/v1", remedy=r"API|clusterNames"))
def api_list_incomplete(scene: Scene) -> None:
    """A cluster whose list of APIs is incomplete."""
    name = scene.cluster()
    path = f"{CLUSTERS}/{name}"
    before = scene.client.get(path)["status"]
    conditions = [
        {**each, "status": "False", "reason": "Partial"} if each["type"] == "CompleteAPIEnablements" else each
        for each in before["conditions"]
    ]
    served = [each for each in before["apiEnablements"] if each["groupVersion"] != "apps/v1"]
    scene.client.patch(f"{path}/status", {"status": {"conditions": conditions, "apiEnablements": served}})
    scene.web(named(name, replicaScheduling=DUPLICATED))
    scene.wait_refused(NO_FIT)
