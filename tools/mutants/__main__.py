"""``make mutants``: plant small mistakes in the scheduler, and say which of them its unit tests do not see."""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from tools.mutants import report, results, tracing
from tools.mutants.live import Live
from tools.mutants.mutation import Module, Mutation
from tools.mutants.packages import PACKAGES, Package
from tools.mutants.report import Row
from tools.mutants.results import Result, Results
from tools.mutants.session import Forks, Reached, with_session

TARGET: Final = 0.95
"""The share of mistakes that have to be seen, or change nothing, in each package."""


def sample(mutations: Sequence[Mutation], count: int, seed: int) -> Sequence[Mutation]:
    """Return mistakes drawn by a seed; those that are drawn stay the same while other code changes."""

    def drawn(mutation: Mutation) -> str:
        return hashlib.sha256(f"{seed} {mutation.id}".encode()).hexdigest()

    chosen = sorted(mutations, key=drawn)[:count]
    return sorted(chosen, key=lambda each: (each.module, each.line))


class Run:
    """Runs the mistakes of one package."""

    def __init__(self, package: Package, arguments: argparse.Namespace, store: Results) -> None:
        """Read the modules."""
        self._package = package
        self._arguments = arguments
        self._store = store
        self._modules = {path: Module(path) for path in package.paths()}
        self._reasons = results.equivalents()
        found = [each for module in self._modules.values() for each in module.mutations]
        self._mutations = sample(found, arguments.sample, arguments.seed)
        if arguments.only:
            self._mutations = [
                each for each in found if each.id == arguments.only or arguments.only in each.module
            ]
        if arguments.new:
            seen = (results.KILLED, results.TIMEOUT, results.INVALID)
            lasts = ((each, store.last(each)) for each in self._mutations)
            self._mutations = [each for each, last in lasts if last is None or last.outcome not in seen]
        self._outcomes: Counter[str] = Counter()

    def __call__(self, forks: Forks) -> None:
        """Trace the tests, then make each mistake of the sample."""
        begin = time.monotonic()
        paths = [path for package in PACKAGES for path in package.paths()]
        tracing.imported(paths)
        results.read_tests(forks.items)
        live = Live(paths)
        modules = {path: Module(path) for path in paths}
        gc.freeze()
        reached = tracing.traced(forks, live, self._package.tests, modules)
        broken = [name for name, each in reached.items() if each.failed]
        print(f"{self._package.name}: {len(reached)} tests in {time.monotonic() - begin:.0f} s,"
              f" {len(self._mutations)} mistakes", flush=True)  # fmt: skip
        for name in broken:
            print(f"  fails without a mistake, and is left out: {name}", flush=True)
        for number, mutation in enumerate(self._mutations):
            if time.monotonic() - begin > 60 * self._arguments.minutes:
                print(f"  the time is over after {number} mistakes", flush=True)
                break
            self._one(forks, live, mutation, reached)
        print(f"{self._package.name}: {dict(self._outcomes)} in {time.monotonic() - begin:.0f} s", flush=True)

    def _one(self, forks: Forks, live: Live, mutation: Mutation, reached: Mapping[str, Reached]) -> None:
        module = self._modules[mutation.module]
        tests = self._tests(mutation, reached)
        result = self._store.current(mutation, module, tests)
        if result is None or (result.test and result.test not in reached):
            result = self._run(forks, live, mutation, tests, reached)
            self._store.add(result)
        outcome = result.outcome
        if outcome in (results.SURVIVED, results.UNREACHED, results.TIMEOUT):
            if because := results.reason(mutation, self._reasons):
                outcome = results.EQUIVALENT
            if not because or self._arguments.only:
                print(f"  {outcome:<9} {mutation.id} {mutation.module}:{mutation.line} {mutation.function}"
                      f"  [{mutation.operator} {mutation.nth}] {mutation.before}  ->  {mutation.after}"
                      f"  ({len(tests)} tests, {result.seconds:.1f} s)", flush=True)  # fmt: skip
        self._outcomes[outcome] += 1

    def _tests(self, mutation: Mutation, reached: Mapping[str, Reached]) -> Sequence[str]:
        """Return the tests that run the block of a mistake, within the limit of time.

        First those of files that import the module or have its name, then those of the nearest folder; of these the
        fastest.
        """
        block = (mutation.module, mutation.block)
        found = [name for name, each in reached.items() if block in each.blocks and not each.failed]
        directories = self._package.tests
        own = PurePath(mutation.module).stem
        imported = mutation.module.partition("/")[2].removesuffix(".py").replace("/", ".")

        def distance(name: str) -> tuple[bool, int, float]:
            near = [index for index, directory in enumerate(directories) if name.startswith(directory)]
            named = PurePath(name.partition("::")[0]).stem.removeprefix("test_")
            is_its_own = own.startswith(named) or f"from {imported} import" in results.text_of(name)
            return not is_its_own, min(near, default=len(directories)), reached[name].seconds

        chosen: list[str] = []
        left = self._arguments.seconds
        for name in sorted(found, key=distance):
            left -= reached[name].seconds
            if left < 0 and chosen:
                break
            chosen.append(name)
        return chosen

    def _run(
        self,
        forks: Forks,
        live: Live,
        mutation: Mutation,
        tests: Sequence[str],
        reached: Mapping[str, Reached],
    ) -> Result:
        module = self._modules[mutation.module]

        def plant() -> None:
            mutation.apply()
            if not live.replace(mutation.module, module.code(), (mutation.function, mutation.first_line)):
                raise ValueError("no function to plant it in")

        def failure(names: Sequence[str]) -> str:
            return forks.first_failure(names, plant, sum(reached[each].seconds for each in names))

        begin = time.monotonic()
        last = self._store.last(mutation)
        left = list(tests)
        if last and last.test in left:
            left.remove(last.test)
            left.insert(0, last.test)
        outcome, test = results.SURVIVED if left else results.UNREACHED, ""
        while left:
            answer = failure(left)
            if answer not in reached:
                outcome = {"": results.SURVIVED, "crash": results.KILLED}.get(answer, answer)
                break
            if failure([answer]):  # it fails again, alone: the mistake is the reason
                outcome, test = results.KILLED, answer
                break
            left = left[left.index(answer) + 1 :]
        seconds = time.monotonic() - begin
        return Result(
            mutation.id, outcome, test, results.key(mutation, module, test, tests), round(seconds, 2)
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the packages that are named, all by default."""
    parser = argparse.ArgumentParser(prog="make mutants", description=(__doc__ or "").splitlines()[0])
    names = [each.name for each in PACKAGES]
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--sample", type=int, default=200, help="mistakes per package (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which mistakes (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="tests per mistake (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="limit per package (default: %(default)s)"
    )
    parser.add_argument("--only", default="", help="the id of a mistake, or a part of the path of modules")
    parser.add_argument(
        "--new",
        action="store_true",
        help="leave out what was seen before, also if code or tests have changed",
    )
    parser.add_argument(
        "--report", action="store_true", help="write docs/measurements/mutants.md from earlier runs"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.packages) - set(names):
        parser.error(f"unknown packages: {', '.join(sorted(unknown))}")
    os.nice(max(0, 15 - os.nice(0)))
    if options.report:
        return write_report(options)
    status = 0
    by_name = {package.name: package for package in PACKAGES}
    for name in options.packages or names:
        status = _in_process(by_name[name], options) or status
    return status


def write_report(options: argparse.Namespace) -> int:
    """Write the page from the results of earlier runs; return 1 if a package is below the target."""
    rows, store, reasons = [], Results(), results.equivalents()
    for package in PACKAGES:
        found = [each for path in package.paths() for each in Module(path).mutations]
        row = Row(package.name, len(found))
        for mutation in sample(found, options.sample, options.seed):
            last = store.last(mutation)
            if last is None or last.outcome == results.INVALID:
                continue
            because = results.reason(mutation, reasons)
            is_seen = last.outcome in (results.KILLED, results.TIMEOUT)
            row.add(mutation, results.EQUIVALENT if because and not is_seen else last.outcome, because)
        rows.append(row)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    report.write(rows, options.seed, commit.stdout.strip())
    return 0 if all(row.share >= TARGET for row in rows) else 1


def _in_process(package: Package, options: argparse.Namespace) -> int:
    """Run a package in a process of its own, so that what it imports and collects ends with it."""
    pid = os.fork()
    if not pid:
        status = 2
        try:
            status = with_session(package.tests, Run(package, options, Results()))
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
