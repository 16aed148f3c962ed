"""Validates the return values of plugins.

Those of a plugin with a true ``trusted`` are not validated: DefaultSelector and DefaultAssigner also reproduce invalid
results of upstream.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.placement import DIVIDED
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework.cycle import Candidate
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Code, Result
from karmada_scheduler.framework.scheduling_points import AssignContext, SelectContext

_EXPECTED: Final = {Point.PRE_FILTER: "a Result or a set of cluster names"}
_EXPECTED_CODES: Final = {
    Point.FILTER: "Success, Unschedulable, UnschedulableAndUnresolvable or Pending",
    Point.PRE_FILTER: "cluster names, Success, Skip, Unschedulable or Error",
    Point.PRE_SCORE: "Success, Skip or Error",
    Point.SELECT: "some of the candidates, Skip, Unschedulable or Error",
    Point.ASSIGN: "replicas by cluster name, Skip, Unschedulable or Error",
    Point.PERMIT: "Success, Wait, Unschedulable or Error",
    Point.PRE_BIND: "Success, Skip or Error",
    Point.BIND: "Success, Skip, Unschedulable or Error",
}


def invalid_answer(plugin: Plugin, point: Point, got: object, expected: str) -> PluginError:
    """Return the error of an answer that the extension point does not allow."""
    try:
        shown = f"{got!r:.200}"
    except Exception:  # noqa: BLE001 (a plugin's __repr__)
        shown = f"a {type(got).__name__}"
    return PluginError(f'plugin "{plugin.name}" returned {shown} at {point.label}, expected {expected}')


def unexpected_code(plugin: Plugin, point: Point, result: Result) -> PluginError:
    """Return the error of a result that is Error, or that the extension point does not allow."""
    if result.code is Code.ERROR:
        return PluginError(f'running {point.label} plugin "{plugin.name}": {result.message}')
    expected = _EXPECTED_CODES.get(point, "Success, Unschedulable or Error")
    return invalid_answer(plugin, point, result.code.value, expected)


def validated(plugin: Plugin, point: Point, answer: object) -> Result:
    """Return an answer as a Result with the plugin's name.

    Raises:
        PluginError: It is no Result, or one with invalid values.
    """
    if not isinstance(answer, Result):
        raise invalid_answer(plugin, point, answer, _EXPECTED.get(point, "a Result"))
    if answer.is_success:
        return answer
    if not isinstance(answer.code, Code):
        raise invalid_answer(plugin, point, answer, "a Code in the Result")
    if not isinstance(answer.reasons, (tuple, list)) or not all(
        isinstance(reason, str) for reason in answer.reasons
    ):
        raise invalid_answer(plugin, point, answer, "texts as reasons, in a tuple")
    if not (_is_duration(answer.timeout) and _is_duration(answer.retry_after)):
        raise invalid_answer(plugin, point, answer, "seconds as timeout and retry_after")
    return Result(answer.code, tuple(answer.reasons), plugin.name, answer.timeout, answer.retry_after)


def _is_duration(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < math.inf


def selected(plugin: Plugin, answer: object, context: SelectContext) -> Sequence[Candidate]:
    """Return the answer of a Select plugin.

    Raises:
        PluginError: It is no sequence of candidates without repetitions.
    """
    if getattr(plugin, "trusted", False):
        return cast("Sequence[Candidate]", answer)
    if (
        not isinstance(answer, Sequence)
        or isinstance(answer, str)
        or not all(isinstance(each, Candidate) for each in answer)
    ):
        raise invalid_answer(plugin, Point.SELECT, answer, "some of the candidates")
    known = {candidate.name for candidate in context.candidates}
    names = [each.name for each in answer]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise invalid_answer(plugin, Point.SELECT, names, "candidates, each at most once")
    return list(answer)


def targets(plugin: Plugin, answer: object, context: AssignContext) -> list[TargetCluster]:
    """Return the answer of an Assign plugin as targets.

    Raises:
        PluginError: It has clusters that were not selected, or replicas outside 0 to 2^31 - 1; or the placement
            divides replicas, and the sum is not the binding's replicas.
    """
    divided: list[Any]
    if isinstance(answer, Mapping):
        divided = [TargetCluster(name, replicas) for name, replicas in answer.items()]
    else:
        divided = list(answer) if isinstance(answer, Sequence) else [answer]
    if getattr(plugin, "trusted", False):
        return divided
    if not all(
        isinstance(each, TargetCluster) and isinstance(each.name, str) and type(each.replicas) is int
        for each in divided
    ):
        raise invalid_answer(plugin, Point.ASSIGN, answer, "replicas by cluster name")
    known = {candidate.name for candidate in context.selected}
    names = [each.name for each in divided]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise invalid_answer(plugin, Point.ASSIGN, names, f"some of {sorted(known)}, each at most once")
    if wrong := {each.name: each.replicas for each in divided if not 0 <= each.replicas <= MAX_INT32}:
        raise invalid_answer(plugin, Point.ASSIGN, wrong, f"0 to {MAX_INT32} replicas")
    spec, strategy = context.cycle.binding.spec, context.cycle.placement.replica_scheduling
    total = sum(each.replicas for each in divided)
    divides = strategy is not None and strategy.replica_scheduling_type == DIVIDED and spec.is_workload
    if divides and total != spec.replicas:
        raise invalid_answer(plugin, Point.ASSIGN, f"{total} replicas in all", f"{spec.replicas}")
    return divided
