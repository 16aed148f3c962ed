"""Spread constraints that cannot be met."""

from __future__ import annotations

from tests.e2e.state.model import situation
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import REFUSED, not_placed
from tests.e2e.workload import DYNAMIC, condition, named
from tools.manifests import spread


@situation(
    not_placed(
        headline=r"minGroups|feasible|available",
        cause=r"^MinGroupsUnmet: .*1.*2",
        remedy=r"tolera|minGroups",
        fields={"condition.agrees": True},
    )
)
def spread_one_refused(scene: Scene) -> None:
    """Two clusters wanted, one of them tainted."""
    name = scene.cluster(taints=[{"key": "team", "value": "blue", "effect": "NoSchedule"}])
    placement = named("sim-a1", name, replicaScheduling=DYNAMIC, spreadConstraints=[spread("cluster", 2, 2)])
    scene.web(placement)
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")


@situation(
    not_placed(
        headline=r"group|region|feasible",
        cause=r"^Min(Regions|Groups)Unmet: ",
        remedy=r"minGroups \d",
    )
)
def spread_nine_groups(scene: Scene) -> None:
    """Nine regions wanted, fewer are feasible."""
    constraints = [spread("region", 9, 9), spread("cluster", 9, 20)]
    scene.web({"clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["real", "sim"]}]}}, "replicaScheduling": DYNAMIC, "spreadConstraints": constraints}, replicas=18)  # fmt: skip
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")


@situation(
    not_placed(
        headline=r"group|region|feasible",
        cause=r"^MinRegionsUnmet: ",
        remedy=r"minGroups 1|clusterNames",
        never=r"spec\.region",
    )
)
def spread_one_region(scene: Scene) -> None:
    """Two regions wanted, both clusters are in one."""
    constraints = [spread("region", 2, 2), spread("cluster", 2, 2)]
    scene.web(named("sim-b1", "sim-b2", replicaScheduling=DYNAMIC, spreadConstraints=constraints))
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")


@situation(not_placed(headline=REFUSED, cause=r"^RegionMissing: ", remedy=r"region|clusterNames"))
def spread_region_not_set(scene: Scene) -> None:
    """A spread constraint by region, and a cluster without one."""
    name = scene.cluster(region="", zone="")
    constraints = [spread("region", 1, 1), spread("cluster", 1, 1)]
    scene.web(named(name, replicaScheduling=DYNAMIC, spreadConstraints=constraints))
    scene.wait_refused("NoClusterFit")


@situation(not_placed(headline=r"0 clusters|maxGroups", cause=r"^MaxGroupsZero: ", remedy=r"maxGroups"))
def spread_without_maximum(scene: Scene) -> None:
    """MaxGroups is not set."""
    # The webhook sets what a policy leaves out, so the constraint is as written by a client of the API.
    constraints = [{"spreadByField": "cluster", "minGroups": 1}]
    scene.web(named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC, spreadConstraints=constraints))
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")
