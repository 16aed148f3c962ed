"""Which bindings Karmada's taint manager evicts from clusters with new NoExecute taints.

The taint manager reads the tolerations of the applied placement. A toleration for a time delays an eviction.

Source: karmada v1.18.2 pkg/controllers/cluster/taint_manager.go. It acts only with
``--enable-no-execute-taint-eviction`` of karmada-controller-manager, which is off by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karmada_advisor.plan.decide import without_clusters
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.placement import Placement

NO_EXECUTE = "NoExecute"

Taints = Mapping[str, Sequence[Taint]]
"""Taints by the name of the cluster."""


def new_taints(
    changed: Mapping[str, tuple[Cluster | None, Cluster | None]], effect: str = NO_EXECUTE
) -> Taints:
    """Return the taints of an effect that clusters have after a change and did not have before."""
    found = {}
    for name, (old, new) in changed.items():
        if new is None:
            continue
        had = old.taints if old is not None else ()
        added = [each for each in new.taints if each.effect == effect and each not in had]
        if added:
            found[name] = added
    return found


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
    return _applied(binding) is not None and not tolerates(binding, taints, forever=True)


def tolerates(binding: Binding, taints: Sequence[Taint], *, forever: bool = False) -> bool:
    """Return whether a binding tolerates taints.

    Args:
        binding: With its applied placement.
        taints: Of one cluster.
        forever: Whether tolerations for a time do not count.
    """
    placement = _applied(binding)
    if placement is None:
        return False
    tolerations = [
        each for each in placement.cluster_tolerations if not forever or each.toleration_seconds is None
    ]
    return all(any(each.tolerates(taint) for each in tolerations) for taint in taints)


def _applied(binding: Binding) -> Placement | None:
    """Return the applied placement, None if there is none or it cannot be read."""
    try:
        return binding.applied_placement
    except ManifestError:
        return None
