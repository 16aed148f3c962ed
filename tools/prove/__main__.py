"""``make prove``: runs the checks one after the other within a number of hours, and writes one report.

Results are kept in ``.prove`` and used again for the same commit, seed and hours, so a run that was interrupted goes on.
docs/reliability.md has the last report.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tools.report import markdown_table, with_section

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".prove"
PAGE: Final = ROOT / "docs" / "reliability.md"
SECTION: Final = "make prove"
OK, FAILED, STOPPED, LEFT_OUT = "ok", "FAILED", "stopped", "left out"
_LARGEST_PART: Final = 0.2
"""A check that needs a larger part of all the time is left out."""
_OF_MAKE: Final = frozenset({"ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"})
"""Variables of the make that runs this: with them, its ARGS would be those of each check."""


@dataclass(frozen=True, slots=True)
class Check:
    """A target of the Makefile that is run for a share of the time.

    Attributes:
        name: The target.
        compares: What is compared with what.
        share: Of the time, in proportion to the other shares.
        variables: Of the Makefile, with ``{seed}`` and ``{minutes}``. A check with a seed is repeated with the next one until
            its time is over.
        figure: A regular expression for the line of the output that has the key figures; the last one counts.
        least_minutes: What it needs at least.
    """

    name: str
    compares: str
    share: float
    variables: tuple[str, ...]
    figure: str
    least_minutes: float = 0.2

    @property
    def is_repeated(self) -> bool:
        """Whether it is run again with another seed."""
        text = " ".join(self.variables)
        return "{seed}" in text and "{minutes}" not in text


CHECKS: Final = (
    Check("conformance", "recorded decisions of karmada-scheduler", 0.08, (), r"cases, .* different"),
    Check("fuzz", "generated decisions, with the Go core", 0.1, ("CASES=500", "SEED={seed}"), r"different, "),
    Check("fuzz-cache", "decisions with and without caches", 0.04, ("STEPS=20", "SEED={seed}"), r"taken twice"),
    Check("check-traces", "explanations, with decisions", 0.04, ("CASES=200", "SEED={seed}"), r"mismatches"),
    Check("check-why-not", "remedies, with simulate", 0.08, ("CASES=20", "SEED={seed}"), r"remedies, "),
    Check("check-placement-tests", "placement tests, with simulate", 0.03, ("CASES=200", "SEED={seed}"), r"differences"),
    Check(
        "fuzz-input", "invalid input, and laws", 0.08,
        ("EXAMPLES=20", "ARGS=--hypothesis-seed={seed}"), r"\d (passed|failed)", 1.0,
    ),
    Check(
        "simulate-faults", "the whole scheduler under faults, with its invariants", 0.19,
        ("SEEDS=1", "ARGS=--first {seed} --jobs 1"), r"scenarios in",
    ),
    Check(
        "mutants", "planted mistakes, with unit tests", 0.12,
        ("ARGS=--new --seed {seed} --minutes {minutes}",), r" in \d+ s$", 60.0,
    ),
    Check("soak", "memory before and after a day of churn", 0.05, ("ARGS=--events 200000",), r"events", 30.0),
    Check(
        "fuzz-loop", "changes under both schedulers, on control planes", 0.06,
        ("ARGS=--steps 100 --seed {seed}",), r"steps", 15.0,
    ),
    Check(
        "chaos", "faults on a control plane, with the invariants", 0.06,
        ("ARGS=--minutes 5 --seed {seed}",), r"violations|invariant", 20.0,
    ),
    Check(
        "check-models", "the simulation's models of controllers, with Karmada's", 0.01,
        ("CASES=4", "SEED={seed}"), r"sequences, ", 4.0,
    ),
    Check("check-claims", "claims of policies, on a control plane", 0.02, ("CASES=50", "SEED={seed}"), r"different", 8.0),
    Check("check-plan", "plans, on a control plane", 0.02, ("ARGS=--bindings 100",), r"different, ", 8.0),
    Check("check-survive", "losses, on a control plane", 0.01, ("ARGS=--bindings 100",), r"different, ", 8.0),
    Check("check-state", "answers about states, on a control plane", 0.01, (), r"\d s$", 8.0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found.

    Attributes:
        name: The check.
        result: ``ok``, ``FAILED``, ``stopped`` before its first run had ended, or ``left out``.
        runs: How many runs have ended, each with the next seed.
        figure: The line with the key figures of the last one, or why it was left out.
        minutes: How long they took.
    """

    name: str
    result: str
    runs: int
    figure: str
    minutes: float


