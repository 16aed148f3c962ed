"""The command line: ``python -m tools.simulation``, as ``make simulate-faults`` runs it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from tools.simulation.coverage import never_occurred
from tools.simulation.plan import Plan, load
from tools.simulation.planted_aims import AIMED_BUGS
from tools.simulation.planted_answers import ANSWER_BUGS
from tools.simulation.planted_breadth import BREADTH_BUGS
from tools.simulation.planted_bugs import BUGS, LEAKS, PlantedBug
from tools.simulation.planted_fair import FAIR_BUGS
from tools.simulation.planted_guard import GUARD_BUGS
from tools.simulation.planted_holds import HOLD_BUGS
from tools.simulation.planted_mishaps import MISHAP_BUGS
from tools.simulation.planted_started import STARTED_BUGS
from tools.simulation.profiles import PROFILES, ROUNDS, plan_for
from tools.simulation.rules import Violation
from tools.simulation.run import Report, Run
from tools.simulation.seeds import run_seeds
from tools.simulation.shrink import shrink

PLANTED = (
    *BUGS,
    *BREADTH_BUGS,
    *GUARD_BUGS,
    *AIMED_BUGS,
    *ANSWER_BUGS,
    *MISHAP_BUGS,
    *STARTED_BUGS,
    *HOLD_BUGS,
    *FAIR_BUGS,
    *LEAKS,
)

_TRACE_LINES = 60
_SEEDS_FOR_EVERYTHING = 100
_RUNS_PER_REPORT = 100


@dataclass(slots=True)
class Totals:
    """The sums over all runs.

    Attributes:
        runs: The number of runs.
        failed: The plans that failed, with what went wrong.
        faults: How often each kind of fault applied.
        actions: How often each action was taken.
        writes: The number of accepted writes of schedulers to bindings.
        requests: The number of requests.
        accepted: How often each exception from the invariants was used.
        cpu_seconds: The CPU time.
    """

    runs: int = 0
    failed: list[tuple[Plan, list[Violation]]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    requests: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0

    def add(self, report: Report) -> None:
        """Add a run."""
        self.runs += 1
        for (kind, _), count in report.faults.items():
            self.faults[kind] += count
        self.actions.update(report.actions)
        self.writes += report.writes
        self.accepted.update(report.accepted)
        self.requests += sum(report.requests.values())
        self.cpu_seconds += report.cpu_seconds
        if report.violations:
            self.failed.append((report.plan, report.violations))


def show_failure(plan: Plan, folder: Path) -> None:
    """Run a failing plan again, shrink it, save it, and print how to replay it."""
    first, second = Run(plan).execute(), Run(plan).execute()
    if first.trace_hash != second.trace_hash:
        print(f"NONDETERMINISTIC: {first.trace_hash} and {second.trace_hash}")
    broken = {each.invariant for each in first.violations}
    small = shrink(plan, lambda each: bool(broken & {v.invariant for v in Run(each).execute().violations}))
    report = Run(small).execute()
    path = folder / f"{plan.profile}-{plan.seed}-{small.hash()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(small.json())
    print(f"\nseed {plan.seed}, profile {plan.profile}: {len(first.violations)} violations")
    print(f"shrunk from {len(plan.steps)} steps and {len(plan.faults)} faults ", end="")
    print(f"to {len(small.steps)} and {len(small.faults)}")
    print("\n".join(report.trace[-_TRACE_LINES:]))
    print(f"replay: make simulate-faults ARGS='--plan {path}'; or as a test:\n\n{as_test(small)}")


def as_test(plan: Plan) -> str:
    """Return a test that fails as long as a plan breaks an invariant; it needs ``Plan``, ``Step``, ``Fault`` and ``Run``."""
    return (
        f"def test_seed_{plan.seed}_{plan.profile}_breaks_no_invariant() -> None:\n"
        f"    plan = {plan!r}\n"
        f"    assert not Run(plan).execute().violations\n"
    )


def show_plan(path: Path) -> int:
    """Run a saved plan and print its trace."""
    report = Run(load(path)).execute()
    print("\n".join(report.trace))
    for each in report.violations:
        print(f"{each.at:10.4f} {each.invariant}: {each.text}")
    print(f"trace {report.trace_hash}, {len(report.violations)} violations")
    return 1 if report.violations else 0


def broken_laws(bug: PlantedBug, plan: Plan) -> frozenset[str]:
    """Return which of the laws that a bug is expected to break a run breaks while it is planted."""
    with bug.planted():
        return bug.invariants & {each.invariant for each in Run(plan).execute().violations}


def count_finds(seeds: range, profiles: Sequence[str]) -> int:
    """Print how many seeds find each planted bug of some profiles; return how many bugs no seed finds."""
    missed = 0
    print("| planted | profiles | found by | laws |\n| --- | --- | --- | --- |")
    for bug in PLANTED:
        if not set(bug.profiles) <= set(profiles):
            continue
        tried = [broken_laws(bug, plan_for(str(seed), each)) for seed, each in product(seeds, bug.profiles)]
        found = sum(map(bool, tried))
        missed += not found
        laws = ", ".join(sorted(frozenset().union(*tried)))
        print(f"| {bug.name} | {', '.join(bug.profiles)} | {found} of {len(tried)} | {laws} |", flush=True)
    return missed


def find_bugs(seeds: int) -> int:
    """Run each planted bug until a seed finds it; return how many are not found."""
    missed = 0
    for bug in PLANTED:
        started = time.monotonic()
        for seed, profile in product(range(1, seeds + 1), bug.profiles):
            if laws := broken_laws(bug, plan_for(str(seed), profile)):
                found = f"found by seed {seed}, {profile}: {bug.name}: {', '.join(sorted(laws))}"
                break
        else:
            missed += 1
            found = f"NOT FOUND in {seeds} seeds: {bug.name}"
        print(f"{found} ({time.monotonic() - started:.1f} s)", flush=True)
    return missed


def show(totals: Totals, seconds: float) -> None:
    """Print the totals."""
    cpu = f"{totals.cpu_seconds:.0f} s of CPU time"
    print(f"{totals.runs} scenarios in {seconds:.0f} s, {cpu}, {len(totals.failed)} failed")
    print(f"{totals.requests} requests, {totals.writes} writes of schedulers to bindings")
    print("faults:", ", ".join(f"{kind} {count}" for kind, count in sorted(totals.faults.items())))
    print("accepted:", ", ".join(f"{name} {count}" for name, count in sorted(totals.accepted.items())))
    print(
        "actions:", ", ".join(f"{name} {count}" for name, count in sorted(totals.actions.items())), flush=True
    )


def _tasks(first: int, seeds: int, profiles: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield seeds and profiles. Of ``rounds``, whose runs take several times as long, every tenth seed is run."""
    for seed, profile in product(range(first, first + seeds), profiles):
        yield str(seed), profile
    if tuple(profiles) == PROFILES:
        yield from ((str(seed), ROUNDS) for seed in range(first, first + seeds) if seed % 10 == 0)


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(prog="make simulate-faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="seeds of each profile")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--profiles", nargs="+", default=PROFILES, choices=(*PROFILES, ROUNDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", type=int, default=5, help="how many failing plans are shrunk")
    parser.add_argument("--plan", type=Path, help="run a saved plan and print its trace")
    parser.add_argument("--planted", action="store_true", help="run the planted bugs until they are found")
    parser.add_argument(
        "--count", action="store_true", help="with --planted: by how many seeds each is found"
    )
    parser.add_argument("--folder", type=Path, default=Path(".simulation"), help="for failing plans")
    options = parser.parse_args()
    if options.plan is not None:
        return show_plan(options.plan)
    if options.planted and options.count:
        return min(1, count_finds(range(options.first, options.first + options.seeds), options.profiles))
    if options.planted:
        return min(1, find_bugs(options.seeds))
    totals, started = Totals(), time.monotonic()
    for report in run_seeds(_tasks(options.first, options.seeds, options.profiles), jobs=options.jobs):
        totals.add(report)
        if report.violations:
            first = report.violations[0]
            name = f"{report.plan.seed} {report.plan.profile}"
            print(f"seed {name} fails: {first.invariant}: {first.text}", flush=True)
        if totals.runs % _RUNS_PER_REPORT == 0:
            show(totals, time.monotonic() - started)  # a run that is ended before has figures, too
    show(totals, time.monotonic() - started)
    for plan, _ in totals.failed[: options.shrink]:
        show_failure(plan, options.folder)
    missing = never_occurred(options.profiles, totals.faults, totals.actions)
    if missing:
        print("never occurred:", ", ".join(missing))
    for plan, violations in totals.failed:
        print(f"FAILED seed {plan.seed} {plan.profile}: {violations[0].invariant}: {violations[0].text}")
    # Few seeds need not have everything.
    return 1 if totals.failed or (missing and options.seeds >= _SEEDS_FOR_EVERYTHING) else 0


if __name__ == "__main__":
    sys.exit(main())
