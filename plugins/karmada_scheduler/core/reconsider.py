"""Applies the answer of a Reconsider plugin to the decision that it proposed."""

from __future__ import annotations

from collections.abc import Mapping

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.core.decision import Decision, Reconsidered, ReconsiderResult
from karmada_scheduler.framework.diagnosis import HeldError, PluginError, SchedulingError
from karmada_scheduler.framework.guard_point import ReconsiderContext, Terms
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.guarding import Proposed
from karmada_scheduler.structs import replace


def proposed_terms(binding: Binding, proposed: Proposed) -> range:
    """Return the indexes of the affinity terms that a proposed decision may use."""
    placement = binding.spec.placement
    names = [term.affinity_name for term in placement.cluster_affinities] if placement is not None else []
    name = binding.status.scheduler_observing_affinity_name
    if name not in names:
        return range(0)
    index = names.index(name)
    return range(index) if proposed.proposal.terms is Terms.EARLIER else range(index, index + 1)


def with_kept(binding: Binding, kept: Mapping[str, int] | None) -> Binding:
    """Return a binding as if it had only the replicas that a proposal keeps; see ``Proposal.kept``."""
    if kept is None:
        return binding
    stay = [TargetCluster(name, min(kept.get(name, 0), share)) for name, share in binding.spec.clusters]
    return replace(
        binding, spec=replace(binding.spec, clusters=tuple([target for target in stay if target.replicas]))
    )


def with_term(binding: Binding, name: str) -> Binding:
    """Return a binding as if its status had another affinity term in force."""
    return replace(binding, status=replace(binding.status, scheduler_observing_affinity_name=name))


def within_proposed_terms(decision: Decision, binding: Binding, terms: range) -> Decision:
    """Return a proposed decision, or an error if a repetition on its own result ended in a term that was not proposed."""
    placement = binding.spec.placement
    if decision.error is not None or placement is None or not terms:
        return decision
    names = [placement.cluster_affinities[index].affinity_name for index in terms]
    if decision.affinity_name in names:
        return decision
    error = SchedulingError(f"the decision is not stable: it continues with term {decision.affinity_name}")
    return replace(decision, error=error)


def reconsidered(binding: Binding, decision: Decision, framework: Framework, proposed: Proposed) -> Decision:
    """Return a proposed decision as it is to be written, or an empty one if nothing is."""
    plugin, proposal = proposed
    fits = decision.error is None
    succeeds = fits or isinstance(decision.error, HeldError)
    last = decision.attempts[-1].cycle if decision.attempts else None
    refused = decision.guarded.refused_targets if decision.guarded is not None else None
    context = ReconsiderContext(
        binding,
        proposal,
        decision.targets if fits else refused,
        last.affinity_name if succeeds and last is not None else "",
        last,
        decision.error,
    )
    try:
        result = framework.reconsider.run(plugin, context)
    except PluginError as error:
        return _nothing(binding, proposed, ReconsiderResult.FAILED, str(error))
    if decision.error is not None or not result.is_success:
        kind = ReconsiderResult.DECLINED if decision.error is None else _kind(decision.error)
        reason = result.message or str(decision.error)
        return _nothing(binding, proposed, kind, reason, retry_after=result.retry_after)
    accepted = Reconsidered(plugin.name, proposal, ReconsiderResult.ACCEPTED)
    return replace(decision, failed_terms=(), reconsidered=accepted)


def _kind(error: SchedulingError) -> ReconsiderResult:
    if isinstance(error, HeldError):
        return ReconsiderResult.HELD
    return ReconsiderResult.FAILED if isinstance(error, PluginError) else ReconsiderResult.MISSED


def _nothing(
    binding: Binding, proposed: Proposed, result: ReconsiderResult, reason: str, *, retry_after: float = 0.0
) -> Decision:
    plugin, proposal = proposed
    return Decision(
        binding.key, reconsidered=Reconsidered(plugin.name, proposal, result, reason, retry_after)
    )