def minutes_of(checks: Sequence[Check], total: float) -> dict[str, float]:
    """Return the minutes of each check by name: what it needs at least, or its share of those that are left; 0 leaves it out."""
    given = {each.name: 0.0 for each in checks}
    chosen = [each for each in checks if each.least_minutes <= _LARGEST_PART * total]
    while chosen:
        whole = sum(each.share for each in chosen)
        short = [each for each in chosen if total * each.share / whole < each.least_minutes]
        if not short:
            return given | {each.name: total * each.share / whole for each in chosen}
        given |= {each.name: each.least_minutes for each in short}
        total -= sum(each.least_minutes for each in short)
        chosen = [each for each in chosen if each not in short]
    return given


def command(check: Check, minutes: float, seed: int) -> list[str]:
    """Return the command for a run; ``mutants`` has a limit of minutes for each of its ten packages."""
    given = [each.format(seed=seed, minutes=max(1, int(minutes / 10))) for each in check.variables]
    return ["make", "--no-print-directory", check.name, *given]


def run(check: Check, minutes: float, seed: int, log: Path) -> Outcome:
    """Run a check until its minutes are over or it fails; what runs then is ended."""
    if minutes < check.least_minutes:
        return Outcome(check.name, LEFT_OUT, 0, f"it needs {check.least_minutes:g} minutes", 0.0)
    begin, runs, figure, result = time.monotonic(), 0, "", STOPPED
    while (left := begin + 60 * minutes - time.monotonic()) > 0:
        status = _within(left, command(check, minutes, seed + runs), log)
        if status is None:
            break
        runs, result = runs + 1, FAILED if status else OK
        figure = figure_of(check, log.read_text("utf-8", "replace"))
        if status or not check.is_repeated:
            break
    return Outcome(check.name, result, runs, figure, round((time.monotonic() - begin) / 60, 1))


def _within(seconds: float, arguments: Sequence[str], log: Path) -> int | None:
    """Return the exit status of a command, None if it was ended after some seconds."""
    with log.open("w", encoding="utf-8") as output:
        given = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
        process = subprocess.Popen(
            arguments, cwd=ROOT, stdout=output, stderr=output, start_new_session=True, env=given
        )
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return None


def figure_of(check: Check, text: str) -> str:
    """Return the last line of an output that has the key figures, or the last line of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [line for line in lines if re.search(check.figure, line)]
    return (found or lines or [""])[-1].replace("|", "/")[:160]


def section(outcomes: Sequence[Outcome], *, commit: str, seed: int, hours: float, day: str) -> str:
    """Return the generated section of the page."""
    compares = {each.name: each.compares for each in CHECKS}
    rows = [
        (f"`{each.name}`", compares[each.name], each.result, f"{each.runs}", each.figure, f"{each.minutes:g}")
        for each in outcomes
    ]
    counts = ", ".join(
        f"{count} {result}"
        for result in (OK, FAILED, STOPPED, LEFT_OUT)
        if (count := sum(each.result == result for each in outcomes))
    )
    head = f"{day}, commit {commit}, seeds from {seed} on, within {hours:g} h: {counts}."
    heading = ("check", "compares", "result", "runs", "figures of the last run", "minutes")
    return f"{head}\n\n{markdown_table(heading, rows)}"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks that have no result yet, and write the report."""
    parser = argparse.ArgumentParser(prog="make prove", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--hours", type=float, default=8.0, help="limit for all checks (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=int(time.strftime("%j")), help="default: the day of the year"
    )
    parser.add_argument("--only", nargs="+", default=[each.name for each in CHECKS], help="these checks")
    options = parser.parse_args(arguments)
    commit = _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else "")
    folder = FOLDER / f"{commit}-{options.seed}-{options.hours:g}"
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    checks = [each for each in CHECKS if each.name in options.only]
    minutes = minutes_of(checks, 60 * options.hours)
    for check in checks:
        kept = folder / f"{check.name}.json"
        if kept.exists():
            outcome = Outcome(**json.loads(kept.read_text(encoding="utf-8")))
        else:
            outcome = run(check, minutes[check.name], options.seed, folder / f"{check.name}.log")
            kept.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
        print(
            f"{outcome.name:<22} {outcome.result:<9} {outcome.minutes:6.1f} min  {outcome.figure}", flush=True
        )
        outcomes.append(outcome)
    text = section(
        outcomes, commit=commit, seed=options.seed, hours=options.hours, day=time.strftime("%Y-%m-%d")
    )
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), SECTION, text), encoding="utf-8")
    return int(any(each.result == FAILED for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
