"""Forked schedulers are processes of their own, as those that are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from tests import fork_server
from tools.controlplane import wait_for


@pytest.mark.parametrize("arguments", [["version"], ["--no-such-flag"], ["--kubeconfig=/nowhere"]], ids=str)
def test_a_forked_process_prints_and_ends_as_a_started_one(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_OF_THIS_TEST", "a variable that the process gets after the fork")
    logs = tmp_path / "forked", tmp_path / "started"
    with logs[0].open("ab") as output:
        forked = fork_server.fork(arguments, output=output, modules=fork_server.SCHEDULER)
    with logs[1].open("ab") as output:
        started = subprocess.run(
            [sys.executable, "-m", "karmada_scheduler", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert forked.wait(60) == started.returncode == forked.poll()
    shown = [[line.partition("] ")[2] or line for line in each.read_text().splitlines()] for each in logs]
    assert shown[0] == shown[1]
    assert arguments != ["version"] or __version__ in logs[0].read_text()


def test_a_signal_ends_it_and_is_its_status(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)  # a kubeconfig that is never written keeps it waiting
    with (tmp_path / "log").open("ab") as output:
        process = fork_server.fork([f"--kubeconfig={held}"], output=output, modules=fork_server.SCHEDULER)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    process.terminate()  # without effect


def test_a_scheduler_with_the_variables_of_the_tests_is_forked_into_the_process_group_that_is_asked_for(
    tmp_path: Path,
) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    argv = [sys.executable, "-m", fork_server.MODULE, f"--kubeconfig={held}"]
    with (
        (tmp_path / "log").open("ab") as output,
        subprocess.Popen(["sleep", "60"], process_group=0) as leader,
    ):
        options = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        process = fork_server.start(argv, **options, env=dict(os.environ), process_group=leader.pid)
        assert isinstance(process, fork_server.ForkedProcess)
        wait_for(lambda: os.getpgid(process.pid) == leader.pid, "to join the group")
        os.killpg(leader.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL


def test_a_scheduler_with_a_variable_of_its_own_is_started(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", fork_server.MODULE, "version"]
    with (tmp_path / "log").open("ab") as output:
        process = fork_server.start(argv, stdout=output, env={**os.environ, "PYTHONWARNINGS": "default"})
    assert isinstance(process, subprocess.Popen)
    assert process.wait(60) == 0
