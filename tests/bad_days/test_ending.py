"""The process stops after a signal, whatever else happens."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_apiserver import FakeApiServer, Gate, binding, cluster, start_scheduler, status, wait_for


def test_it_stops_in_order_after_refused_requests(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "a leader", scheduler)
            refusal = server.fault(answer=status(401, "Unauthorized"))
            server.end_watches()
            wait_for(lambda: refusal.hits >= 6, "requests to be refused", scheduler)
            server.heal()
            server.put(binding("web"))
            wait_for(lambda: server.targets("web"), "a binding to be placed", scheduler, timeout=30)
            scheduler.signal(signal.SIGINT)  # others stop it with SIGTERM
            assert scheduler.wait(8) == 0, scheduler.log
            assert server.lease()["holderIdentity"] == ""


def test_it_ends_within_its_grace_period_when_the_api_server_does_not_answer(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "a leader", scheduler)
            server.fault(method="PATCH", gate=Gate())
            server.fault(method="POST", gate=Gate())
            server.put(binding("web"))
            wait_for(lambda: server.count("PATCH"), "a write under way", scheduler)
            assert scheduler.stop(timeout=28) == 0, scheduler.log


def test_it_ends_at_once_while_it_starts(tmp_path: Path) -> None:
    with FakeApiServer() as server, start_scheduler(server, tmp_path, wait_ready=False, env={}) as scheduler:
        wait_for(lambda: _handles(scheduler.pid, signal.SIGTERM), "the handler", every=0.001)
        scheduler.signal(signal.SIGTERM)
        assert scheduler.wait(3) == 128 + signal.SIGTERM
        assert not server.lease()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare of util-linux is missing")
def test_it_ends_at_once_as_the_first_process_of_a_container_while_it_starts(tmp_path: Path) -> None:
    script = "import sys; from karmada_scheduler.__main__ import main; main()"
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        sys.executable,
        "-c",
        script,
        "--kubeconfig=none",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as parent:
        try:
            child = wait_for(lambda: _child_of(parent) or parent.poll() is not None, "the first process")
            if child is True:
                pytest.skip(f"no PID namespace to be had: {parent.communicate()[1].decode()}")
            wait_for(lambda: _handles(child, signal.SIGTERM), "the handler", every=0.001)
            subprocess.run(["kill", "-TERM", str(child)], check=True)
            assert parent.wait(3) == 128 + signal.SIGTERM
        finally:
            parent.kill()


def _child_of(parent: subprocess.Popen[bytes]) -> int:
    try:
        text = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    except OSError:
        return 0
    return int(text[0]) if text else 0


def _handles(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler of its own for a signal; False without procfs."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return bool(caught >> (number - 1) & 1)
