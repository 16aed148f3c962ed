"""Metrics of the scheduler under the reviews of the host, which is an API server of its own, with the rights of the chart."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.deploy.chart import objects, one
from tests.e2e.conftest import running
from tests.e2e.token_page import RBAC, SYSTEM, asked, signed_elsewhere, token_of
from tests.e2e.workload import Workload, is_settled, named
from tools.controlplane import Client, ControlPlane, RealMember
from tools.controlplane.members import Member
from tools.controlplane.ours import Scheduler, start_scheduler
from tools.controlplane.pki import Authority
from tools.controlplane.processes import free_port

NAME: Final = "my-measured"
NAMESPACE: Final = "measured"
READER: Final = "prometheus"
STRANGER: Final = "stranger"
ROLE: Final = "karmada-pyscheduler-metrics"


@dataclass(frozen=True)
class Site:
    """A scheduler on one control plane, and the cluster that hosts it."""

    plane: ControlPlane
    host: Member
    scheduler: Scheduler
    url: str
    authority: Authority

    def get(self, token: str = "") -> tuple[int, str]:
        """Return status and body of a scrape."""
        return asked(self.url, token, self.authority)


def _account(client: Client, name: str) -> None:
    metadata = {"name": name, "namespace": SYSTEM}
    client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def _prepare(host: Member, folder: Path) -> Path:
    """Make what the chart makes on the host, and accounts of readers; return the kubeconfig of the scheduler's account."""
    host.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    values = {"schedulerName": NAME, "metrics": {"secure": True, "tls": {"secretName": "metrics"}}}
    found = objects(values, release=NAME)
    for kind in ("ServiceAccount", "ClusterRoleBinding"):
        host.client.apply(one(found, kind))
    for name in (READER, STRANGER):
        _account(host.client, name)
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    metadata = {"name": ROLE}
    host.client.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    )
    host.client.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": READER, "namespace": SYSTEM}],
        }
    )
    kubeconfig = yaml.safe_load(host.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {
        "token": token_of(host.client, one(found, "ServiceAccount")["metadata"]["name"])
    }
    path = folder / "host.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    return path


@pytest.fixture(scope="module")
def site(controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    controlplane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    _account(controlplane.client, READER)
    host = controlplane.start_aside(RealMember("host", nodes=(), reports_ready=False))
    folder = tmp_path_factory.mktemp("secure-metrics")
    authority = Authority(folder / "pki")
    issued = authority.issue("metrics", server=True)
    address = f"127.0.0.1:{free_port()}"
    scheduler = start_scheduler(
        controlplane,
        f"--metrics-bind-address={address}",
        f"--metrics-tls-cert-file={issued.certificate}",
        f"--metrics-tls-key-file={issued.key}",
        f"--metrics-kubeconfig={_prepare(host, folder)}",
        name=NAME,
        started=running.append,
    )
    try:
        yield Site(controlplane, host, scheduler, f"https://{address}/metrics", authority)
    finally:
        scheduler.process.stop()
        del controlplane.members[host.name]
        host.stop_loops()
        host.kill()
        host.close()


def test_metrics_auth_is_by_a_token_of_the_host_of_somebody_who_may_get_them(site: Site) -> None:
    good = token_of(site.host.client, READER)

    assert site.get()[0] == 401
    assert site.get(token_of(site.host.client, READER, "another"))[0] == 401
    for token in (token_of(site.plane.client, READER), signed_elsewhere(good)):
        status, text = site.get(token)
        assert (status, "Is it one of Karmada" in text) == (401, True)
    status, text = site.get(token_of(site.host.client, STRANGER))
    assert (status, "may not get /metrics at the API server of the host" in text) == (403, True)
    status, text = site.get(good)
    assert (status, "karmada_scheduler_schedule_attempts_total" in text) == (200, True)

    with pytest.raises(OSError, match=r"Remote end closed|reset by peer|disconnected"):
        urllib.request.urlopen(site.url.replace("https", "http"), timeout=10)
    assert [site.scheduler.answers(path) for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 404]
    asked = {event.get("objectRef", {}).get("resource") for event in site.plane.requests(NAME)}
    assert "clusters" in asked
    assert not asked & {"tokenreviews", "subjectaccessreviews"}  # no token of the host is sent to Karmada


def test_metrics_auth_without_the_host_lets_nobody_in_and_bindings_are_placed_all_the_same(
    site: Site,
) -> None:
    good, other = (token_of(site.host.client, READER) for _ in range(2))
    site.host.kill()
    try:
        status, text = site.get(good)
        assert (status, "karmada_scheduler" in text) == (503, False)
        workload = Workload(site.plane, NAMESPACE, "measured")
        workload.create(named("sim-a1"), replicas=1, scheduler=NAME)
        workload.wait(is_settled, "settled")
        assert site.scheduler.answers("/readyz") == 200
    finally:
        site.host.restart(site.plane.check)

    site.plane.wait_for(
        lambda: site.get(other)[0], "metrics again", until=lambda found: found == 200, timeout=30
    )
    assert "Nobody can read metrics: no TokenReview: cannot reach" in site.scheduler.log
    assert not [token for token in (good, other) if token in site.scheduler.log]
