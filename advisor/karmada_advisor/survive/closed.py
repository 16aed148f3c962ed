"""The remedies that need no search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.remedy_model import ObjectPatch, ObjectShown
from karmada_advisor.state.stored import value_at
from karmada_advisor.survive.classify import LossClass
from karmada_advisor.survive.model import LossSettings
from karmada_advisor.survive.settings import PROGRAM
from karmada_advisor.whynot.edits import Edit, ObjectRef, PatchAction, Side, edit
from karmada_advisor.whynot.model import EditShown
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.matching import Taint

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
