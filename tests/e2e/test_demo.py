"""The demo, and the commands that it prints for people to copy."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "karmada-pyscheduler explain": "real1 8, real2 4",
    "karmada-pyscheduler why-not": "sim-a1 has none of the 12 replicas of demo/web-my-deployment",
    "karmada-pyscheduler plan": "Plan: 1 moved, 0 unplaced, 0 stuck.",
    "kubectl -n demo get resourcebindings": "web-my-deployment",
    "kubectl -n demo scale": "deployment.apps/web-my scaled",
    "kubectl -n demo get deployments": "web-my",
}


@pytest.mark.parametrize("keeps", [False, True], ids=["ended", "kept"])
def test_every_command_that_the_demo_prints_answers(keeps: bool, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.controlplane.demo", f"--folder={tmp_path / 'demo'}"]
    end = "The scheduler's records (--from)" if keeps else "Next: "
    with subprocess.Popen(
        [*command, *(["--keep"] if keeps else [])], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        lines: list[str] = []
        try:
            while not lines or not lines[-1].startswith(end):
                lines.append(demo.stdout.readline())
                assert lines[-1], f"it ended early: {lines}"
            if not keeps:
                assert demo.wait(timeout=60) == 0
            shown = [line.strip() for line in lines if line.startswith("  ")]
            [export] = [line for line in shown if line.startswith("export ")]
            commands = [line for line in shown if line.startswith(tuple(ANSWERS))]
            assert len(commands) == (len(ANSWERS) if keeps else 3), "".join(lines)
            for line in commands:
                script = f"{export}\n{line}"
                answer = subprocess.run(
                    ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
                )
                [expected] = [text for start, text in ANSWERS.items() if line.startswith(start)]
                assert expected in answer.stdout, f"{line}\n{answer.stdout}\n{answer.stderr}"
                assert not answer.stderr, line
        finally:
            demo.send_signal(signal.SIGINT)
