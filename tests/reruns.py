"""Second attempts of end-to-end tests are shown and limited; see docs/decisions/0035-reruns.md."""

from __future__ import annotations

import pytest

MAX_RERUNS = 3
"""Tests that may pass at the second attempt in one run; more are a failure of the run."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why first attempts failed: a test that passes at the second one is a defect to look at."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"first attempt of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run in which too many tests needed a second attempt."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    count = len(reporter.stats.get("rerun", ()))
    if count > MAX_RERUNS and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"{count} tests needed a second attempt, more than {MAX_RERUNS}", red=True)
