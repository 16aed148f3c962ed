"""Warnings and notes: what a reader of an explanation should know besides the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.causes_failure import unknown_names
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.situation import Situation
from karmada_advisor.state.model import StateName
from karmada_advisor.state.quota import NOT_READ, grows
from karmada_advisor.state.stored import PRESERVED, preserves
from karmada_scheduler.api.matching import untolerated
from karmada_scheduler.api.names import ending
from karmada_scheduler.api.placement import SPREAD_BY_REGION
from karmada_scheduler.api.quantity import ZERO, Quantity
from karmada_scheduler.core.requeue_rules import is_claimed
from karmada_scheduler.estimator.nodes import CPU
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace

_MAX_CLUSTERS: Final = 1000
_MAX_TRIED: Final = 3
"""Decisions for one note."""


def warnings_of(situation: Situation) -> Iterator[str]:
    """Yield what is wrong, or will be with the next decision."""
    for cause in unknown_names(situation):
        for name, near in cause.evidence["unknown"].items():
            end = f". Nearest: {near}." if near else "."
            yield f"clusterNames contains {name}, which does not exist{end}"
    placement, snapshot = situation.inputs.binding.spec.placement, situation.inputs.snapshot
    for rule in placement.static_weights if placement is not None else ():
        if absent := [name for name in rule.target_cluster.cluster_names if snapshot.get(name) is None]:
            yield f"a static weight is for {', '.join(absent)}: no such cluster exists"
    state = situation.stored
    if not state.scheduler.decides and state.name is not StateName.NOBODY_DECIDES:
        yield f"{state.scheduler}: nobody decides about the next change"
    yield from _tainted(situation)
    yield from _leaving(situation)
    if not is_claimed(situation.inputs.binding):
        yield "no policy claims the binding (it has no policy id as a label): the scheduler leaves it alone"


def _tainted(situation: Situation) -> Iterator[str]:
    """Yield the clusters that would refuse the binding if they did not have it, and those that keep it for a time only."""
    placement = situation.inputs.binding.spec.placement
    if placement is None:
        return
    for name in situation.placement:
        cluster = situation.inputs.snapshot.get(name)
        if cluster is None:
            continue
        for taint in untolerated(cluster.taints, placement.cluster_tolerations)[:1]:
            if name in situation.present:
                yield f"{name} has the taint {taint}, but taints are not checked for clusters that have the binding"
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
        if situation.inputs.snapshot.get(name) is None:
            yield f"{name} does not exist: {end}"
        elif name in refused:
            yield f"{name} is refused now ({refused[name].plugin}: {refused[name].message}): {end}"


def notes_of(situation: Situation) -> Iterator[str]:
    """Yield what is worth knowing about a good result."""
    if preserves(situation.inputs.binding_manifest or {}):
        yield f"copies on clusters that it leaves, and all if it is deleted, go on running, unmanaged ({PRESERVED})"
    view = situation.inputs.process
    if view is not None and view.proposal is not None and situation.stored.name is StateName.NOT_RUNNING:
        yield f"{view.proposal.get('plugin')} proposes another placement, which is not written: {view.waits_for}"
    if not situation.placement or situation.now.decision.error is not None:
        return
    spec, targets = situation.inputs.binding.spec, situation.now.decision.targets or ()
    if situation.inputs.quotas is None and situation.asks and grows(spec, spec.clusters, targets):
        yield NOT_READ
    candidates = [each for each in situation.shown.attempt.candidates if each.allocatable > 0]
    if not candidates or not situation.inputs.binding.spec.replicas:
        return
    most = max(candidates, key=lambda each: each.available)
    rest = [each.available for each in candidates if each.name in situation.placement]
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
    others = (each for each in inputs.snapshot.clusters if each.name != name)
    return replace(inputs, snapshot=Snapshot.of([*others, changed], unknown=inputs.snapshot.unknown))
