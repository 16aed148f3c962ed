"""Clusters that the filters refuse: names, labels, regions, taints, APIs."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from tests.e2e.workload import DUPLICATED, DYNAMIC, named
from tools.controlplane import Object
from tools.controlplane.karmada import CLUSTERS
from tools.controlplane.simulated import API_ENABLEMENTS
from tools.state_check.model import Also, Expected, Situation
from tools.state_check.scene import Scene
from tools.state_check.world import STOCK

NO_FIT = "NoClusterFit"
GADGET = "example.com/v1"


def _refused(scene: Scene, placement: Object, **fields: Any) -> None:
    scene.web(placement, **fields)
    scene.wait_refused(NO_FIT)


def _mistyped_name(scene: Scene) -> None:
    _refused(scene, named("sim-a9", replicaScheduling=DYNAMIC))


def _one_mistyped_name(scene: Scene) -> None:
    scene.web(named("sim-a1", "sim-b9", replicaScheduling=DYNAMIC))
    scene.wait_placed({"sim-a1": 4})
    scene.wait_applied()


def _unlike_any_name(scene: Scene) -> None:
    _refused(scene, named("production-emea", replicaScheduling=DYNAMIC))


def _name_edited_away(scene: Scene) -> None:
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC))
    scene.wait_applied()
    scene.policy(named("sim-a11", replicaScheduling=DYNAMIC))
    scene.wait_refused(NO_FIT)


def _taint_of_a_person(scene: Scene) -> None:
    name = scene.cluster(taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}])
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


def _toleration_of_another_value(scene: Scene) -> None:
    name = scene.cluster(taints=[{"key": "cards", "value": "a100", "effect": "NoSchedule"}])
    tolerations = [{"key": "cards", "operator": "Equal", "value": "a10", "effect": "NoSchedule"}]
    _refused(scene, named(name, clusterTolerations=tolerations, replicaScheduling=DYNAMIC))


def _cordoned(scene: Scene) -> None:
    name = scene.cluster(taints=[{"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}])
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


def _taint_of_the_controllers(scene: Scene) -> None:
    name = scene.cluster()
    scene.set_ready(name, ready=False)
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


def _label_value_nearly_right(scene: Scene) -> None:
    scene.cluster(labels={"tier": "gold"})
    affinity = {"labelSelector": {"matchLabels": {"tier": "golds"}}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


def _label_of_no_cluster(scene: Scene) -> None:
    affinity = {"labelSelector": {"matchLabels": {"pool": "gpu"}}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


def _region_nearly_right(scene: Scene) -> None:
    region = {"key": "region", "operator": "In", "values": ["real1"]}
    affinity = {"fieldSelector": {"matchExpressions": [region]}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


def _everything_excluded(scene: Scene) -> None:
    affinity = {"clusterNames": ["sim-b1"], "exclude": ["sim-b1"]}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


def install_gadgets(scene: Scene) -> None:
    """Serve a kind of its own on the control plane."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    scene.client.apply(gadget_definition(version))
    path = "/apis/example.com/v1"
    scene.plane.wait_for(lambda: scene.client.find(path), "the API server to serve gadgets")


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


def _missing_api(scene: Scene) -> None:
    name = scene.cluster()
    make_gadget(scene, name, scheduler="my-scheduler")
    scene.wait_refused(NO_FIT, name="web-gadget")


def _missing_api_arrived(scene: Scene) -> None:
    name = scene.cluster()
    make_gadget(scene, name, scheduler=None)
    scene.wait_refused(NO_FIT, name="web-gadget")
    _serve_gadgets(scene, name)


def _serve_gadgets(scene: Scene, name: str) -> None:
    served = [
        {"groupVersion": group, "resources": [{"name": plural, "kind": kind} for plural, kind in kinds]}
        for group, kinds in {**API_ENABLEMENTS, GADGET: (("gadgets", "Gadget"),)}.items()
    ]
    scene.client.patch(f"{CLUSTERS}/{name}/status", {"status": {"apiEnablements": served}})


def _incomplete_apis(scene: Scene) -> None:
    name = scene.cluster()
    path = f"{CLUSTERS}/{name}"
    before = scene.client.get(path)["status"]
    conditions = [
        {**each, "status": "False", "reason": "Partial"} if each["type"] == "CompleteAPIEnablements" else each
        for each in before["conditions"]
    ]
    served = [each for each in before["apiEnablements"] if each["groupVersion"] != "apps/v1"]
    scene.client.patch(f"{path}/status", {"status": {"conditions": conditions, "apiEnablements": served}})
    _refused(scene, named(name, replicaScheduling=DUPLICATED))


not_placed = partial(Expected, "not placed", "none")
REFUSED = r"no cluster|0/\d+ clusters"

