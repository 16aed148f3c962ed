"""Recording reads decisions and their caches, and changes neither."""

from typing import Any

import pytest

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.decision import Decision, deciding_attempts
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.records import record
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
        _check(read(entry, process), expected)
    assert max(sizes) <= record.MAX_BYTES


def _check(found: dict[str, Any], decision: Decision) -> None:
    """Compare a record with the decision."""
    attempts, _ = deciding_attempts(decision)
    for attempt, recorded in zip(attempts, found["attempts"], strict=True):
        top = [[row.name, row.score, row.allocatable] for row in attempt.candidates[:8]]
        assert recorded["top"] == top
        refused = attempt.diagnosis.result_by_cluster
        assert sum(group["count"] for group in recorded["refused"]) == len(refused)
        assert recorded["stages"]["selected"] == len(attempt.selected)
