"""Whether expectations hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.whatif.placement_tests.cel import expressions
from karmada_advisor.whatif.placement_tests.expression_data import WorkloadData
from karmada_advisor.whatif.placement_tests.model import CaseStep, Expectation, ExpectedValue
from karmada_advisor.whatif.placement_tests.outcomes import NO_POLICY, PlacedWorkload
from karmada_advisor.whatif.placement_tests.report_model import ClusterDifference, ExpectationFailure
from karmada_scheduler.structs import Struct, replace

PLACED_ONLY: Final = frozenset({"clusters", "replicas", "stops", "that"})
"""Expectations that say nothing about a workload without clusters, so that they do not hold for one."""

OF_STEPS: Final = {"effect": "state", "stops": "placement"}
"""Expectations that compare with what there was before, and with what of it."""


_VALUES: Final[Mapping[str, Callable[[PlacedWorkload], Any]]] = {
    "placed": lambda found: found.is_placed,
    "clusters": lambda found: found.clusters,
    "replicas": lambda found: sum(found.clusters.values()),
    "policy": lambda found: found.policy,
    "notPlaced": lambda found: False if found.is_placed else found.reason or True,
    "causes": lambda found: found.causes,
    "warnings": lambda found: found.warnings,
    "type": lambda found: found.type,
    "effect": lambda found: found.effect,
    "stops": lambda found: found.stops,
}


def _holds(key: str, expected: Any, got: Any) -> bool:
    match key:
        case "clusters":
            return got == expected if isinstance(expected, Mapping) else [*got] == sorted(expected)
        case "notPlaced":
            return got is not False if expected is True else bool(got == expected)
        case "causes":
            return {*expected} <= {*got}
        case "warnings":
            if expected == NO_POLICY:
                return not got
            return all(any(text in each for each in got) for text in expected)
        case _:
            return bool(got == expected)


def failures(
    expectation: Expectation, found: Sequence[PlacedWorkload], step: CaseStep | None, why_different: str
) -> list[ExpectationFailure]:
    """Return what does not hold.

    Args:
        expectation: About one workload.
        found: The workload, in each state if the result depends on uids.
        step: After which it is expected; None for the first decisions.
        why_different: Why there are several results.
    """
    check = _Check(expectation, found, "" if step is None else str(step), why_different)
    made = list(check.failures())
    if made:
        made[0] = replace(made[0], explanation=found[0].explanation)
    return made


class _Check(Struct, frozen=True):
    expectation: Expectation
    found: Sequence[PlacedWorkload]
    step: str
    why_different: str

    def failures(self) -> Iterator[ExpectationFailure]:
        """Yield what does not hold."""
        missing = next((each for each in self.found if not each.is_placed), None)
        reported = False
        for key, wanted in self.expectation.keys.items():
            if missing is not None and key in PLACED_ONLY:
                if not reported:
                    failure = self._failure(key, None, f"it is not placed: {missing.why_not_placed}")
                    expected = [each.value for each in wanted.value] if key == "that" else wanted.value
                    yield replace(failure, expected=expected)
                reported = True
                continue
            if key == "that":
                yield from self._expressions()
                continue
            got = [_VALUES[key](each) for each in self.found]
            if not all(_holds(key, wanted.value, each) for each in got):
                yield self._difference(key, wanted, got)

    def _expressions(self) -> Iterator[ExpectationFailure]:
        wanted = self.expectation.keys["that"]
        evaluator = expressions()
        data = [WorkloadData(each) for each in self.found]
        for index, each in enumerate(wanted.value):
            results = [evaluator.evaluate(each.value, every) for every in data]
            failing = next((result for result in results if not result.holds), None)
            if failing is None:
                continue
            differ = any(result.holds for result in results)
            text = "; ".join([self.why_different if differ else failing.text or "false", *failing.parts])
            key = "that" if wanted.place == each.place else f"that[{index}]"
            line, column = each.place
            yield replace(
                self._failure("that", None, text), key=key, line=line, column=column, expected=each.value
            )

    def _difference(self, key: str, wanted: ExpectedValue, got: Sequence[Any]) -> ExpectationFailure:
        differ = any(each != got[0] for each in got)
        text = self.why_different if differ else ""
        if key == "notPlaced" and not text and got[0] is not False and got[0] is not True:
            text = self.found[0].why_not_placed
        if key == "placed" and wanted.value and not text:
            text = next(each for each in self.found if not each.is_placed).why_not_placed
        failure = self._failure(key, list(got) if differ else got[0], text)
        if key != "clusters":
            return failure
        different = [each for index, each in enumerate(got) if each not in got[:index]]
        return replace(failure, table=tuple(_rows(wanted.value, different)))

    def _failure(self, key: str, got: Any, text: str) -> ExpectationFailure:
        wanted = self.expectation.keys[key]
        return ExpectationFailure(
            self.expectation.workload, self.step, key, *wanted.place, wanted.value, got, text
        )


def _rows(
    expected: Mapping[str, int] | Sequence[str], got: Sequence[Mapping[str, int]]
) -> Iterator[ClusterDifference]:
    wanted = expected if isinstance(expected, Mapping) else dict.fromkeys(expected, 0)
    for name in sorted({*wanted, *(name for each in got for name in each)}):
        yield ClusterDifference(name, wanted.get(name), tuple(each.get(name) for each in got))
