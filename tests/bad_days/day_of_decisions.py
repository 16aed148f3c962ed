"""The decisions of a long day in this process, and the memory that they took; for ``test_memory``.

    python -m tests.bad_days.day_of_decisions CLUSTERS PLACEMENTS DECISIONS REPORTS

Before each decision REPORTS clusters report changed statuses, each time as new objects, as from the watch. It prints
the resident memory in MiB after a third of the decisions, after two thirds, and at the end.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from pathlib import Path

from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_scheduler.api.cluster import Cluster, ResourceSummary
from karmada_scheduler.api.quantity import Quantity
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster, framework, gates


def resident() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def reported(known: Cluster, version: int, dice: random.Random) -> Cluster:
    """Return a cluster as it is after a report of its own."""
    summary = known.resource_summary
    assert summary is not None
    taken = {"cpu": Quantity(dice.randrange(20_000), -3), "memory": Quantity(dice.randrange(2**36))}
    return replace(
        known,
        resource_version=str(version),
        labels=dict(known.labels),
        conditions=tuple(replace(each) for each in known.conditions),
        resource_summary=ResourceSummary(dict(summary.allocatable), taken, {}, ()),
    )


def main(clusters: int, placements: int, decisions: int, reports: int) -> None:
    dice, version = random.Random(1), 1
    plugins = framework(gates=gates())
    algorithm = SchedulingAlgorithm(gates(), [GeneralEstimator(gates())])
    cache = ClusterCache()
    names = [f"member-{number:04}" for number in range(clusters)]
    for number, name in enumerate(names):
        made = cluster(name).region(f"r{number % 7}").capacity(cpu=50, memory="64Gi").build()
        cache.put(replace(made, resource_version="1"))
    bindings = [
        binding(f"w{number}")
        .replicas(3, cpu=1)
        .dynamic_weight()
        .affinity(exclude=[f"nobody-{number}"])
        .build()
        for number in range(placements)
    ]
    seen = []
    for number in range(decisions):
        for name in dice.sample(names, reports):
            version += 1
            known = cache.get(name)
            assert known is not None
            cache.put(reported(known, version, dice))
        decision = run_sync(algorithm.decide(bindings[number % placements], cache.snapshot(), plugins))
        assert decision.targets, decision.error
        if (number + 1) % (decisions // 3) == 0:
            seen.append(round(resident(), 1))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
