"""Runs the commands as processes of their own, as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.state_check.model import Answer

_TIMEOUT_SECONDS = 180


def ask(kubeconfig: Path, namespace: str, *arguments: str) -> Answer:
    """Run ``karmada-pyscheduler`` with these arguments in a namespace ("" for none)."""
    flags = ["-n", namespace] if namespace else []
    program = [sys.executable, "-m", "karmada_scheduler"]
    line: Sequence[str] = [*arguments, *flags, f"--kubeconfig={kubeconfig}"]
    done = subprocess.run(
        [*program, *line], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    shown = " ".join(["karmada-pyscheduler", *arguments, *flags])
    return Answer(shown, done.returncode, done.stdout, done.stderr)


def fields_of(answer: Answer) -> dict[str, Any]:
    """Return the JSON output of a command; {} if it printed none."""
    try:
        found = json.loads(answer.out)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
