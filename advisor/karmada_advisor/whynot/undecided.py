"""Changes that help without a decision of the scheduler: a policy claims a template, or changes arrive on clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from karmada_advisor.claims.shapes import Match, Selector
from karmada_advisor.claims.template import Template, is_skipped_namespace
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.policies import (
    Miss,
    differing_label,
    holder_of,
    match_of,
    matching,
    misses,
)
from karmada_advisor.state.model import Target
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.stored import value_at
from karmada_advisor.whynot import model as shown
from karmada_advisor.whynot.json_patch import patched
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.api.policy import policy_name
from karmada_scheduler.framework.edits import Edit, EditTarget, Harm, ObjectRef, Side
from karmada_scheduler.structs import replace

_MOST: Final = 3
_NEAREST: Final = 2
_LEAST_LIKENESS: Final = 0.5


def claiming(policies: Sequence[Manifest], template: Template) -> list[shown.VerifiedRemedy]:
    """Return edits of the nearest policies after which one matches the template, verified by the detector's rules.

    Where the binding is placed then is not known: it is made from the template, of which only the metadata are read.

    Args:
        policies: All policies.
        template: A template; nothing is proposed if a policy matches or claims it.
    """
    holder = holder_of(policies, template.labels)
    if is_skipped_namespace(template.key.namespace) or holder is not None or matching(policies, template):
        return []
    near = [each for each in misses(policies, template) if each.index >= 0][:_NEAREST]
    proposed = [found for each in near for found in _corrected(each, template)]
    proposed += [_added(each, template) for each in near[:1]]
    read = {ObjectRef.of(miss.policy): miss.policy for miss in reversed(near)}
    found: list[shown.VerifiedRemedy] = []
    for edit in proposed:
        changed = patched([edit], {edit.target: read[edit.target]})
        if changed is not None and match_of(changed.manifests[edit.target], template) is not Match.NONE:
            edits, patches = (shown.edit_shown(edit),), shown.patches_of(changed)
            found.append(shown.VerifiedRemedy(edits, patches, rank=len(found) + 1, caution=edit.caution))
    return found[:_MOST]


def answer_unclaimed(
    explanation: Explanation,
    policies: Sequence[Manifest],
    template: Template,
    goal: shown.GoalShown,
    cluster: str,
) -> shown.WhyNot:
    """Return the answer about a template that has no binding: nothing is decided, so nothing is searched.

    Args:
        explanation: Why it has none.
        policies: All policies.
        template: The template.
        goal: What is asked for.
        cluster: The cluster in question; "" if the goal is that it is placed anywhere.
    """
    head = explanation.binding
    return shown.WhyNot(
        binding=shown.BindingShown(head.kind, head.namespace, head.name, 0, 0),
        cluster=cluster,
        goal=goal,
        state=explanation.state,
        provenance=explanation.provenance,
        causes=explanation.causes,
        remedies=tuple(claiming(policies, template)),
        notes=("Where it is placed is not known before it has a binding.",),
    )


def _corrected(miss: Miss, template: Template) -> Iterator[Edit]:
    """Yield the selector with the value of the template in the one field that differs, if the two are alike."""
    if miss.selector is None or miss.closeness[1] < _LEAST_LIKENESS:
        return
    if miss.field == "labelSelector":
        yield from _corrected_label(miss, miss.selector, template)
    wanted = dict(zip(("apiVersion", "kind", "namespace", "name"), template.key, strict=True))
    if miss.field not in wanted:
        return
    asked = miss.selector[[*wanted].index(miss.field)]
    yield _selectors(miss).set(
        "correctSelector", (miss.index, miss.field), wanted[miss.field],
        f"select {miss.field} {wanted[miss.field]} instead of {asked} in {miss.name}",
        caution=f"What the selector matches now is released, if there is a {template.key.kind} {asked}."
        if miss.field == "name"
        else "",
    )  # fmt: skip


def _corrected_label(miss: Miss, selector: Selector, template: Template) -> Iterator[Edit]:
    """Yield the selector with the label of the template, if one value differs."""
    key, labels = differing_label(selector, template), template.labels or {}
    if key and selector.labels is not None:
        asked = dict(selector.labels.match_labels)[key]
        yield _selectors(miss).set(
            "correctSelector", (miss.index, "labelSelector", "matchLabels", key), labels[key],
            f"select {key}={labels[key]} instead of {key}={asked} in {miss.name}",
            caution="What the selector matches now is released.",
        )  # fmt: skip


def _added(miss: Miss, template: Template) -> Edit:
    """Return one more selector, of this template only."""
    key = template.key
    selector = {"apiVersion": key.api_version, "kind": key.kind, "name": key.name}
    if key.namespace:
        selector["namespace"] = key.namespace
    return _selectors(miss).append(
        "addSelector", (), selector,
        f"one more selector in {miss.name}: {key.kind} {key.name}",
        caution=f"The template then gets the placement of {miss.name}.",
    )  # fmt: skip


def _selectors(miss: Miss) -> EditTarget:
    return EditTarget(Side.POLICY, ObjectRef.of(miss.policy), ("spec", "resourceSelectors"))


_OVERWRITE: Final = "Overwrite"


def resumed(
    binding: Binding, manifest: Manifest, policies: Sequence[Manifest]
) -> shown.VerifiedRemedy | None:
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
    policy = holder_of(policies, binding.labels)
    if policy is None or not value_at(policy, "spec", "suspension", name):
        change = _edit(ObjectRef(*binding.key), name, "the binding")
    else:
        change = _edit(ObjectRef.of(policy), name, policy_name(policy))
    return _remedy(change, binding, manifest, policies, lambda after: not Suspended.of(after))


def overwritten(
    binding: Binding, manifest: Manifest, policies: Sequence[Manifest]
) -> shown.VerifiedRemedy | None:
    """Return the edit of the policy after which Karmada takes over the objects that members have already; None without a policy.

    Args:
        binding: A binding whose Work a member refuses, because it has an object of that name.
        manifest: The same as it was read.
        policies: All policies; none if they are not known.
    """
    policy = holder_of(policies, binding.labels)
    if policy is None:
        return None
    text = f"conflictResolution: Overwrite in {policy_name(policy)}"
    change = EditTarget(Side.POLICY, ObjectRef.of(policy)).set(
        "overwrite", ("spec", "conflictResolution"), _OVERWRITE, text,
        harm=Harm.WIDENS, caution="Karmada then replaces the object that is there, and deletes it with the workload.",
    )  # fmt: skip
    path = ("spec", "conflictResolution")
    return _remedy(change, binding, manifest, policies, lambda after: value_at(after, *path) == _OVERWRITE)


def decided_again(
    binding: Binding, manifest: Manifest, result: Sequence[Target], now: datetime
) -> shown.VerifiedRemedy | None:
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


def _remedy(
    change: Edit,
    binding: Binding,
    manifest: Manifest,
    policies: Sequence[Manifest],
    is_cured: Callable[[Manifest], bool],
) -> shown.VerifiedRemedy | None:
    """Return an edit of the binding, or of its policy, as a remedy; None if the binding is not cured by it."""
    read = next((each for each in policies if ObjectRef.of(each) == change.target), manifest)
    changed = patched([change], {change.target: read})
    if changed is None:
        return None
    after: Manifest | None = changed.manifests[change.target]
    is_policy = read is not manifest
    if is_policy:
        from karmada_advisor.whynot.scheduled import received  # as in whynot.objects

        after = received(manifest, policies, [changed.manifests[change.target]], None)
    if after is None or not is_cured(after):
        return None
    edits, patches = (shown.edit_shown(change),), shown.patches_of(changed)
    result = tuple(Target(each.name, each.replicas) for each in sorted(binding.spec.clusters))
    found = shown.VerifiedRemedy(edits, patches, result, touches=shown.Touched(1, checked=not is_policy))
    return replace(found, harm=change.harm, caution=change.caution)


def _edit(ref: ObjectRef, name: str, where: str) -> Edit:
    target, path, text = EditTarget(Side.TRIGGER, ref), ("spec", "suspension", name), "resume dispatching: "
    if name == "dispatching":
        text += f"spec.suspension.dispatching false in {where}"
        return target.set("resumeDispatching", path, False, text)
    return target.remove("resumeDispatching", path, f"{text}remove spec.suspension.{name} from {where}")
