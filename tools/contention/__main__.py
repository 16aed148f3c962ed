"""How long important jobs wait in a full fleet, under karmada-scheduler's rules and with StrictPriority.

    make bench-contention
    python -m tools.contention --seeds 1 2 3 4 5 --json FILE

Ten clusters of 64 CPUs get jobs that ask for more than there is, and every five minutes one of high priority: 40 replicas
on one cluster, or 120 on any. All is virtual time: the scheduler is the real one, with its queue, its retries and its
plugins, on an API server in memory; members report every ten seconds. The first two rows have no plugin. Their queue
has karmada-scheduler's rules: by priority, five minutes until a binding that found no capacity is tried again, ten seconds where
clusters are selected. A job that is never placed counts with the time so far.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, Final

from tools.contention.jobs import CLUSTERS, CPUS, FIRST_HIGH
from tools.contention.run import ROWS, Result, Rules, run
from tools.report import markdown_table

HEADING: Final = (
    "rules", "high: p50", "p90", "max", "not placed", "inversions", "of placements", "utilization", "low: p50", "decisions",
)  # fmt: skip


def quantile(values: Iterable[float], share: float) -> float:
    """Return the smallest of some values that at least a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def figures_of(rules: Rules, seed: int, seconds: float, result: Result) -> dict[str, Any]:
    """Return one run as numbers; waits are in seconds."""
    figures = result.figures
    high = [wait for job, wait in figures.waits.items() if job.priority > 0]
    low = [wait for job, wait in figures.waits.items() if job.priority <= 0]
    return {
        "rules": rules.name,
        "seed": seed,
        "high": len(high),
        "p50": round(quantile(high, 0.5), 1),
        "p90": round(quantile(high, 0.9), 1),
        "max": round(max(high), 1),
        "unplaced": sum(job.priority > 0 for job in figures.unplaced),
        "inversions": figures.inversions,
        "placements": figures.placements,
        "utilization": round(figures.cpu_seconds / (CLUSTERS * CPUS * (seconds - FIRST_HIGH)), 3),
        "low_p50": round(quantile(low, 0.5), 1),
        "decisions": result.decisions,
    }


def row(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the runs of some rules as a row of the table: what they have in common, or the least and the most."""

    def of(name: str, form: str = ",.0f") -> str:
        least, most = (format(choice(each[name] for each in runs), form) for choice in (min, max))
        return least if least == most else f"{least} to {most}"

    unplaced = f"{', '.join(str(each['unplaced']) for each in runs)} of {runs[0]['high']}"
    waits = [f"{of(name)} s" for name in ("p50", "p90", "max")]
    counts = [
        of("inversions"),
        of("placements"),
        of("utilization", ".2f"),
        f"{of('low_p50')} s",
        of("decisions"),
    ]
    return [runs[0]["rules"], *waits, unplaced, *counts]


def measured(task: tuple[Rules, int, float]) -> dict[str, Any]:
    """Return the figures of one run."""
    rules, seed, seconds = task
    return figures_of(rules, seed, seconds, run(rules, seed, seconds))


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="make bench-contention",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("--seeds", type=int, nargs="+", default=[1, 2, 3], help="equal seeds have equal jobs (1 2 3)")
    option("--hours", type=float, default=1.5, help="of virtual time (1.5)")
    option("--jobs", type=int, default=1, help="runs at the same time (1)")
    option("--json", type=Path, metavar="FILE", help="where to write everything")
    options = parser.parse_args(words)
    tasks = [(rules, seed, options.hours * 3600) for rules, seed in product(ROWS, options.seeds)]
    found = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for each in pool.map(measured, tasks):
            found.append(each)
            print(each, file=sys.stderr, flush=True)
    rows = [row([each for each in found if each["rules"] == rules.name]) for rules in ROWS]
    print(markdown_table(HEADING, rows))
    if options.json is not None:
        options.json.write_text(json.dumps({"hours": options.hours, "runs": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
