"""Validates the return values of plugins.

Those of a plugin with a true ``trusted`` are not validated: DefaultSelector and DefaultAssigner also reproduce invalid
results of upstream, and StrictPriority names many clusters in each decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.placement import DIVIDED
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework.cycle import Candidate, ReplicaEstimate
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import MAX_RETRY_SECONDS, Code, Result
from karmada_scheduler.framework.scheduling_points import AssignContext, EstimateContext, SelectContext

_EXPECTED: Final = {
    Point.PRE_FILTER: "a Result or a set of cluster names",
    Point.GUARD: "a Result or a GuardAnswer",
}
_EXPECTED_CODES: Final = {
    Point.FILTER: "Success, Unschedulable, UnschedulableAndUnresolvable or Pending",
    Point.PRE_FILTER: "cluster names, Success, Skip, Unschedulable or Error",
    Point.PRE_SCORE: "Success, Skip or Error",
    Point.ESTIMATE_REPLICAS: "a ReplicaEstimate or Error",
    Point.SELECT: "some of the candidates, Skip, Unschedulable or Error",
    Point.ASSIGN: "replicas by cluster name, Skip, Unschedulable or Error",
    Point.PERMIT: "Success, Wait, Unschedulable or Error",
    Point.PRE_BIND: "Success, Skip or Error",
    Point.BIND: "Success, Skip, Unschedulable or Error",
}


_MAX_REASONS: Final = 100
_MAX_REASON: Final = 4096
"""Characters of a reason; a condition has at most 32,768."""
_MAX_SHOWN: Final = 1000
"""Entries of a container that an error shows."""


def shown(value: object) -> str:
    """Return the start of the ``repr`` of a value of a plugin, or its type."""
    try:
        is_long = isinstance(value, Sized) and len(value) > _MAX_SHOWN
        return f"{type(value).__name__} with {len(value)} entries" if is_long else f"{value!r:.200}"  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 (a plugin's __repr__ or __len__)
        return f"a {type(value).__name__}"


def invalid_answer(plugin: Plugin, point: Point, got: object, expected: str) -> PluginError:
    """Return the error of an answer that the extension point does not allow."""
    return PluginError(f'plugin "{plugin.name}" returned {shown(got)} at {point.label}, expected {expected}')


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
    reasons = answer.reasons[:_MAX_REASONS] if isinstance(answer.reasons, (tuple, list)) else (None,)
    if not all(isinstance(reason, str) for reason in reasons):
        raise invalid_answer(plugin, point, answer, "texts as reasons, in a tuple")
    if not (_is_duration(answer.timeout) and _is_duration(answer.retry_after)):
        raise invalid_answer(plugin, point, answer, "seconds as timeout and retry_after")
    if any(len(reason) > _MAX_REASON for reason in reasons):
        reasons = tuple(reason[:_MAX_REASON] for reason in reasons)
    return Result(
        answer.code, tuple(reasons), plugin.name, answer.timeout, min(answer.retry_after, MAX_RETRY_SECONDS)
    )


def accepted(plugin: Plugin, point: Point, answer: object) -> Result:
    """Return the result of a plugin: a success or a refusal.

    Raises:
        PluginError: It is neither.
    """
    result = validated(plugin, point, answer)
    if not result.is_success and not result.is_refusal:
        raise unexpected_code(plugin, point, result)
    return result


def _is_duration(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < math.inf


def cluster_names(plugin: Plugin, answer: AbstractSet[Any]) -> frozenset[str]:
    """Return the answer of a PreFilter plugin; PluginError if it has anything else than names."""
    try:
        names = frozenset(answer)
    except Exception as problem:
        raise invalid_answer(plugin, Point.PRE_FILTER, answer, "a set of cluster names") from problem
    # Anything else would refuse every cluster, and clear the placement.
    if not all(isinstance(name, str) for name in names):
        raise invalid_answer(plugin, Point.PRE_FILTER, answer, "a set of cluster names")
    return names


def replica_estimate(plugin: Plugin, answer: object, context: EstimateContext) -> ReplicaEstimate:
    """Return the answer of an EstimateReplicas plugin.

    Raises:
        PluginError: It is no estimate, has clusters that do not exist, or replicas outside 0 to 2^31 - 1.
    """
    point = Point.ESTIMATE_REPLICAS
    if getattr(plugin, "trusted", False):
        return cast("ReplicaEstimate", answer)
    if isinstance(answer, Result):
        raise unexpected_code(plugin, point, validated(plugin, point, answer))
    if not isinstance(answer, ReplicaEstimate) or not isinstance(answer.reason, str):
        raise invalid_answer(plugin, point, answer, "a ReplicaEstimate with a text as reason")
    changes = (answer.most, answer.less, answer.at_least)
    try:
        most, less, at_least = (dict(change) for change in changes)
    except Exception as problem:
        raise invalid_answer(plugin, point, changes, "replicas by cluster name") from problem
    for name, replicas in (*most.items(), *less.items(), *at_least.items()):
        if not isinstance(name, str) or context.cycle.snapshot.get(name) is None:
            raise invalid_answer(plugin, point, name, "the names of clusters that exist")
        if type(replicas) is not int or not 0 <= replicas <= MAX_INT32:
            raise invalid_answer(plugin, point, {name: replicas}, f"0 to {MAX_INT32} replicas")
    return ReplicaEstimate(most, less, at_least, answer.reason[:_MAX_REASON])


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
        or _is_too_long(answer, context.candidates)
        or not all(isinstance(candidate, Candidate) for candidate in answer)
    ):
        raise invalid_answer(plugin, Point.SELECT, answer, "some of the candidates")
    if not answer and context.candidates:  # it would clear the placement
        raise invalid_answer(plugin, Point.SELECT, answer, "at least one candidate, or a refusal")
    known = {candidate.name for candidate in context.candidates}
    names = [candidate.name for candidate in answer]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise invalid_answer(plugin, Point.SELECT, names, "candidates, each at most once")
    return list(answer)


def _is_too_long(answer: Sized, clusters: Sized) -> bool:
    """Return whether an answer has too many entries to be compared with the clusters."""
    return len(answer) > max(_MAX_SHOWN, len(clusters))


def targets(plugin: Plugin, answer: object, context: AssignContext) -> list[TargetCluster]:
    """Return the answer of an Assign plugin as targets.

    Raises:
        PluginError: It has clusters that were not selected, or replicas outside 0 to 2^31 - 1; or the placement
            divides replicas, and the sum is not the binding's replicas.
    """
    is_trusted = getattr(plugin, "trusted", False)
    if is_trusted and type(answer) is list:
        return answer
    divided: list[Any]
    if isinstance(answer, (Mapping, Sequence)) and _is_too_long(answer, context.selected):
        raise invalid_answer(plugin, Point.ASSIGN, answer, "replicas by cluster name")
    if isinstance(answer, Mapping):
        divided = [TargetCluster(name, replicas) for name, replicas in answer.items()]
    else:
        divided = list(answer) if isinstance(answer, Sequence) and not isinstance(answer, str) else [answer]
    if is_trusted:
        return divided
    if not all(
        isinstance(target, TargetCluster) and isinstance(target.name, str) and type(target.replicas) is int
        for target in divided
    ):
        raise invalid_answer(plugin, Point.ASSIGN, answer, "replicas by cluster name")
    known = {candidate.name for candidate in context.selected}
    names = [target.name for target in divided]
    if len(set(names)) < len(names) or not known.issuperset(names):
        raise invalid_answer(plugin, Point.ASSIGN, names, f"some of {sorted(known)}, each at most once")
    if wrong := {target.name: target.replicas for target in divided if not 0 <= target.replicas <= MAX_INT32}:
        raise invalid_answer(plugin, Point.ASSIGN, wrong, f"0 to {MAX_INT32} replicas")
    spec, strategy = context.cycle.binding.spec, context.cycle.placement.replica_scheduling
    total = sum(target.replicas for target in divided)
    divides = strategy is not None and strategy.replica_scheduling_type == DIVIDED and spec.is_workload
    if divides and total != spec.replicas:
        raise invalid_answer(plugin, Point.ASSIGN, f"{total} replicas in all", f"{spec.replicas}")
    if not divided and not divides and context.selected:  # it would clear the placement
        raise invalid_answer(plugin, Point.ASSIGN, answer, "at least one cluster, or a refusal")
    return divided
