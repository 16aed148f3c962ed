"""Deletions that do not end: what a deleted Cluster waits for.

Karmada's finalizer on a Cluster is removed once no binding names the cluster in ``spec.clusters``. Before that, the
namespace of its Works is deleted, so its copies end although it stays. Deleting a policy does not wait for anything: the
detector removes its claims, also if an API is no longer there. Nor does deleting a template: the Works of a cluster that is
not ready stay, and the binding goes.

Source: karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go removeCluster; pkg/detector/detector.go
handlePolicyDeletion; pkg/controllers/binding/binding_controller.go; pkg/controllers/execution/execution_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from karmada_advisor.plan.decide import PlanSide
from karmada_advisor.plan.effects import Comparison
from karmada_advisor.plan.model import BlockedDeletion, Blocker
from karmada_advisor.plan.parsed import ClusterChange
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER


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
            Blocker(*key, each.effect, _reason(each, each.new, side))
            for key, each in every.items()
            if each.new is not None
            and not each.new.deleting
            and any(target.name == name for target in each.after)
            and not _is_of_another(each.new, side)
        )
        if found:
            are = "binding is" if len(found) == 1 else "bindings are"
            text = f"stays Terminating while {len(found):,} {are} on it; Karmada deletes its Works there all the same"
            yield BlockedDeletion(f"{CLUSTER}/{name}", text, found)


def deleted_clusters(changed: Mapping[str, ClusterChange]) -> list[str]:
    """Return the names of the clusters that the change deletes."""
    return [
        name
        for name, (old, new) in changed.items()
        if new is not None and new.deleting and not (old is not None and old.deleting)
    ]


def _is_of_another(binding: Binding, side: PlanSide) -> bool:
    """Return whether another scheduler decides about a binding, and the plan does not know what."""
    return binding.spec.placement is not None and side.rules.frameworks.of(binding) is None


def _reason(each: Comparison, new: Binding, side: PlanSide) -> str:
    """Return why a binding stays where it is."""
    decided = each.decided
    if each.hold is not None:
        return each.hold.text
    if new.spec.placement is None:
        return "it has no placement, so no scheduler decides about it"
    if decided is None or not side.may_decide(new):
        return "nothing asks for a decision about it"
    if decided.held is not None:
        return f"{decided.held.plugin} holds it: {decided.held.reason}"
    return decided.error or "the decision keeps it there"
