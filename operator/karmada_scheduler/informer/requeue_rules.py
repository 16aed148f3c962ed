"""Which change wakes which binding.

Pure functions over values before and after a change. They err on the side of waking: a binding that was
woken for nothing is classified as Avoid and costs no write.

Source: karmada v1.18.2 pkg/scheduler/event_handler.go.
Differs: a policy that changed wakes its bindings, so that what a missed binding event left behind is
noticed; the placement is still read from the binding only. A cluster that is added counts as changed, and one
that changes or serves another API wakes what has no place and may go there
(docs/decisions/0021-unknown-clusters.md).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import ApiKinds, Cluster
from karmada_scheduler.api.placement import ClusterAffinity, Placement
from karmada_scheduler.api.policy import Policy
from karmada_scheduler.api.well_known import (
    CLUSTER_POLICY_ID_LABEL,
    MANAGED_BY_LABEL,
    POLICY_ID_LABEL,
    SCHEDULED_CONDITION,
)

BINDING_ADD: Final = "BindingAdd"
BINDING_UPDATE: Final = "BindingUpdate"
CLUSTER_CHANGED: Final = "ClusterChanged"
POLICY_CHANGED: Final = "PolicyChanged"
PLUGINS_CHANGED: Final = "PluginsChanged"
WORKLOAD_CHANGED: Final = "WorkloadChanged"
WENT_BACK: Final = "VersionsWentBack"
ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"

_CLAIMS: Final = (POLICY_ID_LABEL, CLUSTER_POLICY_ID_LABEL, MANAGED_BY_LABEL)


def is_ours(binding: Binding, scheduler_names: Container[str]) -> bool:
    """Tell whether a binding names one of our schedulers and its scheduling is not suspended."""
    spec = binding.spec
    return spec.responsible_scheduler in scheduler_names and not spec.scheduling_suspended


def is_responsible(binding: Binding, scheduler_names: Container[str]) -> bool:
    """Tell whether a binding is ours, and a policy or a controller claims it, so that its changes concern us.

    Dependencies that follow another binding are not claimed and have no placement. A binding whose policy is
    gone keeps its placement, and its clusters still concern us: one that is to go could not go otherwise.
    """
    return is_ours(binding, scheduler_names) and is_claimed(binding)


def is_claimed(binding: Binding) -> bool:
    """Tell whether a policy or a controller claims a binding."""
    return any(binding.labels.get(label) for label in _CLAIMS)


def on_binding(old: Binding | None, new: Binding | None, scheduler_names: Container[str]) -> str | None:
    """Name the event by which a change of a binding wakes it, None if it does not.

    A binding that becomes ours, by its scheduler's name, by being claimed or by being resumed, counts as
    added. One that was ours before is woken when its generation moved.
    """
    if new is None or not is_responsible(new, scheduler_names):
        return None
    if old is None or old.uid != new.uid or not is_responsible(old, scheduler_names):
        return BINDING_ADD
    return BINDING_UPDATE if old.generation != new.generation else None


def on_cluster(old: Cluster | None, new: Cluster | None) -> tuple[Cluster, ...]:
    """Return the versions of a changed cluster whose matching bindings must be looked at again.

    Labels and spec count, before and after the change, so that bindings leave a cluster as well as enter
    it; so does the beginning of a deletion. Status does not, as upstream: readiness arrives as a taint.
    """
    if old is None or new is None:
        return ()
    if new.deleting and not old.deleting:
        return (new,)
    if old.labels != new.labels or old.generation != new.generation:
        return (old, new)
    return ()


def gained_apis(old: Cluster, new: Cluster) -> ApiKinds:
    """Return the kinds that a cluster serves now and did not serve before."""
    if old.api_kinds is new.api_kinds or new.deleting:
        return frozenset()
    return new.api_kinds - old.api_kinds


def is_unplaced(binding: Binding) -> bool:
    """Tell whether the last attempt to schedule a binding did not succeed, or there was none."""
    condition = binding.status.condition(SCHEDULED_CONDITION)
    return condition is None or condition.get("status") != "True"


def may_take(cluster: Cluster, placement: Placement) -> bool:
    """Tell whether any affinity of a placement means a cluster, be it that of a later term or of an overflow tier."""
    terms = placement.cluster_affinities
    if not terms:
        return placement.cluster_affinity is None or placement.cluster_affinity.matches(cluster)
    return any(
        term.affinity.matches(cluster)
        or any(overflow.affinity.matches(cluster) for overflow in term.overflow_affinities)
        for term in terms
    )


def is_affected(binding: Binding, cluster: Cluster) -> bool:
    """Tell whether a binding has to be looked at again because of one version of a cluster."""
    placement = binding.spec.placement
    if placement is None:
        return False
    if placement.cluster_affinities and binding.status.scheduler_observed_generation != binding.generation:
        return True
    affinity = _affinity_in_force(placement, binding.status.scheduler_observing_affinity_name)
    return affinity is None or affinity.matches(cluster)


def _affinity_in_force(placement: Placement, observed: str) -> ClusterAffinity | None:
    if placement.cluster_affinities:
        term = placement.affinity_term(observed) or placement.cluster_affinities[0]
        return term.affinity
    return placement.cluster_affinity


def on_policy(old: Policy | None, new: Policy | None) -> str | None:
    """Return the permanent id whose bindings a change of a policy wakes, None if it wakes none."""
    policy = new or old
    if policy is None or not policy.permanent_id:
        return None
    if old is not None and new is not None and old.generation == new.generation:
        return None
    return policy.permanent_id
