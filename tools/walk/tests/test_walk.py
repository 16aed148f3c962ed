"""The way of a binding through the real scheduler is as short as it was made."""

import subprocess
import sys

from tools.walk.recorder import PHASES, ROOT


def test_no_phase_is_deeper_than_its_limit() -> None:
    walk = subprocess.run(
        [sys.executable, "-m", "tools.walk"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert walk.returncode == 0, walk.stdout + walk.stderr
    for phase in PHASES:
        assert f"\n{phase.name}: " in walk.stdout
