"""Whether expectations hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from karmada_advisor.placement_tests.case_state import PlacedWorkload
from karmada_advisor.placement_tests.model import (
    CaseStep,
    ClusterDifference,
    Expectation,
    ExpectationFailure,
    ExpectedValue,
)
from karmada_advisor.plan.model import Effect, PlanHeldBy
from karmada_advisor.state.stored import condition_of
from karmada_scheduler.core.classify import ScheduleType

NOT_CLAIMED: Final = "NotClaimed"
OTHER_SCHEDULER: Final = "OtherScheduler"
NO_POLICY: Final = "none"

PLACED_ONLY: Final = frozenset({"clusters", "replicas", "stops"})
"""Expectations that say nothing about a workload without clusters, so that they do not hold for one."""

OF_STEPS: Final = {"effect": "state", "stops": "placement"}
"""Expectations that compare with what there was before, and with what of it."""

UID: Final = "it depends on the uid of the template"


def is_placed(found: PlacedWorkload) -> bool:
    """Return whether a workload has clusters."""
    return found.binding is not None and bool(found.binding.spec.clusters)


def clusters_of(found: PlacedWorkload) -> dict[str, int]:
    """Return the replicas of a workload by cluster, in the order of names."""
    targets = found.binding.spec.clusters if found.binding is not None else ()
    return {each.name: each.replicas for each in sorted(targets)}


def reason_of(found: PlacedWorkload) -> str:
    """Return why a workload is not placed; "" if nothing says so."""
    binding, comparison = found.binding, found.comparison
    if binding is None or comparison is None:
        return NOT_CLAIMED
    if comparison.hold is not None:
        return OTHER_SCHEDULER if comparison.hold.by is PlanHeldBy.SCHEDULER else comparison.hold.reason
    if not found.state.scenario.rules.may_decide(binding):
        return OTHER_SCHEDULER
    if comparison.decided is not None and comparison.decided.error:
        return comparison.decided.reason
    condition = condition_of(binding)
    return condition.reason if condition.status == "False" else ""


def why_not_placed(found: PlacedWorkload) -> str:
    """Return the reason and the message for people."""
    reason, comparison = reason_of(found), found.comparison
    if reason == NOT_CLAIMED:
        return f"{reason}: {found.explanation.causes[0].text}"
    if comparison is not None and comparison.hold is not None:
        return f"{reason}: {comparison.hold.text}"
    if not reason:
        return "nothing asks for clusters"
    if comparison is not None and comparison.decided is not None and comparison.decided.error:
        return f"{reason}: {comparison.decided.error}"
    return f"{reason}: {condition_of(found.binding).message}" if found.binding is not None else reason


def policy_of(found: PlacedWorkload) -> str:
    """Return the policy that claims a workload, as ``KIND/[NS/]NAME``, or ``none``."""
    policy = found.plan.policy if found.plan is not None and found.binding is not None else None
    if policy is None:
        return NO_POLICY
    return "/".join(each for each in (policy.kind, policy.namespace, policy.name) if each)


def type_of(found: PlacedWorkload) -> str:
    """Return why a workload was decided about in the last step."""
    decided = found.comparison.decided if found.comparison is not None else None
    return ScheduleType.AVOID.value if decided is None else decided.type.value


def effect_of(found: PlacedWorkload) -> str:
    """Return what the last step did to a workload."""
    return Effect.UNCHANGED.value if found.plan is None else found.plan.effect.value


def _codes(found: PlacedWorkload) -> list[str]:
    return [each.code for each in found.explanation.causes]


def _not_placed(found: PlacedWorkload) -> str | bool:
    return False if is_placed(found) else reason_of(found) or True


_VALUES: Final[Mapping[str, Callable[[PlacedWorkload], Any]]] = {
    "placed": is_placed,
    "clusters": clusters_of,
    "replicas": lambda found: sum(clusters_of(found).values()),
    "policy": policy_of,
    "notPlaced": _not_placed,
    "causes": _codes,
    "warnings": lambda found: list(found.explanation.warnings),
    "type": type_of,
    "effect": effect_of,
    "stops": lambda found: 0 if found.plan is None else found.plan.stops,
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


class Checker:
    """Checks expectations of one stage of a case: the first decisions, or a step."""

    def __init__(self, step: CaseStep | None) -> None:
        """Check after a step, None for the first decisions."""
        self._step = "" if step is None else str(step)

    def failures(self, expectation: Expectation, found: Sequence[PlacedWorkload]) -> list[ExpectationFailure]:
        """Return what does not hold.

        Args:
            expectation: About one workload.
            found: The workload, with each uid if the result depends on it.
        """
        made = list(self._failures(expectation, found))
        if made:
            made[0] = replace(made[0], explanation=found[0].explanation)
        return made

    def _failures(
        self, expectation: Expectation, found: Sequence[PlacedWorkload]
    ) -> Iterator[ExpectationFailure]:
        missing = next((each for each in found if not is_placed(each)), None)
        reported = False
        for key, wanted in expectation.keys.items():
            if missing is not None and key in PLACED_ONLY:
                if not reported:
                    text = f"it is not placed: {why_not_placed(missing)}"
                    yield self._failure(expectation, key, None, text)
                reported = True
                continue
            got = [_VALUES[key](each) for each in found]
            if all(_holds(key, wanted.value, each) for each in got):
                continue
            yield self._difference(expectation, key, wanted, got, found)

    def _difference(
        self,
        expectation: Expectation,
        key: str,
        wanted: ExpectedValue,
        got: Sequence[Any],
        found: Sequence[PlacedWorkload],
    ) -> ExpectationFailure:
        differ = any(each != got[0] for each in got)
        shown = list(got) if differ else got[0]
        text = UID if differ else ""
        if key == "notPlaced" and not text and got[0] is not False and got[0] is not True:
            text = why_not_placed(found[0])
        if key == "placed" and wanted.value and not text:
            text = why_not_placed(next(each for each in found if not is_placed(each)))
        failure = self._failure(expectation, key, shown, text)
        if key != "clusters":
            return failure
        return replace(failure, table=tuple(_rows(wanted.value, got if differ else got[:1])))

    def _failure(self, expectation: Expectation, key: str, got: Any, text: str) -> ExpectationFailure:
        wanted = expectation.keys[key]
        return ExpectationFailure(
            expectation.workload, self._step, key, *wanted.place, wanted.value, got, text
        )


def _rows(
    expected: Mapping[str, int] | Sequence[str], got: Sequence[Mapping[str, int]]
) -> Iterator[ClusterDifference]:
    wanted = expected if isinstance(expected, Mapping) else dict.fromkeys(expected, 0)
    for name in sorted({*wanted, *(name for each in got for name in each)}):
        yield ClusterDifference(name, wanted.get(name), tuple(each.get(name) for each in got))
