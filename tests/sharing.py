"""How processes share the tests out, and what is printed about their durations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

LONGEST_FIRST = (
    "tests/e2e/",
    "tests/deploy/",
    "tools/soak/",
    "tools/fast_apiserver/",
    "tests/bad_days/",
    "tools/",
)
"""Folders whose modules begin first when several processes share the tests; the short modules of the rest fill up."""

SLOWEST = 10
"""Tests that are named at the end of a run."""


def share_out(items: list[pytest.Item], *, is_shared: bool) -> None:
    """Keep the tests of a module in one process, and let the longest modules begin first.

    A module that names a group of its own shares a process with that group.

    Args:
        items: The collected tests; sorted in place.
        is_shared: Whether several processes run them; else their order stays.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    if is_shared:
        items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return next(
        (number for number, folder in enumerate(LONGEST_FIRST) if nodeid.startswith(folder)),
        len(LONGEST_FIRST),
    )


def _without_group(nodeid: str) -> str:
    """Return the name of a test without the group that xdist appends to it."""
    at = nodeid.rfind("@")
    return nodeid[:at] if at > nodeid.rfind("]") else nodeid


@dataclass(slots=True)
class Durations:
    """Seconds of tests and of the folders that they are in, with setup and teardown, summed over processes."""

    tests: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, reports: Iterable[object]) -> None:
        """Add reports of pytest; other objects are ignored."""
        for report in reports:
            if isinstance(report, pytest.TestReport):
                self.tests[_without_group(report.nodeid)] += report.duration

    @property
    def parts(self) -> dict[str, tuple[float, int]]:
        """Seconds and number of tests by folder, the slowest first."""
        found: dict[str, tuple[float, int]] = {}
        for test, seconds in self.tests.items():
            folder = "/".join(test.partition("::")[0].split("/")[:2])
            total, count = found.get(folder, (0.0, 0))
            found[folder] = (total + seconds, count + 1)
        return dict(sorted(found.items(), key=lambda each: each[1], reverse=True))

    @property
    def slowest(self) -> list[tuple[str, float]]:
        """The slowest tests with their seconds, the slowest first."""
        return sorted(self.tests.items(), key=lambda each: each[1], reverse=True)[:SLOWEST]

    def print(self, reporter: pytest.TerminalReporter) -> None:
        """Print the slowest tests and the seconds of each part."""
        reporter.section(f"{SLOWEST} slowest tests, in seconds")
        for test, seconds in self.slowest:
            reporter.write_line(f"{seconds:7.1f}  {test}")
        if len(self.parts) > 1:
            reporter.section("seconds and tests per part, summed over processes")
            for folder, (seconds, count) in self.parts.items():
                reporter.write_line(f"{seconds:7.1f} {count:5}  {folder}")
