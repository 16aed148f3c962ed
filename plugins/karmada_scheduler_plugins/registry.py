"""The in-tree plugins, in running order: sorted by name."""

from __future__ import annotations

from typing import Final, Protocol

from karmada_scheduler.framework import Factory, Registry
from karmada_scheduler_plugins.api_enablement import APIEnablement
from karmada_scheduler_plugins.cluster_affinity import ClusterAffinity
from karmada_scheduler_plugins.cluster_eviction import ClusterEviction
from karmada_scheduler_plugins.cluster_locality import ClusterLocality
from karmada_scheduler_plugins.spread_constraint import SpreadConstraint
from karmada_scheduler_plugins.taint_toleration import TaintToleration
from karmada_scheduler_plugins.workload_affinity import WorkloadAffinity
from karmada_scheduler_plugins.workload_anti_affinity import WorkloadAntiAffinity

IN_TREE: Final[dict[str, Factory]] = {
    "APIEnablement": APIEnablement,
    "ClusterAffinity": ClusterAffinity,
    "ClusterEviction": ClusterEviction,
    "ClusterLocality": ClusterLocality,
    "SpreadConstraint": SpreadConstraint,
    "TaintToleration": TaintToleration,
    "WorkloadAffinity": WorkloadAffinity,
    "WorkloadAntiAffinity": WorkloadAntiAffinity,
}
_GATED: Final = {"WorkloadAffinity": "WorkloadAffinity", "WorkloadAntiAffinity": "WorkloadAffinity"}


class Gates(Protocol):
    """Tells which feature gates are on."""

    def enabled(self, name: str) -> bool:
        """Tell whether a gate is on."""
        ...


def in_tree(gates: Gates) -> Registry:
    """Return the in-tree plugins that the feature gates allow."""
    return Registry(
        {
            name: factory
            for name, factory in IN_TREE.items()
            if name not in _GATED or gates.enabled(_GATED[name])
        }
    )
