"""Memory of the records over a day of decisions. ``make bench-record-memory``

    python -m tools.bench.record_memory --decisions 432000

Decisions about new and scaled bindings, as many as a day has at five per second, about clusters that report in between. The
memory that the records account for is compared with ``--explain-memory``, and the resident memory of the process is
sampled 50 times. Until 20,000 bindings have a record it grows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from karmada_advisor.cli.output import table
from tools.bench.records import MAX_BYTES, Recording

_SAMPLES = 50
_AT_ONCE = 50


def resident() -> float:
    """Return the resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        prog="make bench-record-memory", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--clusters", type=int, default=100, metavar="N", help="(100)")
    parser.add_argument("--decisions", type=int, default=432_000, metavar="N", help="(432000)")
    chosen = parser.parse_args(words)
    recording = Recording(chosen.clusters)
    every = max(1, chosen.decisions // _SAMPLES)
    rows: list[tuple[str, ...]] = []
    largest = 0
    for number in range(1, chosen.decisions + 1):
        if number % 10 == 0:
            recording.report(recording.fleet.changes(1))
        binding = recording.draw(number)
        recording.record(binding, recording.decide(binding))
        if number % _AT_ONCE == 0:
            recording.make_all()
            largest = max(largest, recording.store.size + recording.full.size)
        if number % every == 0:
            rows.append(
                (f"{number:,}", f"{len(recording.store):,}", f"{largest / 2**20:.1f}", f"{resident():.1f}")
            )
    print(table(("DECISIONS", "RECORDS", "LARGEST MIB", "RESIDENT MIB"), rows))
    print(f"largest: {largest / MAX_BYTES:.1%} of --explain-memory")
    return 0 if largest <= 1.05 * MAX_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
