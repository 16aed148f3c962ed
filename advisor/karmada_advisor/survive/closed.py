"""The remedies that need no search.

No decision after a loss reaches that a workload runs in several places, since nothing is left then. So a spread constraint
demands two clusters, or two regions, and a WorkloadRebalancer divides the replicas again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.remedy_model import ObjectPatch, ObjectShown
from karmada_advisor.state.stored import mappings, value_at
from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.model import LossSettings
from karmada_advisor.survive.settings import PROGRAM
from karmada_advisor.whynot.edits import Edit, ObjectRef, PatchAction, Side, edit
from karmada_advisor.whynot.model import EditShown
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION

_SECONDS: Final = 300
"""What Karmada once gave to placements without tolerations, and Kubernetes gives to Pods."""


def closed_edits(
    effect: LossClass, manifest: Mapping[str, Any], binding: Binding, taints: Sequence[Taint]
) -> Sequence[Sequence[Edit]]:
    """Return the edits of a policy that a class has without a search.

    Args:
        effect: The class.
        manifest: Of a binding of the policy.
        binding: The same.
        taints: From which it would be evicted.
    """
    ref = ObjectRef(*binding.key)
    if effect is LossClass.BLOCKED:
        path = ("spec", "failover", "cluster", "purgeMode")
        text = "failover.cluster.purgeMode Gracefully"
        return [
            [edit(Side.POLICY, "setPurgeMode", ref, PatchAction.SET, path, value="Gracefully", text=text)]
        ]
    if effect is LossClass.NOT_EVICTED:
        return [[each] for each in _toleration_seconds(ref, manifest, binding, taints)]
    return []


def _toleration_seconds(
    ref: ObjectRef, manifest: Mapping[str, Any], binding: Binding, taints: Sequence[Taint]
) -> Sequence[Edit]:
    """Return the edits that end an eternal toleration: one of those that tolerate the taint suffices."""
    placement = binding.spec.placement
    listed = value_at(manifest, "spec", "placement", "clusterTolerations")
    if placement is None or not isinstance(listed, list):
        return []
    found = []
    for index, each in enumerate(placement.cluster_tolerations):
        if any(map(each.tolerates, taints)) and each.toleration_seconds is None and index < len(listed):
            path = ("spec", "placement", "clusterTolerations", index, "tolerationSeconds")
            name = each.key or "every key"
            text = f"tolerationSeconds {_SECONDS} of the toleration of {name}"
            found.append(
                edit(
                    Side.POLICY, "setTolerationSeconds", ref, PatchAction.SET, path, value=_SECONDS, text=text
                )
            )
    return found


def resume_patches(keys: Sequence[BindingKey]) -> tuple[tuple[EditShown, ...], tuple[ObjectPatch, ...]]:
    """Return that the scheduling of some bindings is resumed, and the patches: policies have no such field."""
    shown = [ObjectShown(*each) for each in keys]
    text = f"resume the scheduling of {counted(len(keys), 'binding')}: spec.suspension.scheduling false"
    edits = tuple(EditShown(Side.TRIGGER, "resume", each, text) for each in shown[:1])
    operation = {"op": "replace", "path": "/spec/suspension/scheduling", "value": False}
    return edits, tuple(ObjectPatch(each, (operation,)) for each in shown)


def guard_edit() -> EditShown:
    """Return the plugin that keeps what still runs if nothing fits."""
    text = "plugin PlacementGuard with nothingFits: keep, so that what is elsewhere stays"
    return EditShown(Side.CONFIGURATION, "enablePlugin", ObjectShown("Scheduler", "", "PlacementGuard"), text)


def settings_edit(settings: LossSettings) -> tuple[EditShown, tuple[str, ...]]:
    """Return what lets Karmada evict from lost clusters by itself, and the flags of karmada-controller-manager."""
    flags = [] if settings.failover else ["--feature-gates=Failover=true"]
    flags += [] if settings.eviction else ["--enable-no-execute-taint-eviction=true"]
    text = (
        f"{PROGRAM} {' '.join(flags)}, and a ClusterTaintPolicy with a NoExecute taint for clusters that are not ready "
        "(karmada-webhook --allow-no-execute-taint-policy=true)"
    )
    return EditShown(Side.CONFIGURATION, "setFlags", ObjectShown("Deployment", "", PROGRAM), text), tuple(
        flags
    )


_PATH: Final = ("spec", "placement", "spreadConstraints")
_PLACES: Final = 2


def spreading_edits(ref: ObjectRef, manifest: Mapping[str, Any]) -> Iterator[Sequence[Edit]]:
    """Yield the edits of a placement that demand two clusters, then those that demand two regions.

    Args:
        ref: The object with the placement.
        manifest: The same as it was read.
    """
    listed = list(mappings(value_at(manifest, *_PATH)))
    by_cluster = list(_demanding(ref, listed, SPREAD_BY_CLUSTER))
    if by_cluster:
        yield by_cluster
    by_region = list(_demanding(ref, listed, SPREAD_BY_REGION))
    if by_region:
        # Karmada refuses a constraint on regions without one on clusters.
        has_clusters = any(each.get("spreadByField") == SPREAD_BY_CLUSTER for each in listed)
        yield by_region if has_clusters else [*by_region, *by_cluster]


def _demanding(ref: ObjectRef, listed: Sequence[Mapping[str, Any]], field: str) -> Iterator[Edit]:
    """Yield the edits after which a constraint demands two groups; none if it does."""
    text = f"spreadConstraints: {field} minGroups {_PLACES}"
    for index, each in enumerate(listed):
        if each.get("spreadByField") != field:
            continue
        for name in ("minGroups", "maxGroups"):
            value = each.get(name) or 0
            if (value or name == "minGroups") and value < _PLACES:
                yield edit(
                    Side.POLICY,
                    "spread",
                    ref,
                    PatchAction.SET,
                    (*_PATH, index, name),
                    value=_PLACES,
                    text=text if name == "minGroups" else f"{field} maxGroups {_PLACES}",
                )
        return
    constraint = {"spreadByField": field, "minGroups": _PLACES}
    yield edit(Side.POLICY, "spread", ref, PatchAction.APPEND, _PATH, value=constraint, text=text)


def rebalancer() -> EditShown:
    """Return the WorkloadRebalancer of the workloads of a policy; ``rebalance`` writes one."""
    shown = ObjectShown("WorkloadRebalancer", "", "")
    return EditShown(Side.TRIGGER, "rebalance", shown, "a WorkloadRebalancer of its workloads")
