"""Whether what a process holds grows with the number of rounds, although the live objects stay the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from karmada_pyscheduler.cache import store
from karmada_pyscheduler.client import event_correlator
from karmada_scheduler.framework import snapshot
from karmada_scheduler.framework.runtime import failure_log
from tools.simulation.inspection import sizes_below, task_roots
from tools.simulation.process import SchedulerProcess

KNOWN_BOUNDS: Final[Mapping[str, int]] = {
    "._tombstones": store._TOMBSTONES,
    "clusters._log._names": 2 * snapshot._KEPT_CHANGES,
    "._correlator._buckets._entries": event_correlator.CACHE_SIZE,
    "._correlator._posted._entries": event_correlator.CACHE_SIZE,
    "._correlator._similar._entries": event_correlator.CACHE_SIZE,
    "._failures._logged_at": failure_log._MAX_TRACEBACKS,
    "limiter._latencies": 100,  # one per write of a window, which is at most --max-in-flight
    "duration._cells[]": 22 * 200,  # 22 buckets per plugin, extension point and result that has occurred
    "estimators[]._capacities": 300,  # 2 per cluster and 100, with 100 clusters
    "estimators[]._capacities[]._left": 600,
    "estimators[]._capacities[].deductions": 600,  # 2 per capacity
    "estimators[]._capacities[].deductions[]": 1200,
    "estimators[]._capacities[].deductions[][]": 6000,  # the assumed workloads of each
    "estimators[]._capacities[].deductions[][]._left": 1200,
    "._similar._entries[].messages": event_correlator.CACHE_SIZE * event_correlator.SIMILAR_LIMIT,
}
"""Containers that may grow up to a bound, by the end of their path."""

LEAST: Final = 3
"""A container grows if it has so many more entries after each block of rounds: fewer than one in each round."""


def sizes_of(process: SchedulerProcess) -> Counter[str]:
    """Return the number of entries of each container that a process leads to, and the number of its tasks."""
    tasks = asyncio.all_tasks(process.main) | asyncio.all_tasks(process.supervisor)
    found = sizes_below({"application": process.application, **task_roots(tasks)})
    found["tasks"] = len(tasks)
    return found


def growing(samples: Sequence[Counter[str]]) -> Iterator[str]:
    """Yield what grew from each sample to the next one, beyond its bound if it has one."""
    for name in sorted(samples[-1]):
        sizes = [each[name] for each in samples]
        bound = next((bound for end, bound in KNOWN_BOUNDS.items() if name.endswith(end)), -1)
        if sizes[-1] <= bound:
            continue
        if all(after - before >= LEAST for before, after in pairwise(sizes)):
            yield f"{name} grows: {', '.join(map(str, sizes))}"
