"""Changes after which a policy claims a template without a binding: the selector of the nearest policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.claims.selectors import Match
from karmada_advisor.explain.model import Explanation
from karmada_advisor.explain.policies import (
    Miss,
    TemplateHead,
    differing_label,
    holder_of,
    match_of,
    matching,
    misses,
)
from karmada_advisor.whynot.json_patch import patched
from karmada_advisor.whynot.model import (
    BindingShown,
    GoalShown,
    NextDecision,
    SearchShown,
    VerifiedRemedy,
    WhyNot,
    edit_shown,
    patches_of,
)
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.framework.edits import Edit, EditTarget, ObjectRef, Side

_MOST: Final = 3
_NEAREST: Final = 2
_LEAST_LIKENESS: Final = 0.5


def claiming(policies: Sequence[Manifest], template: TemplateHead) -> list[VerifiedRemedy]:
    """Return edits of the nearest policies after which one matches the template, verified by the detector's rules.

    Where the binding is placed then is not known: it is made from the template, of which only the metadata are read.

    Args:
        policies: All policies.
        template: A template; nothing is proposed if a policy matches or claims it.
    """
    if template.is_reserved or matching(policies, template) or holder_of(policies, template) is not None:
        return []
    near = [each for each in misses(policies, template) if each.index >= 0][:_NEAREST]
    proposed = [found for each in near for found in _corrected(each, template)]
    proposed += [_added(each, template) for each in near[:1]]
    found: list[VerifiedRemedy] = []
    for each in proposed:
        changed = patched([each], {each.target: _policy(near, each.target)})
        if changed is None or match_of(changed.manifests[each.target], template) is Match.NONE:
            continue
        found.append(
            VerifiedRemedy(
                edits=(edit_shown(each),),
                apply=patches_of(changed),
                rank=len(found) + 1,
                caution=each.caution,
            )
        )
    return found[:_MOST]


def answer_unclaimed(
    explanation: Explanation,
    policies: Sequence[Manifest],
    template: TemplateHead,
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
        holds=False,
        next_holds=False,
        provenance=explanation.provenance,
        present=(),
        next=NextDecision((), "", ""),
        causes=explanation.causes,
        remedies=tuple(claiming(policies, template)),
        ineffective=(),
        search=SearchShown(
            complete=False, decisions=0, runs=0, max_runs=0, max_depth=1, seconds=0.0, timeout_seconds=0.0,
            exhausted_singles=False, ended_by="",
        ),
        notes=("Where it is placed is not known before it has a binding.",),
    )  # fmt: skip


def _policy(near: Sequence[Miss], target: ObjectRef) -> Manifest:
    return next(each.policy for each in near if ObjectRef.of(each.policy) == target)


def _corrected(miss: Miss, template: TemplateHead) -> Iterator[Edit]:
    """Yield the selector with the value of the template in the one field that differs, if the two are alike."""
    wanted = template.fields
    if miss.closeness[1] < _LEAST_LIKENESS:
        return
    if miss.field == "labelSelector":
        yield from _corrected_label(miss, template)
    if miss.field not in wanted:
        return
    asked = miss.policy["spec"]["resourceSelectors"][miss.index].get(miss.field)
    yield _selectors(miss).set(
        "correctSelector", (miss.index, miss.field), wanted[miss.field],
        f"select {miss.field} {wanted[miss.field]} instead of {asked} in {miss.name}",
        caution=f"What the selector matches now is released, if there is a {template.kind} {asked}."
        if miss.field == "name"
        else "",
    )  # fmt: skip


def _corrected_label(miss: Miss, template: TemplateHead) -> Iterator[Edit]:
    """Yield the selector with the label of the template, if one value differs."""
    selector = miss.policy["spec"]["resourceSelectors"][miss.index]
    key, labels = differing_label(selector, template.labels), template.labels or {}
    if key:
        asked = selector["labelSelector"]["matchLabels"][key]
        yield _selectors(miss).set(
            "correctSelector", (miss.index, "labelSelector", "matchLabels", key), labels[key],
            f"select {key}={labels[key]} instead of {key}={asked} in {miss.name}",
            caution="What the selector matches now is released.",
        )  # fmt: skip


def _added(miss: Miss, template: TemplateHead) -> Edit:
    """Return one more selector, of this template only."""
    selector = {"apiVersion": template.api_version, "kind": template.kind, "name": template.name}
    if template.namespace:
        selector["namespace"] = template.namespace
    return _selectors(miss).append(
        "addSelector", (), selector,
        f"one more selector in {miss.name}: {template.kind} {template.name}",
        caution=f"The template then gets the placement of {miss.name}.",
    )  # fmt: skip


def _selectors(miss: Miss) -> EditTarget:
    return EditTarget(Side.POLICY, ObjectRef.of(miss.policy), ("spec", "resourceSelectors"))
