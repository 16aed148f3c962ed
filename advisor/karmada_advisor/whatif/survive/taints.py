"""The taints of lost clusters: Karmada's own, and those that ClusterTaintPolicies add once a cluster is not ready.

Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go taintClusterByCondition,
pkg/controllers/taint/clustertaintpolicy_controller.go; both ClusterTaintPolicies and evictions need the gate Failover.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.state.stored import mapping, mappings
from karmada_advisor.whatif.plan.deletions import NO_EXECUTE
from karmada_advisor.whatif.survive.loss import LOST, NOT_READY, UNREACHABLE, Loss
from karmada_scheduler.api.cluster import READY, Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.structs import Struct, field, replace

_PULL: Final = "Pull"


class LossTaints(Struct, frozen=True):
    """The taints of lost clusters.

    Attributes:
        by_policies: What ClusterTaintPolicies add to clusters that are not ready, by the name of the cluster.
        acts: Whether they do so by themselves: the gate Failover is on.
        evicts: Whether bindings are then evicted automatically: the flag for that is on as well.
    """

    by_policies: Mapping[str, tuple[Taint, ...]] = field(default_factory=dict)
    acts: bool = False
    evicts: bool = False

    def of(self, cluster: Cluster, loss: Loss) -> tuple[Taint, ...]:
        """Return the taints that a cluster gets when it is lost."""
        condition = Taint(UNREACHABLE if cluster.sync_mode == _PULL else NOT_READY, "", "NoSchedule")
        if loss is Loss.ITSELF:
            return (condition, *(self.by_policies.get(cluster.name, ()) if self.acts else ()))
        return (condition, *self.evicting(cluster.name, loss))

    def evicting(self, name: str, loss: Loss) -> tuple[Taint, ...]:
        """Return the NoExecute taints from which bindings are evicted when a cluster is lost."""
        if loss is Loss.ITSELF and not self.evicts:
            return ()
        found = self.no_execute(name)
        return found if loss is Loss.ITSELF else found or (LOST,)

    def no_execute(self, name: str) -> tuple[Taint, ...]:
        """Return the NoExecute taints that ClusterTaintPolicies add to a cluster."""
        return tuple(each for each in self.by_policies.get(name, ()) if each.effect == NO_EXECUTE)

    def lost(self, cluster: Cluster, loss: Loss) -> Cluster:
        """Return a cluster as its loss leaves it: being deleted, or with the taints."""
        if loss is Loss.DELETED:
            return replace(cluster, deleting=True)
        return replace(cluster, taints=(*cluster.taints, *self.of(cluster, loss)))


NO_POLICIES: Final = LossTaints()
"""The taints without any ClusterTaintPolicy, where nothing is evicted automatically."""


def taints_by_policies(
    policies: Iterable[Manifest], clusters: Iterable[Cluster]
) -> dict[str, tuple[Taint, ...]]:
    """Return the taints that ClusterTaintPolicies add to each cluster once its condition Ready is not True.

    Args:
        policies: ClusterTaintPolicies.
        clusters: All clusters.

    Raises:
        ManifestError: A policy cannot be read.
    """
    ordered = sorted(
        policies, key=lambda each: str(mapping(each.get("metadata")).get("creationTimestamp") or "")
    )
    found = {}
    for cluster in clusters:
        taints: dict[tuple[str, str], Taint] = {}
        for policy in ordered:
            _apply(mapping(policy.get("spec")), cluster, taints)
        if taints:
            found[cluster.name] = tuple(taints.values())
    return found


def _apply(spec: Mapping[str, Any], cluster: Cluster, taints: dict[tuple[str, str], Taint]) -> None:
    targets = spec.get("targetClusters")
    if isinstance(targets, Mapping) and not read_object(
        ClusterAffinity, targets, "spec.targetClusters"
    ).matches(cluster):
        return
    named = [
        Taint(str(each.get("key") or ""), str(each.get("value") or ""), str(each.get("effect") or ""))
        for each in mappings(spec.get("taints"))
    ]
    if _matches(cluster, list(mappings(spec.get("addOnConditions")))):
        for each in named:
            taints.setdefault((each.key, each.effect), each)
    if _matches(cluster, list(mappings(spec.get("removeOnConditions")))):
        for each in named:
            taints.pop((each.key, each.effect), None)


def _matches(cluster: Cluster, conditions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a lost cluster has all of some conditions; an empty list matches nothing."""
    status = {each.type: each.status for each in cluster.conditions}
    status[READY] = "Unknown" if cluster.sync_mode == _PULL else "False"
    for each in conditions:
        values, now = each.get("statusValues") or (), status.get(str(each.get("conditionType")))
        if now is None or (now in values) is not (each.get("operator") == "In"):
            return False
    return bool(conditions)
