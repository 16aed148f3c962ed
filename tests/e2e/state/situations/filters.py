"""Clusters that the filters refuse: names, labels, regions, taints."""

from __future__ import annotations

import re
from typing import Any

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import REFUSED, not_placed
from tests.e2e.workload import DYNAMIC, named
from tools.controlplane import Object

NO_FIT = "NoClusterFit"


def _refused(scene: Scene, placement: Object, **fields: Any) -> None:
    scene.web(placement, **fields)
    scene.wait_refused(NO_FIT)


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^ClusterUnknown: .*sim-a9.*nearest.*sim-a[12]",
        remedy=r"sim-a[12] instead of sim-a9",
        would_be="sim-a9|cluster",
        fields={"state.scheduler.name": "my-scheduler", "condition.agrees": True},
    ),
    also=(
        Also(["why-not", "deployment/web", "--placed"], 0, "NOT PLACED"),
        Also(["why-not", "--cluster", "sim-a1"], 0, never=r"{namespace}/web-deployment.*next decision"),
    ),
    page="not placed",
)
def cluster_name_mistyped(scene: Scene) -> None:
    """A typo in the only cluster name."""
    _refused(scene, named("sim-a9", replicaScheduling=DYNAMIC))


@situation(
    Expected(
        "placed",
        "all",
        headline="sim-a1 4",
        cause=r"^$|^ClusterUnknown: .*sim-b9",
        quiet=r"sim-b9.*does not exist",
        fields={"warnings": re.compile("sim-b9.*does not exist.*sim-b[12]")},
    ),
    page="^placed$",
)
def cluster_name_mistyped_next_to_another(scene: Scene) -> None:
    """One of two cluster names does not exist."""
    scene.web(named("sim-a1", "sim-b9", replicaScheduling=DYNAMIC))
    scene.wait_placed({"sim-a1": 4})
    scene.wait_applied()


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^ClusterUnknown: .*production-emea",
        remedy=r"clusterNames|cluster affinity|cluster constraint",
        never="instead of production-emea",
    )
)
def cluster_name_like_no_other(scene: Scene) -> None:
    """A cluster name that resembles none."""
    _refused(scene, named("production-emea", replicaScheduling=DYNAMIC))


@situation(
    not_placed(headline=REFUSED, cause=r"^ClusterUnknown: .*sim-a11", remedy="sim-a1 instead of sim-a11")
)
def cluster_name_edited(scene: Scene) -> None:
    """A policy edit after which no cluster fits, so that the placement is emptied."""
    scene.web_applied(named("sim-a1", replicaScheduling=DYNAMIC))
    scene.policy(named("sim-a11", replicaScheduling=DYNAMIC))
    scene.wait_refused(NO_FIT)


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^UntoleratedTaint: .*team=red:NoSchedule",
        remedy=r"^policy .*(tolera|clusterNames)",
    )
)
def taint(scene: Scene) -> None:
    """A taint that a person set on the only cluster."""
    name = scene.cluster(taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}])
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^UntoleratedTaint: .*cards=a100:NoSchedule",
        remedy=r"^policy .*tolera.*a100",
    )
)
def toleration_of_another_value(scene: Scene) -> None:
    """A toleration that does not match the taint's value."""
    name = scene.cluster(taints=[{"key": "cards", "value": "a100", "effect": "NoSchedule"}])
    tolerations = [{"key": "cards", "operator": "Equal", "value": "a10", "effect": "NoSchedule"}]
    _refused(scene, named(name, clusterTolerations=tolerations, replicaScheduling=DYNAMIC))


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^UntoleratedTaint: .*cluster.karmada.io/unschedulable",
        remedy=r"uncordon|remove the taint|clusterNames",
    )
)
def cordoned(scene: Scene) -> None:
    """The only cluster is cordoned."""
    name = scene.cluster(taints=[{"key": "cluster.karmada.io/unschedulable", "effect": "NoSchedule"}])
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"not ready|does not answer|is down",
        never=r"remove the taint cluster\.karmada\.io|tolerate cluster\.karmada\.io",
        remedy=r"is down.*Ready again|clusterNames|another cluster",
    )
)
def cluster_down(scene: Scene) -> None:
    """The only cluster is not ready, and Karmada's own taint refuses it."""
    name = scene.cluster()
    scene.set_ready(name, ready=False)
    _refused(scene, named(name, replicaScheduling=DYNAMIC))


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"^(AffinityMismatch|LabelUnknown|\w+): .*golds.*gold",
        remedy=r"\bgold\b.*instead of.*golds|tier.*\bgold\b",
    )
)
def label_value_nearly_right(scene: Scene) -> None:
    """A label selector whose value is nearly that of a cluster."""
    key = f"tier-{scene.namespace}"  # of this situation alone, because a remedy labels a cluster
    scene.cluster(labels={key: "gold"})
    affinity = {"labelSelector": {"matchLabels": {key: "golds"}}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"pool.*gpu",
        remedy=r"^cluster .*pool.*gpu",
    )
)
def label_of_no_cluster(scene: Scene) -> None:
    """A label selector that no cluster matches."""
    # The key is of this namespace alone, because a remedy labels a cluster.
    affinity = {"labelSelector": {"matchLabels": {f"pool-{scene.namespace}": "gpu"}}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


@situation(
    not_placed(
        headline=REFUSED,
        cause=r"real1.*real-1",
        remedy=r"real-1.*instead of.*real1|region.*real-1",
        never=r"spec\.region",
    )
)
def region_nearly_right(scene: Scene) -> None:
    """A region in the affinity that resembles one."""
    region = {"key": "region", "operator": "In", "values": ["real1"]}
    affinity = {"fieldSelector": {"matchExpressions": [region]}}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})


@situation(
    not_placed(headline=REFUSED, cause=r"^AffinityMismatch: .*exclude", remedy=r"exclude|clusterNames")
)
def only_cluster_excluded(scene: Scene) -> None:
    """The only named cluster is excluded by the same affinity."""
    affinity = {"clusterNames": ["sim-b1"], "exclude": ["sim-b1"]}
    _refused(scene, {"clusterAffinity": affinity, "replicaScheduling": DYNAMIC})
