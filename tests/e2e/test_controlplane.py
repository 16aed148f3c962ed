"""The control plane itself, without a scheduler of ours."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane, ProcessDiedError, wait_for

pytestmark = pytest.mark.in_members

ROOT = Path(__file__).parents[2]


def test_bindings_are_converted_by_the_webhook_as_in_a_real_installation(
    controlplane: ControlPlane, namespace: str
) -> None:
    web = Workload(controlplane, namespace).create(named("sim-a1"))
    old = controlplane.wait_for(
        lambda: controlplane.client.get(web.binding_path.replace("v1alpha2", "v1alpha1")),
        "the binding in the version that is not stored",
    )
    assert old["apiVersion"] == "work.karmada.io/v1alpha1"


def test_a_process_that_dies_is_reported_with_the_end_of_its_log(controlplane: ControlPlane) -> None:
    doomed = controlplane.spawn("doomed", ["sh", "-c", "echo out of cheese; exit 3"])
    try:
        with pytest.raises(ProcessDiedError, match=r"doomed .* ended with status 3(?s:.*)out of cheese"):
            controlplane.wait_for(lambda: False, "an event that never happens", timeout=10)
    finally:
        controlplane.forget(doomed)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`make controlplane` with one member of each kind, in the folder ``up``."""
    command = [sys.executable, "-m", "tools.controlplane", "up", "--real=1", "--simulated=1"]
    command.append(f"--folder={tmp_path / 'up'}")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as up:
        try:
            yield up
        finally:
            up.kill()


def test_a_control_plane_outlives_a_killed_member_and_starts_it_again(
    tmp_path: Path, up: subprocess.Popen[str], controlplane: ControlPlane
) -> None:
    _printed(up, "Ctrl-C ends it all")
    [line] = [line for line in _using(tmp_path / "up") if "--etcd-prefix=/real1" in line]
    os.kill(int(line.split()[0]), signal.SIGKILL)

    *_, ended = _printed(up, "real1 ended with status -9")
    _, _, command = ended.strip().partition("To start it again: ")
    assert command == f"rm {tmp_path / 'up' / 'stopped' / 'real1'}"
    subprocess.run(shlex.split(command), check=True)
    _printed(up, "real1 is started again")
    member = tmp_path / "up" / "kubeconfigs" / "real1.kubeconfig"
    assert controlplane.kubectl("get", "nodes", "-o", "name", kubeconfig=member).split() == [
        "node/real1-node-1",
        "node/real1-node-2",
    ]

    (tmp_path / "up" / "stopped" / "karmada-scheduler-default-scheduler").touch()
    _printed(up, "karmada-scheduler-default-scheduler is stopped")
    [line] = [line for line in _using(tmp_path / "up") if "karmada-webhook" in line and "--health" in line]
    os.kill(int(line.split()[0]), signal.SIGKILL)
    assert up.wait(timeout=30) == 1, "there is no control plane without its webhook"


def test_a_killed_control_plane_leaves_no_process_behind(
    tmp_path: Path, up: subprocess.Popen[str], controlplane: ControlPlane
) -> None:
    lines = _printed(up, "Ctrl-C ends it all")
    kubeconfig = Path(next(line.split()[-1] for line in lines if line.startswith("kubeconfig")))
    answer = controlplane.kubectl("get", "clusters", "-o", "name", kubeconfig=kubeconfig)
    assert answer.split() == ["cluster.cluster.karmada.io/real1", "cluster.cluster.karmada.io/sim-a1"]
    assert len(_using(tmp_path / "up")) == 8, _using(tmp_path / "up")
    up.kill()
    wait_for(lambda: _using(tmp_path / "up"), "its processes to go", until=lambda left: not left, timeout=5)


def _printed(up: subprocess.Popen[str], text: str) -> list[str]:
    """Return the next lines that it prints, up to one with a text."""
    assert up.stdout is not None
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        lines.append(up.stdout.readline())
        assert lines[-1], f"it ended early: {lines}"
    return lines


def _using(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    answer = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    lines = [line for line in answer.stdout.splitlines() if f"{folder}/" in line]
    return [line for line in lines if int(line.split()[0]) != os.getpid()]
