"""Edits of policies other than the one that claims the template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karmada_advisor.explain.policies import TemplateHead, held_claim, miss_of
from karmada_advisor.state.stored import value_at
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.policy import policy_name
from karmada_scheduler.framework.edits import Edit, ObjectRef, Side

_PREEMPT = "preempt"


def proposals(context: Context) -> Iterator[Edit]:
    """Yield what lets the policy that comes first take the template from the one that holds it."""
    objects, edited = context.objects, context.outcome.edits
    if not objects.policies or any(each.op != _PREEMPT for each in edited):
        return  # an edit of a policy changes the whole binding, so that it is combined with no other one
    resource = context.binding.spec.resource
    template = TemplateHead(
        resource.api_version, resource.kind, resource.namespace, resource.name, objects.template_labels
    )
    labels = objects.bindings[objects.ref][1].labels
    held = held_claim(objects.policies.values(), labels, template)
    if held is None:
        return
    first, holder = held.first.policy, held.holder
    spec, ref = first.get("spec") or {}, ObjectRef.of(first)
    if not edited:
        if spec.get("preemption") != "Always":
            yield context.on(Side.POLICY, ref).set(
                _PREEMPT, ("spec", "preemption"), "Always",
                f"preemption: Always on {held.first.name}, which then takes it from {held.holder_name}", extra=-1.2,
                caution="It needs the gate PropagationPolicyPreemption of karmada-controller-manager, which is off by "
                "default.",
            )  # fmt: skip
        yield from _released(context, holder, template)
        return
    priority = _priority(holder) + 1
    if priority > _priority(first):
        yield context.on(Side.POLICY, ref).set(
            "setPriority", ("spec", "priority"), priority,
            f"priority {priority} on {held.first.name}, above that of {held.holder_name}", extra=-1.2,
        )  # fmt: skip


def _released(context: Context, holder: Mapping[str, Any], template: TemplateHead) -> Iterator[Edit]:
    """Yield the removal of the selector by name with which a policy holds the template; without it, the first one claims."""
    selectors = (holder.get("spec") or {}).get("resourceSelectors") or []
    found = [
        index
        for index, each in enumerate(selectors)
        if isinstance(each, Mapping) and not miss_of(each, template)
    ]
    if len(found) == 1 and len(selectors) > 1 and selectors[found[0]].get("name"):
        yield context.on(Side.POLICY, ObjectRef.of(holder)).remove(
            "releaseTemplate", ("spec", "resourceSelectors", found[0]),
            f"remove the selector of {template.kind} {template.name} from {policy_name(holder)}", extra=-1.1,
        )  # fmt: skip


def _priority(policy: Mapping[str, object]) -> int:
    found = value_at(policy, "spec", "priority")
    return found if isinstance(found, int) else 0
