"""The trace of a run as lines for people: clusters by name, and repeated lines once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.core import condition as outcome
from karmada_scheduler.core.decision import Decision, TermAttempt
from karmada_scheduler.framework import Candidate, Cluster, Cycle, ReplicaEstimate, Result
from karmada_scheduler.framework.extension_points import PRE_FILTER_EXTENSIONS

_MOST = 20
"""Number of clusters that a line names."""

_BEFORE_FILTER = ("pre_filter", *PRE_FILTER_EXTENSIONS)
_AFTER_SCORE = ("estimate_replicas", "select", "assign")
_DECIDING = (*_BEFORE_FILTER, "post_filter", "pre_score", "normalize_score", *_AFTER_SCORE)


class Step(NamedTuple):
    """One call of a plugin; Filter and Score, called once per cluster, are not among them.

    Attributes:
        plugin: Its name.
        method: As in the plugin: ``pre_filter``, ``reserve``, ``unreserve``.
        answer: Its return value; a PluginError if it raised, timed out or hung.
    """

    plugin: str
    method: str
    answer: object


class Call(NamedTuple):
    """A step and the cycle of its attempt."""

    step: Step
    cycle: Cycle | None


def lines(
    binding: Binding, error: Exception | None, decision: Decision, calls: Sequence[Call]
) -> Iterator[str]:
    """Yield the trace: condition, attempts, calls after the decision, and the clusters of the binding."""
    condition = outcome.condition_for(error)
    yield f"{binding.key.display}: {condition.reason}: {condition.message}"
    before, term = list[str](), ""
    for attempt, steps in _attempts(decision, calls):
        current = list(_attempt_lines(attempt, steps))
        if not before or attempt.affinity_name != term:
            yield from current
        else:
            changes = [line for line in current if line not in before]
            yield f"  decided again with that result: {'what differs' if changes else 'the same'}"
            yield from changes
        before, term = current, attempt.affinity_name
    for step, _ in calls:
        if step.method not in _DECIDING:
            yield _step_line(step)
    yield f"  on {_listed(map(_named, binding.spec.clusters)) or 'no cluster'}"


def scores_of(attempt: TermAttempt) -> dict[str, dict[str, int]]:
    """Return the final scores of an attempt times weight, by plugin and cluster."""
    names = sorted(candidate.name for candidate in attempt.candidates)
    return {plugin: dict(zip(names, scores, strict=True)) for plugin, scores in attempt.scores.items()}


def _attempts(decision: Decision, calls: Sequence[Call]) -> Iterator[tuple[TermAttempt, list[Step]]]:
    """Yield the attempts with their steps, in order; also those that are not part of the decision."""
    steps: dict[int, list[Step]] = {}
    for step, cycle in calls:
        if step.method in _DECIDING:
            steps.setdefault(id(cycle), []).append(step)
    for attempt in decision.attempts:
        while id(attempt.cycle) in steps:
            first = next(iter(steps))
            yield (attempt if first == id(attempt.cycle) else TermAttempt()), steps.pop(first)
            if first == id(attempt.cycle):
                break
        else:
            yield attempt, []
    for left in steps.values():
        yield TermAttempt(), left


def _attempt_lines(attempt: TermAttempt, steps: Sequence[Step]) -> Iterator[str]:
    if attempt.affinity_name:
        yield f"  affinity term {attempt.affinity_name}:"
    yield from (_step_line(step) for step in steps if step.method in _BEFORE_FILTER)
    refused: dict[tuple[str, str], list[str]] = {}
    for name, result in attempt.diagnosis.result_by_cluster.items():
        refused.setdefault((result.plugin, result.message), []).append(name)
    for (plugin, message), names in refused.items():
        yield f"  {_listed(names)} refused{f' by {plugin}' if plugin else ''}: {message}"
    yield from (_step_line(step) for step in steps if step.method not in _BEFORE_FILTER + _AFTER_SCORE)
    for plugin, scores in scores_of(attempt).items():
        equal = len(scores) > 1 and len(set(scores.values())) == 1
        yield f"  {plugin} scored: {f'{min(scores.values())} for all' if equal else _numbers(scores)}"
    yield from (_step_line(step) for step in steps if step.method in _AFTER_SCORE)
    if attempt.affinity_name and attempt.error is not None:
        yield f"  {attempt.error}"


def _step_line(step: Step) -> str:
    shown = _shown(step.answer)
    return f"  {step.plugin}.{step.method}" + (f": {shown}" if shown else "")


def _shown(answer: object) -> str:
    """Return a plugin's return value as text; objects by their names."""
    if answer is None:
        return ""
    if isinstance(answer, Result):
        return _result(answer)
    if isinstance(answer, ReplicaEstimate):
        parts = {"at most": answer.most, "less": answer.less, "at least": answer.at_least}
        shown = "; ".join(f"{name} {_numbers(numbers)}" for name, numbers in parts.items() if numbers)
        return (shown or "no change") + (f" ({answer.reason})" if answer.reason else "")
    if isinstance(answer, Mapping):
        return _numbers(answer) or "none"
    if isinstance(answer, (set, frozenset)):
        return _listed(sorted(map(str, answer))) or "none"
    if isinstance(answer, Sequence) and not isinstance(answer, (str, bytes)):
        return _listed(map(_named, answer)) or "none"
    return f"{answer!s:.200}"


def _result(result: Result) -> str:
    after = f" for {result.timeout:g}s" if result.timeout else ""
    after += f" (again after {result.retry_after:g}s)" if result.retry_after else ""
    return f"{result.code.value}{after}" + (f": {result.message}" if result.message else "")


def _named(each: object) -> str:
    if isinstance(each, TargetCluster):
        return f"{each.name}:{each.replicas}"
    return each.name if isinstance(each, (Candidate, Cluster)) else f"{each!s:.60}"


def _numbers(by_cluster: Mapping[str, object]) -> str:
    return _listed(f"{name}:{number}" for name, number in by_cluster.items())


def _listed(names: Iterator[str] | Sequence[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + more
