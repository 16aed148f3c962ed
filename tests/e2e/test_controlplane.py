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

from tools.controlplane import ControlPlane, Object, ProcessDiedError, wait_for

pytestmark = pytest.mark.in_members

ROOT = Path(__file__).parents[2]


def deployment(namespace: str, name: str = "web", *, replicas: int = 3) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
            },
        },
    }


def policy(namespace: str, name: str = "web", *clusters: str) -> Object:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
            "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
        },
    }


def test_a_policy_puts_a_deployment_into_the_real_member_it_names(
    controlplane: ControlPlane, namespace: str
) -> None:
    controlplane.client.create(policy(namespace, "web", "real2"))
    controlplane.client.create(deployment(namespace, replicas=3))

    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    member = controlplane.members["real2"].client
    controlplane.wait_for(
        lambda: member.get(path).get("status", {}).get("readyReplicas"),
        "the Deployment to be ready in real2",
        until=lambda ready: ready == 3,
    )
    controlplane.wait_for(
        lambda: controlplane.client.get(path).get("status", {}).get("readyReplicas"),
        "Karmada to report the Deployment as ready",
        until=lambda ready: ready == 3,
    )
    assert controlplane.members["real1"].client.find(path) is None


def test_a_simulated_member_reports_works_as_applied_and_removes_their_finalizers(
    controlplane: ControlPlane, namespace: str
) -> None:
    controlplane.client.create(policy(namespace, "web", "sim-c1"))
    controlplane.client.create(deployment(namespace, replicas=2))

    binding = f"/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings/web-deployment"
    status = controlplane.wait_for(
        lambda: controlplane.client.get(binding).get("status", {}).get("aggregatedStatus"),
        "the binding to have a status from sim-c1",
        until=lambda items: items and items[0].get("health") == "Healthy",
    )
    assert [(item["clusterName"], item["applied"]) for item in status] == [("sim-c1", True)]

    controlplane.client.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    controlplane.wait_for(
        lambda: controlplane.client.list("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-sim-c1/works"),
        "the Work to go",
        until=lambda works: not any(work["metadata"]["name"].startswith("web-") for work in works),
    )


def test_bindings_are_converted_by_the_webhook_as_in_a_real_installation(
    controlplane: ControlPlane, namespace: str
) -> None:
    controlplane.client.create(policy(namespace, "web", "sim-a1"))
    controlplane.client.create(deployment(namespace))

    name = f"namespaces/{namespace}/resourcebindings/web-deployment"
    old = controlplane.wait_for(
        lambda: controlplane.client.get(f"/apis/work.karmada.io/v1alpha1/{name}"),
        "the binding in the version that is not stored",
    )
    assert old["apiVersion"] == "work.karmada.io/v1alpha1"


def test_the_control_plane_goes_on_after_its_api_server_was_killed(
    controlplane: ControlPlane, namespace: str
) -> None:
    controlplane.restart_apiserver()

    controlplane.wait_for(
        lambda: controlplane.client.create(policy(namespace, "web", "sim-b1")),
        "policies to be accepted again",
    )
    controlplane.client.create(deployment(namespace))
    binding = f"/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings/web-deployment"
    controlplane.wait_for(
        lambda: controlplane.client.get(binding)["spec"].get("clusters"),
        "karmada-scheduler to place it",
        timeout=60,
    )


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
