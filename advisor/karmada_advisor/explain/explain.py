"""Builds the explanation of one binding, with warnings and notes: what a reader should know besides the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from karmada_advisor.explain import model
from karmada_advisor.explain.amounts import request_of, shown
from karmada_advisor.explain.causes import causes_of_binding, causes_of_cluster
from karmada_advisor.explain.causes_failure import unknown_names
from karmada_advisor.explain.causes_trigger import targets_text
from karmada_advisor.explain.funnel import capacity_note, funnel_of, rows_of
from karmada_advisor.explain.inputs import ExplainInputs, Manifest, recorded_decision
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.trace_model import TermRow, TriggerTrace
from karmada_advisor.state.model import StateName, Target
from karmada_advisor.state.quota import NOT_READ, grows
from karmada_advisor.state.reading import Facts, state_of
from karmada_advisor.state.stored import PRESERVED, condition_of, preserves
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.matching import NO_EXECUTE, untolerated
from karmada_scheduler.api.names import ending
from karmada_scheduler.api.placement import SPREAD_BY_REGION
from karmada_scheduler.api.quantity import ZERO, Quantity
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.condition import ConditionSpec, condition_for, retryable
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.estimator.nodes import CPU
from karmada_scheduler.framework.diagnosis import FitError
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace

MAX_ROWS_WITH_CAUSE: Final = 200
"""Clusters with a cause of their own in one explanation; in larger fleets ``why-not`` answers for one cluster."""

_POLICY_ANNOTATIONS: Final = (
    ("MultiClusterService", "multiclusterservice.karmada.io"),  # it overrules a policy
    ("PropagationPolicy", "propagationpolicy.karmada.io"),
    ("ClusterPropagationPolicy", "clusterpropagationpolicy.karmada.io"),
)


def explain(
    inputs: ExplainInputs, *, source: str = "files", tense: model.Tense = model.Tense.RECOMPUTED
) -> model.Explanation:
    """Return the explanation of a binding.

    Args:
        inputs: The binding, the fleet and the rules.
        source: Where the inputs come from, for people.
        tense: Whether the inputs are those of the decision, or what there is now.
    """
    situation = Situation(inputs)
    causes = tuple(causes_of_binding(situation))
    is_expected = situation.is_decided and situation.asks and situation.is_foreseen
    expected = condition_for(situation.now.decision.error) if is_expected else None
    found = model.Explanation(
        binding=_head_of(inputs.binding),
        state=situation.stored,
        provenance=_provenance(situation, source, tense),
        would_be=_would_be(situation, causes) if situation.is_foreseen else None,
        causes=causes,
        condition=_condition(situation.binding, expected),
    )
    return found if not (inputs.is_judged and situation.is_decided) else _with_steps(found, situation)


def explain_stored(binding: Binding, manifest: Manifest, facts: Facts, *, source: str) -> model.Explanation:
    """Return what is stored about a binding, where nothing can be decided.

    Args:
        binding: The binding.
        manifest: The same as it was read.
        facts: What is stored besides it.
        source: Where they come from, for people.
    """
    provenance = model.Provenance(model.Tense.RECOMPUTED, source, facts.at)
    state, condition = state_of(binding, manifest, facts), _condition(binding)
    return model.Explanation(_head_of(binding), state, provenance, condition=condition)


def _provenance(situation: Situation, source: str, tense: model.Tense) -> model.Provenance:
    inputs = situation.inputs
    view = inputs.process
    basis = "first" if situation.is_decided and situation.is_shown_as_new else "as it is"
    found = model.Provenance(tense, source, inputs.facts.at, fleet_of(inputs), basis, inputs.rules)
    if view is None:
        return found
    placement, error = None, None
    if inputs.is_judged and situation.is_decided:
        placement, error = situation.placement, situation.now.decision.error
    record, queue = recorded_decision(view, placement, error, inputs.facts.now), view.queue_state
    found = replace(found, record=record, no_record=view.problem, queue_state=queue)
    return replace(found, due_in_seconds=view.due_in)


def _with_steps(found: model.Explanation, situation: Situation) -> model.Explanation:
    """Return an explanation with the steps of the decision."""
    basis = situation.shown
    rows = rows_of(situation)
    if len(rows) <= MAX_ROWS_WITH_CAUSE:
        causes = ((row, causes_of_cluster(situation, row.name)) for row in rows)
        rows = tuple(replace(row, cause=of_row[0].code if of_row else "") for row, of_row in causes)
    return replace(
        found,
        schedule=_schedule(situation),
        trigger=_trigger(situation),
        funnel=funnel_of(situation),
        refusals=tuple(basis.filter.counted()),
        clusters=rows,
        capacity_note=capacity_note(situation),
        selection=basis.select,
        division=basis.divide,
        terms=_terms(situation),
        warnings=tuple(_warnings(situation)),
        notes=tuple(_notes(situation)),
    )


def _head_of(binding: Binding) -> model.BindingHead:
    """Return what the binding asks for."""
    spec, resource, policy = binding.spec, binding.spec.resource, policy_of(binding.annotations)
    request = {name: shown(name, amount) for name, amount in request_of(spec).items()}
    template = ".".join(filter(None, (resource.kind, resource.api_version.rpartition("/")[0])))
    return model.BindingHead(*binding.key, binding.generation, spec.replicas, request, policy, template)


def policy_of(annotations: Mapping[str, str]) -> model.PolicyRef | None:
    """Return the policy, or what overrules it, that the annotations of a binding name; None without one."""
    for kind, prefix in _POLICY_ANNOTATIONS:
        if name := annotations.get(f"{prefix}/name"):
            return model.PolicyRef(kind, annotations.get(f"{prefix}/namespace", ""), name)
    return None


def fleet_of(inputs: ExplainInputs) -> str:
    """Return a short hash of the clusters; equal fleets have equal hashes."""
    clusters = inputs.snapshot.clusters
    parts = "\n".join(f"{each.name} {each.resource_version} {each.generation}" for each in clusters)
    return hashlib.blake2b(parts.encode(), digest_size=3).hexdigest()


def _targets(placement: Mapping[str, int]) -> tuple[Target, ...]:
    return tuple(Target(name, replicas) for name, replicas in placement.items())


def _would_be(situation: Situation, causes: tuple[model.Cause, ...]) -> model.WouldBe | None:
    """Return what a decision now would give; None if there would be none."""
    if situation.state is model.NextState.SUSPENDED:
        found = situation.now.placement or {}
        text = "" if situation.now.decision.error is None else str(situation.now.decision.error)
        outcome = model.NextState.PLACED if found else model.NextState.NOT_PLACED
        return model.WouldBe(outcome, _targets(found), text, differs=found != situation.present)
    if situation.state is model.NextState.GATED:
        return model.WouldBe(situation.state, (), causes[0].text if causes else "", differs=True)
    if not situation.is_decided:
        return None
    differs = situation.placement != situation.present or not situation.present
    targets, text = _targets(situation.placement), _answer(situation, causes)
    return model.WouldBe(situation.state, targets, text, differs=differs)


def _answer(situation: Situation, causes: tuple[model.Cause, ...]) -> str:
    error = situation.now.decision.error
    if situation.state in {model.NextState.NOT_PLACED, model.NextState.STUCK} and error is not None:
        reason = condition_for(error).reason
        texts = [cause.text for cause in causes if cause.code != "KeptOnFailure"] or [str(error)]
        what = "no cluster passes the filters" if isinstance(error, FitError) else texts[0]
        return f"{what} ({reason}). {_retry(situation)}"
    if situation.state is model.NextState.NO_REPLICAS:
        return causes[0].text if causes else ""
    return ""


def _retry(situation: Situation) -> str:
    decision = situation.now.decision
    if not retryable(decision.error) and not decision.may_work_next_time:
        declared = situation.inputs.framework.requeue_events
        refusing = {refusal.plugin for refusal in situation.now.filter.counted()} if declared else ()
        events = sorted({f"of {event}, " for name in refusing for event in declared.get(name, ())})
        changes = f"a change of the binding, of a cluster's spec or labels, {''.join(events)}or a new API"
        return f"Not retried by timer: {changes} is needed."
    view = situation.inputs.process
    if view is not None and view.due_in is not None:
        return f"Retried by timer, in {view.due_in:.0f} s."
    if decision.retry_after:
        return f"Retried after {decision.retry_after:g} s."
    return "Retried by timer, after growing pauses."


def _schedule(situation: Situation) -> str:
    trigger = situation.trigger
    if trigger.asks:
        rule = next((fact for fact in trigger.rules if fact.holds), None)
        why = f": {rule.name}" if rule is not None else ""
        kind = f" ({trigger.schedule_class})"
        if not situation.present:  # the core says Scale of a template that has not changed
            why, kind = ": it has no clusters", " (First)"
        elif trigger.schedule_class == ScheduleType.FIRST.value:
            why = ": it was never scheduled"
        return f"a decision is due{why}{kind}"
    if situation.rebalanced.decision.error is not None:
        return f"nothing asks for a new decision; one would fail: {situation.rebalanced.decision.error}"
    if situation.rebalanced.placement == situation.present:
        return "nothing asks for a new decision; one would give the same"
    given = targets_text(situation.rebalanced.placement or {})
    return f"nothing asks for a new decision; a WorkloadRebalancer would give {given or 'nothing'}"


def _trigger(situation: Situation) -> TriggerTrace:
    if not situation.present:
        return situation.trigger
    basis = situation.rebalanced
    if basis.decision.error is not None:
        return replace(situation.trigger, rebalance_error=str(basis.decision.error))
    return replace(situation.trigger, on_rebalance=_targets(basis.placement or {}))


def _terms(situation: Situation) -> tuple[TermRow, ...]:
    placement = situation.spec.placement
    if placement is None or not placement.cluster_affinities or placement.cluster_affinity is not None:
        return ()
    decision = situation.shown.decision
    errors = {term.index: str(term.error) for term in decision.failed_terms}
    tried = {attempt.affinity_name for attempt in decision.attempts}
    rows, used, before = list[TermRow](), decision.affinity_name, "left"
    for index, term in enumerate(placement.cluster_affinities):
        name, is_used = term.affinity_name, term.affinity_name == used and decision.error is None
        if index in errors or is_used:
            outcome, before = "failed" if index in errors else "used", "not tried"
            rows.append(TermRow(index, name, outcome, errors.get(index, "")))
        elif name not in tried:
            rows.append(TermRow(index, name, before))
    return tuple(rows)


def _condition(binding: Binding, expected: ConditionSpec | None = None) -> model.ConditionShown | None:
    """Return the condition Scheduled of a binding, compared with the one that a decision now would write, if there is one."""
    if binding.status.condition(SCHEDULED_CONDITION) is None:
        return None
    status, reason, message, since = condition_of(binding)
    agrees = expected is None or (status, reason) == (expected.status, expected.reason)
    is_current = binding.status.scheduler_observed_generation == binding.generation
    return model.ConditionShown(status, reason, message, is_current, agrees, since)


_MAX_CLUSTERS: Final = 1000
_MAX_TRIED: Final = 3
"""Decisions for one note."""


def _warnings(situation: Situation) -> Iterator[str]:
    """Yield what is wrong, or will be with the next decision."""
    for cause in unknown_names(situation):
        for name, near in cause.evidence["unknown"].items():
            end = f". Nearest: {near}." if near else "."
            yield f"clusterNames contains {name}, which does not exist{end}"
    placement, snapshot = situation.spec.placement, situation.snapshot
    for rule in placement.static_weights if placement is not None else ():
        if absent := [name for name in rule.target_cluster.cluster_names if snapshot.get(name) is None]:
            yield f"a static weight is for {', '.join(absent)}: no such cluster exists"
    state = situation.stored
    if not state.scheduler.decides and state.name is not StateName.NOBODY_DECIDES:
        yield f"{state.scheduler}: nobody decides about the next change"
    yield from _tainted(situation)
    yield from _leaving(situation)
    if not is_claimed(situation.binding):
        yield "no policy claims the binding (it has no policy id as a label): the scheduler leaves it alone"


def _tainted(situation: Situation) -> Iterator[str]:
    """Yield the clusters that would refuse the binding if they did not have it, and those that keep it for a time only."""
    placement = situation.spec.placement
    if placement is None:
        return
    for name in situation.placement:
        cluster = situation.snapshot.get(name)
        if cluster is None:
            continue
        for taint in untolerated(cluster.taints, placement.cluster_tolerations)[:1]:
            if name in situation.present:
                leaves = ": where Karmada evicts, replicas leave" if taint.effect == NO_EXECUTE else ""
                yield f"{name} has the taint {taint}, but taints are not checked for clusters that have the binding{leaves}"
        for text in (ending(taint, placement.cluster_tolerations) for taint in cluster.taints):
            if text:
                yield f"{name}: {text}"


def _leaving(situation: Situation) -> Iterator[str]:
    """Yield the present clusters that lose the binding at the next decision."""
    if situation.asks or not situation.present or not situation.now.decision.attempts:
        return
    refused = situation.now.attempt.diagnosis.result_by_cluster
    for name, replicas in situation.present.items():
        end = f"at the next decision its {replicas} replicas leave it"
        if situation.snapshot.get(name) is None:
            yield f"{name} does not exist: {end}"
        elif name in refused:
            yield f"{name} is refused now ({refused[name].plugin}: {refused[name].message}): {end}"


def _notes(situation: Situation) -> Iterator[str]:
    """Yield what is worth knowing about a good result."""
    if preserves(situation.inputs.binding_manifest or {}):
        yield f"copies on clusters that it leaves, and all if it is deleted, go on running, unmanaged ({PRESERVED})"
    view = situation.inputs.process
    if view is not None and view.proposal is not None and situation.stored.name is StateName.NOT_RUNNING:
        yield f"{view.proposal.get('plugin')} proposes another placement, which is not written: {view.waits_for}"
    if not situation.placement or situation.now.decision.error is not None:
        return
    spec, targets = situation.spec, situation.now.decision.targets or ()
    if situation.inputs.quotas is None and situation.asks and grows(spec, spec.clusters, targets):
        yield NOT_READ
    candidates = [candidate for candidate in situation.shown.attempt.candidates if candidate.allocatable > 0]
    if not candidates or not situation.spec.replicas:
        return
    most = max(candidates, key=lambda each: each.available)
    rest = [candidate.available for candidate in candidates if candidate.name in situation.placement]
    if most.name not in situation.placement and rest and most.available > max(rest):
        more = f"`why-not {most.name}` says what would change that."
        yield f"the cluster with the most room, {most.name}, is not used. {more}"
    yield from _fragile(situation)


def _fragile(situation: Situation) -> Iterator[str]:
    """Yield that a little less capacity on one cluster would choose other clusters; found by deciding again."""
    basis = situation.shown
    select, divide = basis.select, basis.divide
    if select is None or select.by != SPREAD_BY_REGION or not select.losses:
        return
    if divide is None or divide.mode != "first" or len(basis.inputs.snapshot) > _MAX_CLUSTERS:
        return
    placement = basis.placement or {}
    cells = basis.capacity
    weakest = sorted((name for name in placement if name in cells), key=lambda name: cells[name].available)
    for name in weakest[:_MAX_TRIED]:
        after = _with_less_cpu(basis.inputs, name)
        if after is None:
            continue
        decision = after.decide()
        targets = sorted(decision.targets or ())
        if decision.targets is None or {target.name for target in targets} != set(placement):
            result = str(decision.error).rstrip(".")
            if decision.error is None:
                result = ", ".join(f"{target.name} {target.replicas}" for target in targets)
            yield f"fragile. With 1 cpu more in use on {name}, this decision would have been {result}."
            return


def _with_less_cpu(inputs: ExplainInputs, name: str) -> ExplainInputs | None:
    """Return the inputs with one cpu more in use on a cluster, None if it has no such resource."""
    cluster = inputs.snapshot.get(name)
    summary = cluster.resource_summary if cluster is not None else None
    if cluster is None or summary is None or CPU not in summary.allocatable:
        return None
    used = {**summary.allocated, CPU: summary.allocated.get(CPU, ZERO) + Quantity(1)}
    changed = replace(cluster, resource_summary=replace(summary, allocated=used))
    others = (other for other in inputs.snapshot.clusters if other.name != name)
    return replace(inputs, snapshot=Snapshot.of([*others, changed], unknown=inputs.snapshot.unknown))
