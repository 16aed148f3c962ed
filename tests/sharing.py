"""How processes share the tests out, and what is printed about their durations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

LONGEST_FIRST = (
    "tests/e2e/test_web.py",
    "tests/e2e/test_state_situations.py",
    "tests/e2e/test_no_harm.py",
    "tests/e2e/",
    "tests/deploy/",
    "tools/simulation/",
    "tools/live/",
    "tests/bad_days/",
    "tools/",
)
"""Modules that begin first when several processes share the tests; the many short ones of the rest fill up."""

TOGETHER = {
    f"tests/deploy/test_{name}.py": "deploy"
    for name in ("image", "least_privilege", "operations", "rendered_objects", "wheel")
}
"""Modules that share a process because they share a control plane of their own."""

WITH_OWN_PLANE = {
    f"tests/e2e/test_{name}.py" for name in ("demo", "etcd_restore", "fuzz_loop", "state_situations", "web")
}
"""End-to-end modules that do not use the control plane that the others share in a process."""

PLANES = 3
"""Processes that start a control plane for the modules that share it: each takes 2 GB, and 10 s of CPU time to start."""

SLOWEST = 10
"""Tests that are named at the end of a run."""


class ModuleScheduling(LoadScopeScheduling):
    """Keeps the tests of a module in one process, so that its fixtures are made once."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        """Begin with the modules in the order in which they were collected."""
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give the next modules to a process, those that share a control plane to some processes only."""
        found = next((scope for scope in self.workqueue if self._may_take(node, scope)), None)
        if found is not None:
            self.workqueue.move_to_end(found, last=False)
        super()._assign_work_unit(node)

    def _may_take(self, node: WorkerController, scope: str) -> bool:
        has_plane = [other for other, taken in self.assigned_work.items() if any(map(shares_plane, taken))]
        return not shares_plane(scope) or node in has_plane or len(has_plane) < PLANES


def group_of(nodeid: str) -> str:
    """Return what has to run in one process with a test: its module, or several."""
    module = nodeid.partition("::")[0]
    return TOGETHER.get(module, module)


def shares_plane(group: str) -> bool:
    """Return whether the tests of a group use the control plane that end-to-end modules share in a process."""
    return group.startswith("tests/e2e/") and group not in WITH_OWN_PLANE


def longest_first(items: list[pytest.Item]) -> None:
    """Sort collected tests so that the modules that take longest begin first."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    found = (number for number, start in enumerate(LONGEST_FIRST) if nodeid.startswith(start))
    return next(found, len(LONGEST_FIRST))


def encodable(value: Any) -> Any:
    """Return a report as plain values, with characters escaped that UTF-8 does not have."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
        case _:
            return value


@dataclass(slots=True)
class Durations:
    """Seconds of tests and of the folders that they are in, with setup and teardown, summed over processes."""

    tests: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, reports: Iterable[object]) -> None:
        """Add reports of pytest; other objects are ignored."""
        for report in reports:
            if isinstance(report, pytest.TestReport):
                self.tests[report.nodeid] += report.duration

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
