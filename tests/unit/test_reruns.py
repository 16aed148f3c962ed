"""Second attempts: they are shown, and a run with too many fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reruns import MAX_RERUNS

ROOT = Path(__file__).parents[2]
FLAKY = """
import pytest

seen = set()

@pytest.mark.flaky(reruns=1)
@pytest.mark.parametrize("number", range({count}))
def test_passes_at_the_second_attempt(number):
    first = number not in seen
    seen.add(number)
    assert not first, "the detector was late"
"""


@pytest.mark.parametrize(("count", "status"), [(MAX_RERUNS, 0), (MAX_RERUNS + 1, 1)])
def test_second_attempts_are_shown_and_limited(tmp_path: Path, count: int, status: int) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.reruns import pytest_sessionfinish, pytest_terminal_summary\n"
    )
    (tmp_path / "test_flaky.py").write_text(FLAKY.format(count=count))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == status, ran.stdout
    assert ran.stdout.count("first attempt of ") == count
    assert "the detector was late" in ran.stdout
    assert ("needed a second attempt" in ran.stdout) is bool(status)
