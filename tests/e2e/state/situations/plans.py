"""Plans of changes to healthy and held bindings: mistakes in them, quotas, and deletions that do not end."""

from __future__ import annotations

import re
from typing import Any

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.plane import MINE
from tests.e2e.state.scene import DEPLOYMENT, Scene
from tests.e2e.state.situations.holds import quota
from tests.e2e.workload import DYNAMIC, named
from tools.controlplane import Object


def _healthy(scene: Scene) -> None:
    scene.web_applied(named("real1", "real2", replicaScheduling=DYNAMIC))


def _on_a_cluster_of_its_own(scene: Scene) -> None:
    name = scene.cluster()
    scene.web_applied(named(name, "sim-c2", replicaScheduling=DYNAMIC))


def _policy(scene: Scene, *clusters: str, name: str = "web", **spec: Any) -> Object:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": scene.namespace},
        "spec": {
            "resourceSelectors": [{**DEPLOYMENT, "name": name}],
            "placement": named(*clusters, replicaScheduling=DYNAMIC),
            "schedulerName": MINE,
            **spec,
        },
    }


PLACED = Expected("placed", "all", headline=r"\w+ \d")
PLAN = ("plan", "-f", "{file}", "--fail-on=warnings")


@situation(
    PLACED,
    also=(
        Also(
            PLAN,
            1,
            fields={"warnings": re.compile("ClusterUnknown.*sim-a9.*sim-a[12]", re.DOTALL)},
            says="sim-a9",
            file=lambda scene: _policy(scene, "real1", "sim-a9"),
        ),
    ),
)
def plan_of_a_mistyped_cluster(scene: Scene) -> None:
    """An edited policy names a cluster that does not exist."""
    _healthy(scene)


@situation(
    PLACED,
    also=(
        Also(
            PLAN,
            1,
            says=r"web\b.*->.*wbe.*released.*{namespace}/web-deployment",
            file=lambda scene: _policy(scene, "real1", "real2", name="wbe"),
        ),
    ),
)
def plan_of_a_mistyped_selector(scene: Scene) -> None:
    """An edited policy selects a workload that does not exist, and releases the one that it had."""
    _healthy(scene)


@situation(
    PLACED,
    also=(
        Also(
            ["plan", "--without={cluster}", "--fail-on=blocked"],
            0,
            r"{cluster} is gone",
            effect="moved",
            never="Terminating",
        ),
    ),
)
def plan_of_a_deletion(scene: Scene) -> None:
    """A cluster with a healthy binding is to be deleted."""
    _on_a_cluster_of_its_own(scene)


@situation(
    Expected("held", "all", headline="suspen", cause="^Suspended: ", remedy="resume"),
    applies=False,
    also=(
        Also(
            ["plan", "--without={cluster}", "--fail-on=blocked"],
            1,
            r"{cluster} stays Terminating",
            says=r"{namespace}/web-deployment",
            never="{cluster} is gone",
        ),
    ),
)
def plan_of_a_deletion_that_does_not_end(scene: Scene) -> None:
    """A cluster with a suspended binding is to be deleted."""
    _on_a_cluster_of_its_own(scene)
    scene.patch_binding({"suspension": {"scheduling": True}})


@situation(
    PLACED,
    also=(
        Also(
            ["plan", "--scale={namespace}/web=10", "--fail-on=none"],
            0,
            says="quota",
            effect="held",
            never=r"Plan: [1-9]\d* moved",
        ),
    ),
)
def plan_of_a_scale_beyond_a_quota(scene: Scene) -> None:
    """A workload is to be scaled beyond its quota."""
    quota(scene, cpu="3")
    _healthy(scene)
