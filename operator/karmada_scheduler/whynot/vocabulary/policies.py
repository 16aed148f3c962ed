"""Edits of policies other than the one that claims the template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from karmada_scheduler.explain.policies import Template, held_claim
from karmada_scheduler.whynot.edits import Action, Edit, ObjectRef, Side
from karmada_scheduler.whynot.vocabulary.context import Context

_PREEMPT = "preempt"


def proposals(context: Context) -> Iterator[Edit]:
    """Yield what lets the policy that comes first take the template from the one that holds it."""
    objects, edited = context.objects, context.outcome.edits
    if not objects.policies or any(each.op != _PREEMPT for each in edited):
        return  # an edit of a policy changes the whole binding, so that it is combined with no other one
    resource = context.binding.spec.resource
    template = Template(
        resource.api_version, resource.kind, resource.namespace, resource.name, objects.template_labels
    )
    labels = objects.bindings[objects.ref][1].labels
    held = held_claim(objects.policies.values(), labels, template)
    if held is None:
        return
    first, holder = held.first.policy, held.holder
    metadata, spec = first.get("metadata") or {}, first.get("spec") or {}
    ref = ObjectRef(str(first.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name")))
    if not edited:
        if spec.get("preemption") != "Always":
            yield context.make(
                Side.POLICY, _PREEMPT, ref, Action.SET, ("spec", "preemption"), value="Always", extra=-1.2,
                text=f"preemption: Always on {held.first.name}, which then takes it from {held.holder_name}",
            )  # fmt: skip
        return
    priority = _priority(holder) + 1
    if priority > _priority(first):
        yield context.make(
            Side.POLICY, "setPriority", ref, Action.SET, ("spec", "priority"), value=priority,
            text=f"priority {priority} on {held.first.name}, above that of {held.holder_name}", extra=-1.2,
        )  # fmt: skip


def _priority(policy: Mapping[str, object]) -> int:
    spec = policy.get("spec")
    found = spec.get("priority") if isinstance(spec, Mapping) else None
    return found if isinstance(found, int) else 0
