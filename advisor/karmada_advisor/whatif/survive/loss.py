"""A binding after the loss of some clusters: what the taint manager, or the deletion of the clusters, makes of it.

Three worlds follow a loss. *Gone*: the lost clusters have NoExecute taints, and eviction works, as far as bindings do
not tolerate them for ever. *Itself*: what Karmada does automatically, by default no more than a NoSchedule taint.
*Deleted*: the Cluster objects are deleted; nothing is tolerated.

The scheduler's decisions are made about one unchanged snapshot, in which lost clusters are masked by graceful eviction
tasks: a cluster with a task is refused, as a tainted one would be, and only the clusters with a task are filtered again.
Only clusters that would pass need a mask.

Lost clusters have Karmada's own taints, and those that ClusterTaintPolicies add once a cluster is not ready. Both
ClusterTaintPolicies and evictions need the gate Failover.

Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go taintClusterByCondition, taint_manager.go,
pkg/controllers/taint/clustertaintpolicy_controller.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from karmada_advisor.state.stored import mapping, mappings
from karmada_advisor.whatif.plan.cluster_edits import NOT_READY
from karmada_advisor.whatif.plan.deletions import applied_placement
from karmada_advisor.whatif.plan.holds import HoldOf, nothing_holds
from karmada_advisor.whatif.survive.classify import PresentOn
from karmada_advisor.whatif.survive.domains import FailureDomain
from karmada_scheduler.api.binding import Binding, BindingKey, GracefulEvictionTask
from karmada_scheduler.api.cluster import READY, Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.matching import NO_EXECUTE, Taint
from karmada_scheduler.api.object_fields import read_object
from karmada_scheduler.api.placement import ClusterAffinity
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, field, replace

UNREACHABLE: Final = "cluster.karmada.io/unreachable"
LOST: Final = Taint(UNREACHABLE, "", NO_EXECUTE)
"""The taint from which bindings are evicted if no ClusterTaintPolicy adds another one."""


class Loss(Enum):
    """What follows a loss."""

    GONE = "gone"
    """Bindings are evicted, as far as they do not tolerate it."""
    ITSELF = "itself"
    """What Karmada does automatically."""
    DELETED = "deleted"
    """The Cluster objects are deleted."""


class LeftBehind(NamedTuple):
    """A binding after a loss and before a decision.

    Attributes:
        binding: Without the clusters from which it is evicted.
        present: The lost clusters on which it was.
        is_evicted: Whether it leaves them.
        decides: Whether a decision follows.
    """

    binding: Binding
    present: frozenset[str]
    is_evicted: bool
    decides: bool


def eviction_delay(binding: Binding, taints: Collection[Taint]) -> int:
    """Return the seconds from some taints to the eviction: the earliest of the tolerations that are used, 0 without one."""
    placement = applied_placement(binding)
    tolerations = placement.cluster_tolerations if placement else ()
    seconds = (
        toleration.toleration_seconds
        for toleration in tolerations
        if toleration.toleration_seconds is not None and any(map(toleration.tolerates, taints))
    )
    return max(0, min(seconds, default=0))


def admits(binding: Binding, taints: Collection[Taint], loss: Loss) -> bool:
    """Return whether a binding tolerates the taints of a lost cluster, so that it may be placed there again."""
    placement = binding.spec.placement
    if loss is Loss.DELETED or placement is None:
        return False
    return all(any(each.tolerates(taint) for each in placement.cluster_tolerations) for taint in taints)


def masked(binding: Binding, names: Collection[str]) -> Binding:
    """Return a binding for which some clusters are refused; the tasks that do it are no evictions."""
    tasks = tuple(GracefulEvictionTask(name) for name in sorted(names))
    spec = binding.spec
    return replace(
        binding, spec=replace(spec, graceful_eviction_tasks=(*spec.graceful_eviction_tasks, *tasks))
    )


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

    def evicting_any(self, names: Iterable[str], loss: Loss) -> Sequence[Taint]:
        """Return the NoExecute taints of clusters that are lost together."""
        return [taint for name in names for taint in self.evicting(name, loss)]

    def no_execute(self, name: str) -> tuple[Taint, ...]:
        """Return the NoExecute taints that ClusterTaintPolicies add to a cluster."""
        return tuple(taint for taint in self.by_policies.get(name, ()) if taint.effect == NO_EXECUTE)

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
        Taint(str(entry.get("key") or ""), str(entry.get("value") or ""), str(entry.get("effect") or ""))
        for entry in mappings(spec.get("taints"))
    ]
    if _matches(cluster, list(mappings(spec.get("addOnConditions")))):
        for taint in named:
            taints.setdefault((taint.key, taint.effect), taint)
    if _matches(cluster, list(mappings(spec.get("removeOnConditions")))):
        for taint in named:
            taints.pop((taint.key, taint.effect), None)


def _matches(cluster: Cluster, conditions: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a lost cluster has all of some conditions; an empty list matches nothing."""
    status = {condition.type: condition.status for condition in cluster.conditions}
    status[READY] = "Unknown" if cluster.sync_mode == _PULL else "False"
    for condition in conditions:
        values, now = condition.get("statusValues") or (), status.get(str(condition.get("conditionType")))
        if now is None or (now in values) is not (condition.get("operator") == "In"):
            return False
    return bool(conditions)


def never() -> bool:
    return False


class LossInputs(Struct, frozen=True):
    """Everything that the forecast of losses reads.

    Attributes:
        clusters: All clusters.
        bindings: All bindings, in the order in which they were read.
        rules: The configuration of the scheduler.
        domains: What is lost, each alone.
        losses: The worlds after a loss.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
        purge_modes: ``spec.failover.cluster.purgeMode`` of the bindings that have one.
        purge_mode: Of the others; "" for Karmada's default.
        taints: Of lost clusters.
        present: What is known to run of each binding; of those that are left out, all that is assigned.
        is_over: Whether to end with the domains that are done.
        snapshot: The same clusters; None to make one. Of a sequence with a log of changes, caches stay hot.
    """

    clusters: Sequence[Cluster]
    bindings: Sequence[Binding]
    rules: DryRun
    domains: Sequence[FailureDomain]
    losses: Sequence[Loss] = (Loss.GONE, Loss.ITSELF)
    hold_of: HoldOf = nothing_holds
    purge_modes: Mapping[BindingKey, str] = field(default_factory=dict)
    purge_mode: str = ""
    taints: LossTaints = NO_POLICIES
    present: Mapping[BindingKey, PresentOn] = field(default_factory=dict)
    is_over: Callable[[], bool] = never
    snapshot: Snapshot | None = None
