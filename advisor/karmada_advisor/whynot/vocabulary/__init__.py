"""The edits that may cure a blocker, by the step at which a cluster drops out, and those after which a binding leaves one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karmada_advisor.claims.shapes import Match
from karmada_advisor.claims.template import Template
from karmada_advisor.explain.policies import held_claim, selectors_of, template_named
from karmada_advisor.state.model import SchedulerStatus
from karmada_advisor.state.propagation import manager_of
from karmada_advisor.state.stored import value_at
from karmada_advisor.whynot.goals import BlockedStep, has_replicas
from karmada_advisor.whynot.vocabulary import capacity, placement
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.manifest import format_time, second_after
from karmada_scheduler.api.names import nearest
from karmada_scheduler.api.policy import policy_name
from karmada_scheduler.framework.edits import Edit, Harm, ObjectRef, Side


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits that may let the cluster pass the step at which it drops out."""
    yield from _preemption(context)
    yield from placement.corrections(context)
    match context.blocker.step:
        case BlockedStep.TRIGGER:
            yield from _of_trigger(context)
        case BlockedStep.FILTER:
            yield from placement.of_refusal(context)
        case BlockedStep.SELECT:
            yield from placement.limits(context)
            yield from placement.competitors(context)
            yield from placement.only(context)
            yield from placement.replicas(context)
            yield from capacity.proposals(context)
            yield from placement.strategies(context)
        case BlockedStep.DIVIDE if context.binding.spec.replicas == 0 and has_replicas(context.binding):
            yield from placement.replicas(context)
        case BlockedStep.DIVIDE:
            yield from _reschedule(context)
            yield from placement.divisions(context)
            yield from capacity.proposals(context)
            yield from placement.fewer_competitors(context)
            yield from placement.competitors(context)
            yield from placement.only(context)
            yield from placement.tiers(context)
        case BlockedStep.WRITE:
            yield from capacity.of_quotas(context)
        case BlockedStep.DONE:
            yield from placement.divisions(context)
            yield from capacity.proposals(context)
            yield from placement.competitors(context)


def leaving(context: Context) -> Iterator[Edit]:
    """Yield edits that take a cluster out of the candidates, the selection or the division."""
    yield from _preemption(context)
    yield from placement.corrections(context)
    yield from _reschedule(context)
    yield from placement.exclude(context, context.name)
    for path, _ in context.affinity_paths():
        if context.cluster.region:
            yield placement.exclude_region(context, path, context.cluster.region)
        break
    yield context.on_cluster.append(
        "addTaint", ("spec", "taints"), {"key": "example.com/reserved", "effect": "NoSchedule"},
        "add a NoSchedule taint", harm=Harm.NARROWS,
        caution="The taint keeps every workload off that does not tolerate it.",
    )  # fmt: skip
    yield from capacity.less(context, context.cluster, Side.CLUSTER)
    yield from placement.replicas(context)
    yield from placement.fewer_competitors(context)
    yield from placement.strategies(context)


def _of_trigger(context: Context) -> Iterator[Edit]:
    """Yield edits for a binding that is not scheduled."""
    match context.blocker.code:
        case "NothingAsks":
            yield from _reschedule(context)
        case "Suspended":
            yield _resume(context)
        case "OtherScheduler" | "NobodyDecides":
            yield from _scheduler_names(context)


def _resume(context: Context) -> Edit:
    """Return the end of the suspension, in the binding: policies of Karmada 1.18 have no such field."""
    path = ("spec", "suspension", "scheduling")
    manager, at = manager_of(context.objects.manifests[context.objects.ref], *path)
    by = f"{manager} has set it at {at}" if manager else "policies have no such field"
    text = f"resume scheduling: spec.suspension.scheduling false in the binding ({by})"
    return context.on(Side.TRIGGER, context.objects.ref).set("resume", path, False, text)


