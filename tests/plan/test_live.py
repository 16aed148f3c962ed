"""A plan of a control plane: what is read, and that nothing is written."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada_scheduler.cli import main
from tests.fake_apiserver import FakeApiServer, binding, cluster, policy, status
from tests.fake_apiserver.process import write_kubeconfig


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(policy("p"))
        made = binding("web-deployment", replicas=2, clusters={"m1": 2})
        made["spec"]["resource"]["name"] = "web"
        made["metadata"]["annotations"] = {
            "propagationpolicy.karmada.io/name": "p",
            "propagationpolicy.karmada.io/namespace": made["metadata"]["namespace"],
        }
        server.put(made)
        yield server


def plan(server: FakeApiServer, tmp_path: Path, *flags: str) -> int:
    config = write_kubeconfig(server, tmp_path / "config")
    return main.main(["plan", "--kubeconfig", str(config), *flags])


def test_a_control_plane_is_only_read(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(server, tmp_path, "--without", "m1", "--scale", "default/web=5", "-o", "json") in {0, 1}

    fields = json.loads(capsys.readouterr().out)
    assert (fields["clusters"], fields["total"]) == (2, 1)
    assert fields["provenance"]["source"].startswith("http")
    assert {request.verb for request in server.requests} == {"LIST"}


def test_an_edited_policy_changes_its_bindings_although_templates_cannot_be_listed(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = copy.deepcopy(policy("p"))
    edited["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["m2"]}}
    edited["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
    (tmp_path / "p.yaml").write_text(json.dumps(edited))
    forbidden = status(403, "Forbidden", "deployments are forbidden")
    server.fault(method="LIST", path="deployments", answer=forbidden)

    assert plan(server, tmp_path, "-f", str(tmp_path / "p.yaml"), "-o", "json", "--fail-on", "none") == 0

    captured = capsys.readouterr()
    fields = json.loads(captured.out)
    assert fields["changes"][0]["object"] == "PropagationPolicy/default/p"
    assert [each["after"] for each in fields["bindings"]] == [[{"name": "m2", "replicas": 2}]]
    assert "templates of kind Deployment: deployments are forbidden" in captured.err
    assert {request.verb for request in server.requests} == {"GET", "LIST"}


def test_policies_that_may_not_be_read_are_a_warning(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(method="LIST", path="policies", answer=status(403, "Forbidden", "policies are forbidden"))

    assert plan(server, tmp_path, "--cordon", "m1", "-o", "json") == 0
    assert "propagationpolicies: " in capsys.readouterr().err
