"""Causes in what objects say beyond the inputs of a decision: conditions, policies, and the status of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from karmada_advisor.claims.template import Template
from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.causes_select import RETURNS_ON_REQUEST
from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.policies import (
    Matching,
    brings_another,
    held_claim,
    lazy_edit,
    lazy_policies,
    matching,
    template_named,
)
from karmada_advisor.explain.situation import Situation
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.state.model import StateName
from karmada_advisor.state.stored import condition_of, foreign_refusals, short, value_at
from karmada_scheduler.api.cluster import READY
from karmada_scheduler.api.policy import claims, policy_name
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.core.condition import NO_CLUSTER_FIT, SCHEDULER_ERROR
from karmada_scheduler_plugins.registry import API_REASON

_NO_EXECUTE: Final = "NoExecute"


def of_placed(situation: Situation) -> Iterator[Cause]:
    """Yield the causes that come before those of the decision."""
    yield from _not_tried_again(situation)
    yield from lazy_policy(situation)
    yield from claim_held(situation)
    yield from _term_behind(situation)
    yield from _no_eviction(situation)


def waiting(situation: Situation) -> Iterator[Cause]:
    """Yield that a decision which would change the placement is in the queue of the running scheduler."""
    view = situation.inputs.process
    if view is None or not situation.asks or situation.placement == situation.present:
        return
    queue, due = view.queue_state, view.due_in
    evidence: dict[str, Any] = {"queue": queue, "dueInSeconds": due, "process": view.process}
    if view.queue_state in {"active", "processing"}:
        evidence |= {"before": view.before, "waitedSeconds": view.waited, "priority": view.priority}
        yield Cause("WaitingInQueue", Stage.TRIGGER, evidence, _queued_text(view))
    elif view.due_in is not None and situation.stored.name is not StateName.HELD:
        text = f"it would be placed now; the last decision failed, and the next one is made in {view.due_in:.0f} s"
        yield Cause("BackingOff", Stage.TRIGGER, evidence, text)


def _queued_text(view: ProcessView) -> str:
    if view.queue_state == "processing":
        return f"{view.process} is scheduling it now"
    first = "other bindings come first"
    if view.before is not None:
        first = f"{view.before:,} {'binding comes' if view.before == 1 else 'bindings come'} first"
    text = f"it is in the queue of {view.process}, and {first}"
    if view.priority is not None:
        text += f"; its priority is {view.priority}"
    return text if view.waited is None else f"{text}; it has waited for {view.waited:.0f} s"


def _not_tried_again(situation: Situation) -> Iterator[Cause]:
    """Yield why a binding that would be placed now has the condition of a failed decision."""
    status, reason, message, since = condition_of(situation.binding)
    if status != "False" or situation.present or not situation.asks:
        return
    foreign = _foreign_reasons(situation, message)
    evidence: dict[str, Any] = {"condition": reason, "message": message, "since": since}
    if reason == NO_CLUSTER_FIT:
        if foreign:
            shown_ = "; ".join(foreign)
            text = (
                f"the scheduler has refused {shown_}; no plugin that is known here gives that reason: --from shows the "
                "plugins of the process, --plugin-dir brings their code"
            )
            yield Cause("PluginRefused", Stage.FILTER, evidence | {"reasons": foreign}, text)
        elif API_REASON in message:
            apis = "a list of APIs is status, whose changes enqueue nothing in karmada-scheduler"
            text = f"it would be placed now; NoClusterFit has no timer, and {apis}"
            yield Cause("NotRetried", Stage.TRIGGER, evidence, text)
        return
    if situation.stored.name is StateName.HELD:
        return
    if reason == SCHEDULER_ERROR:
        text = (
            f"the last decision failed: {short(message)}; one by the rules of this command would succeed, so the scheduler "
            "has other gates or plugins (--from takes them from its process), or the error has gone"
        )
        yield Cause("DecidedOtherwise", Stage.WRITE, evidence, text)
        return
    text = f"the last decision failed ({reason}: {short(message)}); one now would succeed, and the next one is made by timer"
    yield Cause("BackingOff", Stage.TRIGGER, evidence, text)


def _foreign_reasons(situation: Situation, message: str) -> list[str]:
    """Return the reasons in the message of a FitError that no in-tree plugin and no plugin of this command gives."""
    here = {refusal.reason for refusal in situation.now.filter.counted()}
    others = [found for found in foreign_refusals(message) if found.reason not in here]
    return [f"{it.number} {'cluster' if it.number == '1' else 'clusters'}: {it.reason}" for it in others]


def lazy_policy(situation: Situation) -> Iterator[Cause]:
    """Yield that the policy was edited and waits for the next change of the template."""
    for policy in lazy_policies(situation.inputs.policies, situation.binding):
        if brings_another(policy, situation.spec.placement):
            yield Cause("PolicyLazy", Stage.POLICY, {"policy": policy_name(policy)}, lazy_edit(policy))


def template_of(situation: Situation) -> Template:
    """Return the template of the binding."""
    return template_named(situation.spec.resource, situation.inputs.template_labels)


def claim_held(situation: Situation) -> Iterator[Cause]:
    """Yield that another policy comes first, but the template stays with the one that claims it."""
    policies, labels = situation.inputs.policies, situation.binding.labels
    held = held_claim(policies, labels, template_of(situation))
    if held is None:
        return
    holder, first = policy_name(held[0]), held[1]
    preemption = str(value_at(first.policy, "spec", "preemption") or "Never")
    evidence = {"heldBy": holder, "first": first.name, "preemption": preemption}
    text = (
        f"{first.name} comes first, but the template stays with {holder} as long as that matches; preemption "
        "needs preemption: Always, names in its selectors, and the gate PropagationPolicyPreemption"
    )
    yield Cause("ClaimHeld", Stage.POLICY, evidence, text)


def policy_chosen(situation: Situation) -> Iterator[Cause]:
    """Yield by which order one of several matching policies was chosen."""
    found = matching(situation.inputs.policies, template_of(situation))
    if len(found) < 2 or not claims(found[0].policy, situation.binding.labels):
        return
    others, criterion = [policy.name for policy in found[1:]], _criterion(found[0], found[1])
    matches = {policy.name: policy.match.name.lower() for policy in found}
    evidence = {"chosen": found[0].name, "others": others, "criterion": criterion, "matches": matches}
    text = (
        f"{len(found)} policies match; {found[0].name} comes first by {criterion} (namespaced before "
        "cluster-wide, then priority, then by name, labels or all, then the smaller name)"
    )
    yield Cause("PolicyChosen", Stage.POLICY, evidence, text)


def _criterion(first: Matching, second: Matching) -> str:
    pairs = zip(("scope", "priority", "selector", "name"), first.order, second.order, strict=True)
    return next(name for name, one, other in pairs if one != other)


def _term_behind(situation: Situation) -> Iterator[Cause]:
    """Yield that an affinity term before the one in use would work again."""
    placement = situation.spec.placement
    if placement is None or placement.cluster_affinity is not None:
        return
    names = [affinity.affinity_name for affinity in placement.cluster_affinities]
    used = situation.binding.status.scheduler_observing_affinity_name
    if used not in names[1:] or situation.first.decision.error is not None:
        return
    works = situation.first.decision.affinity_name
    if works is not None and names.index(works) < names.index(used):
        never = "a binding never returns to a term that it has left, not even with a WorkloadRebalancer"
        if situation.inputs.algorithm.gates.rules.reschedule_from_first:
            never = RETURNS_ON_REQUEST
        text = f"the term {works} works again, but the term {used} is in use, and {never}"
        plugin = situation.returned_by
        if plugin:
            yield _proposed(situation, plugin, {"term": works, "inUse": used, "proposedBy": plugin})
            return
        yield Cause("TermBehind", Stage.POLICY, {"term": works, "inUse": used}, text)


def _proposed(situation: Situation, plugin: str, evidence: dict[str, Any]) -> Cause:
    """Return that a plugin proposes to return, with what it waits for if the running scheduler was asked."""
    view = situation.inputs.process
    text = f"the term {evidence['term']} works again, and {plugin} proposes to return there"
    if view is None or view.proposal is None:
        return Cause("TermBehind", Stage.POLICY, evidence, f"{text}; its Events say what it waits for")
    found = view.proposal
    evidence |= {"waitsFor": str(found.get("reason") or ""), "dueInSeconds": found.get("dueInSeconds")}
    return Cause("TermBehind", Stage.POLICY, evidence, f"{text}: {view.waits_for}")


def _no_eviction(situation: Situation) -> Iterator[Cause]:
    """Yield that a cluster of the binding is not ready, and nothing evicts the binding."""
    if situation.asks:
        return
    leaving = {task.from_cluster for task in situation.spec.graceful_eviction_tasks}
    for name in situation.present:
        cluster = situation.snapshot.get(name)
        ready = cluster.condition(READY) if cluster is not None else None
        if cluster is None or ready is None or ready.status == "True" or name in leaving:
            continue
        if any(taint.effect == _NO_EXECUTE for taint in cluster.taints):
            continue
        taints = list(map(str, cluster.taints))
        needs = ["ClusterTaintPolicy with NoExecute", "feature gate Failover"]
        evidence = {"cluster": name, "ready": ready.status, "taints": taints, "needs": needs}
        text = (
            f"{name} is not ready, which adds NoSchedule taints only; NoExecute comes from a ClusterTaintPolicy, and "
            "the gate Failover of the controller manager evicts"
        )
        yield Cause("NoEviction", Stage.TRIGGER, evidence, text)
        return


def summary_counts(situation: Situation) -> Iterator[Cause]:
    """Yield that a replica is larger than an average node of its cluster, which a sum over nodes does not show."""
    request = request_of(situation.spec)
    for name in situation.placement:
        cluster, cell = situation.snapshot.get(name), situation.shown.capacity.get(name)
        manifest = situation.inputs.cluster_manifest(name)
        nodes = value_at(manifest, "status", "nodeSummary", "totalNum")
        summary = cluster.resource_summary if cluster is not None else None
        if cell is None or summary is None or summary.modelings or not isinstance(nodes, int) or nodes < 1:
            continue
        for resource, amount in request.items():
            allocatable = summary.allocatable.get(resource)
            if allocatable is None or amount.milli_value * nodes <= allocatable.milli_value:
                continue
            average = shown(resource, Quantity(allocatable.milli_value // nodes, -3, allocatable.format))
            wanted = shown(resource, amount)
            evidence = {"cluster": name, "resource": resource, "nodes": nodes, "averageNode": average}
            evidence |= {"requested": wanted, "available": cell.available}
            text = (
                f"the general estimator adds up the {nodes} nodes of {name}, and an average node has {average} {resource} "
                f"of the {wanted} that a replica requests; use resource models or an accurate estimator"
            )
            yield Cause("SummaryCounts", Stage.CAPACITY, evidence, text)
            return
