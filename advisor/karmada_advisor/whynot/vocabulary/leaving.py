"""Edits after which a binding leaves a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.edits import Edit, Harm, PatchAction, Side
from karmada_advisor.whynot.vocabulary import affinity, capacity, division, policies, selection, triggers
from karmada_advisor.whynot.vocabulary.context import Context


def proposals(context: Context) -> Iterator[Edit]:
    """Yield edits that take a cluster out of the candidates, the selection or the division."""
    yield from policies.proposals(context)
    yield from triggers.reschedule(context)
    yield from affinity.exclude(context, context.name)
    for path, _ in context.affinity_paths():
        if context.cluster.region:
            yield affinity.exclude_region(context, path, context.cluster.region)
        break
    yield context.on_cluster(
        "addTaint",
        PatchAction.APPEND,
        ("spec", "taints"),
        "add a NoSchedule taint",
        value={"key": "example.com/reserved", "effect": "NoSchedule"},
        harm=Harm.NARROWS,
        caution="The taint keeps every workload off that does not tolerate it.",
    )
    yield from capacity.less(context, context.cluster, Side.CLUSTER)
    yield from division.replicas(context)
    yield from selection.fewer_competitors(context)
    yield from division.strategies(context)
