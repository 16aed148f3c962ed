"""The edits that may cure a blocker, by the step at which a cluster drops out."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.edits import Edit
from karmada_advisor.whynot.goals import BlockedStep, has_replicas
from karmada_advisor.whynot.vocabulary import (
    affinity,
    capacity,
    division,
    filters,
    policies,
    quotas,
    selection,
    triggers,
)
from karmada_advisor.whynot.vocabulary.context import Context


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits that may let the cluster pass the step at which it drops out."""
    yield from policies.proposals(context)
    match context.blocker.step:
        case BlockedStep.TRIGGER:
            yield from triggers.proposals(context)
        case BlockedStep.FILTER:
            yield from filters.proposals(context)
        case BlockedStep.SELECT:
            yield from selection.proposals(context)
            yield from affinity.competitors(context)
            yield from affinity.only(context)
            yield from division.replicas(context)
            yield from capacity.proposals(context)
            yield from division.strategies(context)
        case BlockedStep.DIVIDE if context.binding.spec.replicas == 0 and has_replicas(context.binding):
            yield from division.replicas(context)
        case BlockedStep.DIVIDE:
            yield from triggers.reschedule(context)
            yield from division.proposals(context)
            yield from capacity.proposals(context)
            yield from selection.fewer_competitors(context)
            yield from affinity.competitors(context)
            yield from affinity.only(context)
            yield from affinity.tiers(context)
        case BlockedStep.WRITE:
            yield from quotas.proposals(context)
        case BlockedStep.DONE:
            yield from division.proposals(context)
            yield from capacity.proposals(context)
            yield from affinity.competitors(context)
