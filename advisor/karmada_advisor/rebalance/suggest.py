"""An edit of one policy after which a rebalance can do more, verified by the same search."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.plan.decide import Side
from karmada_advisor.rebalance.inputs import Inputs
from karmada_advisor.rebalance.model import Left, Suggestion
from karmada_advisor.rebalance.search import FoundMoves, search
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework.snapshot import Snapshot


def suggestion(inputs: Inputs, found: FoundMoves) -> Suggestion | None:
    """Return one more cluster for the policy that keeps most bindings where they are; None if that does not help."""
    groups: defaultdict[PolicyRef | None, list[Binding]] = defaultdict(list)
    for binding in inputs.bindings:
        if found.left.get(binding.key) is Left.LOCALITY_KEEPS:
            groups[policy_of(binding.annotations)].append(binding)
    if not groups:
        return None
    policy, kept = max(groups.items(), key=lambda each: len(each[1]))
    placement = kept[0].spec.placement
    assert placement is not None  # a rebalance was decided
    edited, most = _one_more(placement)
    concerned = {
        each.key
        for each in inputs.bindings
        if policy_of(each.annotations) == policy and each.spec.placement == placement
    }
    side = Side(inputs.rules, Snapshot.of(inputs.clusters), inputs.bindings)
    bindings = [_edited(each, edited, side) if each.key in concerned else each for each in inputs.bindings]
    after = search(replace(inputs, bindings=bindings, progress=lambda _done, _total: None))
    chosen = [each for batch in after.batches for each in batch]
    before = sum(map(len, found.batches))
    if len(chosen) <= before:
        return None
    text = f"cluster maxGroups {most}"
    return Suggestion(policy, text, len(chosen), sum(each.stops for each in chosen))


def _one_more(placement: Placement) -> tuple[Placement, int]:
    """Return a placement with a larger maxGroups of the clusters, and that number."""
    limits = [each.max_groups for each in placement.spread_constraints if each.spread_by_field == "cluster"]
    most = max(limits) + 1
    constraints = tuple(
        each._replace(max_groups=most) if each.spread_by_field == "cluster" else each
        for each in placement.spread_constraints
    )
    return replace(placement, spread_constraints=constraints), most


def _edited(binding: Binding, placement: Placement, side: Side) -> Binding:
    """Return a binding after the edit of its policy and the decision that it causes."""
    changed = replace(binding, spec=replace(binding.spec, placement=placement))
    if not side.is_assigned(changed):
        return changed
    outcome, decision = side.decide(changed, ScheduleType.RECONCILE)
    if outcome.error or decision is None or decision.applied_placement is None:
        return changed
    return replace(
        changed,
        annotations={**changed.annotations, APPLIED_PLACEMENT_ANNOTATION: decision.applied_placement},
        spec=replace(changed.spec, clusters=outcome.targets),
    )
