"""Edits of a policy or binding after which changes arrive on clusters that have no part of it yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from karmada_advisor.state.model import Target
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.stored import value_at
from karmada_advisor.whynot.json_patch import patched
from karmada_advisor.whynot.model import Touched, VerifiedRemedy, edit_shown, patches_of
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.api.policy import claims, policy_name
from karmada_scheduler.framework.edits import Edit, EditTarget, Harm, ObjectRef, Side
from karmada_scheduler.structs import replace

_OVERWRITE: Final = "Overwrite"


def resumed(binding: Binding, manifest: Manifest, policies: Sequence[Manifest]) -> VerifiedRemedy | None:
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
    policy = _policy_of(binding, policies)
    if policy is None or not value_at(policy, "spec", "suspension", name):
        change = _edit(ObjectRef(*binding.key), name, "the binding")
    else:
        change = _edit(ObjectRef.of(policy), name, policy_name(policy))
    return _remedy(change, binding, manifest, policies, lambda after: not Suspended.of(after))


def overwritten(binding: Binding, manifest: Manifest, policies: Sequence[Manifest]) -> VerifiedRemedy | None:
    """Return the edit of the policy after which Karmada takes over the objects that members have already; None without a policy.

    Args:
        binding: A binding whose Work a member refuses, because it has an object of that name.
        manifest: The same as it was read.
        policies: All policies; none if they are not known.
    """
    policy = _policy_of(binding, policies)
    if policy is None:
        return None
    text = f"conflictResolution: Overwrite in {policy_name(policy)}"
    change = EditTarget(Side.POLICY, ObjectRef.of(policy)).set(
        "overwrite", ("spec", "conflictResolution"), _OVERWRITE, text,
        harm=Harm.WIDENS, caution="Karmada then replaces the object that is there, and deletes it with the workload.",
    )  # fmt: skip
    return _remedy(
        change,
        binding,
        manifest,
        policies,
        lambda after: value_at(after, "spec", "conflictResolution") == _OVERWRITE,
    )


def decided_again(
    binding: Binding, manifest: Manifest, result: Sequence[Target], now: datetime
) -> VerifiedRemedy | None:
    """Return what a new WorkloadRebalancer writes, for a binding that a decision would place and nobody decides again.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        result: The placement that a decision gives.
        now: The time that is written.
    """
    target = EditTarget(Side.TRIGGER, ObjectRef(*binding.key))
    path = ("spec", "rescheduleTriggeredAt")
    change = target.set("reschedule", path, format_time(now), "a WorkloadRebalancer")
    found = _remedy(change, binding, manifest, (), lambda _: True)
    return None if found is None else replace(found, result=tuple(result))


def _policy_of(binding: Binding, policies: Sequence[Manifest]) -> Manifest | None:
    return next((each for each in policies if claims(each, binding.labels)), None)


def _remedy(
    change: Edit,
    binding: Binding,
    manifest: Manifest,
    policies: Sequence[Manifest],
    is_cured: Callable[[Manifest], bool],
) -> VerifiedRemedy | None:
    """Return an edit of the binding, or of its policy, as a remedy; None if the binding is not cured by it."""
    read = next((each for each in policies if ObjectRef.of(each) == change.target), manifest)
    changed = patched([change], {change.target: read})
    if changed is None:
        return None
    after: Manifest | None = changed.manifests[change.target]
    is_policy = read is not manifest
    if is_policy:
        from karmada_advisor.whynot.detector import received  # as in whynot.objects

        after = received(manifest, policies, [changed.manifests[change.target]], None)
    if after is None or not is_cured(after):
        return None
    return VerifiedRemedy(
        edits=(edit_shown(change),),
        apply=patches_of(changed),
        result=tuple(Target(each.name, each.replicas) for each in sorted(binding.spec.clusters)),
        touches=Touched(1, checked=not is_policy),
        harm=change.harm,
        caution=change.caution,
    )


def _edit(ref: ObjectRef, name: str, where: str) -> Edit:
    target, path, text = EditTarget(Side.TRIGGER, ref), ("spec", "suspension", name), "resume dispatching: "
    if name == "dispatching":
        text += f"spec.suspension.dispatching false in {where}"
        return target.set("resumeDispatching", path, False, text)
    return target.remove("resumeDispatching", path, f"{text}remove spec.suspension.{name} from {where}")
