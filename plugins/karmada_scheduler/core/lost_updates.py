"""Clusters that did not get the replicas of a binding, as far as stored state shows it.

Karmada's binding controller compares the manifest that it renders with the Work in its cache. If a share is taken and
given back within milliseconds, the cache may lack the controller's own last write, and the controller finds nothing to
do. The Work then keeps the old number until the generation of the binding changes.

Source: karmada v1.18.2 pkg/controllers/binding/binding_controller.go (GenerationChangedPredicate) and
pkg/controllers/ctrlutil/work.go (CreateOrUpdateWork).
"""

from __future__ import annotations

from typing import Final

from karmada_scheduler.api.binding import Binding

_FULLY_APPLIED: Final = "FullyApplied"


def clusters_with_other_replicas(binding: Binding) -> tuple[str, ...]:
    """Return the clusters that report another number of replicas than their share, or have no Work.

    Reports of another number may be right: an autoscaler or a quota of the cluster changes it, too. A cluster that is not
    in ``aggregatedStatus`` has no Work, if Karmada has reported about the binding before.
    """
    spec, status = binding.spec, binding.status
    is_reported = status.condition(_FULLY_APPLIED) is not None
    if binding.deleting or spec.graceful_eviction_tasks or len(spec.components) > 1 or not is_reported:
        return ()
    reported = {report.cluster_name for report in status.aggregated_status}
    reports = status.reported_by_cluster()
    return tuple(
        name
        for name, share in spec.clusters
        if name not in reported or reports.get(name, (share,))[0] != share
    )
