"""The results of a run as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tools.state_check.check import problems_of
from tools.state_check.model import ASPECTS, Outcome


def row(outcome: Outcome, width: int) -> str:
    """Return one line of the table."""
    marks = {each.aspect: "WRONG" if each.problem else "ok" for each in outcome.results}
    cells = "".join(f"{marks.get(aspect, '-'):<9}" for aspect in ASPECTS)
    return f"{outcome.situation.name:<{width}}  {cells}{outcome.seconds:5.1f} s"


def head(width: int) -> str:
    """Return the head of the table."""
    return f"{'SITUATION':<{width}}  " + "".join(f"{aspect.upper():<9}" for aspect in ASPECTS)


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return how many are right, by aspect."""
    lines = []
    asked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for outcome in outcomes:
        for each in outcome.results:
            asked[each.aspect] += 1
            right[each.aspect] += not each.problem
    shown = ", ".join(f"{aspect} {right[aspect]} of {asked[aspect]}" for aspect in ASPECTS if asked[aspect])
    good = sum(not each.problems for each in outcomes)
    lines.append(f"{len(outcomes)} situations, {good} right in everything: {shown}")
    return "\n".join(lines)


def complaints(outcome: Outcome) -> Iterator[str]:
    """Yield the problems of a situation, indented."""
    for line in problems_of(outcome):
        yield f"    {line}"


def as_fields(outcomes: Sequence[Outcome], commit: str) -> dict[str, Any]:
    """Return the results as JSON values, with the commands and what they printed."""
    return {
        "commit": commit,
        "situations": [
            {
                "name": each.situation.name,
                "source": each.situation.source,
                "seconds": round(each.seconds, 1),
                "results": {result.aspect: result.problem or "ok" for result in each.results},
                "answers": [
                    {"command": answer.command, "status": answer.status, "out": answer.out, "err": answer.err}
                    for answer in each.answers
                ],
            }
            for each in outcomes
        ],
    }
