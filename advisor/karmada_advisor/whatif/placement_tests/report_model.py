"""The report about many files of placement tests as data."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from karmada_advisor.explain.model import Explanation
from karmada_scheduler.structs import Struct

OWN_UID: Final = "it depends on the uid of the template"
"""Why a workload has two results: the one with an even uid, and the one with an odd uid."""


class CaseOutcome(Enum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class ExpectationFailure(Struct, frozen=True):
    """An expectation that does not hold.

    Attributes:
        workload: As the file names it.
        step: The event after which it is expected: ``then[1] without eu-west-1``; "" for the first decision.
        key: ``clusters``, ``that[0]``.
        line: Of the expectation.
        column: The same.
        expected: What is expected, as the file has it.
        got: What there is instead.
        text: Why it does not hold, one sentence without a full stop.
        table: For clusters, a row for each: its name, and the replicas that are expected and found, with both uids if
            they differ; None where there are none.
        explanation: How it was decided, with the first failure of a workload in a step; None with the others.
    """

    workload: str
    step: str
    key: str
    line: int
    column: int
    expected: Any
    got: Any
    text: str
    table: tuple[ClusterDifference, ...] = ()
    explanation: Explanation | None = None


class ClusterDifference(Struct, frozen=True):
    """One cluster in the difference of two placements.

    Attributes:
        name: Of the cluster.
        expected: The replicas that are expected; None if it is not expected, 0 if only its name is.
        got: The replicas that it has, one number for each result; None where it is not a target.
    """

    name: str
    expected: int | None
    got: tuple[int | None, ...]


class CaseResult(Struct, frozen=True):
    """One case and how it ended.

    Attributes:
        name: Its name.
        line: Where it begins.
        outcome: How it ended.
        seconds: How long it took.
        failures: What does not hold.
        skip: Why it was skipped; "" if it was not.
    """

    name: str
    line: int
    outcome: CaseOutcome
    seconds: float
    failures: tuple[ExpectationFailure, ...] = ()
    skip: str = ""


class FileProblem(Struct, frozen=True):
    """Why a file is not run.

    Attributes:
        path: The file; a policy's, if that is the problem.
        line: From 1; 0 if it is not known.
        column: From 1; 0 if it is not known.
        text: What is wrong, and what to do.
        excerpt: Lines of the file with a caret below them; empty without one.
    """

    path: str
    line: int
    column: int
    text: str
    excerpt: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = "".join(f":{each}" for each in (self.line, self.column) if each)
        return f"{self.path}{place}: {self.text}"


class FileResult(Struct, frozen=True):
    """One file and how its cases ended.

    Attributes:
        path: As it was named.
        name: Its ``name``.
        cases: The cases that were chosen; none if it is not run.
        problems: Why it is not run.
        clusters: How many there are.
        policies: How many there are.
        workloads: How many there are.
        seconds: How long it took, reading included.
        notes: For people.
    """

    path: str
    name: str
    cases: tuple[CaseResult, ...]
    problems: tuple[FileProblem, ...] = ()
    clusters: int = 0
    policies: int = 0
    workloads: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def count(self, outcome: CaseOutcome) -> int:
        """Return how many cases ended so."""
        return sum(each.outcome is outcome for each in self.cases)


class PlacementTestReport(Struct, frozen=True):
    """All files.

    Attributes:
        files: In the order of their names.
        passed: Cases that passed.
        failed: Cases that failed.
        skipped: Cases that were skipped.
        not_run: Files that cannot be run.
        seconds: How long everything took.
        other_files: Files of the name pattern that are of another kind.
        idle_policies: Policies that claim no workload of any case; None if only some cases were run.
    """

    files: tuple[FileResult, ...]
    passed: int
    failed: int
    skipped: int
    not_run: int
    seconds: float
    other_files: int = 0
    idle_policies: tuple[str, ...] | None = None
