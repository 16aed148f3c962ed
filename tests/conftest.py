"""For all tests."""

import os
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import settings

from karmada_scheduler.process import process_exit
from tests import reruns
from tests.reruns import pytest_sessionfinish

__all__ = [
    "pytest_sessionfinish"
]  # a hook; a conftest of a subfolder is not loaded where reports are collected

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""Random examples per law with `make fuzz-input`; a run of the tests has the same ones each time."""

# A decision takes a fraction of a millisecond; a slow example means a slow machine and is no error.
settings.register_profile("laws", deadline=None, max_examples=EXAMPLES or 100, derandomize=not EXAMPLES)
settings.load_profile("laws")


@pytest.fixture(autouse=True)
def _the_test_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the scheduler's command return instead of ending the process, and give its signals back."""
    monkeypatch.setattr(process_exit, "end", lambda status, **_: None)
    yield
    process_exit.TERMINATION.restore()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why first attempts failed, and the seconds that the tests of each folder took in all processes."""
    reruns.pytest_terminal_summary(terminalreporter)
    seconds: dict[str, float] = defaultdict(float)
    for outcome in ("passed", "failed", "error", "skipped", ""):  # "" has setups and teardowns
        for report in terminalreporter.stats.get(outcome, ()):
            if isinstance(report, pytest.TestReport):
                seconds["/".join(report.nodeid.split("/")[:2])] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("seconds per folder")
        for folder in sorted(seconds, key=seconds.__getitem__, reverse=True):
            terminalreporter.write_line(f"{seconds[folder]:7.1f}  {folder}")
