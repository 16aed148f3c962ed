"""Whether what a process holds grows with the number of rounds, although the live objects stay the same.

The walk over all containers is that of the soak test (``tools.soak.inspection``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from tools.simulation.process import SchedulerProcess
from tools.soak.inspection import inspect, task_roots
from tools.soak.judge import bound_of

LEAST: Final = 3
"""A container grows if it has so many more entries after each block of rounds: fewer than one in each round."""


def sizes_of(process: SchedulerProcess) -> Counter[str]:
    """Return the number of entries of each container that a process leads to, and the number of its tasks."""
    tasks = asyncio.all_tasks(process.main) | asyncio.all_tasks(process.supervisor)
    found = inspect({"application": process.application, **task_roots(tasks)}).sizes
    found["tasks"] = len(tasks)
    return found


def growing(samples: Sequence[Counter[str]]) -> Iterator[str]:
    """Yield what grew from each sample to the next one, beyond its bound if it has one."""
    for name in sorted(samples[-1]):
        sizes = [each[name] for each in samples]
        bound = bound_of(name)
        if bound is not None and sizes[-1] <= bound:
            continue
        if all(after - before >= LEAST for before, after in pairwise(sizes)):
            yield f"{name} grows: {', '.join(map(str, sizes))}"
