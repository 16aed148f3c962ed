"""Decisions about the objects of builders, and the contexts of Filter and Score plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from karmada_scheduler.api.binding import AssumedWorkload
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.dryrun.objects import SimulatedBindings
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Cycle, FilterContext, Peers, Plugin, ScoreContext, Snapshot
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing.bindings import BindingBuilder
from karmada_scheduler.testing.clusters import ClusterBuilder
from karmada_scheduler.testing.setups import framework


def snapshot(*clusters: ClusterBuilder | Cluster) -> Snapshot:
    """Take a snapshot of clusters."""
    return Snapshot.of(each.build() if isinstance(each, ClusterBuilder) else each for each in clusters)


class Group(SimulatedBindings):
    """Bindings by workload affinity group, as ``Peers`` returns them."""

    def __init__(self, *listed: BindingBuilder) -> None:
        super().__init__(builder.build() for builder in listed)


def filter_context(
    binding: BindingBuilder,
    cluster: ClusterBuilder,
    *,
    affinity_name: str | None = None,
    peers: Peers | None = None,
) -> FilterContext:
    """Return the context of a Filter plugin for one cluster."""
    return FilterContext(_cycle(binding, affinity_name, peers), cluster.build())


def score_context(binding: BindingBuilder, cluster: ClusterBuilder) -> ScoreContext:
    """Return the context of a Score plugin for one cluster."""
    return ScoreContext(_cycle(binding, None, None), cluster.build())


def _cycle(builder: BindingBuilder, affinity_name: str | None, peers: Peers | None) -> Cycle:
    built = builder.build()
    name = built.status.scheduler_observing_affinity_name if affinity_name is None else affinity_name
    return Cycle(
        built, built.spec.placement or Placement(), name, peers=peers, workload_answer=builder.workload_answer
    )


def decide(
    binding: BindingBuilder,
    *clusters: ClusterBuilder,
    gates: FeatureGates | None = None,
    plugins: Framework | Sequence[Plugin | type[Plugin]] = (),
    empty_workload_propagation: bool = False,
    assumed: Mapping[str, Sequence[AssumedWorkload]] | None = None,
    peers: Peers | None = None,
    in_flight: Sequence[BindingBuilder] = (),
    until_stable: bool = True,
) -> Decision:
    """Decide on the placement of a binding, with the in-tree plugins, ``plugins``, and the built-in estimator.

    Asynchronous plugins get an event loop of their own. With them, this function cannot be called from a
    coroutine; ``scheduling`` can.
    """
    gates = gates or FeatureGates()
    deciders = plugins if isinstance(plugins, Framework) else framework(*plugins, gates=gates)
    algorithm = SchedulingAlgorithm(
        gates,
        [GeneralEstimator(gates)],
        empty_workload_propagation=empty_workload_propagation,
        peers=peers,
        stored_workload={builder.build().key: builder.workload_answer.workload for builder in in_flight}.get,
    )
    decision = algorithm.decide(
        binding.build(),
        snapshot(*clusters),
        deciders,
        assumed=assumed or {},
        in_flight=[builder.build() for builder in in_flight],
        until_stable=until_stable,
        workload=binding.workload_answer,
    )
    return asyncio.run(decision) if deciders.is_async else run_sync(decision)


def placed(decision: Decision) -> dict[str, int]:
    """Return the replicas by cluster of a decision, in the order in which they are written."""
    assert decision.error is None, f"not scheduled: {decision.error}"
    return {target.name: target.replicas for target in decision.targets or ()}
