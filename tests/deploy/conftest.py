"""A Karmada control plane with an audit log of schedulers' requests, and a cluster that hosts it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import fork_server
from tests.deploy import programs
from tests.e2e.namespaces import new_namespace
from tools.controlplane import ControlPlane, RealMember, SimulatedMember, binaries
from tools.controlplane.fleet import simulated_members
from tools.controlplane.members import Member
from tools.controlplane.ours import Scheduler
from tools.controlplane.ours import start_scheduler as start

USERS = [
    "system:karmada:my-scheduler",
    "system:karmada:with-estimators",
    "system:karmada:sans-estimators",
    "system:karmada:with-workloads",
    "system:karmada:sans-workloads",
    *(f"system:karmada:without-{number}" for number in range(1, 20)),
]
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": USERS}, {"level": "None"}],
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"}
_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with simulated members, one of them labelled as real, and no scheduler.

    It signs certificates on request, as Karmada's does.
    """
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        binaries.ensure(quiet=True)
    folder = tmp_path_factory.mktemp("deploy")
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(AUDIT_POLICY))
    pki = folder / "run" / "pki"
    flags = {
        "kube-apiserver": [f"--audit-policy-file={policy}"],
        # As Karmada's installers start it, besides what the harness needs.
        "kube-controller-manager": [
            "--controllers=namespace,garbagecollector,clusterrole-aggregation,csrapproving,csrcleaner,csrsigning",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
        ],
    }
    with ControlPlane(folder / "run", audit_log=True, extra_flags=flags, start=fork_server.start) as plane:
        plane.add(*simulated_members(4), SimulatedMember("not-sim", region="rc", labels={"kind": "real"}))
        yield plane


@pytest.fixture(scope="package")
def host(plane: ControlPlane) -> Iterator[Member]:
    """The API server of the cluster that Karmada runs in; nothing is joined, and nothing runs Pods."""
    member = Member(RealMember("host", reports_ready=False), plane._karmada.site)
    member.start(plane.check)
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    member.client.apply({**NAMESPACE, "metadata": {"name": "karmada-system", "labels": labels}})
    member.client.apply({**NAMESPACE, "metadata": {"name": "monitoring"}})  # of the dashboard
    for path in sorted(programs.monitoring_crds().glob("*_servicemonitors.yaml")) + sorted(
        programs.monitoring_crds().glob("*_prometheusrules.yaml")
    ):
        plane.kubectl("create", "-f", str(path), kubeconfig=member.kubeconfig)
    yield member
    member.stop_loops()
    member.kill()
    member.close()


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own in Karmada's API server."""
    with new_namespace(plane.client, f"deploy-{next(_numbers)}") as name:
        yield name


@pytest.fixture
def start_scheduler(plane: ControlPlane) -> Iterator[Callable[..., Scheduler]]:
    """Start schedulers of ours, which end with the test; see tools/controlplane/ours.py."""
    running: list[Scheduler] = []

    def start_one(name: str, kubeconfig: Path, *flags: str, wait_ready: bool = True) -> Scheduler:
        return start(
            plane,
            *flags,
            name=name,
            kubeconfig=kubeconfig,
            process_name=f"{name}-{next(_numbers)}",
            wait_ready=wait_ready,
            started=running.append,
        )

    yield start_one
    for scheduler in running:
        scheduler.process.stop()
        plane.forget(scheduler.process)
