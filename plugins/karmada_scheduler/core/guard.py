"""Applies the Guard plugins of a profile to a settled decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import replicas_changed
from karmada_scheduler.core.decision import Decision, Guarded
from karmada_scheduler.framework.diagnosis import FitError, HeldError, KeptError, PluginError
from karmada_scheduler.framework.guard_point import GuardAnswer, GuardContext, Proposal
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
    if not (answer.tasks or answer.annotations or answer.cancel or answer.warning):
        return decision
    return replace(
        decision,
        guarded=Guarded(
            tasks=tuple(answer.tasks),
            annotations=dict(answer.annotations),
            cancelled=frozenset(answer.cancel),
            warning=answer.warning,
        ),
    )


async def guarded_or_returned(
    binding: Binding,
    decision: Decision,
    framework: Framework,
    decide_again: Callable[[Binding], Awaitable[Decision]],
) -> Decision:
    """Return a decision as ``guarded`` does, or the one that takes a workload back to clusters that it leaves.

    ``decide_again`` decides about the binding without its eviction tasks for these clusters. Nothing is cancelled if that puts
    nothing on them.
    """
    before = guarded(binding, decision, framework)
    if before.guarded is None or not before.guarded.cancelled:
        return before
    spec, names = binding.spec, before.guarded.cancelled
    tasks = tuple(task for task in spec.graceful_eviction_tasks if task.from_cluster not in names)
    again = await decide_again(replace(binding, spec=replace(spec, graceful_eviction_tasks=tasks)))
    cancelled = names & {target.name for target in again.targets or ()}
    if again.error is not None or not cancelled:
        return replace(before, guarded=None)
    return replace(again, guarded=replace(before.guarded, cancelled=cancelled))


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
    error: KeptError | HeldError | None = None
    if context.error is not None:
        if not kept:
            return decision  # nothing is left that could be kept
        reason = f"{result.message}; stays on {targets_text(kept)}"
        error = KeptError(context.error, result.plugin, reason, retry_after=result.retry_after)
    elif not (answer.stays and context.proposal is None and _is_complete(context, kept)):
        line = (binding.spec.responsible_scheduler, result.plugin, answer.line) if answer.line else None
        error = HeldError(result.plugin, result.message, retry_after=result.retry_after, line=line)
    changes = kept != binding.spec.clusters
    return replace(
        decision,
        targets=kept if changes else None,
        applied_placement=binding.applied_placement_json if changes else None,
        affinity_name=None,
        components=None,
        failed_terms=decision.failed_terms if context.error is not None else (),
        error=error,
        guarded=Guarded(
            refused_by=result.plugin,
            reason=result.message,
            refused_targets=None if context.targets is None else tuple(context.targets),
            annotations=dict(answer.annotations),
        ),
    )


def _is_complete(context: GuardContext, kept: tuple[TargetCluster, ...]) -> bool:
    """Return whether a binding keeps all of its clusters, and they have its replicas."""
    binding = context.binding
    is_whole = bool(kept) and kept == binding.spec.clusters
    return is_whole and not replicas_changed(binding, context.cycle.placement, FeatureGates())


def targets_text(targets: tuple[TargetCluster, ...]) -> str:
    """Return ``name:replicas`` of the first targets, and the number of the others."""
    shown = ", ".join(f"{target.name}:{target.replicas}" for target in targets[:MAX_SHOWN])
    return shown + (f" and {len(targets) - MAX_SHOWN} more" if len(targets) > MAX_SHOWN else "")
