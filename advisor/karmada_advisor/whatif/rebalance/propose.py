"""The proposal of a rebalance: batches with their manifests, what was left, and an edit that would move more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.whatif.plan.decide import PlanSide, no_progress, settled
from karmada_advisor.whatif.plan.effects import differences
from karmada_advisor.whatif.rebalance import model
from karmada_advisor.whatif.rebalance.candidates import Inputs, Usage, deviation
from karmada_advisor.whatif.rebalance.search import RebalanceSearch
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.object_fields import object_fields
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace


def propose(inputs: Inputs) -> model.RebalanceProposal:
    """Return which bindings to rebalance."""
    found = RebalanceSearch(inputs)
    found.run()
    moves, before = [move for batch in found.batches for move in batch.moves], Usage(inputs.clusters)
    return model.RebalanceProposal(
        inputs.provenance,
        inputs.fingerprint,
        inputs.goal,
        inputs.fill,
        inputs.bounds,
        len(inputs.clusters),
        len(inputs.bindings),
        found.looked_at,
        len(moves),
        sum(move.stops for move in moves),
        tuple(found.batches),
        deviation(before.shares),
        deviation(found.usage.shares),
        _shares(inputs.bindings, moves, before, found.usage),
        _left(inputs.bindings, found),
        tuple(
            model.SkippedGroup(each, found.skipped[each]) for each in model.Skipped if each in found.skipped
        ),
        suggestion(inputs, found),
        tuple(_notes(inputs, found)),
    )


def _shares(
    bindings: Iterable[Binding], moves: Iterable[model.BindingMove], before: Usage, after: Usage
) -> tuple[model.ClusterShare, ...]:
    """Return the clusters whose replicas change, the largest change of the share first."""
    held, moved = Counter[str](), Counter[str]()
    for binding in bindings:
        for target in binding.spec.clusters:
            held[target.name] += target.replicas
    for move in moves:
        moved.update(differences(move.before, move.after))
    shares = [
        model.ClusterShare(name, before.share(name), after.share(name), held[name], held[name] + moved[name])
        for name in sorted(moved)
    ]
    return tuple(sorted(shares, key=lambda each: -abs((each.share_after or 0) - (each.share_before or 0))))


def _left(bindings: Iterable[Binding], found: RebalanceSearch) -> tuple[model.LeftGroup, ...]:
    """Return the bindings that are not in the proposal, by reason, the most frequent first."""
    groups: defaultdict[model.Left, list[str]] = defaultdict(list)
    for binding in bindings:
        if binding.key in found.left:
            groups[found.left[binding.key]].append(str(binding.key))
    ordered = sorted(groups.items(), key=lambda each: -len(each[1]))
    return tuple(model.LeftGroup(reason, len(names), tuple(names)) for reason, names in ordered)


def _notes(inputs: Inputs, found: RebalanceSearch) -> Iterator[str]:
    yield from inputs.more_notes
    if not found.batches:
        return
    if len(found.batches) > 1:
        yield (
            "Batches after the first are computed as if the clusters had reported all moves of those before: "
            "run this command again after each."
        )
    names = {target.name for batch in found.batches for move in batch.moves for target in move.after}
    modelled = sorted(each.name for each in inputs.clusters if each.name in names and each.resource_models)
    if modelled:
        others = f" and {counted(len(modelled) - 1, 'other')} have" if len(modelled) > 1 else " has"
        yield f"{modelled[0]}{others} resource models, whose free nodes are not computed again between batches."


API_VERSION: Final = "apps.karmada.io/v1alpha1"
TTL_SECONDS: Final = 3600
"""After this, Karmada deletes a finished WorkloadRebalancer."""


def manifests(proposal: model.RebalanceProposal) -> list[dict[str, Any]]:
    """Return one WorkloadRebalancer per batch, for ``kubectl create``."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "WorkloadRebalancer",
            "metadata": {"generateName": f"rebalance-{proposal.provenance.fleet}-{batch.number}-"},
            "spec": {
                "ttlSecondsAfterFinished": TTL_SECONDS,
                "workloads": [object_fields(move.workload) for move in batch.moves],
            },
        }
        for batch in proposal.batches
    ]


def suggestion(inputs: Inputs, found: RebalanceSearch) -> model.Suggestion | None:
    """Return one more cluster for the policy that keeps most bindings where they are; None if that does not help."""
    groups: defaultdict[PolicyRef | None, list[Binding]] = defaultdict(list)
    for binding in inputs.bindings:
        if found.left.get(binding.key) is model.Left.LOCALITY_KEEPS:
            groups[policy_of(binding.annotations)].append(binding)
    if not groups:
        return None
    policy, kept = max(groups.items(), key=lambda each: len(each[1]))
    placement = kept[0].spec.placement
    assert placement is not None  # a rebalance was decided
    edited, most = _one_more(placement)
    concerned = {
        binding.key
        for binding in inputs.bindings
        if policy_of(binding.annotations) == policy and binding.spec.placement == placement
    }
    side = PlanSide(inputs.rules, Snapshot.of(inputs.clusters), inputs.bindings)
    bindings = [_edited(each, edited, side) if each.key in concerned else each for each in inputs.bindings]
    after = RebalanceSearch(replace(inputs, bindings=bindings, progress=no_progress))
    after.run()
    moves = [move for batch in after.batches for move in batch.moves]
    if len(moves) <= sum(len(batch.moves) for batch in found.batches):
        return None
    return model.Suggestion(
        policy, f"cluster maxGroups {most}", len(moves), sum(move.stops for move in moves)
    )


def _one_more(placement: Placement) -> tuple[Placement, int]:
    """Return a placement with a larger maxGroups of the clusters, and that number."""
    limits = [each.max_groups for each in placement.spread_constraints if each.spread_by_field == "cluster"]
    most = max(limits) + 1
    constraints = tuple(
        constraint._replace(max_groups=most) if constraint.spread_by_field == "cluster" else constraint
        for constraint in placement.spread_constraints
    )
    return replace(placement, spread_constraints=constraints), most


def _edited(binding: Binding, placement: Placement, side: PlanSide) -> Binding:
    """Return a binding after the edit of its policy and the decision that it causes."""
    changed = replace(binding, spec=replace(binding.spec, placement=placement))
    if not side.is_assigned(changed):
        return changed
    _, decision = side.decide(changed, ScheduleType.RECONCILE)
    return settled(changed, decision) if decision is not None and decision.error is None else changed
