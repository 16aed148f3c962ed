"""Plugins without keys for ``make fuzz-cache``, as people write them: each at other extension points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from karmada_scheduler.framework import (
    SKIP,
    SUCCESS,
    EstimateContext,
    FilterClustersContext,
    FilterContext,
    NormalizeScoreContext,
    PreFilterContext,
    PreScoreContext,
    ReplicaEstimate,
    Result,
    ScoreContext,
    StateKey,
)


def _drawn(*parts: object) -> int:
    return crc32(repr(parts).encode())


class UnkeyedFilter:
    """Refuses clusters by their names and the replicas of the binding."""

    name = "UnkeyedFilter"

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse one of four."""
        drawn = _drawn(context.cluster.name, context.cycle.binding.spec.replicas)
        return SUCCESS if drawn % 4 else Result.unschedulable(f"drawn {drawn % 3}")


class UnkeyedFilterClusters:
    """Refuses several clusters at once."""

    name = "UnkeyedFilterClusters"

    def filter_clusters(self, context: FilterClustersContext, /) -> list[Result]:
        """Refuse one of five."""
        drawn = [_drawn(cluster.name, context.cycle.placement.to_json()) for cluster in context.clusters]
        return [SUCCESS if number % 5 else Result.unschedulable(f"at once {number % 3}") for number in drawn]


class UnkeyedScore:
    """Scores clusters by their names and the name of the binding."""

    name = "UnkeyedScore"

    def score(self, context: ScoreContext, /) -> int:
        """Return one of five scores."""
        return 20 * (_drawn(context.cluster.name, context.cycle.binding.key.name) % 5)


class UnkeyedPreFilter:
    """Allows some clusters to some bindings, and refuses by its state."""

    name = "UnkeyedPreFilter"
    _KEY: Final = StateKey[int]("UnkeyedPreFilter")

    def pre_filter(self, context: PreFilterContext, /) -> Any:
        """Skip, restrict the clusters, or refuse all."""
        drawn = _drawn(context.cycle.binding.key.name)
        context.cycle.state.write(self._KEY, drawn)
        if drawn % 5 == 0:
            return SKIP
        if drawn % 5 == 1:
            return {cluster.name for cluster in context.clusters if _drawn(cluster.name) % 3}
        return Result.unschedulable("not for this binding") if drawn % 17 == 2 else SUCCESS

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse one of six."""
        drawn = context.cycle.state.read(self._KEY)
        return Result.unschedulable("by state") if _drawn(context.cluster.name, drawn) % 6 == 0 else SUCCESS


class UnkeyedNormalizedScore:
    """Scores by the place of a cluster among all that pass."""

    name = "UnkeyedNormalizedScore"
    _KEY: Final = StateKey[dict[str, int]]("UnkeyedNormalizedScore")

    def pre_score(self, context: PreScoreContext, /) -> Result:
        """Count the clusters that pass, or skip."""
        places = {cluster.name: place for place, cluster in enumerate(context.clusters)}
        context.cycle.state.write(self._KEY, places)
        return SKIP if _drawn(context.cycle.binding.key.name) % 7 == 0 else SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        """Return the place."""
        return context.cycle.state.read(self._KEY)[context.cluster.name]

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        """Return shares of the highest."""
        most = max(context.scores, default=0) or 1
        return [100 * score // most for score in context.scores]


class UnkeyedEstimates:
    """Changes the replicas that clusters can take, by the names of cluster and binding."""

    name = "UnkeyedEstimates"

    def estimate_replicas(self, context: EstimateContext, /) -> ReplicaEstimate:
        """Cap one of three, subtract of one of four, and vacate places on one of seven."""
        key = context.cycle.binding.key.name
        drawn = {cluster.name: _drawn(cluster.name, key) for cluster in context.cycle.snapshot}
        return ReplicaEstimate(
            {name: number % 11 for name, number in drawn.items() if number % 3 == 0},
            {name: number % 13 for name, number in drawn.items() if number % 4 == 0},
            {name: number % 17 for name, number in drawn.items() if number % 7 == 0},
        )


UNKEYED: Final = (
    UnkeyedFilterClusters,
    UnkeyedFilter,
    UnkeyedScore,
    UnkeyedPreFilter,
    UnkeyedNormalizedScore,
    UnkeyedEstimates,
)
