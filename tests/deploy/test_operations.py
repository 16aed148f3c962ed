"""docs/operations.md: its commands, executed in order, with two kubeconfigs."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from tests.deploy import programs
from tests.deploy.chart import ROOT
from tests.deploy.pods import Kubelet
from tests.deploy.reference import PAGES
from tools.controlplane import ControlPlane, Object, karmada
from tools.controlplane.members import Member
from tools.controlplane.processes import free_port

pytestmark = pytest.mark.e2e

OURS = f"karmada-pyscheduler:{__version__}"
UPSTREAM = "docker.io/karmada/karmada-scheduler:v1.18.2"


def _commands() -> list[tuple[str, str]]:
    """Return the blocks marked sh, each with the heading that it is under."""
    heading, blocks = "", []
    for match in re.finditer(
        r"^(#+ [^\n]*)$|^```sh\n(.*?)^```$", PAGES[0].read_text(), re.MULTILINE | re.DOTALL
    ):
        if match[1]:
            heading = match[1].lstrip("# ")
        else:
            blocks.append((heading, match[2]))
    return blocks


def _karmada_scheduler() -> Object:
    """Return karmada-scheduler's Deployment, as Karmada's installers make it, with one replica."""
    labels = {"app": "karmada-scheduler"}
    arguments = [
        "--kubeconfig=/etc/karmada/config/karmada.config",
        "--metrics-bind-address=$(POD_IP):8080",
        "--health-probe-bind-address=$(POD_IP):10351",
    ]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": "karmada-scheduler",
        "image": UPSTREAM,
        "command": ["/bin/karmada-scheduler", *arguments],
        "env": [address],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 10351}},
        "volumeMounts": [{"name": "karmada-config", "mountPath": "/etc/karmada/config"}],
        # Not the installers', but the namespace admits no other.
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    volume = {"name": "karmada-config", "secret": {"secretName": "karmada-scheduler-config"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "karmada-scheduler", "namespace": "karmada-system", "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "volumes": [volume],
                },
            },
        },
    }


@contextmanager
def _installation(plane: ControlPlane, host: Member, folder: Path) -> Iterator[Kubelet]:
    """Karmada as an installer leaves it: karmada-scheduler and its kubeconfig, in the host cluster."""
    kubeconfig = plane.kubeconfig_for("system:karmada:karmada-scheduler", ["system:masters"])
    host.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "karmada-scheduler-config", "namespace": "karmada-system"},
            "data": {"karmada.config": base64.b64encode(kubeconfig.read_bytes()).decode()},
        }
    )
    deployment = _karmada_scheduler()
    host.client.apply(deployment)
    programs = {
        OURS: [sys.executable, "-m", "karmada_scheduler"],
        UPSTREAM: [str(plane.binaries.path("scheduler"))],
    }
    with (
        _controllers(plane, host),
        Kubelet(plane, host.client, programs, folder / "pods").running() as kubelet,
    ):
        try:
            yield kubelet
        finally:
            host.client.delete(host.client.path_of(deployment))


@contextmanager
def _controllers(plane: ControlPlane, host: Member) -> Iterator[None]:
    """The controllers of the host cluster that make Pods of Deployments and clean up after them."""
    flags = karmada.kube_controller_manager_flags(
        kubeconfig=host.kubeconfig, server=plane._karmada.site.server, port=free_port()
    )
    program = str(plane.binaries.path("kube-controller-manager"))
    process = plane.spawn("host-controllers", [program, *flags, "--controllers=deployment,replicaset"])
    try:
        yield
    finally:
        process.stop()
        plane.forget(process)


class _Shell:
    """One bash in which a page's blocks are executed one after the other, as in a terminal."""

    def __init__(self, plane: ControlPlane, host: Member, folder: Path) -> None:
        home, tools = folder / "home", folder / "bin"
        (home / ".kube").mkdir(parents=True)
        tools.mkdir()
        (home / ".kube" / "config").write_bytes(host.kubeconfig.read_bytes())
        (home / ".kube" / "karmada.config").write_bytes(plane.kubeconfig.read_bytes())
        (tools / "helm").symlink_to(programs.helm())
        (tools / "kubectl").symlink_to(plane.binaries.path("kubectl"))
        checkout = folder / "checkout"
        checkout.mkdir()
        for name in ("charts", "manifests"):
            (checkout / name).symlink_to(ROOT / name)
        self._checkout = checkout
        self._environment = {
            "HOME": str(home),
            "PATH": f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin",
        }

    def execute(self, block: str) -> str:
        exports = "export HOST=~/.kube/config KARMADA=~/.kube/karmada.config\n"
        answer = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", exports + block],
            cwd=self._checkout,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        assert answer.returncode == 0, f"status {answer.returncode} of\n{block}\n{answer.stdout}"
        return answer.stdout


def test_every_command_of_the_operators_page_works(plane: ControlPlane, host: Member, tmp_path: Path) -> None:
    plane.client.delete("/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/my-scheduler")
    shell = _Shell(plane, host, tmp_path / "shell")
    outputs: dict[str, str] = {}
    with _installation(plane, host, tmp_path) as kubelet:
        for heading, block in _commands():
            try:
                outputs[heading] = outputs.get(heading, "") + shell.execute(block)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                logs = [
                    f"{name} ({pod.starts} starts)\n{pod.process.log_tail(15) if pod.process else ''}"
                    for name, pod in kubelet.pods.items()
                ]
                pytest.fail(f"{heading}: {error}\n" + "\n".join(logs))
            if heading == "With its own identity" and "rollout" in block:
                _only_its_own_identity_is_left(kubelet, host)
    assert "web-my-deployment" in outputs["Install next to karmada-scheduler"]
    assert "From" in outputs["Install next to karmada-scheduler"]
    assert "my-scheduler" in outputs["Install next to karmada-scheduler"].partition("Events:")[2]
    assert (
        "certificatesigningrequest.certificates.k8s.io/my-scheduler approved"
        in outputs["With its own identity"]
    )
    assert "Rollback was a success" in outputs["Configure it"]
    assert "karmada-pyscheduler-" in outputs["Replace karmada-scheduler"]
    assert "karmada-scheduler-" in outputs["Roll back"]
    assert "demo/web-my\n" in outputs["Uninstall"]


def _only_its_own_identity_is_left(kubelet: Kubelet, host: Member) -> None:
    """The Pods hold the new kubeconfig, and no key of karmada-scheduler's in it."""
    pods = host.client.list("/api/v1/namespaces/karmada-system/pods")
    ours = [name for pod in pods if (name := pod["metadata"]["name"]).startswith("my-scheduler-")]
    assert len(ours) == 2
    for name in ours:
        config = (kubelet.pods[name].folder / "volumes" / "kubeconfig" / "karmada.config").read_text()
        assert config.count("client-key-data") == 1
        assert "name: my-scheduler" in config
