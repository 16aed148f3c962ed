"""A file of placement tests as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from karmada_advisor.claims.model import Replicas
from karmada_advisor.claims.template import TemplateKey
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