SITUATIONS = (
    Situation(
        "cluster-name-mistyped",
        "a typo in the only cluster name",
        _mistyped_name,
        not_placed(
            headline=REFUSED,
            cause=r"^ClusterUnknown: .*sim-a9.*nearest.*sim-a[12]",
            remedy=r"sim-a[12] instead of sim-a9",
            would_be="sim-a9|cluster",
            fields={"state.scheduler.name": "my-scheduler", "condition.agrees": True},
        ),
        also=(
            Also(["why-not", "deployment/web", "--placed"], 0, r"not placed"),
            Also(["why-not", "--cluster", "sim-a1"], 0, never=r"{namespace}/web-deployment.*next decision"),
        ),
        page="not placed",
    ),
    Situation(
        "cluster-name-mistyped-beside-another",
        "one of two cluster names does not exist",
        _one_mistyped_name,
        Expected(
            "placed",
            "all",
            headline="sim-a1 4",
            cause=r"^$|^ClusterUnknown: .*sim-b9",
            quiet=r"sim-b9.*does not exist",
            fields={"warnings": re.compile("sim-b9.*does not exist.*sim-b[12]")},
        ),
        page="^placed$",
    ),
    Situation(
        "cluster-name-like-no-other",
        "a cluster name that resembles none",
        _unlike_any_name,
        not_placed(
            headline=REFUSED,
            cause=r"^ClusterUnknown: .*production-emea",
            remedy=r"clusterNames|cluster affinity|cluster constraint",
            never="instead of production-emea",
        ),
    ),
    Situation(
        "cluster-name-edited",
        "a policy edit after which no cluster fits, so that the placement is emptied",
        _name_edited_away,
        not_placed(headline=REFUSED, cause=r"^ClusterUnknown: .*sim-a11", remedy="sim-a1 instead of sim-a11"),
    ),
    Situation(
        "taint",
        "a taint that a person set on the only cluster",
        _taint_of_a_person,
        not_placed(
            headline=REFUSED,
            cause=r"^UntoleratedTaint: .*team=red:NoSchedule",
            remedy=r"^policy .*tolera",
        ),
    ),
    Situation(
        "toleration-of-another-value",
        "a toleration that does not match the taint's value",
        _toleration_of_another_value,
        not_placed(
            headline=REFUSED,
            cause=r"^UntoleratedTaint: .*cards=a100:NoSchedule",
            remedy=r"^policy .*tolera.*a100",
        ),
    ),
    Situation(
        "cordoned",
        "the only cluster is cordoned",
        _cordoned,
        not_placed(
            headline=REFUSED,
            cause=r"^UntoleratedTaint: .*cluster.karmada.io/unschedulable",
            remedy=r"uncordon|remove the taint|clusterNames",
        ),
    ),
    Situation(
        "cluster-down",
        "the only cluster is not ready, and Karmada's own taint refuses it",
        _taint_of_the_controllers,
        not_placed(
            headline=REFUSED,
            cause=r"not ready|does not answer|is down",
            never=r"remove the taint cluster\.karmada\.io|tolerate cluster\.karmada\.io",
            remedy=r"add .* to clusterNames|clusterNames|another cluster",
        ),
    ),
    Situation(
        "label-value-nearly-right",
        "a label selector whose value is nearly that of a cluster",
        _label_value_nearly_right,
        not_placed(
            headline=REFUSED,
            cause=r"^(AffinityMismatch|LabelUnknown|\w+): .*golds.*gold",
            remedy=r"\bgold\b.*instead of.*golds|tier.*\bgold\b",
        ),
    ),
    Situation(
        "label-of-no-cluster",
        "a label selector that no cluster matches",
        _label_of_no_cluster,
        not_placed(
            headline=REFUSED,
            cause=r"pool.*gpu",
            remedy=r"^cluster .*pool.*gpu",
        ),
    ),
    Situation(
        "region-nearly-right",
        "a region in the affinity that resembles one",
        _region_nearly_right,
        not_placed(
            headline=REFUSED,
            cause=r"real1.*real-1",
            remedy=r"real-1.*instead of.*real1|region.*real-1",
            never=r"spec\.region",
        ),
    ),
    Situation(
        "only-cluster-excluded",
        "the only named cluster is excluded by the same affinity",
        _everything_excluded,
        not_placed(headline=REFUSED, cause=r"^AffinityMismatch: .*exclude", remedy=r"exclude|clusterNames"),
    ),
    Situation(
        "api-missing",
        "a custom resource whose API no chosen cluster has",
        _missing_api,
        not_placed(
            headline=REFUSED,
            cause=r"^ApiMissing: .*example.com/v1",
            remedy=r"install|serve|API|clusterNames",
        ),
        ask="gadget/web",
    ),
    Situation(
        "api-arrived",
        "the missing API arrives, and karmada-scheduler is not woken by it",
        _missing_api_arrived,
        not_placed(
            headline=REFUSED,
            cause=r"^NotRetried: ",
            remedy="rebalancer|Rebalancer|label|cluster",
            would_be='"replicas": 0|"name": ',
            fields={"state.scheduler.name": STOCK},
        ),
        ask="gadget/web",
        applies=False,
    ),
    Situation(
        "api-list-incomplete",
        "a cluster whose list of APIs is incomplete",
        _incomplete_apis,
        not_placed(headline=REFUSED, cause=r"^ApiListIncomplete: .*apps/v1", remedy=r"API|clusterNames"),
    ),
)
