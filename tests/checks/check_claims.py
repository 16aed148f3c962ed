"""Claims of policies are as predicted on a real control plane: ``make check-claims``.

Each random case is made in two steps: templates and policies, then a change of them. After each step the claims of all
templates and the spec of all bindings are compared with the prediction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pytest

from karmada_advisor.claims.model import Claims, Event, TemplateClaim
from tests.cases import number_of_cases
from tests.checks.claims.cases import Case, CaseGenerator, Move
from tests.checks.claims.compare import Ids, differences, events_of, is_alternative, options, predicted
from tests.checks.claims.plane import Plane
from tests.checks.workloads import control_plane
from tools.controlplane import ApiError
from tools.manifests import Manifest

_CASES: Final = 500
_SIDE_BY_SIDE: Final = 100
_GATES: Final = dict.fromkeys(
    ("PropagationPolicyPreemption", "WorkloadAffinity", "PriorityBasedScheduling"), True
)

Objects = tuple[list[Manifest], list[Manifest], list[Manifest]]
"""Templates, policies and bindings."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of some cases at a time, which are made side by side."""
    first = metafunc.config.getoption("--first")
    end = first + number_of_cases(metafunc.config, _CASES)
    batches = [range(start, min(start + _SIDE_BY_SIDE, end)) for start in range(first, end, _SIDE_BY_SIDE)]
    metafunc.parametrize("numbers", batches, ids=[f"{batch[0]} to {batch[-1]}" for batch in batches])


@pytest.fixture(scope="module")
def gates(request: pytest.FixtureRequest) -> Mapping[str, bool]:
    """Return the feature gates of Karmada that are not those of its defaults."""
    return {} if request.config.getoption("--default-gates") else _GATES


@pytest.fixture(scope="module")
def plane(gates: Mapping[str, bool]) -> Iterator[Plane]:
    """Run a control plane without members and without a scheduler: nothing but the detector writes bindings."""
    # Failed attempts are repeated twice per second, so that what fails at rest is known.
    manager = ["--rate-limiter-max-delay=500ms", "--rate-limiter-qps=200", "--rate-limiter-bucket-size=1000"]
    flags = {"controller-manager": manager}
    with control_plane("check-claims", extra_flags=flags, feature_gates=gates) as karmada:
        yield Plane(karmada)


def test_claims_are_as_predicted(
    plane: Plane, gates: Mapping[str, bool], numbers: Sequence[int], seed: int
) -> None:
    batch = Batch(plane, gates, [CaseGenerator(seed, number).case() for number in numbers])
    batch.make()
    print(", ".join(f"{count} {name}" for name, count in sorted(batch.counts.items())))
    assert not batch.different, "\n".join(batch.different)


@dataclass
class _Run:
    """One case while it is made."""

    case: Case
    events: list[Event] = field(default_factory=list)
    before: Objects = field(default_factory=lambda: ([], [], []))


class Batch:
    """Cases that are made side by side, each in its namespace.

    Attributes:
        counts: What has occurred.
        different: What is not as predicted.
    """

    def __init__(self, plane: Plane, gates: Mapping[str, bool], cases: Sequence[Case]) -> None:
        self.counts: Counter[str] = Counter()
        self.different: list[str] = []
        self._plane, self._gates, self._ids = plane, gates, Ids()
        self._runs = [_Run(case) for case in cases]

    def make(self) -> None:
        """Make the cases, and compare after each of their steps."""
        self._plane.add_namespaces(run.case.namespace for run in self._runs)
        self._make([[[move] for move in run.case.setup] for run in self._runs])
        self._compare("setup")
        self._make(
            [
                [list(run.case.change)] if run.case.at_once else [[move] for move in run.case.change]
                for run in self._runs
            ]
        )
        self._compare("change")

    def _make(self, rounds: Sequence[list[list[Move]]]) -> None:
        """Make the moves of all cases round by round; the detector settles between two rounds."""
        for number in range(max(map(len, rounds))):
            due = [
                (run, moves[number])
                for run, moves in zip(self._runs, rounds, strict=True)
                if number < len(moves)
            ]
            with ThreadPoolExecutor(max_workers=8) as pool:
                list(pool.map(lambda work: self._moves(*work), due))
            self._plane.settle()

    def _moves(self, run: _Run, moves: Sequence[Move]) -> None:
        for move in moves:
            try:
                stored = self._plane.make(move)
            except ApiError as error:
                if error.status not in {403, 422}:
                    raise
                stored = list(move.objects)  # refused: the prediction has to refuse it as well
                self.counts["requests refused by the webhook"] += 1
            if move.verb != "delete" and move.objects[0]["kind"].endswith("PropagationPolicy"):
                self._ids.learn(stored)
            run.events += events_of(move, stored)

    def _compare(self, step: str) -> None:
        objects = self._plane.objects("case-")
        for run in self._runs:
            mine: Objects = tuple(
                [manifest for manifest in kind if _case_of(manifest) == run.case.namespace]
                for kind in objects
            )  # type: ignore[assignment]
            claims = predicted(run.before, run.events, options(self._gates))
            self._judge(run.case, step, claims, mine)
            run.before, run.events = mine, []

    def _judge(self, case: Case, step: str, claims: Claims, objects: Objects) -> None:
        templates, _, bindings = objects
        found = differences(claims, templates, bindings, self._ids)
        self.counts.update({"states of templates": len(templates), "states of bindings": len(bindings)})
        self.counts.update(map(_result, claims.templates.values()))
        self.counts.update(
            f"wait for {claim.waits.value}" for claim in claims.templates.values() if claim.waits.value
        )
        if any(claim.alternatives for claim in claims.templates.values()):
            self.counts["depend on the order"] += 1
            if found and case.at_once and step == "change" and is_alternative(claims, templates, bindings):
                self.counts["of them an alternative"] += 1
                return
        if found:
            moves = json.dumps({"setup": case.setup, "change": case.change, "at once": case.at_once})
            self.different.append(
                "\n  ".join([f"case {case.number} after the {step}: {moves}", *map(str, found)])
            )


def _case_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    if "namespace" in metadata:
        return str(metadata["namespace"])
    return "-".join(metadata["name"].replace(":", "-").replace(".", "-").split("-")[:2])


def _result(claim: TemplateClaim) -> str:
    if claim.policy_after is None:
        return "not claimed"
    return "kept" if claim.policy_after == claim.policy_before else "claimed"
