"""Warnings and notes: what a reader of an explanation should know besides the answer."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_scheduler.explain.causes_failure import unknown_names
from karmada_scheduler.explain.situation import Situation
from karmada_scheduler.informer.requeue_rules import is_claimed


def warnings_of(situation: Situation) -> tuple[str, ...]:
    """Return what is wrong, or will be with the next decision."""
    return tuple(_warnings(situation))


def _warnings(situation: Situation) -> Iterator[str]:
    for cause in unknown_names(situation):
        for name, near in cause.evidence["unknown"].items():
            end = f". Nearest: {near}." if near else "."
            yield f"clusterNames contains {name}, which does not exist{end}"
    yield from _tainted(situation)
    yield from _leaving(situation)
    if not is_claimed(situation.inputs.binding):
        yield "no policy claims the binding (it has no policy id as a label): the scheduler leaves it alone"


def _tainted(situation: Situation) -> Iterator[str]:
    """Yield the present clusters that would refuse a new binding: taints are not checked for present clusters."""
    placement = situation.inputs.binding.spec.placement
    if placement is None:
        return
    for name in situation.present:
        cluster = situation.inputs.snapshot.get(name)
        if cluster is None or name not in situation.placement:
            continue
        taint = next(
            (
                each
                for each in cluster.taints
                if each.blocks_scheduling
                and not any(t.tolerates(each) for t in placement.cluster_tolerations)
            ),
            None,
        )
        if taint is not None:
            yield f"{name} has the taint {taint}, but taints are not checked for clusters that have the binding"


def _leaving(situation: Situation) -> Iterator[str]:
    """Yield the present clusters that lose the binding at the next decision."""
    if situation.asks or not situation.present:
        return
    traces = situation.now.traces
    if traces is None:
        return
    for name, replicas in situation.present.items():
        row = traces.filter.rows.get(name)
        if row is None:
            yield f"{name} does not exist: at the next decision its {replicas} replicas go elsewhere"
        elif row.refusals:
            cell = row.refusals[0]
            yield (
                f"{name} is refused now ({cell.plugin}: {cell.short}): at the next decision its {replicas} replicas leave it"
            )


def notes_of(situation: Situation) -> tuple[str, ...]:
    """Return what is worth knowing about a good result."""
    return tuple(_notes(situation))


def _notes(situation: Situation) -> Iterator[str]:
    traces = situation.shown.traces
    if traces is None or not situation.placement or situation.now.decision.error is not None:
        return
    candidates = [each for each in traces.attempt.candidates if each.allocatable > 0]
    if not candidates or not situation.inputs.binding.spec.replicas:
        return
    most = max(candidates, key=lambda each: each.available)
    rest = [each.available for each in candidates if each.name in situation.placement]
    if most.name not in situation.placement and rest and most.available > max(rest):
        yield (
            f"the cluster with the most room, {most.name}, is not used. "
            f"`why-not {most.name}` says what would change that."
        )
