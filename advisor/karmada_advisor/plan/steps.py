"""One change after the other: the objects after a change, once its decisions are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from karmada_advisor.plan.effects import Comparison
from karmada_advisor.plan.inputs import Known, PlanInputs
from karmada_advisor.plan.model import BindingPlan
from karmada_advisor.plan.objects import PlanObjects
from karmada_advisor.plan.planner import Planner
from karmada_advisor.plan.result import binding_plan
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.written import as_written, manifest_as_written
from karmada_scheduler.structs import Struct


class PlannedStep(Struct, frozen=True):
    """What a change does, and what there is afterwards.

    Attributes:
        plans: By binding, what happens to it; every binding is there.
        comparisons: The same as the planner has it: the bindings that were decided about, and the decisions.
        objects: The objects afterwards, with what the scheduler writes.
        known: The same as values.
        decisions: All that were made, also those that are only compared.
    """

    plans: Mapping[BindingKey, BindingPlan]
    comparisons: Mapping[BindingKey, Comparison]
    objects: PlanObjects
    known: Known
    decisions: Sequence[Decision]


def take_step(inputs: PlanInputs, at: datetime) -> PlannedStep:
    """Decide what a change causes, and write it.

    A cluster that the change deletes is gone once no binding is on it.

    Args:
        inputs: The objects and the change.
        at: The time of the decisions.

    Raises:
        ChangeError: An object cannot be read after the change, or Karmada would refuse it.
    """
    made: dict[BindingKey, Decision] = {}
    every: list[Decision] = []
    planner = Planner(inputs, made, every)
    planner.decide()
    after = inputs.draft.after.copy()
    bindings = dict(planner.after.bindings)
    for key, each in planner.comparisons.items():
        if each.new is None:
            continue
        decision = made.get(key) if each.hold is None else None  # what is held does not take effect
        stored = each.new if decision is None else as_written(each.new, decision, at)
        if stored is not bindings[key]:
            bindings[key] = stored
            after.bindings[key] = manifest_as_written(after.bindings[key], stored)
    clusters = dict(planner.after.clusters)
    used = {target.name for each in bindings.values() for target in each.spec.clusters}
    for name, cluster in planner.after.clusters.items():
        if cluster.deleting and name not in used:
            del clusters[name], after.clusters[name]
    return PlannedStep(
        {key: binding_plan(key, each, planner.derived) for key, each in planner.comparisons.items()},
        planner.comparisons,
        after,
        Known(clusters, bindings),
        every,
    )
