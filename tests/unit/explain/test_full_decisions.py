"""Full decisions: all names and numbers, without the clusters, within a number and a size."""

import gc
import json
import sys
from types import FunctionType, ModuleType
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.records.full_decisions import MAX_DECISIONS, FullDecision, FullDecisions
from karmada_scheduler.records.record import Decided
from karmada_scheduler.testing import binding, cluster
from tests.unit.explain.recorded import decided
from tests.unit.explain.test_decisions_are_the_same import Core
from tools.bench.fleet import PLACEMENTS, Bindings, Fleet


def _read(full: FullDecision) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(full.parts()))
    return found


def _key(name: str) -> BindingKey:
    return binding(name).build().key


def test_it_has_every_refusal_and_every_candidate() -> None:
    clusters = [cluster(f"m{number:03}").capacity(cpu=number) for number in range(450)]
    clusters += [cluster(f"t{number:03}").taint("a=b:NoSchedule") for number in range(450)]
    entry = decided(binding("web").replicas(9, cpu=1).dynamic_weight().spread("cluster", 1, 2), *clusters)
    [attempt] = _read(FullDecision(entry))["attempts"]
    assert [row[0] for row in attempt["candidates"]] == [f"m{number:03}" for number in range(449, -1, -1)]
    assert attempt["candidates"][0] == ["m449", 0, 0, 449, 449]
    assert sum(len(each["names"]) for each in attempt["refused"]) == 450
    assert attempt["selected"] == ["m449", "m448"]
    assert attempt["targets"] == {"m448": 4, "m449": 5}


def test_a_binding_on_clusters_has_its_own_replicas_among_the_available_ones() -> None:
    entry = decided(
        binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=2),
        cluster("m1").capacity(cpu=3),
        cluster("m2").capacity(cpu=9),
    )
    [attempt] = _read(FullDecision(entry))["attempts"]
    assert sorted(attempt["candidates"]) == [["m1", 100, 0, 5, 3], ["m2", 0, 0, 9, 9]]


def test_it_does_not_keep_clusters() -> None:
    built = cluster("m1").capacity(cpu=3)
    entry = decided(binding("web").replicas(1, cpu=1).dynamic_weight(), built)
    assert _clusters_in(entry)
    assert _clusters_in(FullDecision(entry)) == []


def _clusters_in(root: object) -> list[Any]:
    return [each for each in _reachable(root) if type(each).__name__ == "Cluster"]


def _reachable(root: object) -> list[Any]:
    seen: dict[int, Any] = {}
    left = [root]
    while left:
        found = left.pop()
        if id(found) not in seen and not isinstance(found, type | ModuleType | FunctionType):
            seen[id(found)] = found
            left.extend(gc.get_referents(found))
    return list(seen.values())


def test_the_last_decisions_are_kept_and_failures_longer() -> None:
    kept = FullDecisions(max_bytes=2**30)
    kept.put(decided(binding("bad").names("m9"), cluster("m1"), seq=0))
    for number in range(1, 40):
        kept.put(decided(binding(f"w{number}"), cluster("m1"), seq=number))
    assert kept.get(_key("bad")) is not None
    assert kept.get(_key("w7")) is None
    assert len(kept) == MAX_DECISIONS + 1


def test_a_success_replaces_the_failure_of_its_binding() -> None:
    kept = FullDecisions(max_bytes=2**30)
    kept.put(decided(binding("web").names("m9"), cluster("m1"), seq=1))
    kept.put(decided(binding("web"), cluster("m1"), seq=2))
    full = kept.get(_key("web"))
    assert full is not None
    assert (full.seq, len(kept)) == (2, 1)


def test_the_oldest_are_dropped_when_the_size_is_reached() -> None:
    alone = FullDecisions(max_bytes=2**30)
    alone.put(decided(binding("w"), cluster("m1")))
    kept = FullDecisions(max_bytes=2 * alone.size)
    kept.put(decided(binding("bad").names("m9"), cluster("m1"), seq=1))
    kept.put(decided(binding("a"), cluster("m1"), seq=2))
    kept.put(decided(binding("b"), cluster("m1"), seq=3))
    assert kept.get(_key("bad")) is None
    assert kept.size == 2 * alone.size
    kept.forget(_key("a"))
    assert (kept.size, len(kept)) == (alone.size, 1)
    kept.forget(_key("b"))
    assert (kept.size, len(kept)) == (0, 0)


@pytest.mark.parametrize("reports", [0, 60])
def test_the_counted_size_is_the_memory(reports: int) -> None:
    fleet, bindings = Fleet(300), Bindings(tuple(PLACEMENTS))
    core, kept = Core(fleet), FullDecisions(max_bytes=2**30)
    for number in range(30):
        for manifest in fleet.changes(reports):
            core.clusters.put(Cluster.from_manifest(manifest))
        drawn = Binding.from_manifest(bindings.draw())
        kept.put(Decided(drawn, core.decide(drawn), "First", "", 0.0, 0.0, number))
    del core
    used = sum(map(sys.getsizeof, _reachable(kept)))
    # What decisions share, such as scores, is counted for each of them.
    assert 0.4 * kept.size < used < 1.05 * kept.size
