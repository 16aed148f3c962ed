"""Changes that help a binding or a template, besides those of a search, and those that ``explain`` shows of a short search.

Without a decision of the scheduler, it helps that a policy claims a template, or that changes arrive on clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.claims.shapes import Match, Selector
from karmada_advisor.claims.template import Template, is_skipped_namespace
from karmada_advisor.explain.inputs import Explaining, ExplainInputs
from karmada_advisor.explain.model import Explanation, Remedy, RemedyEdit, RemedySearch
from karmada_advisor.explain.policies import Miss, differing_label, holder_of, match_of, matching, misses
from karmada_advisor.state.model import StateName, Target
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.quota import KIND as QUOTA
from karmada_advisor.state.reading import lacks_a_decision
from karmada_advisor.state.stored import value_at
from karmada_advisor.whynot.answer import WhyNotQuestion, answer
from karmada_advisor.whynot.found_edits import SearchBounds
from karmada_advisor.whynot.goals import IsDecided, IsPlaced
from karmada_advisor.whynot.json_patch import Patched, patched
from karmada_advisor.whynot.model import (
    BindingShown,
    EditShown,
    GoalShown,
    Touched,
    VerifiedRemedy,
    WhyNot,
    edit_shown,
    patches_of,
)
from karmada_advisor.whynot.objects import ObjectSet
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import Manifest, format_time
from karmada_scheduler.api.policy import ID_LABELS, policy_name
from karmada_scheduler.framework.edits import BECOME_READY, Edit, EditTarget, Harm, ObjectRef, Side
from karmada_scheduler.structs import replace

_NOT_RETRIED: Final = "NotRetried"

_HELD: Final = frozenset({StateName.HELD, StateName.NOBODY_DECIDES})


def with_remedies(
    explanation: Explanation, inputs: ExplainInputs, using: Explaining, seconds: float
) -> Explanation:
    """Return an explanation with the changes that help the binding; the same unless ``state.reading`` says that it may be cured.

    Args:
        explanation: The explanation of the binding.
        inputs: What its decision read.
        using: The objects and the rules.
        seconds: The time of the search.
    """
    if inputs.not_known:
        return explanation  # none could be verified
    binding = inputs.binding
    state, policies = explanation.state, using.fleet.policies or ()
    manifest = using.fleet.manifests[binding.key]
    propagating = [resumed(binding, manifest, policies)]
    if any(row.is_conflict for row in state.rows):
        propagating.append(overwritten(binding, manifest, policies))
    arriving = (_remedy(remedy, explanation) for remedy in propagating if remedy is not None)
    explanation = replace(explanation, remedies=tuple(arriving))
    if not lacks_a_decision(state, binding):
        return explanation
    is_held = binding.spec.scheduling_suspended or state.name in _HELD
    bindings = None if using.dry_run.is_coupled else [binding]  # others change nothing
    found = answer(
        editable(using, binding.key, bindings),
        WhyNotQuestion("", IsDecided() if is_held else IsPlaced()),
        SearchBounds(seconds),
        state=explanation.state,
        provenance=explanation.provenance,
        causes=lambda _: (),
    )
    remedies = list(found.remedies)
    if found.next_holds and not remedies and any(cause.code == _NOT_RETRIED for cause in explanation.causes):
        asking = decided_again(binding, manifest, found.next.result, inputs.facts.now or datetime.now(UTC))
        remedies += [asking] if asking is not None else []
    facts, listed = found.search, (*(_remedy(each, explanation) for each in remedies), *explanation.remedies)
    search = RemedySearch(facts.runs, facts.seconds, facts.complete, facts.ended_by, facts.timeout_seconds)
    return replace(explanation, remedies=listed, remedy_search=search)


def with_claiming_remedies(
    explanation: Explanation, template: Template, policies: Sequence[Mapping[str, Any]]
) -> Explanation:
    """Return the explanation of a template without a binding, with the edits after which a policy claims it."""
    found = claiming(policies, template)
    return replace(explanation, remedies=tuple(_remedy(each, explanation) for each in found))


def editable(using: Explaining, key: BindingKey, bindings: Sequence[Binding] | None = None) -> ObjectSet:
    """Return the objects that a search edits.

    Args:
        using: What was read, and what schedules the changed objects.
        key: The binding in question.
        bindings: It, and those that decisions about it read; None for all.
    """
    objects = using.fleet
    chosen = objects.bindings if bindings is None else bindings
    mine = next(binding for binding in chosen if binding.key == key)
    quotas = objects.quotas_of(key.namespace) or ()
    counting = {ObjectRef(QUOTA, quota.namespace, quota.name) for quota in quotas}
    return ObjectSet(
        key,
        using.dry_run,
        {
            ObjectRef(CLUSTER, "", cluster.name): (objects.manifests[cluster.name], cluster)
            for cluster in objects.clusters
        },
        {ObjectRef(*binding.key): (objects.manifests[binding.key], binding) for binding in chosen},
        quotas={ref: quota for quota in objects.quotas or () if (ref := ObjectRef.of(quota)) in counting},
        policies={ObjectRef.of(policy): policy for policy in objects.policies or ()},
        template_labels=objects.template_labels(mine.spec.resource),
        schedulers=using.facts.schedulers,
        has_all_bindings=not objects.unlisted,
        as_new=using.as_new,
    )


def _remedy(found: VerifiedRemedy, explanation: Explanation) -> Remedy:
    first = found.edits[0]
    # Karmada's controllers would set these taints again.
    set_by_karmada = {edit.object for edit in found.edits if edit.op == BECOME_READY}
    return Remedy(
        side=first.side.value,
        subject=_subject(first, explanation),
        change=", and ".join(_change(edit) for edit in found.edits),
        result=found.result,
        edits=tuple(
            RemedyEdit(edit.side.value, edit.op, edit.object, edit.text, edit.instead) for edit in found.edits
        ),
        apply=tuple(patch for patch in found.apply if patch.object not in set_by_karmada),
        moves=found.moves,
        rank=found.rank,
        harm=found.harm.value,
        caution=found.caution,
    )


def _subject(edit: EditShown, explanation: Explanation) -> str:
    """Return the object that a person changes: the policy rather than the binding, which has its placement."""
    if edit.side is Side.POLICY and edit.object.kind not in ID_LABELS:
        policy = explanation.binding.policy
        return policy.name if policy is not None else ""
    return "" if edit.object.name == explanation.binding.name else edit.object.name


def _change(edit: EditShown) -> str:
    if edit.minimal is None:
        return edit.text
    return f"{edit.text} ({edit.minimal.fails_at}{edit.minimal.unit} is not enough)"


_MOST: Final = 3
_NEAREST: Final = 2
_LEAST_LIKENESS: Final = 0.5


def claiming(policies: Sequence[Manifest], template: Template) -> list[VerifiedRemedy]:
    """Return edits of the nearest policies after which one matches the template, verified by the detector's rules.

    Where the binding is placed then is not known: it is made from the template, of which only the metadata are read.

    Args:
        policies: All policies.
        template: A template; nothing is proposed if a policy matches or claims it.
    """
    holder = holder_of(policies, template.labels)
    if is_skipped_namespace(template.key.namespace) or holder is not None or matching(policies, template):
        return []
    near = [miss for miss in misses(policies, template) if miss.index >= 0][:_NEAREST]
    proposed = [found for miss in near for found in _corrected(miss, template)]
    proposed += [_added(miss, template) for miss in near[:1]]
    read = {ObjectRef.of(miss.policy): miss.policy for miss in reversed(near)}
    found: list[VerifiedRemedy] = []
    for edit in proposed:
        changed = patched([edit], {edit.target: read[edit.target]})
        if changed is not None and match_of(changed.manifests[edit.target], template) is not Match.NONE:
            found.append(_verified(edit, changed, rank=len(found) + 1))
    return found[:_MOST]


def answer_unclaimed(
    explanation: Explanation,
    policies: Sequence[Manifest],
    template: Template,
    goal: GoalShown,
    cluster: str,
) -> WhyNot:
    """Return the answer about a template that has no binding: nothing is decided, so nothing is searched.

    Args:
        explanation: Why it has none.
        policies: All policies.
        template: The template.
        goal: What is asked for.
        cluster: The cluster in question; "" if the goal is that it is placed anywhere.
    """
    head = explanation.binding
    return WhyNot(
        binding=BindingShown(head.kind, head.namespace, head.name, 0, 0),
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
    policy = holder_of(policies, binding.labels)
    if policy is None or not value_at(policy, "spec", "suspension", name):
        change = _edit(ObjectRef(*binding.key), name, "the binding")
    else:
        change = _edit(ObjectRef.of(policy), name, policy_name(policy))
    return _cured(change, binding, manifest, policies, lambda after: not Suspended.of(after))


def overwritten(binding: Binding, manifest: Manifest, policies: Sequence[Manifest]) -> VerifiedRemedy | None:
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
    return _cured(change, binding, manifest, policies, lambda after: value_at(after, *path) == _OVERWRITE)


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
    found = _cured(change, binding, manifest, (), lambda _: True)
    return None if found is None else replace(found, result=tuple(result))


def _cured(
    change: Edit,
    binding: Binding,
    manifest: Manifest,
    policies: Sequence[Manifest],
    is_cured: Callable[[Manifest], bool],
) -> VerifiedRemedy | None:
    """Return an edit of the binding, or of its policy, as a remedy; None if the binding is not cured by it."""
    read = next((policy for policy in policies if ObjectRef.of(policy) == change.target), manifest)
    changed = patched([change], {change.target: read})
    if changed is None:
        return None
    after: Manifest | None = changed.manifests[change.target]
    is_policy = read is not manifest
    if is_policy:
        from karmada_advisor.claims.claim import received  # as in whynot.objects

        after = received(manifest, policies, [changed.manifests[change.target]], None)
    if after is None or not is_cured(after):
        return None
    result = tuple(Target(target.name, target.replicas) for target in sorted(binding.spec.clusters))
    return _verified(change, changed, result=result, touches=Touched(1, checked=not is_policy))


def _verified(change: Edit, changed: Patched, **rest: Any) -> VerifiedRemedy:
    """Return one edit as a remedy, with further fields of it."""
    edits, patches = (edit_shown(change),), patches_of(changed)
    return VerifiedRemedy(edits, patches, harm=change.harm, caution=change.caution, **rest)


def _edit(ref: ObjectRef, name: str, where: str) -> Edit:
    target, path, text = EditTarget(Side.TRIGGER, ref), ("spec", "suspension", name), "resume dispatching: "
    if name == "dispatching":
        text += f"spec.suspension.dispatching false in {where}"
        return target.set("resumeDispatching", path, False, text)
    return target.remove("resumeDispatching", path, f"{text}remove spec.suspension.{name} from {where}")
