"""Filter results of a new key need only the plugin whose key differs from that of known results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework import Result
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.framework.runtime.keyed_results import Key, SimilarFilters, refused
from karmada_scheduler.framework.snapshot import ChangeLog, Snapshot
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster

PLUGINS = ("First", "Second", "Third")


class Filters:
    """Plugins whose answers depend on their part of the key and on the cluster."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.called: list[tuple[str, str]] = []

    def run(
        self, key: Key, clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()
    ) -> Mapping[str, Result]:
        found: dict[str, Result] = {}
        for each in clusters:
            for plugin, part in zip(PLUGINS, key, strict=True):
                if plugin in skipped:
                    continue
                self.called.append((plugin, each.name))
                region = each.region
                if Random(f"{self.seed}/{plugin}/{part}/{each.name}/{region}").random() < 0.4:
                    result = Result.unschedulable(f"{plugin} with {part} refuses {region}")
                    found[each.name] = replace(result, plugin=plugin)
                    break
        return found


class Fleet:
    """Clusters that change."""

    def __init__(self, count: int) -> None:
        self.clusters = {f"m{number:02}": cluster(f"m{number:02}").build() for number in range(count)}
        self.log = ChangeLog()

    def change(self, name: str, region: str) -> None:
        self.clusters[name] = cluster(name).region(region).build()
        self.log.append(name)

    def remove(self, name: str) -> None:
        self.clusters.pop(name, None)
        self.log.append(name)

    def snapshot(self) -> Snapshot:
        return Snapshot.of(self.clusters.values(), log=self.log)


def new_results(
    key: Key, filters: Filters, known: SimilarFilters, snapshot: Snapshot
) -> tuple[FilterResults, bool]:
    results, similar = FilterResults(key), known.find(key)

    def run(clusters: Sequence[Cluster], skipped: frozenset[str] = frozenset()) -> Mapping[str, Result]:
        return filters.run(key, clusters, skipped)

    if similar is None:
        results.refresh(snapshot, run)
    else:
        results.refresh(snapshot, lambda clusters: refused(run, PLUGINS, similar, snapshot, clusters))
    known.add(key, results)
    return results, similar is not None


def test_only_the_plugin_whose_key_differs_is_called_for_clusters_that_the_others_accept() -> None:
    filters, known, snapshot = Filters(1), SimilarFilters(), Fleet(40).snapshot()
    before, _ = new_results(("a", "a", "a"), filters, known, snapshot)
    filters.called.clear()
    results, used_similar = new_results(("a", "b", "a"), filters, known, snapshot)
    assert used_similar
    refused_first = {name for name, each in before.refused.items() if each.plugin == "First"}
    refused_second = {name for name, each in before.refused.items() if each.plugin == "Second"}
    called = {plugin: {name for each, name in filters.called if each == plugin} for plugin in PLUGINS}
    assert called["First"] == set()
    assert called["Second"] == set(snapshot_names(snapshot)) - refused_first
    assert called["Third"] <= refused_second
    assert len(results) == len(snapshot)


def test_a_key_that_differs_in_two_parts_is_filtered_from_scratch() -> None:
    filters, known, snapshot = Filters(2), SimilarFilters(), Fleet(5).snapshot()
    kept, _ = new_results(("a", "a", "a"), filters, known, snapshot)
    _, used_similar = new_results(("a", "b", "b"), filters, known, snapshot)
    assert not used_similar
    assert kept


def test_forgotten_results_are_not_used() -> None:
    filters, known, snapshot = Filters(3), SimilarFilters(), Fleet(5).snapshot()
    new_results(("a", "a", "a"), filters, known, snapshot)  # nobody keeps them
    assert known.find(("a", "a", "b")) is None


@pytest.mark.parametrize("seed", range(60))
def test_results_equal_those_of_all_plugins_whatever_changed_since(seed: int) -> None:
    rng, filters, known, fleet = Random(seed), Filters(seed), SimilarFilters(), Fleet(12)
    kept = []
    for _ in range(12):
        for _ in range(rng.choice((0, 0, 1, 4))):
            name = f"m{rng.randrange(14):02}"
            if rng.random() < 0.3:
                fleet.remove(name)
            else:
                fleet.change(name, rng.choice("xyz"))
        snapshot = fleet.snapshot()
        key = tuple(rng.choice("ab") for _ in PLUGINS)
        results, _ = new_results(key, filters, known, snapshot)
        kept.append(results)
        expected = FilterResults(key)
        expected.refresh(snapshot, lambda clusters, key=key: filters.run(key, clusters))  # type: ignore[misc]
        assert results.refused == expected.refused
        assert list(results.refused) == list(expected.refused)
        assert results.feasible == expected.feasible
        assert results.rows == expected.rows


def snapshot_names(snapshot: Snapshot) -> list[str]:
    return [each.name for each in snapshot]
