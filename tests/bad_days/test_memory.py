"""Memory does not grow while decisions are made for days and all clusters report."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("clusters", "decisions", "reports"), [(100, 1500, 100), (1000, 450, 120)], ids=["100", "1000"]
)
def test_the_memory_of_a_day_of_decisions_levels_off(clusters: int, decisions: int, reports: int) -> None:
    arguments = [str(each) for each in (clusters, 300, decisions, reports)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.bad_days.day_of_decisions", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    first, _, last = json.loads(run.stdout)
    assert last - first < 3  # MiB; it was 6 and 50 when names and old clusters were kept per placement
    assert last < 150
