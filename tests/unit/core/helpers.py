"""Short constructors of candidates and cycles, and short forms of results."""

from __future__ import annotations

from collections.abc import Sequence

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.ordering.cache import OrderCache, ScoreCache
from karmada_scheduler.core.ordering.columnar import SharedOrder
from karmada_scheduler.framework import Cycle, Snapshot
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.testing import BindingBuilder, cluster


def candidate(
    name: str,
    *,
    score: int = 0,
    available: int = 0,
    allocatable: int | None = None,
    tier: int = 0,
    region: str = "",
) -> Candidate:
    """Return a candidate; by default, all its available replicas are allocatable."""
    return Candidate(
        cluster(name).region(region).build(),
        score,
        tier,
        available,
        available if allocatable is None else allocatable,
    )


def names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.name for each in candidates]


def cycle(builder: BindingBuilder) -> Cycle:
    built = builder.build()
    assert built.spec.placement is not None
    return Cycle(built, built.spec.placement, built.status.scheduler_observing_affinity_name)


def shown(targets: Sequence[TargetCluster]) -> list[tuple[str, int]]:
    return [(target.name, target.replicas) for target in targets]


def shared_order(candidates: Sequence[Candidate]) -> SharedOrder:
    """Return the shared order of candidates, which are in the order of their names."""
    results, scores, order = FilterResults("key"), ScoreCache(), OrderCache()
    results.refresh(Snapshot.of(each.cluster for each in candidates), lambda _: {})
    scores.refresh(results, lambda _: [(each.tier, each.score) for each in candidates])
    order.refresh(results, lambda _: columns.column([each.allocatable for each in candidates]))
    return order.shared(scores.feasible, 0)
