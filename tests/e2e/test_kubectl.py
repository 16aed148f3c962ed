"""``kubectl pyscheduler`` with the real kubectl: it runs the commands, and completes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.workload import Workload, condition, named
from tools.controlplane import ControlPlane
from tools.controlplane.karmada import CLUSTERS


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


@pytest.fixture
def tainted(controlplane: ControlPlane) -> Iterator[str]:
    """A cluster that takes nothing new until its taint is removed."""
    path = f"{CLUSTERS}/sim-b2"
    controlplane.client.patch(path, {"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}})
    yield path
    controlplane.client.patch(path, {"spec": {"taints": None}})


def watching(plane: ControlPlane, path: str, web: Workload) -> subprocess.Popen[str]:
    """Start ``explain --watch``, and return it once it has shown the present state."""
    command = ["explain", f"{web.namespace}/{web.name}-deployment", "--watch=120s", "--no-remedies"]
    process = subprocess.Popen(
        [str(plane.binaries.path("kubectl")), "pyscheduler", *command],
        env={**os.environ, "PATH": path, "KUBECONFIG": str(plane.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "NOT PLACED" in process.stderr.readline()
    return process


def test_a_watched_binding_is_explained_when_it_is_placed_and_a_watch_ends_at_once_at_sigint(
    controlplane: ControlPlane, web: Workload, path: str, tainted: str
) -> None:
    web.create(named("sim-b2"), scheduler=None)
    web.wait(lambda found: condition(found).get("reason") == "NoClusterFit", "refused")
    interrupted, process = (watching(controlplane, path, web) for _ in range(2))
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)
    assert interrupted.returncode == 128 + signal.SIGINT

    controlplane.client.patch(tainted, {"spec": {"taints": None}})
    out, changes = process.communicate(timeout=120)
    assert process.returncode == 0, (out, changes)
    assert "PLACED   sim-b2 4" in changes
    assert "PLACED   sim-b2 4" in out
