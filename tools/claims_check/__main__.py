"""Random policies and templates on the real control plane: ``python -m tools.claims_check --cases N --seed S``.

Each case is made in two steps: templates and policies, then a change of them. After each step the claims of all templates
and the spec of all bindings are compared with the prediction. Ends with status 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from karmada_advisor.claims.model import Claims, Event, TemplateClaim
from tools.check_frame import Progress, add_cases, on_control_plane, parser
from tools.claims_check.cases import Case, CaseGenerator, Move
from tools.claims_check.compare import (
    Difference,
    Ids,
    differences,
    events_of,
    is_alternative,
    options,
    predicted,
)
from tools.claims_check.plane import Plane, RestlessError, running
from tools.claims_check.templates import Manifest
from tools.controlplane import ApiError

ALL_GATES = {"PropagationPolicyPreemption": True, "WorkloadAffinity": True, "PriorityBasedScheduling": True}

Objects = tuple[list[Manifest], list[Manifest], list[Manifest]]


@dataclass
class Report:
    """Results of a run."""

    cases: int = 0
    templates: int = 0
    bindings: int = 0
    seconds: float = 0.0
    results: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    different: list[tuple[Case, str, list[Difference]]] = field(default_factory=list)


@dataclass
class _Run:
    """One case while it is made."""

    case: Case
    events: list[Event] = field(default_factory=list)
    before: Objects = field(default_factory=lambda: ([], [], []))
    deleted: set[str] = field(default_factory=set)


class Check:
    """Makes batches of cases side by side, each in its namespace."""

    def __init__(self, plane: Plane, gates: dict[str, bool], report: Report) -> None:
        self._plane = plane
        self._gates = gates
        self._report = report
        self._ids = Ids()

    def batch(self, cases: Sequence[Case]) -> None:
        """Make some cases, and compare after each of their steps."""
        runs = [_Run(case) for case in cases]
        self._plane.add_namespaces(case.namespace for case in cases)
        self._make(runs, [[[move] for move in run.case.setup] for run in runs])
        self._compare(runs, "setup")
        change = [
            [list(run.case.change)] if run.case.at_once else [[move] for move in run.case.change]
            for run in runs
        ]
        self._make(runs, change)
        self._compare(runs, "change")
        self._report.cases += len(runs)

    def _make(self, runs: Sequence[_Run], rounds: Sequence[list[list[Move]]]) -> None:
        """Make the moves of all cases round by round; the detector settles between two rounds."""
        for number in range(max(map(len, rounds))):
            with ThreadPoolExecutor(max_workers=8) as pool:
                jobs = [
                    pool.submit(self._moves, run, moves[number])
                    for run, moves in zip(runs, rounds, strict=True)
                    if number < len(moves)
                ]
                for job in jobs:
                    job.result()
            self._plane.settle()

    def _moves(self, run: _Run, moves: Sequence[Move]) -> None:
        for move in moves:
            try:
                stored = self._plane.make(move)
            except ApiError as error:
                if error.status != 403 and error.status != 422:
                    raise
                stored = list(move.objects)  # refused: the prediction has to refuse it as well
                self._report.refused += 1
            if move.verb != "delete" and move.objects[0]["kind"].endswith("PropagationPolicy"):
                self._ids.learn(stored)
            run.events += events_of(move, stored)

    def _compare(self, runs: Sequence[_Run], step: str) -> None:
        objects = self._plane.objects("case-")
        for run in runs:
            mine: Objects = tuple(
                [each for each in kind if _case_of(each) == run.case.namespace] for kind in objects
            )  # type: ignore[assignment]
            claims = predicted(run.before, run.events, options(self._gates, run.case.namespace))
            templates, _, bindings = mine
            found = differences(claims, templates, bindings, self._ids)
            self._count(run, step, claims, found, mine)
            run.before, run.events = mine, []

    def _count(self, run: _Run, step: str, claims: Claims, found: list[Difference], objects: Objects) -> None:
        report, (templates, _, bindings) = self._report, objects
        report.templates += len(templates)
        report.bindings += len(bindings)
        report.results.update(map(_result, claims.templates.values()))
        report.waits.update(each.waits.value or "Nothing" for each in claims.templates.values())
        if any(each.alternatives for each in claims.templates.values()):
            in_turn = not (run.case.at_once and step == "change")
            kind = "one after the other" if in_turn else "at once"
            same = "as predicted"
            if found and not in_turn:
                same = "an alternative" if is_alternative(claims, templates, bindings) else "NEITHER"
                found = [] if same == "an alternative" else found
            report.orders[f"{kind}, {same}"] += 1
        if found:
            report.different.append((run.case, step, found))
            print(_complaint(run.case, step, found), flush=True)


def _case_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    if "namespace" in metadata:
        return str(metadata["namespace"])
    return "-".join(metadata["name"].replace(":", "-").replace(".", "-").split("-")[:2])


def _complaint(case: Case, step: str, found: list[Difference]) -> str:
    lines = [f"DIFFERENT: case {case.number}, after the {step}{' (at once)' if case.at_once else ''}"]
    lines += [f"  {each}" for each in found]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    gates = {} if parsed.default_gates else ALL_GATES
    numbers = (
        [parsed.case] if parsed.case is not None else list(range(parsed.first, parsed.first + parsed.cases))
    )
    cases = [CaseGenerator(parsed.seed, number).case() for number in numbers]
    if parsed.show:
        for case in cases:
            print(json.dumps({"setup": case.setup, "change": case.change, "at_once": case.at_once}, indent=1))
        return 0
    report = Report()

    def check(folder: Path) -> bool:
        progress = Progress()
        with running(folder, gates=gates) as plane:
            print(f"a control plane is up after {progress.seconds:.0f} s; logs under {folder}", flush=True)
            making, progress = Check(plane, dict(gates), report), Progress()
            for start in range(0, len(cases), parsed.batch):
                making.batch(cases[start : start + parsed.batch])
                report.seconds = progress.seconds
                print(
                    f"{report.cases} cases, {report.seconds:.0f} s, {len(report.different)} different",
                    flush=True,
                )
        print(summary(report, parsed))
        return not report.different

    return on_control_plane(parsed.folder, check, RestlessError)


def _result(found: TemplateClaim) -> str:
    if found.policy_after is None:
        return "not claimed"
    return "kept" if found.is_kept else "claimed"


def summary(report: Report, parsed: argparse.Namespace) -> str:
    """Return the results of a run, in a few lines."""
    again = f"python -m tools.claims_check --seed {parsed.seed}{' --default-gates' if parsed.default_gates else ''}"
    lines = [
        f"seed {parsed.seed}: {report.cases} cases in {report.seconds:.0f} s, {len(report.different)} of them different",
        f"  compared: {report.templates} states of templates, {report.bindings} of bindings",
        f"  results: {_counts(report.results)}",
        f"  bindings wait for: {_counts(report.waits)}",
        f"  cases whose result depends on the order: {_counts(report.orders) or 'none'}",
        f"  requests refused by the webhook: {report.refused}",
    ]
    lines += [f"  again: {again} --case {case.number}" for case, _, _ in report.different]
    return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _parser() -> argparse.ArgumentParser:
    made = parser("python -m tools.claims_check", __doc__, folder="claims-check")
    add_cases(made, 500)
    made.add_argument("--first", type=int, default=0, help="number of the first case")
    made.add_argument("--case", type=int, help="make this case only")
    made.add_argument("--show", action="store_true", help="print the cases and make none")
    made.add_argument("--batch", type=int, default=100, help="cases side by side (default: %(default)s)")
    made.add_argument(
        "--default-gates",
        action="store_true",
        help="Karmada's default feature gates; else preemption, priorities and workload affinity are on",
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
