"""The page about the last run: docs/measurements/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tools import report
from tools.mutants import results
from tools.mutants.mutation import ROOT, Mutation

PAGE: Final = ROOT / "docs" / "measurements" / "mutants.md"
SECTION: Final = "make mutants"
_SEEN: Final = (results.KILLED, results.TIMEOUT, results.EQUIVALENT)


@dataclass(slots=True)
class Row:
    """What was found in one package."""

    package: str
    possible: int
    outcomes: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutation] = field(default_factory=list)
    equivalent: list[tuple[Mutation, str]] = field(default_factory=list)

    def add(self, mutation: Mutation, outcome: str, because: str) -> None:
        """Count a mistake."""
        self.outcomes[outcome] += 1
        if outcome == results.EQUIVALENT:
            self.equivalent.append((mutation, because))
        elif outcome not in _SEEN:
            self.survivors.append(mutation)

    @property
    def share(self) -> float:
        """The share of mistakes that are seen, or change nothing; 1 if none was made."""
        return sum(self.outcomes[each] for each in _SEEN) / (self.outcomes.total() or 1)

    def cells(self) -> Sequence[str]:
        """Return the row of the table."""
        counts = self.outcomes
        survived = counts[results.SURVIVED] + counts[results.UNREACHED]
        numbers = (
            self.possible, counts.total(), counts[results.KILLED], counts[results.TIMEOUT],
            counts[results.EQUIVALENT], survived,
        )  # fmt: skip
        return (self.package, *(f"{number:,}" for number in numbers), f"{100 * self.share:.1f} %")


def section(rows: Sequence[Row], seed: int, commit: str) -> str:
    """Return the generated section of the page."""
    total = Row("all", sum(row.possible for row in rows))
    for row in rows:
        total.outcomes += row.outcomes
    heading = ("package", "mistakes", "sampled", "killed", "timed out", "equivalent", "survived", "seen")
    table = report.markdown_table(heading, [row.cells() for row in (*rows, total)])
    parts = [f"Seed {seed}, commit {commit}.\n", table, ""]
    survivors = [each for row in rows for each in row.survivors]
    parts += ["## Survivors\n", *(f"- {_place(each)}" for each in survivors), ""] if survivors else []
    parts += ["## Equivalent\n"]
    for because, mutations in _by_reason(rows).items():
        parts += [f"{because}\n", *(f"- {_place(each)}" for each in mutations), ""]
    return "\n".join(parts)


def write(rows: Sequence[Row], seed: int, commit: str) -> None:
    """Replace the generated section of the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(report.with_section(page, SECTION, section(rows, seed, commit)), encoding="utf-8")


def _by_reason(rows: Iterable[Row]) -> Mapping[str, Sequence[Mutation]]:
    found: dict[str, list[Mutation]] = {}
    for row in rows:
        for mutation, because in row.equivalent:
            found.setdefault(because, []).append(mutation)
    return found


def _place(each: Mutation) -> str:
    module = each.module.partition("/")[2].partition("/")[2]
    return f"{module}, {each.function}: `{each.before}` → `{each.after}`"
