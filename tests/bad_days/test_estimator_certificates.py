"""Certificates of estimators and of the scheduler are replaced while it runs: no restart, and no estimate from a stranger."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, binding, cluster, start_scheduler, wait_for
from tests.unit.estimator.fault_server import FaultServer, in_thread, serving
from tools.controlplane import karmada
from tools.controlplane.pki import Authority, Credentials


@contextlib.asynccontextmanager
async def _answering(
    port: int, server: Credentials, clients_of: Path, answer: int
) -> AsyncIterator[FaultServer]:
    async with serving(port=port, tls=server, clients_of=clients_of) as found:
        found.answer = answer
        yield found


@contextlib.contextmanager
def estimator(port: int, server: Credentials, clients_of: Path, answer: int) -> Iterator[int]:
    """Serve an estimator that demands client certificates; yield its port."""
    with in_thread(_answering(port, server, clients_of, answer)) as (found, _):
        yield found.port


class Files:
    """The files of the scheduler: the estimators' authority, and its own certificate and key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.authority, self.certificate, self.key = (
            folder / name for name in ("ca.crt", "tls.crt", "tls.key")
        )

    def use(self, authority: Authority) -> Credentials:
        """Replace all of them by those of an authority; return a certificate for an estimator."""
        own = authority.issue("scheduler")
        shutil.copy(authority.certificate, self.authority)
        shutil.copy(own.certificate, self.certificate)
        shutil.copy(own.key, self.key)
        return authority.issue("estimator", server=True)

    @property
    def flags(self) -> list[str]:
        return [
            f"--scheduler-estimator-ca-file={self.authority}",
            f"--scheduler-estimator-cert-file={self.certificate}",
            f"--scheduler-estimator-key-file={self.key}",
        ]


def connected(scheduler: SchedulerProcess) -> int:
    return scheduler.log.count("Connected to the estimator of a cluster")


def decide(server: FakeApiServer, scheduler: SchedulerProcess, name: str) -> dict[str, int]:
    """Return what a new binding with 200 replicas for m1 gets, or {} if m1 has no capacity for them."""
    server.put(binding(name, replicas=200, requests={"cpu": "1m"}))
    wait_for(lambda: server.condition(name), f"{name} to be decided", scheduler, timeout=30)
    return server.targets(name) or {}


@pytest.mark.parametrize("verifies", [True, False], ids=["verified", "not-verified"])
def test_certificates_are_rotated_on_both_sides(tmp_path: Path, *, verifies: bool) -> None:
    files = Files(tmp_path / "files")
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    flags = [] if verifies else ["--insecure-skip-estimator-verify=true"]
    with FakeApiServer() as server, contextlib.ExitStack() as stack:
        server.put(cluster("m1"))
        credentials = files.use(first)
        with estimator(0, credentials, first.certificate, answer=500) as port:
            ports = [{"port": karmada.ESTIMATOR_PORT, "targetPort": port}]
            server.put(karmada.external_service("karmada-scheduler-estimator-m1", ports))
            scheduler = stack.enter_context(
                start_scheduler(server, tmp_path, "--enable-scheduler-estimator=true", *files.flags, *flags)
            )
            wait_for(lambda: connected(scheduler) == 1, "the connection", scheduler, timeout=30)
            assert decide(server, scheduler, "before") == {"m1": 200}
            files.certificate.write_bytes(files.certificate.read_bytes()[:100])  # half of it is written
        wait_for(lambda: "Lost the connection" in scheduler.log, "the loss", scheduler, timeout=30)
        with estimator(port, second.issue("estimator", server=True), second.certificate, answer=50):
            if verifies:
                wait_for(
                    lambda: "Failed to establish a connection" in scheduler.log,
                    "a refusal",
                    scheduler,
                    timeout=60,
                )
            assert connected(scheduler) == 1
            files.use(second)
            wait_for(
                lambda: connected(scheduler) == 2,
                "the connection with new certificates",
                scheduler,
                timeout=90,
            )
            assert decide(server, scheduler, "after") == {}  # m1 has capacity for 50 only
        assert scheduler.exit_status is None
