"""The scheduler reads with its own identity which version of bindings the control plane serves, and warns."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.commands import run
from tests.e2e.conftest import StartScheduler
from tools.controlplane import ControlPlane

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DISCOVERY = f"{RBAC}/clusterrolebindings/system:discovery"
METRIC = "karmada_scheduler_control_plane_schema"


def metric(scraped: str) -> list[str]:
    return [line for line in scraped.splitlines() if line.startswith(METRIC)]


def test_log_and_metric_say_which_bindings_are_served(
    controlplane: ControlPlane, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler()
    version = controlplane.version.name.rpartition(".")[0]
    controlplane.wait_for(
        lambda: metric(scheduler.scrape()),
        "the schema",
        until=lambda found: found == [f'{METRIC}{{schema="{version}"}} 1.0'],
    )
    log = scheduler.process.log.read_text()
    assert f"Control plane serves the bindings of Karmada {version}" in log
    assert ("--decisions-of=1.17 decides as it does" in log) is not controlplane.version.is_current
    proposed = run("rebalance", f"--kubeconfig={controlplane.kubeconfig}", "--max-moves=1", "-o=json")
    note = f"the control plane serves the bindings of Karmada {version} (/openapi/v3); "
    is_noted = any(each.startswith(note) for each in proposed.fields["notes"])
    assert is_noted is not controlplane.version.is_current


@pytest.fixture
def _no_schema(controlplane: ControlPlane) -> Iterator[None]:
    """All users may discover APIs, and only administrators may read OpenAPI documents."""
    client = controlplane.client
    subjects = client.get(DISCOVERY)["subjects"]
    name = {"metadata": {"name": "discovery-without-documents"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **name}
    urls = ["/api", "/api/*", "/apis", "/apis/*", "/version"]
    client.create({**role, "rules": [{"nonResourceURLs": urls, "verbs": ["get"]}]})
    reference = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": name["metadata"]["name"],
    }
    client.create({**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects})
    nobody = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "nobody"}]
    client.patch(DISCOVERY, {"subjects": nobody})
    yield
    client.patch(DISCOVERY, {"subjects": subjects})
    for plural in ("clusterrolebindings", "clusterroles"):
        client.delete(f"{RBAC}/{plural}/{name['metadata']['name']}")


@pytest.mark.usefixtures("_no_schema")
def test_where_documents_are_forbidden_it_is_unknown_and_the_scheduler_is_as_ready(
    controlplane: ControlPlane, start_scheduler: StartScheduler
) -> None:
    began = time.monotonic()
    scheduler = start_scheduler()  # waits until it is ready
    assert time.monotonic() - began < 30
    controlplane.wait_for(
        lambda: metric(scheduler.scrape()),
        "the schema",
        until=lambda found: found == [f'{METRIC}{{schema="unknown"}} 1.0'],
    )
    log = scheduler.process.log.read_text()
    assert log.count("The version of bindings that the control plane serves is unknown") == 1
