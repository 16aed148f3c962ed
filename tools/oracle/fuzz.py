"""Compares decisions about generated scenarios with upstream's: ``python -m tools.oracle.fuzz --cases N --seed S``.

Ends with status 1 if there is any difference, after shrinking and printing some of them. A printed case
is complete: saved as tools/oracle/tests/cases/<what it shows>.yaml, it is replayed by the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config.features import DEFAULT_RULES, RULES
from tools.check_frame import Progress, add_cases, parser
from tools.controlplane import versions
from tools.oracle.compare_scenario import Tally, compare_scenario
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.program import Oracle, ensure
from tools.oracle.shrink import shrink
from tools.oracle.versions import Against

_CHUNK_SCENARIOS = 40
_SHRUNK = 3


@dataclass(frozen=True)
class _Share:
    """One worker's part of a run."""

    program: Path
    against: Against
    seed: int
    cases: int
    first: int
    step: int
    stop_after: int


def main(arguments: list[str] | None = None) -> int:
    made = parser("make fuzz", __doc__)
    add_cases(made, 10_000)
    made.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="worker processes (default: %(default)s)"
    )
    made.add_argument(
        "--stop-after", type=int, default=50, help="differences after which to stop (default: %(default)s)"
    )
    made.add_argument("--features", action="store_true", help="print how often each feature was met")
    made.add_argument(
        "--against",
        type=versions.named,
        default=versions.CURRENT,
        metavar="VERSION",
        help=f"version of karmada-scheduler: {', '.join(versions.VERSIONS)} (default: {versions.CURRENT.name})",
    )
    made.add_argument(
        "--decisions-of", choices=tuple(RULES), default=DEFAULT_RULES.decisions_of, help="of ours"
    )
    made.add_argument("--default-gates", action="store_true", help="feature gates are not drawn")
    options = made.parse_args(arguments)
    against = Against(options.against, RULES[options.decisions_of], options.default_gates)
    program = ensure(against.version)
    progress = Progress()
    tally = Tally()
    shares = [
        _Share(program, against, options.seed, options.cases, number, options.jobs, options.stop_after)
        for number in range(options.jobs)
    ]
    for part in _parts(shares):
        tally.add(part)
        if progress.is_due():
            rate = tally.cases / progress.seconds
            print(f"{tally.cases} cases, {len(tally.found)} different, {rate:.0f}/s", flush=True)
        if len(tally.found) >= options.stop_after:
            break
    _report(tally, progress.seconds, show_features=options.features)
    if tally.found:
        _explain(tally, program, against)
    return 1 if tally.found else 0


def _parts(shares: list[_Share]) -> Iterator[Tally]:
    if len(shares) == 1:
        yield from _work(shares[0])
        return
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[Tally | str | None] = context.Queue()
    workers = [context.Process(target=_worker, args=(share, queue), daemon=True) for share in shares]
    for worker in workers:
        worker.start()
    running = len(workers)
    try:
        while running:
            part = queue.get()
            if isinstance(part, Tally):
                yield part
            elif part is None:
                running -= 1
            else:
                raise RuntimeError(f"a worker failed:\n{part}")
    finally:
        for worker in workers:
            worker.terminate()


def _worker(share: _Share, queue: multiprocessing.Queue[Tally | str | None]) -> None:
    try:
        for part in _work(share):
            queue.put(part)
        queue.put(None)
    except Exception:  # noqa: BLE001  (reported by the parent, which ends the run)
        queue.put(traceback.format_exc())


def _work(share: _Share) -> Iterator[Tally]:
    tally = Tally()
    with Oracle(share.program) as oracle:
        for scenario in scenarios(share.seed, cases=share.cases, first=share.first, step=share.step):
            tally.add(compare_scenario(scenario, oracle, share.against))
            if tally.scenarios >= _CHUNK_SCENARIOS:
                yield tally
                tally = Tally()
    yield tally


def _report(tally: Tally, seconds: float, *, show_features: bool) -> None:
    if show_features:
        for name, count in sorted(tally.features.items()):
            print(f"{count:>10}  {name}")
        print()
    for title, counter in (
        ("allowed variations", tally.variations),
        ("upstream's defects", tally.defects),
        ("differences explained by", tally.causes),
    ):
        for name, count in counter.most_common():
            print(f"{title}: {count} x {name}")
    print(
        f"{tally.cases} cases in {tally.scenarios} scenarios ({tally.decided} runs of the algorithm), "
        f"{len(tally.features)} features, {len(tally.found)} different, "
        f"{seconds:.0f} s, {tally.cases / seconds:.0f} cases/s"
    )


def _explain(tally: Tally, program: Path, against: Against) -> None:
    for identity, number, lines in tally.found:
        print(f"different: scenario {identity}, binding {number}: {lines[0]}")
    with Oracle(program, patience_seconds=10) as oracle:
        for identity, number, lines in tally.found[:_SHRUNK]:
            scenario = _scenario(identity)
            scenario["bindings"] = [scenario["bindings"][number]]
            small = shrink(scenario, partial(_shows, oracle, against, lines[0]))
            print(f"\n# scenario {identity}, binding {number}, shrunk")
            print(yaml.safe_dump(small, sort_keys=False, width=110))
            for _, _, difference in compare_scenario(small, oracle, against, count_features=False).found:
                print("\n".join(f"# {line}" for line in difference))


def _shows(oracle: Oracle, against: Against, kind: str, scenario: dict[str, Any]) -> bool:
    """Return whether a scenario shows this kind of difference; an invalid scenario shows none."""
    try:
        found = compare_scenario(scenario, oracle, against, count_features=False).found
    except (ValueError, KeyError, TypeError, ManifestError, RuntimeError):
        oracle.restart()
        return False
    return any(lines[0] == kind for _, _, lines in found)


def _scenario(identity: str) -> dict[str, Any]:
    seed, _, index = identity.partition("/")
    return next(scenarios(int(seed), cases=1 << 62, first=int(index), step=1 << 62))


if __name__ == "__main__":
    sys.exit(main())
