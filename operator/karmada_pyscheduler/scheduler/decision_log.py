"""The log lines of a decision, as upstream writes them at V(4)."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_scheduler.core.decision import Decision, TermAttempt


def lines(decision: Decision) -> Iterator[str]:
    """Yield the lines of each attempt of a decision, in order.

    A decision is repeated on its own result until it is stable (``core.schedule``); each pass has a heading.

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
        yield f'Cluster "{name}" fell back to the resource summary, reason: {reason}'


def fallbacks(decision: Decision) -> str:
    """Return the clusters that fell back to the resource summary, shortened, and a reason."""
    names = sorted(decision.fallbacks)
    first = names[0]
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{first}{others} ({decision.fallbacks[first]})"


def _attempt_lines(attempt: TermAttempt) -> Iterator[str]:
    for name, result in attempt.diagnosis.result_by_cluster.items():
        yield f'Cluster "{name}" is not fit, reason: {", ".join(result.reasons)}'
    if attempt.candidates:
        yield f"Feasible clusters found: {_joined(candidate.name for candidate in attempt.candidates)}"
        scores = (f"{each.name}:{each.score} (available: {each.allocatable})" for each in attempt.candidates)
        yield f"Feasible clusters scores: {_joined(scores)}"
    if attempt.selected:
        yield f"Selected clusters: {_joined(cluster.name for cluster in attempt.selected)}"
    if attempt.targets is not None:
        yield f"Assigned Replicas: {_joined(f'{target.name}:{target.replicas}' for target in attempt.targets)}"
    if attempt.error is not None:
        yield f"Failed: {attempt.error}"


def _joined(parts: Iterator[str]) -> str:
    return f"[{', '.join(parts)}]"
