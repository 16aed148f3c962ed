"""``kubectl pyscheduler`` with the real kubectl: it runs the commands, and completes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with the entry points, as pip installs them."""
    for name in ("kubectl-pyscheduler", "kubectl_complete-pyscheduler"):
        (tmp_path / name).symlink_to(Path(sys.executable).with_name(name))
    return f"{tmp_path}:{os.environ['PATH']}"


def kubectl(plane: ControlPlane, path: str, *words: str) -> str:
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(plane.kubeconfig)}
    ran = subprocess.run(
        [str(plane.binaries.path("kubectl")), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ran.stdout


def test_kubectl_runs_and_completes_the_commands(
    controlplane: ControlPlane, web: Workload, path: str
) -> None:
    web.create(named("sim-a1"))
    web.plane.wait_for(lambda: web.plane.client.find(web.binding_path), "the binding")

    assert kubectl(controlplane, path, "pyscheduler", "explain", "--help").startswith(
        "usage: kubectl pyscheduler explain"
    )
    completed = kubectl(
        controlplane, path, "__complete", "pyscheduler", "explain", "-n", web.namespace, "de"
    ).splitlines()
    assert (completed[0], completed[-1]) == (f"deployment/{web.name}", ":4")
    flags = kubectl(controlplane, path, "__complete", "pyscheduler", "explain", "--co").splitlines()
    assert [each.partition("\t")[0] for each in flags] == ["--color", "--config", "--context", ":4"]
    one = kubectl(
        controlplane,
        path,
        "pyscheduler",
        "explain",
        f"{web.namespace}/{web.name}-deployment",
        "-q",
    )
    assert one.startswith(f"{web.namespace}/{web.name}-deployment")
