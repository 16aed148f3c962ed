"""The edits that may cure a blocker, by the step at which a cluster drops out, and those after which a binding leaves one."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.goals import BlockedStep, has_replicas
from karmada_advisor.whynot.vocabulary import capacity, placement, triggers
from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.framework.edits import Edit, Harm, Side


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits that may let the cluster pass the step at which it drops out."""
    yield from triggers.preemption(context)
    yield from placement.corrections(context)
    match context.blocker.step:
        case BlockedStep.TRIGGER:
            yield from triggers.proposals(context)
        case BlockedStep.FILTER:
            yield from placement.of_refusal(context)
        case BlockedStep.SELECT:
            yield from placement.limits(context)
            yield from placement.competitors(context)
            yield from placement.only(context)
            yield from placement.replicas(context)
            yield from capacity.proposals(context)
            yield from placement.strategies(context)
        case BlockedStep.DIVIDE if context.binding.spec.replicas == 0 and has_replicas(context.binding):
            yield from placement.replicas(context)
        case BlockedStep.DIVIDE:
            yield from triggers.reschedule(context)
            yield from placement.divisions(context)
            yield from capacity.proposals(context)
            yield from placement.fewer_competitors(context)
            yield from placement.competitors(context)
            yield from placement.only(context)
            yield from placement.tiers(context)
        case BlockedStep.WRITE:
            yield from capacity.of_quotas(context)
        case BlockedStep.DONE:
            yield from placement.divisions(context)
            yield from capacity.proposals(context)
            yield from placement.competitors(context)


def leaving(context: Context) -> Iterator[Edit]:
    """Yield edits that take a cluster out of the candidates, the selection or the division."""
    yield from triggers.preemption(context)
    yield from placement.corrections(context)
    yield from triggers.reschedule(context)
    yield from placement.exclude(context, context.name)
    for path, _ in context.affinity_paths():
        if context.cluster.region:
            yield placement.exclude_region(context, path, context.cluster.region)
        break
    yield context.on_cluster.append(
        "addTaint", ("spec", "taints"), {"key": "example.com/reserved", "effect": "NoSchedule"},
        "add a NoSchedule taint", harm=Harm.NARROWS,
        caution="The taint keeps every workload off that does not tolerate it.",
    )  # fmt: skip
    yield from capacity.less(context, context.cluster, Side.CLUSTER)
    yield from placement.replicas(context)
    yield from placement.fewer_competitors(context)
    yield from placement.strategies(context)
