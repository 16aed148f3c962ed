"""Proposals about objects that builders describe, and an execution of them that is written independently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from karmada_advisor.explain.inputs import rebalanced
from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.plan.holds import HoldOf, nothing_holds
from karmada_advisor.whatif.rebalance.candidates import Inputs
from karmada_advisor.whatif.rebalance.model import Bounds, Goal, RebalanceProposal
from karmada_advisor.whatif.rebalance.propose import propose
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.plan.asking import rules

Placement = dict[str, int]


def member(name: str, *, used: int = 0, cpu: int = 100) -> ClusterBuilder:
    """Return a cluster with some cores, of which some are used."""
    return cluster(name).capacity(cpu=cpu, pods=1000).allocated({"cpu": str(used), "pods": str(used)})


def workload(name: str, **replicas: int) -> BindingBuilder:
    """Return a binding that is divided by free capacity, one core per replica, as the scheduler left it."""
    made = binding(name).replicas(sum(replicas.values()), cpu="1").dynamic_weight().on(**replicas)
    return settled(made)


def settled(made: BindingBuilder) -> BindingBuilder:
    """Return a binding about which nothing asks for a decision."""
    made.applied().last_scheduled("2026-11-22T10:00:00Z")
    return made.condition(type="Scheduled", status="True", reason="Success")


def proposal_of(
    clusters: Iterable[ClusterBuilder],
    bindings: Iterable[BindingBuilder],
    *,
    goal: Goal = Goal.SPREAD,
    fill: str = "",
    max_moves: int = 100,
    gates: FeatureGates | None = None,
    exclude: str = "",
    hold_of: HoldOf = nothing_holds,
    **bounds: Any,
) -> RebalanceProposal:
    """Return the proposal about some objects."""
    return propose(
        Inputs(
            [each.build() for each in clusters],
            [each.build() for each in bindings],
            rules(gates),
            goal,
            Bounds(max_moves, **bounds),
            fill,
            hold_of=hold_of,
            is_excluded=lambda each: fnmatchcase(str(each.key), exclude),
            fingerprint="0123456789",
        )
    )


def placements(found: RebalanceProposal) -> dict[str, Placement]:
    """Return the clusters of each binding in a proposal, by the name of its workload."""
    return {
        move.name.removesuffix("-deployment"): {each.name: each.replicas for each in move.after}
        for batch in found.batches
        for move in batch.moves
    }


def left(found: RebalanceProposal) -> dict[str, str]:
    """Return why each of the other bindings is left."""
    return {
        name.partition("/")[2].removesuffix("-deployment"): group.reason.value
        for group in found.left
        for name in group.bindings
    }


def executed(
    clusters: Sequence[Cluster], bindings: Sequence[Binding], found: RebalanceProposal, gates: FeatureGates
) -> dict[str, Placement]:
    """Execute a proposal: WorkloadRebalancers batch by batch, members that report what runs, a new scheduler each time."""
    stored = {each.key.name: each for each in bindings}
    running = list(clusters)
    results = {}
    for batch in found.batches:
        side = PlanSide(rules(gates), Snapshot.of(running), stored.values())
        triggered = [rebalanced(stored[move.name]) for move in batch.moves]
        ordered = [(each, ScheduleType.RECONCILE) for each in triggered]
        outcomes = (
            [(each, outcome) for each, outcome, _ in side.decisions_in_order(ordered)]
            if side.rules.accounts
            else [(each, side.decide(each, type_)[0]) for each, type_ in ordered]
        )
        for each, outcome in outcomes:
            assert not outcome.error
            running = _reported(running, each, outcome.targets)
            stored[each.key.name] = replace(each, spec=replace(each.spec, clusters=outcome.targets))
            results[each.key.name.removesuffix("-deployment")] = {
                target.name: target.replicas for target in outcome.targets
            }
    return results


def _reported(clusters: list[Cluster], moved: Binding, after: Sequence[TargetCluster]) -> list[Cluster]:
    """Return clusters that report one core and one pod per replica of a binding as it runs now."""
    before = {each.name: each.replicas for each in moved.spec.clusters}
    now = {each.name: each.replicas for each in after}
    return [_used(each, now.get(each.name, 0) - before.get(each.name, 0)) for each in clusters]


def _used(each: Cluster, more: int) -> Cluster:
    assert each.resource_summary is not None
    used = each.resource_summary.allocated["cpu"].value + more
    made = member(each.name, used=used, cpu=each.resource_summary.allocatable["cpu"].value)
    return made.build()
