"""The remedies that need no search.

No decision after a loss reaches that a workload runs in several places, since nothing is left then. So a spread constraint
demands two clusters, or two regions, and a WorkloadRebalancer divides the replicas again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.model import ObjectPatch, ObjectShown
from karmada_advisor.state.stored import mappings, value_at
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.model import LossSettings
from karmada_advisor.whatif.survive.question import PROGRAM
from karmada_advisor.whynot.model import EditShown
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.matching import Taint
from karmada_scheduler.api.placement import SPREAD_BY_CLUSTER, SPREAD_BY_REGION
from karmada_scheduler.framework.edits import PLACEMENT, Edit, EditTarget, ObjectRef, Side
from karmada_scheduler_plugins.registry import KEEPS_BY, KEEPS_PLACEMENTS

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
    policy = EditTarget(Side.POLICY, ObjectRef(*binding.key), ("spec",))
    if effect is LossClass.BLOCKED:
        path, text = ("failover", "cluster", "purgeMode"), "failover.cluster.purgeMode Gracefully"
        return [[policy.set("setPurgeMode", path, "Gracefully", text)]]
    if effect is LossClass.NOT_EVICTED:
        return [[edit] for edit in _toleration_seconds(policy, manifest, binding, taints)]
    return []


def _toleration_seconds(
    policy: EditTarget, manifest: Mapping[str, Any], binding: Binding, taints: Sequence[Taint]
) -> Iterator[Edit]:
    """Yield the edits that end an eternal toleration: one of those that tolerate the taint suffices."""
    placement = binding.spec.placement
    listed = value_at(manifest, *PLACEMENT, "clusterTolerations")
    if placement is None or not isinstance(listed, list):
        return
    for index, toleration in enumerate(placement.cluster_tolerations[: len(listed)]):
        if any(map(toleration.tolerates, taints)) and toleration.toleration_seconds is None:
            path = ("placement", "clusterTolerations", index, "tolerationSeconds")
            text = f"tolerationSeconds {_SECONDS} of the toleration of {toleration.key or 'every key'}"
            yield policy.set("setTolerationSeconds", path, _SECONDS, text)


def resume_patches(keys: Sequence[BindingKey]) -> tuple[tuple[EditShown, ...], tuple[ObjectPatch, ...]]:
    """Return that the scheduling of some bindings is resumed, and the patches: policies have no such field."""
    shown = [ObjectShown(*key) for key in keys]
    text = f"resume the scheduling of {counted(len(keys), 'binding')}: spec.suspension.scheduling false"
    edits = tuple(EditShown(Side.TRIGGER, "resume", key, text) for key in shown[:1])
    operation = {"op": "replace", "path": "/spec/suspension/scheduling", "value": False}
    return edits, tuple(ObjectPatch(key, (operation,)) for key in shown)


def guard_edit() -> EditShown:
    """Return the plugin that keeps what still runs if nothing fits."""
    text = f"plugin {KEEPS_PLACEMENTS} with {KEEPS_BY}, so that what is elsewhere stays"
    return EditShown(Side.CONFIGURATION, "enablePlugin", ObjectShown("Scheduler", "", KEEPS_PLACEMENTS), text)


def settings_edit(settings: LossSettings, *, is_tainted: bool) -> tuple[EditShown, tuple[str, ...]]:
    """Return what lets Karmada evict from lost clusters by itself, and the flags of karmada-controller-manager.

    Args:
        settings: How karmada-controller-manager is set; it lacks a flag, or ``is_tainted`` is false.
        is_tainted: Whether ClusterTaintPolicies are known to give each of the clusters a NoExecute taint once it is lost.
    """
    flags = [] if settings.failover else ["--feature-gates=Failover=true"]
    flags += [] if settings.eviction else ["--enable-no-execute-taint-eviction=true"]
    wanted = [" ".join((PROGRAM, *flags))] if flags else []
    if not is_tainted:
        unless = ", unless there is one (--taint-policies)" if settings.tainted_clusters is None else ""
        wanted.append(
            f"a ClusterTaintPolicy with a NoExecute taint for clusters that are not ready{unless} "
            "(karmada-webhook --allow-no-execute-taint-policy=true)"
        )
    shown = ObjectShown("Deployment", "", PROGRAM) if flags else ObjectShown("ClusterTaintPolicy", "", "")
    op = "setFlags" if flags else "addTaintPolicy"
    return EditShown(Side.CONFIGURATION, op, shown, ", and ".join(wanted)), tuple(flags)


_CONSTRAINTS: Final = "spreadConstraints"
_PLACES: Final = 2


def spreading_edits(
    ref: ObjectRef, manifest: Mapping[str, Any], clusters: Sequence[Cluster]
) -> Iterator[Sequence[Edit]]:
    """Yield the edits of a placement that demand two clusters, then those that demand two regions.

    Args:
        ref: The object with the placement.
        manifest: The same as it was read.
        clusters: All clusters: a constraint without a maximum selects nothing, so a new one allows all of them.
    """
    listed = mappings(value_at(manifest, *PLACEMENT, _CONSTRAINTS))
    policy = EditTarget(Side.POLICY, ref, PLACEMENT)
    regions = {cluster.region for cluster in clusters if cluster.region}
    by_cluster = list(_demanding(policy, listed, SPREAD_BY_CLUSTER, len(clusters)))
    if by_cluster:
        yield by_cluster
    by_region = list(_demanding(policy, listed, SPREAD_BY_REGION, len(regions)))
    if by_region:
        # Karmada refuses a constraint on regions without one on clusters.
        has_clusters = any(entry.get("spreadByField") == SPREAD_BY_CLUSTER for entry in listed)
        yield by_region if has_clusters else [*by_region, *by_cluster]


def _demanding(
    policy: EditTarget, listed: Sequence[Mapping[str, Any]], field: str, groups: int
) -> Iterator[Edit]:
    """Yield the edits after which a constraint demands two groups; none if it does.

    ``groups`` are those that exist.
    """
    text, most = f"{_CONSTRAINTS}: {field} minGroups {_PLACES}", max(groups, _PLACES)
    for index, constraint in enumerate(listed):
        if constraint.get("spreadByField") == field:
            path, maximum = (_CONSTRAINTS, index), constraint.get("maxGroups") or 0
            if (constraint.get("minGroups") or 0) < _PLACES:
                yield policy.set("spread", (*path, "minGroups"), _PLACES, text)
            if maximum < _PLACES:
                wanted = _PLACES if maximum else most
                yield policy.set("spread", (*path, "maxGroups"), wanted, f"{field} maxGroups {wanted}")
            return
    added = {"spreadByField": field, "minGroups": _PLACES, "maxGroups": most}
    yield policy.append("spread", (_CONSTRAINTS,), added, f"{text}, maxGroups {most}")


def rebalancer() -> EditShown:
    """Return the WorkloadRebalancer of the workloads of a policy; ``rebalance`` writes one."""
    shown = ObjectShown("WorkloadRebalancer", "", "")
    return EditShown(Side.TRIGGER, "rebalance", shown, "a WorkloadRebalancer of its workloads")
