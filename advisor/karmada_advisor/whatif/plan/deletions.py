"""Clusters that bindings leave, or do not leave: evictions because of taints, and deletions that do not end.

Karmada's taint manager evicts from clusters with new NoExecute taints. It reads the tolerations of the applied placement, and
acts only with ``--enable-no-execute-taint-eviction`` of karmada-controller-manager, which is off by default. A toleration for
a time delays an eviction.

Karmada's finalizer on a Cluster is removed once no binding names the cluster in ``spec.clusters``. Before that, the
namespace of its Works is deleted, so its copies end although it stays. Deleting a policy does not wait for anything: the
detector removes its claims, also if an API is no longer there. Nor does deleting a template: the Works of a cluster that is
not ready stay, and the binding goes.

Source: karmada v1.18.2 pkg/controllers/cluster/taint_manager.go; pkg/controllers/cluster/cluster_controller.go removeCluster;
pkg/detector/detector.go handlePolicyDeletion; pkg/controllers/binding/binding_controller.go;
pkg/controllers/execution/execution_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from karmada_advisor.explain.amounts import counted
from karmada_advisor.whatif.plan.decide import PlanSide, without_clusters
from karmada_advisor.whatif.plan.effects import Comparison
from karmada_advisor.whatif.plan.model import BlockedDeletion, Blocker, Effect
from karmada_advisor.whatif.plan.question import ClusterChange
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.matching import NO_EXECUTE, Taint
from karmada_scheduler.api.placement import Placement


def blocked(
    every: Mapping[BindingKey, Comparison], changed: Mapping[str, ClusterChange], side: PlanSide
) -> Iterator[BlockedDeletion]:
    """Yield the deleted clusters that stay Terminating, because bindings stay on them.

    Args:
        every: All bindings, decided.
        changed: The changed clusters, before and after.
        side: After the change.
    """
    for name in deleted_clusters(changed):
        found = tuple(
            Blocker(*key, comparison.effect, _reason(comparison, comparison.new, side))
            for key, comparison in every.items()
            if comparison.new is not None
            and not comparison.new.deleting
            and comparison.effect is not Effect.NOT_JUDGED
            and any(target.name == name for target in comparison.after)
        )
        if found:
            on_it = counted(len(found), "binding is", "bindings are")
            text = f"stays Terminating while {on_it} on it; Karmada deletes its Works there all the same"
            yield BlockedDeletion(f"{CLUSTER}/{name}", text, found)


def deleted_clusters(changed: Mapping[str, ClusterChange]) -> list[str]:
    """Return the names of the clusters that the change deletes."""
    return [
        name
        for name, (old, new) in changed.items()
        if new is not None and new.deleting and not (old is not None and old.deleting)
    ]


def _reason(each: Comparison, new: Binding, side: PlanSide) -> str:
    """Return why a binding stays where it is."""
    decided = each.decided
    if each.hold is not None:
        return each.hold.text
    if new.spec.placement is None:
        return "it has no placement, so no scheduler decides about it"
    if decided is None or not side.rules.may_decide(new):
        return "nothing asks for a decision about it"
    if decided.held is not None:
        return f"{decided.held.plugin} holds it: {decided.held.reason}"
    return decided.error or "the decision keeps it there"


Taints = Mapping[str, Sequence[Taint]]
"""Taints by the name of the cluster."""


def new_taints(
    changed: Mapping[str, tuple[Cluster | None, Cluster | None]], effect: str = NO_EXECUTE
) -> Taints:
    """Return the taints of an effect that clusters have after a change and did not have before."""
    found = {
        name: [taint for taint in new.taints if taint.effect == effect and not (old and taint in old.taints)]
        for name, (old, new) in changed.items()
        if new is not None
    }
    return {name: added for name, added in found.items() if added}


def evicted(binding: Binding, taints: Taints) -> Binding:
    """Return a binding after its evictions; the same object without any."""
    leaving = {
        target.name
        for target in binding.spec.clusters
        if target.name in taints and is_evictable(binding, taints[target.name])
    }
    return without_clusters(binding, leaving) if leaving else binding


def is_evictable(binding: Binding, taints: Sequence[Taint]) -> bool:
    """Return whether the taint manager takes a binding from a cluster with these NoExecute taints.

    Without an applied placement that can be read it fails, for ever, and evicts nothing.
    """
    return applied_placement(binding) is not None and not tolerates(binding, taints, forever=True)


def tolerates(binding: Binding, taints: Sequence[Taint], *, forever: bool = False) -> bool:
    """Return whether a binding tolerates taints.

    Args:
        binding: With its applied placement.
        taints: Of one cluster.
        forever: Whether tolerations for a time do not count.
    """
    placement = applied_placement(binding)
    if placement is None:
        return False
    tolerations = [
        each for each in placement.cluster_tolerations if not forever or each.toleration_seconds is None
    ]
    return all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in taints)


def applied_placement(binding: Binding) -> Placement | None:
    """Return the applied placement, None if there is none or it cannot be read."""
    try:
        return binding.applied_placement
    except ManifestError:
        return None
