"""What cannot be read: rights that are missing one at a time, objects that do not exist, clusters that are gone."""

from __future__ import annotations

import re

from tests import manifests
from tests.e2e.state.model import Expected, situation
from tests.e2e.state.plane import MINE
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import no_answer, not_placed
from tests.e2e.workload import DYNAMIC, condition, named
from tools.controlplane.karmada import CLUSTERS


def _healthy(scene: Scene) -> None:
    scene.web_applied(named("sim-a1", replicaScheduling=DYNAMIC))


def _broken(scene: Scene) -> None:
    scene.web(named("sim-a9", replicaScheduling=DYNAMIC))
    scene.wait_refused("NoClusterFit")


def _forbidden(what: str, right: str, *, user: str = "") -> str:
    return rf'{what}.*cannot (list|get) resource "{right}"'


def _without(right: str, *, broken: bool, problem: str) -> None:
    if broken:
        expected = Expected(
            "not placed", "none", headline=r"no cluster|0/\d+ clusters", cause="^ClusterUnknown: ", remedy="sim-a",
            problem=problem,
        )  # fmt: skip
    else:
        expected = Expected("placed", "all", headline="sim-a1 4", cause="^$|.", problem=problem)
    word = "broken" if broken else "healthy"
    named = situation(
        expected,
        name=f"without-the-right-to-read-{right}-{word}",
        source=f"A user who may not read {right} asks about a {word} binding.",
        rights=(right,),
        applies=False,
    )
    named(_broken if broken else _healthy)


@situation(
    no_answer(headline="", cause="", problem=r'cannot (list|get) resource "resourcebindings"'),
    rights=("bindings",),
    ask="rb/web-deployment",
)
def without_the_right_to_read_bindings(scene: Scene) -> None:
    """A user who may not read bindings asks."""
    _healthy(scene)


@situation(
    Expected(
        "placed",
        "all",
        headline="sim-a1 4",
        cause="^$|.",
        problem=r'cannot (list|get) resource "clusters"',
        status=2,
    ),
    rights=("clusters",),
)
def without_the_right_to_read_clusters(scene: Scene) -> None:
    """A user who may not read clusters asks."""
    _healthy(scene)


@situation(no_answer(headline="", cause="", problem=r"web.*does not exist|no .*web"))
def no_such_workload(scene: Scene) -> None:
    """There is no such workload."""
    return


@situation(
    not_placed(headline="no valid expression", cause="^Refused: .*no valid expression", remedy="^$|."),
    ask="rb/job",
    applies=False,
)
def binding_that_cannot_be_used(scene: Scene) -> None:
    """A binding has a label selector with an operator that does not exist.

    A label selector with an operator that does not exist passes the API server of a binding.
    """
    wrong = {"key": "kind", "operator": "Near", "values": ["sim"]}
    affinity = {"labelSelector": {"matchExpressions": [wrong]}}
    scene.notes["binding"] = "job"
    scene.client.create(
        manifests.untemplated(
            scene.namespace,
            "job",
            uid=f"uid-{scene.namespace}",
            policy_id="unreadable",
            replicas=2,
            schedulerName=MINE,
            placement={"clusterAffinity": affinity, "replicaScheduling": DYNAMIC},
        )
    )
    scene.wait(lambda found: condition(found).get("status") == "False", "refused", name="job")


@situation(
    Expected(
        "held",
        "all",
        headline=r"{cluster}|does not exist|suspen",
        cause=r"^\w+: .*(does not exist|suspen)",
        remedy="resume",
        fields={"state.rows": re.compile("does not exist")},
    ),
    applies=False,
)
def cluster_gone(scene: Scene) -> None:
    """A binding is placed on a cluster that no longer exists.

    It is placed, its scheduling is suspended, and its cluster is removed by force.
    """
    name = scene.cluster()
    scene.web_applied(named(name, "sim-c2", replicaScheduling=DYNAMIC))
    scene.patch_binding({"suspension": {"scheduling": True}})
    path = f"{CLUSTERS}/{name}"
    scene.client.delete(path)
    scene.client.patch(path, {"metadata": {"finalizers": None}})
    scene.karmada.wait_for(lambda: scene.client.find(path) is None, f"{name} to be gone")


@situation(Expected("held", "all", headline=r"suspen", cause=r"^Suspended: ", remedy="resume"))
def cluster_terminating(scene: Scene) -> None:
    """A cluster is being deleted, and a suspended binding keeps it.

    It is placed, its scheduling is suspended, and its cluster is deleted: the cluster waits for it.
    """
    name = scene.cluster()
    scene.web_applied(named(name, "sim-c2", replicaScheduling=DYNAMIC))
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.client.delete(f"{CLUSTERS}/{name}")
    scene.karmada.wait_for(
        lambda: scene.client.get(f"{CLUSTERS}/{name}")["metadata"].get("deletionTimestamp"), "its deletion"
    )


_without("policies", broken=False, problem='cannot (list|get) resource "(cluster)?propagationpolicies"')

_without("leases", broken=False, problem='cannot (list|get) resource "leases"')

_without("leases", broken=True, problem='cannot (list|get) resource "leases"')

_without("events", broken=False, problem='^$|cannot (list|get) resource "events"')

_without("works", broken=False, problem='^$|cannot (list|get) resource "works"')

_without("workloads", broken=False, problem='^$|cannot (list|get) resource "deployments"')
