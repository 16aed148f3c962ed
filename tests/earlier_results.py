"""Results of tests that depend on content only: not repeated by `make test` where a test passed with equal content before.

Such a test decides in virtual time, over generated or recorded inputs that are the same in each run. Its content is its
module, all code and data of the work tree but other tests, and the installed packages. What passed is kept outside the
work tree for `KEPT`, in a file named by the hash of the content; a new machine has none.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import platform
import re
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
OF_CONTENT: Final = (
    "tools/simulation/tests/",
    "tools/oracle/tests/",
    "tools/conformance/tests/",
    "tools/explain_check/tests/",
    "tools/why_not_check/tests/",
    "tests/fuzz/",
    "tests/unit/properties/",
    "tests/unit/core/test_order_cache.py",
    "tests/unit/plan/test_held.py",
    "tests/unit/survive/test_properties.py",
    "tests/unit/survive/test_remedies.py",
    "tests/unit/survive/test_plan_agrees.py",
    "tests/unit/whynot/test_remedies.py",
    "tests/unit/whynot/test_harm.py",
    "tests/unit/rebalance/test_search.py",
)
"""Modules whose results depend on content only."""

CONTENT: Final = (
    "operator",
    "advisor",
    "plugins",
    "tools",
    "tests",
    "requirements/dev.txt",
    "pyproject.toml",
)
"""All that they may read: every file, as some are read as data or run as programs."""

NOT_READ: Final = ("tests/e2e", "tests/deploy", "tests/bad_days", "tests/docs")
ENVIRONMENT: Final = ("FUZZ_EXAMPLES", "SURVIVE_REMEDIES", "SURVIVE_SEED", "PYTHONHASHSEED")
IMPORTED_TESTS: Final = re.compile(r"^(?:from|import) ((?:tests|tools)[\w.]*\.test_\w+)", re.MULTILINE)
KEPT: Final = dt.timedelta(days=14)
REASON: Final = "passed before with equal content"


class EarlierResults:
    """A pytest plugin that skips what passed before with equal content, counts it, and keeps what passes now."""

    def __init__(self, folder: Path) -> None:
        """Keep results in that folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            with suppress(FileNotFoundError):  # another process removed it
                if file.stat().st_mtime < time.time() - KEPT.total_seconds():
                    file.unlink()
        self._folder = folder
        self._contents: dict[str, str] = {}
        self._passing: dict[str, bool] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the tests that are not repeated."""
        common = common_content()
        for module in {item.nodeid.partition("::")[0] for item in items}:
            if module.startswith(OF_CONTENT):
                self._contents[module] = content_of(module, common)
        passed = {module: self._passed(module) for module in self._contents}
        for item in items:
            if item.nodeid in passed.get(item.nodeid.partition("::")[0], ()):
                item.add_marker(pytest.mark.skip(reason=REASON))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember whether all phases of a test passed."""
        if report.nodeid.partition("::")[0] in self._contents:
            self._passing[report.nodeid] = self._passing.get(report.nodeid, True) and report.passed

    def pytest_sessionfinish(self) -> None:
        """Keep the names of what passed, unless the content changed meanwhile."""
        if not any(self._passing.values()):
            return
        common = common_content()
        for module, content in self._contents.items():
            names = [
                name for name, passed in self._passing.items() if passed and name.partition("::")[0] == module
            ]
            if names and content == content_of(module, common):
                with (self._folder / content).open("a") as file:  # another process may append, too
                    file.write("".join(f"{name}\n" for name in names))

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count what is not repeated apart from what is skipped."""
        if report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[2].endswith(REASON):
            return REASON, "=", REASON.upper()
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print how many tests of which part were not repeated."""
        counts: dict[str, int] = {}
        for report in terminalreporter.stats.get(REASON, ()):
            part = "/".join(report.nodeid.split("/")[:2])
            counts[part] = counts.get(part, 0) + 1
        if counts:
            terminalreporter.section(
                f"not repeated: {REASON} on this machine (make test REPEAT=1 repeats them)"
            )
            for part, count in sorted(counts.items()):
                terminalreporter.write_line(f"{count:5}  {part}")

    def _passed(self, module: str) -> frozenset[str]:
        file = self._folder / self._contents[module]
        return frozenset(file.read_text().splitlines()) if file.exists() else frozenset()


def content_of(module: str, common: str) -> str:
    """Return a hash of all that may decide the results of a module's tests.

    Args:
        module: Its path from the top.
        common: The hash of what all modules may read.
    """
    hashes = [_hash(file) for file in _with_imported_tests(ROOT / module)]
    return hashlib.sha256(f"{common} {module} {hashes}".encode()).hexdigest()[:32]


def _with_imported_tests(module: Path) -> list[Path]:
    """Return a module and the other modules of tests that it imports from, directly or not."""
    found = [module]
    for file in found:  # it grows meanwhile
        for name in IMPORTED_TESTS.findall(file.read_text()):
            imported = ROOT / f"{name.replace('.', '/')}.py"
            if imported not in found:
                found.append(imported)
    return found


def common_content() -> str:
    installed = sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    variables = [os.environ.get(name) for name in ENVIRONMENT]
    lines = [f"{platform.machine()} {platform.python_version()} {installed} {variables}"]
    for file in sorted(file for path in CONTENT for file in _files(ROOT / path)):
        lines.append(f"{file.relative_to(ROOT)} {_hash(file)}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder that are no modules of tests."""
    if path.is_file():
        yield path
    not_read = [str(ROOT / each) for each in NOT_READ]
    for folder, folders, names in os.walk(path):
        folders[:] = [
            name for name in folders if name != "__pycache__" and f"{folder}/{name}" not in not_read
        ]
        yield from (
            Path(folder, name) for name in names if not (name.startswith("test_") and name.endswith(".py"))
        )


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
