"""Runs the PostFilter plugins for lack of capacity, once all affinity terms of a decision have failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.cluster_groups import preferred_first
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.decision_inputs import DecisionInputs, TermShortage
from karmada_scheduler.core.prioritize_clusters import estimated
from karmada_scheduler.core.schedule_terms import UNFINISHED
from karmada_scheduler.framework.cycle import ReplicaEstimate
from karmada_scheduler.framework.diagnosis import NotEnoughCapacityError, SchedulingError
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Code
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.validation import replica_estimate
from karmada_scheduler.framework.scheduling_points import AssignContext, EstimateContext, SelectContext
from karmada_scheduler.structs import replace

_SOON: Final = 1.0
"""Seconds; the backoff of the queue is at least as long."""


async def after_shortages(decision: Decision, inputs: DecisionInputs) -> Decision:
    """Return a failed decision with what the PostFilter plugins for lack of capacity say about the next attempt."""
    if isinstance(decision.error, UNFINISHED):
        return decision
    for lacking in inputs.shortages or ():

        async def decide(
            plugin: Plugin, estimate: ReplicaEstimate, lacking: TermShortage = lacking
        ) -> Sequence[TargetCluster] | SchedulingError:
            return await _decide(plugin, estimate, lacking, inputs.framework)

        result = await inputs.framework.run_post_filter(
            lacking.cycle,
            lacking.diagnosis,
            skipped=lacking.skipped,
            left_out=lacking.left_out,
            shortage=lacking.shortage,
            decide=decide,
        )
        delay = result.retry_after or (_SOON if result.is_success else 0.0)
        if delay and isinstance(decision.error, NotEnoughCapacityError):
            decision.error.retry_after = delay
        if result.code is Code.PENDING and decision.error is not None:
            decision.error.args = (f"{str(decision.error).removesuffix('.')}. {result.message}",)
            return decision
        if result.is_success:
            last = replace(decision.attempts[-1], may_work_next_time=True)
            return replace(decision, attempts=(*decision.attempts[:-1], last))
    return decision


async def _decide(
    plugin: Plugin, estimate: ReplicaEstimate, lacking: TermShortage, framework: Framework
) -> Sequence[TargetCluster] | SchedulingError:
    """Return the targets with other numbers, or the error; filters and scores stay.

    Raises:
        PluginError: The estimate is invalid.
    """
    shortage, cycle = lacking.shortage, replace(lacking.cycle, kept=None)
    context = EstimateContext(cycle, shortage.needed)
    changes = [(plugin.name, replica_estimate(plugin, estimate, context))]
    try:
        for name, limit in framework.run_estimate_replicas(context):
            changes.append((name, replace(limit, less={}, at_least={})))
        candidates = preferred_first(estimated(candidate, changes) for candidate in shortage.candidates)
        selected = await framework.run_select(SelectContext(cycle, candidates, shortage.needed))
        return tuple(await framework.run_assign(AssignContext(cycle, selected)))
    except SchedulingError as error:
        return error
