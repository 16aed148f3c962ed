"""The in-tree plugins, in running order: those of upstream sorted by name, then those for steps that are not plugins upstream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.framework.profile.factory import OURS, Factory, Registration
from karmada_scheduler.framework.profile.registry import Registry
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler_plugins.api_enablement import APIEnablement
from karmada_scheduler_plugins.cluster_affinity import ClusterAffinity
from karmada_scheduler_plugins.cluster_eviction import ClusterEviction
from karmada_scheduler_plugins.default_plugins import (
    ClusterLocality,
    DefaultAssigner,
    DefaultBinder,
    DefaultSelector,
    PrioritySort,
)
from karmada_scheduler_plugins.spread_constraint import SpreadConstraint
from karmada_scheduler_plugins.taint_toleration import TaintToleration
from karmada_scheduler_plugins.workload_affinity import WorkloadAffinity, WorkloadAntiAffinity

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
MANDATORY: Final[dict[str, Factory]] = {
    "PrioritySort": PrioritySort,
    "DefaultSelector": DefaultSelector,
    "DefaultAssigner": DefaultAssigner,
    "DefaultBinder": DefaultBinder,
}
"""Steps that are not plugins upstream: a profile can replace them, ``--plugins`` cannot switch them off."""

OPT_IN: Final[dict[str, str]] = {
    "FailBack": f"{__package__}.fail_back:FailBack",
    "FairShare": f"{__package__}.fair_share:FairShare",
    "FreshFirst": f"{__package__}.fresh_first:FreshFirst",
    "PlacementGuard": f"{__package__}.placement_guard:PlacementGuard",
    "StartedCapacity": f"{__package__}.started_capacity:StartedCapacity",
    "StrictPriority": f"{__package__}.strict_priority:StrictPriority",
}
"""Plugins that karmada-scheduler does not have: only those run, and are imported, that a profile or ``--plugins`` names."""

KEEPS_PLACEMENTS, KEEPS_BY = "PlacementGuard", "nothingFits: keep"
"""The plugin, and its args, with which what runs stays if no cluster fits."""

API_REASON: Final = "cluster(s) did not have the API resource"
REASONS: Final = (
    "ResourceBinding with the same affinity group",
    "ResourceBindingIndexer is nil",
    "cluster already has workload with the same anti-affinity group",
    "cluster(s) did not have",
    "cluster(s) did not match",
    "cluster(s) had untolerated taint",
    "cluster(s) is in the process of eviction",
)
"""How the reasons of the in-tree filters begin, in karmada-scheduler as well; the taints and properties follow."""

_GATED: Final = {"WorkloadAffinity": "WorkloadAffinity", "WorkloadAntiAffinity": "WorkloadAffinity"}


def in_tree(gates: FeatureGates) -> Registry:
    """Return the in-tree plugins that the feature gates allow."""
    registry = Registry()
    for name, factory in IN_TREE.items():
        if name not in _GATED or gates.enabled(_GATED[name]):
            registry.add(Registration(name, factory, OURS))
    for name, factory in MANDATORY.items():
        registry.add(Registration(name, factory, OURS, mandatory=True))
    made_by: dict[str, Factory | str] = {**OPT_IN}
    if gates.enabled("SchedulingOvercommitProtection"):
        from karmada_scheduler_plugins.strict_priority import StrictPriority

        made_by["StrictPriority"] = partial(StrictPriority, deducts=False)
    for name, plugin in made_by.items():
        registry.add(Registration(name, plugin, OURS, opt_in=True))
    return registry


def warnings_about(profiles: Mapping[str, ProfilePlugins]) -> Iterator[str]:
    """Yield what the in-tree plugins of a profile do in this combination that its author may not expect."""
    from karmada_scheduler_plugins.fail_back import FailBack
    from karmada_scheduler_plugins.placement_guard import PlacementGuard

    for name, plugins in sorted(profiles.items()):
        is_graceful = any(isinstance(each, PlacementGuard) and each.is_graceful for each in plugins.guard)
        if not is_graceful and any(isinstance(plugin, FailBack) for plugin in plugins.reconsider):
            yield (
                f'FailBack of profile "{name}" moves workloads ungracefully: Karmada deletes the old copy first; '
                "enable PlacementGuard with graceful.enabled"
            )
