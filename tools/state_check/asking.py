"""Runs the commands as processes of their own, as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tools.state_check.model import Answer

_TIMEOUT_SECONDS = 180


class Ask(Protocol):
    """Runs ``karmada-pyscheduler`` with arguments in a namespace ("" for none)."""

    def __call__(self, kubeconfig: Path, namespace: str, /, *arguments: str) -> Answer: ...


def ask(kubeconfig: Path, namespace: str, *arguments: str) -> Answer:
    """Run ``karmada-pyscheduler`` with these arguments in a namespace ("" for none)."""
    words = [*arguments, *in_namespace(namespace)]
    line: Sequence[str] = [sys.executable, "-m", "karmada_scheduler", *words, f"--kubeconfig={kubeconfig}"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    return Answer(shown(words), done.returncode, done.stdout, done.stderr)


def in_namespace(namespace: str) -> list[str]:
    """Return the flags for a namespace ("" for none)."""
    return ["-n", namespace] if namespace else []


def shown(words: Sequence[str]) -> str:
    """Return a command without the kubeconfig."""
    return " ".join(["karmada-pyscheduler", *words])


def fields_of(answer: Answer) -> dict[str, Any]:
    """Return the JSON output of a command; {} if it printed none."""
    try:
        found = json.loads(answer.out)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
