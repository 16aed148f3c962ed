"""Secrets are not logged at any verbosity."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import StartScheduler
from tests.e2e.token_page import token_of
from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane, karmada


def test_a_token_works_and_is_never_logged(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    client = controlplane.client
    metadata = {"name": "tokened", "namespace": "karmada-system"}
    client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    user = "system:serviceaccount:karmada-system:tokened"
    for manifest in karmada.scheduler_roles(user, lease="tokened"):
        client.apply(manifest)
    token = token_of(client, "tokened")
    raw = controlplane.kubectl("config", "view", "--raw", "-o", "json")
    config = json.loads(raw)
    config["users"] = [{"name": entry["name"], "user": {"token": token}} for entry in config["users"]]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    kubeconfig.chmod(0o600)

    scheduler = start_scheduler("--v=10", lease="tokened", kubeconfig=kubeconfig)
    Workload(controlplane, namespace).create(named("sim-a1"), replicas=1).wait_placed({"sim-a1": 1})
    assert token not in scheduler.log
    assert token.split(".")[2] not in scheduler.log
    assert "PRIVATE KEY" not in scheduler.log
