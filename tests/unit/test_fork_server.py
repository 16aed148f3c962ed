"""Forked schedulers are processes of their own, as those that are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler import __version__
from tests.fork_server import ForkedProcess, popen


def _start(folder: Path, *arguments: str, start: Any = popen, **env: str) -> tuple[Any, Path]:
    log = folder / "log"
    with log.open("ab") as output:
        process = start(
            [sys.executable, "-m", "karmada_scheduler", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
        )
    return process, log


@pytest.mark.parametrize("arguments", [["version"], ["--no-such-flag"], ["--kubeconfig=/nowhere"]], ids=str)
def test_a_forked_process_prints_and_ends_as_a_started_one(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "forked").mkdir()
    (tmp_path / "started").mkdir()
    forked, its_log = _start(tmp_path / "forked", *arguments)
    started, log = _start(tmp_path / "started", *arguments, start=subprocess.Popen)
    assert isinstance(forked, ForkedProcess)
    assert forked.wait(60) == started.wait(60)
    assert forked.poll() == started.poll()
    shown = [
        [line.partition("] ")[2] or line for line in each.read_text().splitlines()] for each in (its_log, log)
    ]
    assert shown[0] == shown[1]
    assert arguments != ["version"] or __version__ in its_log.read_text()


def test_a_signal_ends_it_and_is_its_status(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)  # a kubeconfig that is never written keeps it waiting
    process, _ = _start(tmp_path, f"--kubeconfig={held}")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    process.terminate()  # without effect


def test_a_variable_that_imports_read_starts_a_new_interpreter(tmp_path: Path) -> None:
    process, log = _start(tmp_path, "version", PYTHONWARNINGS="default")
    assert isinstance(process, subprocess.Popen)
    assert process.wait(60) == 0
    assert __version__ in log.read_text()
