"""Runs many seeds in parallel processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator

from tools.simulation.profiles import plan_for
from tools.simulation.run import Report, Run


def run_seed(task: tuple[str, str]) -> Report:
    """Run a seed; the report has no trace, which would be large."""
    seed, profile = task
    started = time.process_time()
    report = Run(plan_for(seed, profile)).execute()
    report.trace = []
    report.cpu_seconds = time.process_time() - started
    return report


def run_seeds(tasks: Iterable[tuple[str, str]], *, jobs: int) -> Iterator[Report]:
    """Run seeds in parallel, and yield their reports as they arrive."""
    with multiprocessing.get_context("forkserver").Pool(jobs, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(run_seed, tasks, chunksize=4)
