"""Cached scores and orders of clusters, for bindings that agree in everything these depend on.

An order is that of a binding that is on no cluster yet, in columns with one row per cluster that passes the filters.
After a change, plugins and estimators are called for the changed clusters only; then all rows are sorted again, which
costs less than moving some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.content_cache import LRUCache
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.algorithms.columns import Column
from karmada_scheduler.core.ordering.columnar import FeasibleClusters, SharedOrder, TierScore, ranked
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.runtime.filter_cache import Cursor, FilterResults, SnapshotCache
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import replace


class ScoreCache:
    """Tier and score of every cluster that passes a set of filters; they do not depend on the resource request.

    Attributes:
        feasible: The clusters with tier and score; replaced, never mutated.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._cursor = Cursor()
        self.feasible = _feasible((), {}, ())

    def refresh(
        self,
        results: FilterResults,
        score: Callable[[Sequence[Cluster]], Iterable[TierScore]],
        similar: FeasibleClusters | None = None,
    ) -> None:
        """Score the clusters that have changed since the last call.

        Args:
            results: The clusters that pass the filters.
            score: Returns tier and score of clusters.
            similar: Clusters that pass other filters, with tier and score from an equal function; those of the same
                clusters are used if there are none yet.
        """
        names = self._cursor.changed_since(results)
        if names is not None and not names:
            return
        feasible, clusters = self.feasible, results.feasible
        known = _known(similar, clusters) if names is None and similar is not None else {}
        rows = range(len(clusters)) if names is None else results.passing_rows(names)
        if known:
            rows = [row for row in rows if row not in known]
        scored = dict(zip(rows, score([clusters[row] for row in rows]), strict=True)) if rows else {}
        scored |= known
        same_rows = names is not None and feasible.rows is results.rows
        if same_rows and all(_is_same(feasible, row, clusters[row], kept) for row, kept in scored.items()):
            self.feasible = replace(feasible, clusters=clusters)
        else:
            before = feasible.tier_scores()
            tier_scores = [
                scored[row] if row in scored else before[feasible.rows[cluster.name]]
                for row, cluster in enumerate(clusters)
            ]
            self.feasible = _feasible(clusters, results.rows, tier_scores)
        self._cursor.advance(results)


def _known(similar: FeasibleClusters, clusters: Sequence[Cluster]) -> dict[int, TierScore]:
    """Return the tier and score of the same clusters, by their row in ``clusters``."""
    rows, others, tier_scores = similar.rows, similar.clusters, similar.tier_scores()
    return {
        row: tier_scores[other]
        for row, cluster in enumerate(clusters)
        if (other := rows.get(cluster.name)) is not None and others[other] is cluster
    }


def _is_same(feasible: FeasibleClusters, row: int, cluster: Cluster, tier_score: TierScore) -> bool:
    known = feasible.levels[feasible.ranks.item(row)]
    return known == tier_score and feasible.clusters[row].region == cluster.region


def _feasible(
    clusters: Sequence[Cluster], rows: Mapping[str, int], tier_scores: Sequence[TierScore]
) -> FeasibleClusters:
    numbers: dict[str, int] = {}
    regions = [numbers.setdefault(cluster.region, len(numbers)) for cluster in clusters]
    levels, ranks = ranked(tier_scores)
    return FeasibleClusters(clusters, rows, levels, ranks, list(numbers), columns.column(regions))


def _selection_size(selected: Sequence[Candidate]) -> int:
    return 8 + len(selected)


