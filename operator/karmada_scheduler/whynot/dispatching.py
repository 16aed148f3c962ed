"""The end of a suspension of dispatching, in the policy or the binding that suspends it."""

from __future__ import annotations

from collections.abc import Sequence

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import claims, policy_name
from karmada_scheduler.explain.model import Target
from karmada_scheduler.state.stored import mapping
from karmada_scheduler.state.suspension import Suspended
from karmada_scheduler.whynot.detector import received, ref_of
from karmada_scheduler.whynot.edits import Action, Edit, ObjectRef, Side, edit, patched
from karmada_scheduler.whynot.model import EditShown, ObjectPatch, ObjectShown, Remedy, Touched, Verified


def resumed(binding: Binding, manifest: Manifest, policies: Sequence[Manifest]) -> Remedy | None:
    """Return the edit after which changes arrive on all clusters of a binding; None if they do, or none is found.

    An edit of the policy is verified by what the binding receives from it.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        policies: All policies; none if they are not known.
    """
    suspended = Suspended.of(manifest)
    if not suspended:
        return None
    name = "dispatching" if suspended.everywhere else "dispatchingOnClusters"
    policy = next((each for each in policies if claims(each, binding.labels)), None)
    written = mapping(mapping(policy and policy.get("spec")).get("suspension"))
    is_policy = policy is not None and bool(written.get(name))
    target = ref_of(policy) if policy is not None and is_policy else ObjectRef(*binding.key)
    where = policy_name(policy) if policy is not None and is_policy else "the binding"
    change = _edit(target, name, where)
    read = policy if policy is not None and is_policy else manifest
    changed = patched([change], {target: read})
    if changed is None:
        return None
    after: Manifest | None = changed.manifests[target]
    if is_policy:
        after = received(manifest, policies, [changed.manifests[target]], None)
    if after is None or Suspended.of(after):
        return None
    shown = ObjectShown(*target)
    return Remedy(
        edits=(EditShown(change.side, change.op, shown, change.text),),
        apply=tuple(ObjectPatch(shown, (operation,)) for _, operation in changed.operations),
        result=tuple(Target(each.name, each.replicas) for each in sorted(binding.spec.clusters)),
        moves=0,
        touches=Touched(1, checked=not is_policy),
        uses_cluster=False,
        verified=Verified(1, 1),
    )


def _edit(target: ObjectRef, name: str, where: str) -> Edit:
    if name == "dispatching":
        return edit(
            Side.TRIGGER, "resumeDispatching", target, Action.SET, ("spec", "suspension", name), value=False,
            text=f"resume dispatching: spec.suspension.dispatching false in {where}",
        )  # fmt: skip
    return edit(
        Side.TRIGGER, "resumeDispatching", target, Action.REMOVE, ("spec", "suspension", name),
        text=f"resume dispatching: remove spec.suspension.dispatchingOnClusters from {where}",
    )  # fmt: skip
