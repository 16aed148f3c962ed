"""The demo, and the commands that it prints for people to copy."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIVE = {
    "karmada-pyscheduler explain": "real1 8, real2 4",
    "karmada-pyscheduler why-not": "sim-a1 has none of the 12 replicas of demo/web-my-deployment",
    "karmada-pyscheduler plan": "Plan: 1 moved, 0 unplaced, 0 stuck.",
    "kubectl -n demo get resourcebindings": "web-my-deployment",
    "kubectl -n demo get deployments": "web-my",
    "kubectl -n demo scale": "deployment.apps/web-my scaled",
}
ENDED = {
    "karmada-pyscheduler explain": "real1 20, real2 10",
    "karmada-pyscheduler why-not": "sim-a1 has none of the 30 replicas of demo/web-my-deployment",
    "karmada-pyscheduler plan": "Plan: 0 moved, 0 unplaced, 1 stuck; 1 deletion blocked.",
}
"""The commands, and what is in their answers: of a demo that is kept, and after its end, of the scaled workload."""


def test_every_command_that_the_demo_prints_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.controlplane.demo", f"--folder={tmp_path / 'demo'}", "--keep"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:
        try:
            live = _until("The scheduler's records (--from)", demo)
            _check(live, LIVE, tmp_path)
            demo.send_signal(signal.SIGINT)
            ended = _until("Next: ", demo)
            assert demo.wait(timeout=60) == 0
            _check(ended, ENDED, tmp_path)
        finally:
            demo.kill()


def _until(last: str, demo: subprocess.Popen[str]) -> list[str]:
    """Return the lines that it prints, up to one that begins so."""
    assert demo.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith(last):
        lines.append(demo.stdout.readline())
        assert lines[-1], f"it ended early: {lines}"
    return lines


def _check(lines: list[str], answers: Mapping[str, str], folder: Path) -> None:
    """Run the commands as a person copies them, in the order of their answers."""
    shown = [line.strip() for line in lines if line.startswith("  ")]
    [export] = [line for line in shown if line.startswith("export ")]
    assert len([line for line in shown if line.startswith(("karmada-pyscheduler", "kubectl"))]) == len(
        answers
    )
    for start, expected in answers.items():
        [line] = [line for line in shown if line.startswith(start)]
        answer = subprocess.run(
            ["sh", "-c", f"{export}\n{line}"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert expected in answer.stdout, f"{line}\n{answer.stdout}\n{answer.stderr}"
        assert not answer.stderr, line
