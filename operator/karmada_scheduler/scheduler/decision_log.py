"""A decision in words: the lines that upstream logs at V(4) on the way to it."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_scheduler.core.decision import Attempt, Decision


def lines(decision: Decision) -> Iterator[str]:
    """Yield what each attempt of a decision found, in order.

    A decision is taken again on top of its own result until it stays the same (``core.schedule``).

    Source of the texts: karmada v1.18.2 pkg/scheduler/core/generic_scheduler.go.
    """
    passes, decided = 0, None
    for attempt in decision.attempts:
        if attempt.cycle is not None and attempt.cycle.binding is not decided:
            passes, decided = passes + 1, attempt.cycle.binding
            if passes > 1:
                yield f"Pass {passes}, as if the result of the one before were written:"
        if attempt.affinity_name:
            yield f'Affinity term "{attempt.affinity_name}"'
        yield from _attempt_lines(attempt)
    for name, reason in decision.fallbacks.items():
        yield f'Cluster "{name}" went by its summary, reason: {reason}'


def fallbacks(decision: Decision) -> str:
    """Say briefly where a decision had to do without estimators, and why."""
    names = sorted(decision.fallbacks)
    first = names[0]
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{first}{others} ({decision.fallbacks[first]})"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    for name, result in attempt.diagnosis.result_by_cluster.items():
        yield f'Cluster "{name}" is not fit, reason: {", ".join(result.reasons)}'
    if attempt.candidates:
        yield f"Feasible clusters found: {_joined(each.name for each in attempt.candidates)}"
        scores = (f"{each.name}:{each.score} (room for {each.allocatable})" for each in attempt.candidates)
        yield f"Feasible clusters scores: {_joined(scores)}"
    if attempt.selected:
        yield f"Selected clusters: {_joined(each.name for each in attempt.selected)}"
    if attempt.targets is not None:
        yield f"Assigned Replicas: {_joined(f'{each.name}:{each.replicas}' for each in attempt.targets)}"
    if attempt.error is not None:
        yield f"Failed: {attempt.error}"


def _joined(parts: Iterator[str]) -> str:
    return f"[{', '.join(parts)}]"