def _scheduler_names(context: Context) -> Iterator[Edit]:
    """Yield the names of schedulers that exist, the most similar first."""
    written, schedulers = context.binding.spec.responsible_scheduler, context.objects.schedulers
    known = {**schedulers.seen, **schedulers.by_name}
    names = {name for name, plugin in known.items() if plugin.decides} or {DEFAULT_SCHEDULER_NAME}
    names.discard(written)
    near = nearest(written, names)
    is_down = schedulers.of(written).status is SchedulerStatus.DOWN
    for number, name in enumerate(sorted(names, key=lambda each: (each != near, each))[:2]):
        yield context.on(Side.POLICY, context.objects.ref).set(
            "setSchedulerName", ("spec", "schedulerName"), name, f"schedulerName {name} instead of {written}",
            extra=1.0 + 0.1 * number,
            instead=f"A policy keeps its schedulerName: delete the policy, and create it with schedulerName {name}.",
            harm=Harm.WIDENS if is_down else Harm.NONE,
            caution=f"{written} decides when it runs again; {name} may decide by other rules." if is_down else "",
        )  # fmt: skip


def _reschedule(context: Context) -> Iterator[Edit]:
    """Yield what a new WorkloadRebalancer writes; it has no effect before the first scheduling."""
    last = context.binding.status.last_scheduled_time
    if last is None or context.objects.as_new or context.binding.reschedule_triggered:
        return
    when = max(context.objects.now, second_after(last))
    target, path = context.on(Side.TRIGGER, context.objects.ref), ("spec", "rescheduleTriggeredAt")
    yield target.set("reschedule", path, format_time(when), "a WorkloadRebalancer")


_PREEMPT = "preempt"


def _preemption(context: Context) -> Iterator[Edit]:
    """Yield what lets the policy that comes first take the template from the one that holds it."""
    objects, edited = context.objects, context.outcome.edits
    if not objects.policies or any(edit.op != _PREEMPT for edit in edited):
        return  # an edit of a policy changes the whole binding, so that it is combined with no other one
    template = template_named(context.binding.spec.resource, objects.template_labels)
    labels = objects.bindings[objects.ref][1].labels
    held = held_claim(objects.policies.values(), labels, template)
    if held is None:
        return
    holder, first = held
    spec, ref = first.policy.get("spec") or {}, ObjectRef.of(first.policy)
    if not edited:
        if spec.get("preemption") != "Always":
            yield context.on(Side.POLICY, ref).set(
                _PREEMPT, ("spec", "preemption"), "Always",
                f"preemption: Always on {first.name}, which then takes it from {policy_name(holder)}", extra=-1.2,
                caution="It needs the gate PropagationPolicyPreemption of karmada-controller-manager, which is off by "
                "default.",
            )  # fmt: skip
        yield from _released(context, holder, template)
        return
    priority = _priority(holder) + 1
    if priority > _priority(first.policy):
        yield context.on(Side.POLICY, ref).set(
            "setPriority", ("spec", "priority"), priority,
            f"priority {priority} on {first.name}, above that of {policy_name(holder)}", extra=-1.2,
        )  # fmt: skip


def _released(context: Context, holder: Mapping[str, Any], template: Template) -> Iterator[Edit]:
    """Yield the removal of the selector by name with which a policy holds the template; without it, the first one claims."""
    selectors = selectors_of(holder)
    found = [index for index, selector in enumerate(selectors) if selector.match(template) is not Match.NONE]
    if len(found) == 1 and len(selectors) > 1 and selectors[found[0]].name:
        yield context.on(Side.POLICY, ObjectRef.of(holder)).remove(
            "releaseTemplate", ("spec", "resourceSelectors", found[0]),
            f"remove the selector of {template.key.kind} {template.key.name} from {policy_name(holder)}", extra=-1.1,
        )  # fmt: skip


def _priority(policy: Mapping[str, object]) -> int:
    found = value_at(policy, "spec", "priority")
    return found if isinstance(found, int) else 0