class OrderCache:
    """The order of preference of the clusters that pass a set of filters, for one resource request."""

    def __init__(self) -> None:
        """Start empty."""
        self._cursor = Cursor()
        self._rows: Mapping[str, int] = {}
        self._available = columns.column(())
        self._has_unknown = False
        self._shared: SharedOrder | None = None
        self._for_unknown = MAX_INT32

    def refresh(self, results: FilterResults, estimate: Callable[[Column], Column]) -> None:
        """Estimate the available replicas of the clusters that have changed since the last call.

        Args:
            results: The clusters that pass the filters.
            estimate: Returns the available replicas of the clusters in some rows, MAX_INT32 where unknown.
        """
        names = self._cursor.changed_since(results)
        if names is not None and not names:
            return
        if names is None:
            self._available = estimate(columns.all_rows(len(results.rows)))
        else:
            available = self._available
            if self._rows is not results.rows:
                before = [self._rows.get(name, -1) for name in results.rows]
                available = columns.reindexed(available, before)
            rows = columns.column(results.passing_rows(names))
            self._available = columns.with_values(available, rows, estimate(rows)) if len(rows) else available
        self._has_unknown = columns.greatest(self._available) == MAX_INT32
        self._shared = None
        self._rows = results.rows
        self._cursor.advance(results)

    def shared(self, feasible: FeasibleClusters, for_unknown: int) -> SharedOrder:
        """Return all candidates in the order of preference.

        Args:
            feasible: The clusters as of the same version.
            for_unknown: The available replicas of clusters for which they are unknown.
        """
        shared, value = self._shared, for_unknown if self._has_unknown else MAX_INT32
        if shared is None or shared.feasible is not feasible or self._for_unknown != value:
            available = self._available
            if self._has_unknown:
                available = columns.with_replaced(available, MAX_INT32, value)
            shared = SharedOrder(feasible, available, LRUCache(size_of=_selection_size))
            self._shared, self._for_unknown = shared, value
        return shared


class ScoreKey(NamedTuple):
    """The key of cached scores.

    Attributes:
        filter_key: The key of the filter results.
        score_key: The keys of the plugins' scores.
        tiers: The affinity term in a tuple, None without affinity terms.
    """

    filter_key: Hashable
    score_key: Hashable
    tiers: Hashable


class OrderKey(NamedTuple):
    """The key of a cached order.

    Attributes:
        filter_key: See ``ScoreKey``.
        score_key: See ``ScoreKey``.
        tiers: See ``ScoreKey``.
        has_replicas: Whether the binding needs capacity.
        request: The resource request of a replica, None without one.
    """

    filter_key: Hashable
    score_key: Hashable
    tiers: Hashable
    has_replicas: bool
    request: Hashable


class OrderingCaches:
    """The cached scores and orders of one profile, with a common limit of their number.

    Their ratio depends on the bindings: many orders with few scores behind one policy, as many of both if every binding
    has a different placement.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._caches: SnapshotCache[ScoreCache | OrderCache] = SnapshotCache()
        self._latest: tuple[Hashable, FeasibleClusters] | None = None

    def __len__(self) -> int:
        """Return the number of cached scores and orders."""
        return len(self._caches)

    def scores(self, key: ScoreKey, snapshot: Snapshot) -> ScoreCache:
        """Return the scores for a key, empty if there are none yet."""
        cache = self._caches.get_for(key, ScoreCache, snapshot)
        assert isinstance(cache, ScoreCache)  # keys of orders have more elements
        return cache

    def refreshed_scores(
        self,
        key: ScoreKey,
        snapshot: Snapshot,
        results: FilterResults,
        score: Callable[[Sequence[Cluster]], Iterable[TierScore]],
    ) -> FeasibleClusters:
        """Return the clusters that pass the filters, with tier and score.

        Bindings behind one policy are often scheduled one after the other, and so are the variants of one binding. So
        scores of the binding before are used again, if they depend on the same.
        """
        scores, depends_on = self.scores(key, snapshot), (key.score_key, key.tiers)
        latest = self._latest
        similar = latest[1] if latest is not None and latest[0] == depends_on else None
        scores.refresh(results, score, similar)
        self._latest = depends_on, scores.feasible
        return scores.feasible

    def order(self, key: OrderKey, snapshot: Snapshot) -> OrderCache:
        """Return the order for a key, empty if there is none yet."""
        cache = self._caches.get_for(key, OrderCache, snapshot)
        assert isinstance(cache, OrderCache)  # keys of scores have fewer elements
        return cache
