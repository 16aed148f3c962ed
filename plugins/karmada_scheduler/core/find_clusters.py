"""The clusters that can take a binding: PreFilter, Filter, and the extenders' filter.

Results of filters with a key are cached for bindings that are not on a cluster (``framework.runtime.filter_cache``). Then
only the clusters that a binding is on, or is evicted from, are filtered for that binding. Filters without a key are
called for the clusters that pass these.

Source: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go findClustersThatFit.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property, partial
from operator import attrgetter
from typing import TypeVar

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.decision_inputs import DecisionInputs
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.diagnosis import Diagnosis
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.extenders import filter_by_extenders
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.structs import Struct, field

Value = TypeVar("Value")


class LazyMapping(Mapping[str, Value]):
    """What ``make`` returns, which is called once, and not before something is read."""

    def __init__(self, make: Callable[[], Mapping[str, Value]]) -> None:
        """Take the function; it must return the same whenever it is called."""
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Value]:
        return self._make()

    def __getitem__(self, name: str) -> Value:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def items(self) -> ItemsView[str, Value]:
        """Return the items; those of the base class are several times as slow."""
        return self._made.items()

    def values(self) -> ValuesView[Value]:
        """Return the values; those of the base class are several times as slow."""
        return self._made.values()


class FilteredClusters(Struct, frozen=True):
    """The clusters that can take a binding: as a list, or by cached results except for some clusters.

    These are the clusters that the binding is on or evicted from, and those that PreFilter or a filter without a key refuses.

    Attributes:
        feasible: Those that pass, in the order of names; with cached results, those of ``filtered``.
        diagnosis: Why clusters do not pass; of all clusters.
        skipped: The plugins whose PreFilter returned Skip.
        rejected_by_pre_filter: The names of the clusters that PreFilter plugins rejected.
        results: Cached results for bindings that are on no cluster; None if ``feasible`` has all that pass.
        score_key: With cached results: the key of the scores of all clusters that the binding is not on, by the plugins
            with keys.
        filtered: With cached results: the names of the clusters for which they do not hold.
        passing: With cached results, if PreFilter or a filter without a key was called: all clusters that pass.
        left_out: With cached results: what these have refused, by the name of the cluster.
    """

    feasible: Sequence[Cluster]
    diagnosis: Diagnosis
    skipped: frozenset[str] = frozenset()
    rejected_by_pre_filter: Container[str] = ()
    results: FilterResults | None = None
    score_key: Hashable = None
    filtered: frozenset[str] = frozenset()
    passing: Sequence[Cluster] | None = None
    left_out: Mapping[str, Result] = field(default_factory=dict)

    @property
    def any_fits(self) -> bool:
        """Whether at least one cluster passes."""
        if self.feasible or self.results is None:
            return bool(self.feasible)
        if self.passing is not None:
            return bool(self.passing)
        rows = self.results.rows
        return len(rows) > sum(1 for name in self.filtered if name in rows)


async def find_clusters_that_fit(cycle: Cycle, inputs: DecisionInputs) -> FilteredClusters:
    """Return the clusters that pass all filters, and why the others do not.

    Raises:
        SchedulingError: A plugin or an extender failed.
    """
    framework = inputs.framework
    results = framework.keyed.filter_results(cycle)
    if results is not None and not framework.plugins.pre_filter:
        return _with_cached(cycle, results, inputs, {}, frozenset())
    clusters, refused, skipped = await framework.pre_filter.run(
        cycle, cycle.snapshot.not_terminating, inputs.in_flight
    )
    if results is not None:
        return _with_cached(cycle, results, inputs, refused, skipped)
    rejected_by_pre_filter = frozenset(refused)
    feasible, filtered_out = framework.run_filter(cycle, clusters, skipped)
    refused.update(filtered_out)
    if framework.extenders:
        feasible, rejected = await filter_by_extenders(framework.extenders, cycle, feasible)
        refused.update(rejected)
    return FilteredClusters(feasible, Diagnosis(refused), skipped, rejected_by_pre_filter)


def _with_cached(
    cycle: Cycle,
    results: FilterResults,
    inputs: DecisionInputs,
    rejected: Mapping[str, Result],
    skipped: frozenset[str],
) -> FilteredClusters:
    """Filter the clusters that the binding is on or evicted from, and the others by filters without a key.

    Args:
        cycle: The attempt.
        results: Of the filters with keys, for the other clusters.
        inputs: The inputs of the decision.
        rejected: What PreFilter has refused, by cluster.
        skipped: The plugins whose PreFilter returned Skip.
    """
    keyed = inputs.framework.keyed
    names = cycle.current_clusters | cycle.evicted
    feasible: Sequence[Cluster] = ()
    filtered_out: dict[str, Result] = {}
    if names:
        known = [each for name in sorted(names) if (each := cycle.snapshot.get(name)) and not each.deleting]
        feasible, filtered_out = keyed.filter_current(cycle, known, results)
    by_pre_filter = frozenset(rejected)
    passing: Sequence[Cluster] | None = None
    refused: Mapping[str, Result] = {}
    if keyed.unkeyed_filters or rejected:
        passing = merged_clusters(results, names, feasible)
        if rejected:
            passing = [cluster for cluster in passing if cluster.name not in rejected]
        passing, refused = keyed.run_unkeyed_filters(cycle, passing, skipped)
        refused = {**rejected, **refused}
        feasible = [cluster for cluster in feasible if cluster.name not in refused]
        filtered_out = {**filtered_out, **refused}
    diagnosis = Diagnosis(_replaced(results.refused, names, filtered_out))
    # An explanation needs all scores of a plugin together.
    is_cached = inputs.can_use_cached_order(cycle.binding.spec) and not (cycle.kept and keyed.unkeyed_scores)
    score_key = keyed.score_key(cycle) if is_cached else None
    if score_key is None:
        all_passing = merged_clusters(results, names, feasible) if passing is None else passing
        return FilteredClusters(all_passing, diagnosis, skipped, by_pre_filter)
    return FilteredClusters(
        feasible, diagnosis, skipped, by_pre_filter, results, score_key, names, passing, refused
    )


def merged_clusters(
    results: FilterResults, names: frozenset[str], feasible: Sequence[Cluster]
) -> Sequence[Cluster]:
    """Return the clusters of cached results but some, and others, in the order of names."""
    if {name for name in names if name in results.rows} == {cluster.name for cluster in feasible}:
        return results.feasible  # mostly
    others = (cluster for cluster in results.feasible if cluster.name not in names)
    return sorted((*others, *feasible), key=attrgetter("name"))


def _replaced(
    refused: Mapping[str, Result], names: frozenset[str], filtered_out: Mapping[str, Result]
) -> Mapping[str, Result]:
    """Return refusals in which those of some clusters are replaced."""
    if not filtered_out and not any(name in refused for name in names):
        return refused
    return LazyMapping(partial(_merged, refused, names, filtered_out))


def _merged(
    refused: Mapping[str, Result], names: frozenset[str], filtered_out: Mapping[str, Result]
) -> Mapping[str, Result]:
    others = dict(refused)
    for name in names:
        others.pop(name, None)
    others.update(filtered_out)
    return others
