"""Recording reads decisions and their caches, and changes neither."""

import json

import pytest

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.decision import Decision, deciding_attempts
from karmada_scheduler.core.run_sync import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.records import record
from karmada_scheduler.records.full_decisions import FullDecision
from karmada_scheduler.records.record import Decided, Process
from karmada_scheduler.testing import framework
from tests.unit.explain.recorded import read
from tools.bench.fleet import PLACEMENTS, Bindings, Fleet


class Core:
    """The algorithm with its caches, and records of its decisions if they are wanted."""

    def __init__(self, fleet: Fleet) -> None:
        gates = FeatureGates({})
        self.clusters = ClusterCache()
        self._framework = framework(gates=gates)
        self._algorithm = SchedulingAlgorithm(gates, [GeneralEstimator(gates)])
        for manifest in fleet.clusters.values():
            self.clusters.put(Cluster.from_manifest(manifest))

    def decide(self, binding: Binding) -> Decision:
        return run_sync(self._algorithm.decide(binding, self.clusters.snapshot(), self._framework))


@pytest.mark.parametrize("size", [20, 300])
def test_decisions_are_the_same_with_and_without_records(size: int) -> None:
    fleet, bindings = Fleet(size), Bindings(tuple(PLACEMENTS))
    plain, recorded, process = Core(fleet), Core(fleet), Process()
    count = 150
    sizes = []
    for number, reports in enumerate(fleet.reports(count)):
        for manifest in reports:
            plain.clusters.put(Cluster.from_manifest(manifest))
            recorded.clusters.put(Cluster.from_manifest(manifest))
        drawn = bindings.draw()
        if number % 3 == 0:
            targets = plain.decide(Binding.from_manifest(drawn)).targets or ()
            assert targets == (recorded.decide(Binding.from_manifest(drawn)).targets or ())
            drawn["spec"]["clusters"] = [{"name": each.name, "replicas": each.replicas} for each in targets]
            drawn["spec"]["replicas"] += 3
        binding = Binding.from_manifest(drawn)
        expected, found = plain.decide(binding), recorded.decide(binding)
        assert (found.targets, str(found.error)) == (expected.targets, str(expected.error))
        entry = Decided(binding, found, "First", "", 0.0, 0.0, number + 1)
        sizes.append(len(record.head(entry, process) + record.ending(entry)))
        _check(read(entry, process), json.loads(b"".join(FullDecision(entry).parts())), expected)
    assert max(sizes) <= record.MAX_BYTES


def _check(compact: dict[str, object], full: dict[str, object], decision: Decision) -> None:
    """Compare a record and a full decision with the decision."""
    attempts, _ = deciding_attempts(decision)
    for attempt, short, whole in zip(attempts, compact["attempts"], full["attempts"], strict=True):  # type: ignore[call-overload]
        candidates = [
            [each.name, each.score, each.tier, each.available, each.allocatable]
            for each in attempt.candidates
        ]
        assert whole["candidates"] == candidates
        assert short["top"] == [[name, score, free] for name, score, _, _, free in candidates[:8]]
        refused = attempt.diagnosis.result_by_cluster
        assert {name for group in whole["refused"] for name in group["names"]} == refused.keys()
        assert sum(group["count"] for group in short["refused"]) == len(refused)
        assert whole["selected"] == [each.name for each in attempt.selected]
        assert short["stages"]["selected"] == len(attempt.selected)
