"""Applies the Guard plugins of a profile to a settled decision."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.core.decision import Decision, Guarded
from karmada_scheduler.framework.diagnosis import FitError, HeldError, KeptError, PluginError
from karmada_scheduler.framework.guard_point import GuardAnswer, GuardContext
from karmada_scheduler.framework.reconsider_point import Proposal
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.structs import replace

MAX_SHOWN: Final = 10
"""Targets in a text."""


def guarded(
    binding: Binding, decision: Decision, framework: Framework, proposal: Proposal | None = None
) -> Decision:
    """Return a decision as the Guard plugins of the profile let it through, or the one that keeps the placement.

    Decisions that change no clusters are returned as they are. ``proposal`` is that of a Reconsider plugin, None for a
    decision that an event requires.
    """
    context = _context(binding, decision, proposal)
    if context is None:
        return decision
    try:
        answer = framework.guard.run(context)
    except PluginError as error:
        return Decision(binding.key, error=error)
    if answer.result.is_refusal:
        return _refused(decision, context, answer)
    if not answer.tasks and not answer.annotations and not answer.cancel:
        return decision
    return replace(
        decision,
        guarded=Guarded(
            tasks=tuple(answer.tasks),
            annotations=dict(answer.annotations),
            cancelled=frozenset(answer.cancel),
        ),
    )


def without_tasks(binding: Binding, clusters: Collection[str]) -> Binding:
    """Return a binding without its eviction tasks for some clusters."""
    tasks = tuple(task for task in binding.spec.graceful_eviction_tasks if task.from_cluster not in clusters)
    return replace(binding, spec=replace(binding.spec, graceful_eviction_tasks=tasks))


def with_cancelled_evictions(before: Decision, decision: Decision) -> Decision:
    """Return a repeated decision that cancels eviction tasks, or the one before if it puts nothing on their clusters.

    Args:
        before: The decision that no cluster fits, with the clusters that may take the workload back.
        decision: The decision without their tasks.
    """
    assert before.guarded is not None  # the caller has checked it
    cancelled = before.guarded.cancelled & {target.name for target in decision.targets or ()}
    if decision.error is not None or not cancelled:
        return replace(before, guarded=None)
    return replace(decision, guarded=replace(before.guarded, cancelled=cancelled))


def _context(binding: Binding, decision: Decision, proposal: Proposal | None) -> GuardContext | None:
    """Return what Guard plugins are asked about; None if the decision changes no clusters."""
    fit = decision.error if isinstance(decision.error, FitError) else None
    may_take_back = fit is not None and bool(binding.spec.graceful_eviction_tasks)
    if decision.targets is None or (decision.targets == binding.spec.clusters and not may_take_back):
        return None
    last = decision.attempts[-1].cycle if decision.attempts else None
    cycle = decision.cycle if fit is None else last
    if cycle is None:
        return None
    return GuardContext(binding, None if fit is not None else decision.targets, cycle, fit, proposal)


def _refused(decision: Decision, context: GuardContext, answer: GuardAnswer) -> Decision:
    """Return the decision that keeps the clusters of a binding, without those that are gone.

    Clusters that are gone leave also then: Karmada does not delete a Cluster as long as a binding has it as a target
    (karmada v1.18.2 pkg/controllers/cluster/cluster_controller.go).
    """
    binding, result = context.binding, answer.result
    kept = tuple(target for target in binding.spec.clusters if target.name not in context.gone)
    error: KeptError | HeldError
    if context.error is not None:
        if not kept:
            return decision  # nothing is left that could be kept
        reason = f"{result.message}; stays on {targets_text(kept)}"
        error = KeptError(context.error, result.plugin, reason, retry_after=result.retry_after)
    else:
        error = HeldError(result.plugin, result.message, retry_after=result.retry_after)
    changes = kept != binding.spec.clusters
    return replace(
        decision,
        targets=kept if changes else None,
        applied_placement=binding.applied_placement_json if changes else None,
        affinity_name=None,
        failed_terms=decision.failed_terms if context.error is not None else (),
        error=error,
        guarded=Guarded(
            refused_by=result.plugin,
            reason=result.message,
            refused_targets=None if context.targets is None else tuple(context.targets),
            annotations=dict(answer.annotations),
        ),
    )


def targets_text(targets: tuple[TargetCluster, ...]) -> str:
    """Return ``name:replicas`` of the first targets, and the number of the others."""
    shown = ", ".join(f"{each.name}:{each.replicas}" for each in targets[:MAX_SHOWN])
    return shown + (f" and {len(targets) - MAX_SHOWN} more" if len(targets) > MAX_SHOWN else "")
