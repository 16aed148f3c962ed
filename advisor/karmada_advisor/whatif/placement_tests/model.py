"""A file of placement tests as data, and the report about many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple

from karmada_advisor.claims.model import Replicas
from karmada_advisor.claims.template import TemplateKey
from karmada_advisor.explain.model import Explanation
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.whatif.plan.objects import named
from karmada_scheduler.structs import Struct, field

API_VERSION: Final = "test.pyscheduler.karmada.io/v1alpha1"
KIND: Final = "PlacementTest"

Manifest = Mapping[str, Any]


class FilePlace(NamedTuple):
    """A place in the file; line and column from 1, 0 if they are not known."""

    line: int = 0
    column: int = 0


class ScenarioChange(NamedTuple):
    """One change of ``given`` or ``then``.

    Attributes:
        word: Such as ``scale``.
        subject: What it changes: the name of a cluster, workload or object; "" for a manifest and a time.
        value: The rest: a number, a text, a patch, a manifest, a time; None without one.
        place: Where it is.
    """

    word: str
    subject: str
    value: Any
    place: FilePlace


class ExpectedValue(NamedTuple):
    """The value of one key of an expectation, and where it is."""

    value: Any
    place: FilePlace


class Expectation(NamedTuple):
    """What is expected of one workload.

    Attributes:
        workload: As it is written.
        place: Where its name is.
        keys: The expectations by their keys.
    """

    workload: str
    place: FilePlace
    keys: Mapping[str, ExpectedValue]


class CaseStep(NamedTuple):
    """One event of ``then``.

    Attributes:
        number: Of the step, from 0.
        place: Where it is.
        changes: What happens.
        expect: What is expected afterwards.
    """

    number: int
    place: FilePlace
    changes: Sequence[ScenarioChange]
    expect: Sequence[Expectation]

    def __str__(self) -> str:
        """Return it as a failure names it."""
        return f"then[{self.number}] {', '.join(map(shown_change, self.changes))}"


class PlacementCase(Struct, frozen=True):
    """One case.

    Attributes:
        name: Its name, unique in the file.
        place: Where it is.
        given: Changes of the state before the first decision.
        expect: What is expected of the first decisions.
        then: Events, one after the other.
        skip: Why it is skipped; "" if it is not.
    """

    name: str
    place: FilePlace
    given: Sequence[ScenarioChange] = ()
    expect: Sequence[Expectation] = ()
    then: Sequence[CaseStep] = ()
    skip: str = ""


class PlacementTestFile(Struct, frozen=True):
    """A file whose every part can be used.

    Attributes:
        path: As it was named.
        name: For reports.
        clusters: The fleet.
        policies: The policies, with the file of each.
        workloads: The templates.
        bindings: Bindings that exist at the start, for a fleet with a history.
        sizes: Of workloads whose replicas only an interpreter can read.
        rules: The rules of the scheduler, without its feature gates.
        gates: Feature gates of the scheduler that are set.
        scheduler_names: The schedulers that exist; empty for those of the configuration.
        evicts: Whether karmada-controller-manager evicts from clusters with NoExecute taints.
        controller_gates: Feature gates of karmada-controller-manager that are set, besides those of the scheduler.
        cases: The cases, in the order of the file.
        notes: What was left out, and why.
        priority_classes: Value by name of PriorityClass.
    """

    path: str
    name: str
    clusters: Sequence[Manifest]
    policies: Sequence[Manifest]
    workloads: Sequence[Manifest]
    bindings: Sequence[Manifest]
    sizes: Mapping[TemplateKey, Replicas]
    cases: Sequence[PlacementCase]
    rules: Rules = Rules()
    gates: Mapping[str, bool] = field(default_factory=dict)
    scheduler_names: Sequence[str] = ()
    evicts: bool = False
    controller_gates: Mapping[str, bool] = field(default_factory=dict)
    notes: Sequence[str] = ()
    priority_classes: Mapping[str, int] = field(default_factory=dict)


def shown_change(change: ScenarioChange) -> str:
    """Return a change in one line: ``scale shop/checkout=30``."""
    if change.word == "apply":
        return f"apply {'/'.join(named(change.value))}"
    if change.word == "at":
        at: datetime = change.value
        return f"at {at.isoformat()}"
    if change.word == "ready":
        return f"{change.subject} {'ready' if change.value else 'not ready'}"
    if change.word == "edit" or change.value is None:
        return f"{change.word} {change.subject}"
    return f"{change.word} {change.subject}={change.value}"


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
        place = "".join(f":{number}" for number in (self.line, self.column) if number)
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
        return sum(case.outcome is outcome for case in self.cases)


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
