"""For all tests."""

import gc
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.remote import Producer

from karmada_scheduler import logs
from karmada_scheduler.process import process_exit
from tests import distributions, second_attempts
from tests.karmada_versions import skip_what_is_newer
from tests.sharing import Durations, ModuleScheduling, encodable, longest_first

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


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Give back handlers and levels, which the scheduler's command sets for its process."""
    loggers = [logging.getLogger(name) for name in (None, "kopf", *logs.PACKAGES)]
    before = [(each.handlers[:], each.level) for each in loggers]
    yield
    for each, (handlers, level) in zip(loggers, before, strict=True):
        each.handlers[:] = handlers
        each.setLevel(level)
    logging.captureWarnings(capture=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the version of Karmada of control planes."""
    distributions.add_option(parser)
    known = "see tools/controlplane/versions.py"
    again = "run a test once more that starts real processes and fails; its first failure is printed"
    parser.addoption("--second-attempts", action="store_true", help=again)
    parser.addoption("--karmada", default="", help=f"version of Karmada, the newest by default: {known}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules that are about another distribution, if one is chosen."""
    name = config.getoption("--distribution")
    return True if name and not distributions.is_about(collection_path, name) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and never look at the 600,000 objects that are there then.

    Each collection would take 0.2 s of CPU time; each run of the simulation ends with one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what an older Karmada lacks, allow second attempts, and let the longest modules begin first under xdist."""
    skip_what_is_newer(items, config.getoption("--karmada"))
    if config.getoption("--second-attempts"):
        second_attempts.allow(items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling:
    """Keep the tests of a module in one process."""
    return ModuleScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Escape what no encoding has, such as halves of surrogate pairs in the log of a fuzz test, on its way to xdist."""
    return encodable((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print failures of first attempts, the slowest tests, and the seconds of each folder's tests in all processes."""
    second_attempts.show(terminalreporter)
    durations = Durations()
    for outcome in ("passed", "failed", "error", "skipped", "rerun", ""):  # "" has setups and teardowns
        durations.add(terminalreporter.stats.get(outcome, ()))
    durations.print(terminalreporter)
