"""Shows what a run did and what the judge found."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from karmada_advisor.views.text import table
from tools.live.fault_plan import KINDS
from tools.live.judge import Result
from tools.live.records import Records

_SHOWN: Final = 15


def report(folder: Path, records: Records, result: Result) -> str:
    """Return the summary as text."""
    final = records.final
    faults = [(kind, str(final["faults"].get(kind, 0))) for kind in KINDS]
    steps = [
        (kind, str(number), str(final["failed steps"].get(kind, 0)))
        for kind, number in final["steps"].items()
    ]
    figures = [(name, f"{number:g}") for name, number in sorted(result.figures.items())]
    codes = [(str(code), str(number)) for code, number in sorted(result.codes.items())]
    parts = [
        table(("FAULT", "TIMES"), faults),
        table(("STEP OF THE WORKLOAD", "DONE", "FAILED"), steps),
        table(("RESPONSE TO OUR REPLICAS", "TIMES"), codes),
        table(("FIGURE", "VALUE"), figures),
        *(f"problem of a fault: {text}" for text in final["problems"]),
        _violations(folder, result),
    ]
    return "\n\n".join(parts)


def _violations(folder: Path, result: Result) -> str:
    if not result.violations:
        return "No invariant was broken."
    counted = Counter(each.invariant for each in result.violations)
    lines = [f"{sum(counted.values())} violations: {dict(counted)}"]
    shown: Counter[str] = Counter()
    for each in sorted(result.violations, key=lambda violation: violation.at):
        shown[each.invariant] += 1
        if shown[each.invariant] <= _SHOWN:
            at = (
                datetime.fromtimestamp(each.at, UTC).strftime("%H:%M:%S.%f")[:-3] if each.at else "at the end"
            )
            lines.append(f"  {each.invariant}: {at}: {each.text}\n    {each.where}")
    lines += [
        "",
        "How to find them: an auditID with",
        f"  grep ID {folder}/plane/logs/audit*.log",
        "and NAMESPACE/NAME@VERSION with",
        f"  grep NAMESPACE/NAME {folder}/records/bindings.jsonl | grep VERSION",
        f"Faults are in {folder}/records/faults.jsonl, logs in {folder}/plane/logs.",
    ]
    return "\n".join(lines)
