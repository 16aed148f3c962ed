"""Writes the output of fuzzer runs into docs/measurements/fuzzing.md: ``python -m tools.oracle.record LOG...``.

Each log is the output of one ``make fuzz ... ARGS=--features``. A number that is in no log is not written.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tools.pages import markdown_table, with_section

PAGE = Path(__file__).parents[2] / "docs" / "measurements" / "fuzzing.md"
BEGIN, END = "<!-- written by tools/oracle/record.py -->\n", "<!-- end -->\n"

_SUMMARY = re.compile(
    r"^(\d+) cases in (\d+) scenarios \((\d+) runs of the algorithm\), \d+ features, (\d+) different, (\d+) s",
    re.MULTILINE,
)
_FEATURE = re.compile(r"^ {0,10}(\d+)  (.+)$", re.MULTILINE)
_VARIATION = re.compile(r"^allowed variations: (\d+) x (.+)$", re.MULTILINE)
_DEFECT = re.compile(r"^upstream's defects: (\d+) x (.+)$", re.MULTILINE)

_GROUPS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("Settings", lambda name: bool(re.match("gate|plugins|empty-workload|accurate|assumed w|peers", name))),
    ("Clusters", lambda name: bool(re.match("cluster |clusters:|summary|negative node|quantity", name))),
    ("Upstream's answers", lambda name: bool(re.match("passes|rule|nothing|several|outcome|error", name))),
    (
        "Placements",
        lambda name: bool(
            re.match("no placement|single|affinity|no affinity|observed|overflow|empty overflow|clusterTol|spread|strat|static", name)
        ),
    ),
    ("Bindings", bool),
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.oracle.record", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "logs", nargs="+", type=Path, help="outputs of the fuzzer; one that did not end is left out"
    )
    parser.add_argument("--how", required=True, help="one sentence: when, which commit, which command, where")
    options = parser.parse_args(arguments)
    section = summarize([path.read_text() for path in options.logs], how=options.how)
    PAGE.write_text(with_section(PAGE.read_text(), BEGIN, END, section))
    return 0


def summarize(logs: list[str], *, how: str) -> str:
    """Return the sum of these logs as Markdown."""
    ended = [(match, log) for log in logs if (match := _SUMMARY.search(log))]
    cases, scenarios, runs, different, seconds = (
        sum(int(match[n]) for match, _ in ended) for n in range(1, 6)
    )
    features, variations, defects = (
        _sum(pattern, [log for _, log in ended]) for pattern in (_FEATURE, _VARIATION, _DEFECT)
    )
    lines = [
        f"**{cases:,} cases, {different or 'none'} different.** {how}",
        "",
        f"{len(ended)} seeds, {scenarios:,} scenarios, {runs:,} runs of upstream's algorithm, {seconds:,} s.",
        "",
        *_table("Allowed variation", variations),
        "",
        *_table("Defect", defects),
        "",
        f"{len(features)} features; a number is the number of cases (scenarios, for settings and clusters) with the feature.",
    ]
    left = dict(sorted(features.items()))
    for title, belongs in _GROUPS:
        names = [name for name in left if belongs(name)]
        lines += ["", f"**{title}.** " + " · ".join(f"{name} {left.pop(name):,}" for name in names)]
    return "\n".join(lines) + "\n"


def _sum(pattern: re.Pattern[str], logs: list[str]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for log in logs:
        for count, name in pattern.findall(log):
            counted[name] += int(count)
    return counted


def _table(title: str, counted: Counter[str]) -> list[str]:
    return [markdown_table([title, "cases"], [[name, f"{count:,}"] for name, count in counted.most_common()])]


if __name__ == "__main__":
    sys.exit(main())
