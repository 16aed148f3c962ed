"""Second attempts of tests that start real processes: ``pytest --second-attempts``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

OF_PROCESSES: Final = ("tests/bad_days/", "tests/deploy/", "tests/e2e/", "tools/live/")
"""Folders of tests that wait for other processes, which a busy machine may delay by more than a deadline."""


def allow(items: Iterable[pytest.Item]) -> None:
    """Let each test of these folders run once more if it fails."""
    for item in items:
        if item.nodeid.startswith(OF_PROCESSES):
            item.add_marker(pytest.mark.flaky(reruns=1))


def show(reporter: pytest.TerminalReporter) -> None:
    """Print why first attempts failed: each is a defect of a test, or of the product."""
    for report in reporter.stats.get("rerun", ()):
        reporter.section(f"first attempt failed: {report.nodeid}")
        reporter.write_line(report.longreprtext)
