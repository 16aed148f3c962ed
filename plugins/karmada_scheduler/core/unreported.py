"""What is stored and not reported, because a scheduler ended between its two patches.

The first patch has the clusters, the second one the condition, the generation and the affinity term in use. The next
leader finds what the second one would have had. A failure may be over without a decision, too: a workload is scaled
back, or a Guard plugin has refused what is not needed any more.

Differs: karmada-scheduler records the generation only, and begins with the term in the status.
"""

from __future__ import annotations

from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.placement import ClusterAffinityTerm
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.config.features import DecisionRules
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.classify import Classification, ScheduleType
from karmada_scheduler.framework.snapshot import Snapshot

_FAILURES: Final = {
    outcome.NO_CLUSTER_FIT,
    outcome.UNSCHEDULABLE,
    outcome.QUOTA_EXCEEDED,
    outcome.SCHEDULER_ERROR,
}


def reports_failure(binding: Binding) -> bool:
    """Return whether the condition of a binding reports a failure of a scheduler."""
    condition = binding.status.condition(SCHEDULED_CONDITION) or {}
    return condition.get("status") == "False" and condition.get("reason") in _FAILURES


def is_unreported(binding: Binding) -> bool:
    """Return whether the condition of a binding that needs no scheduling lacks the success that its clusters are."""
    if not binding.spec.clusters:
        return False
    has_no_report = (
        not binding.status.last_scheduled_time and binding.status.condition(SCHEDULED_CONDITION) is None
    )
    return has_no_report or reports_failure(binding)


def is_undecided_result(binding: Binding) -> bool:
    """Return whether a binding without clusters that needs no scheduling was decided, and has no condition.

    It may fit nowhere, or have no replicas; only another decision tells.
    """
    has_condition = binding.status.condition(SCHEDULED_CONDITION) is not None
    return bool(binding.applied_placement_json) and not binding.spec.clusters and not has_condition


def unreported_term(
    binding: Binding, classification: Classification, snapshot: Snapshot, rules: DecisionRules
) -> str:
    """Return the affinity term that the clusters of a binding were chosen by, if its status has another one; "" if not.

    It is the first one of the applied placement that selects all of them. The clusters of a status that is complete
    may also have left their term, by other labels: then its generation is observed, or the one change that is not observed
    is what asks for a decision.
    """
    status = binding.status
    if not binding.spec.clusters or _changes_placement(classification):
        return ""
    is_changed = classification.type is not ScheduleType.AVOID and not classification.is_routine
    if binding.generation - status.scheduler_observed_generation <= is_changed:
        return ""
    try:
        applied = binding.applied_placement
    except ManifestError:
        return ""
    if applied is None or not applied.cluster_affinities:
        return ""
    placement = rules.placement(applied)
    in_use = placement.affinity_term(status.scheduler_observing_affinity_name)
    if in_use is not None and _selects_targets(in_use, binding, snapshot):
        return ""
    terms = (term for term in placement.cluster_affinities if _selects_targets(term, binding, snapshot))
    return next((term.affinity_name for term in terms), "")


def _changes_placement(classification: Classification) -> bool:
    """Return whether a binding is scheduled for a changed placement or a request, which may end in any term."""
    return classification.type is ScheduleType.RECONCILE and not classification.is_routine


def _selects_targets(term: ClusterAffinityTerm, binding: Binding, snapshot: Snapshot) -> bool:
    """Return whether an affinity term selects all clusters of a binding; an overflow affinity does so for workloads."""
    overflow = term.overflow_affinities if binding.spec.is_workload else ()
    affinities = (term.affinity, *(tier.affinity for tier in overflow))
    clusters = [snapshot.get(target.name) for target in binding.spec.clusters]
    return all(
        cluster is not None and any(affinity.matches(cluster) for affinity in affinities)
        for cluster in clusters
    )
