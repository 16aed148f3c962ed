"""A binding returns to its first affinity term, in the real process: after a restart, a lost status, and with a slow API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.fake_apiserver import FakeApiServer, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import DUPLICATED, DYNAMIC, Object, settled
from tools.controlplane.processes import free_port

WAIT = 2
TAINT = [{"key": "down", "effect": "NoSchedule"}]
ARGS = {"stabilizationSeconds": WAIT, "checkSeconds": 1}


def _config(folder: Path, **args: Any) -> str:
    path = folder / "config.yaml"
    profile = {
        "schedulerName": "my-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "FailBack"}]}},
        "pluginConfig": [{"name": "FailBack", "args": {**ARGS, **args}}],
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    path.write_text(json.dumps({**kind, "profiles": [profile]}))
    return f"--config={path}"


def _on_backup(name: str = "web", **strategy: Any) -> Object:
    """Return a binding that is settled on m2, in its second term."""
    placement = {
        "clusterAffinities": [
            {"affinityName": "primary", "clusterNames": ["m1"]},
            {"affinityName": "backup", "clusterNames": ["m2"]},
        ],
        "replicaScheduling": strategy or DUPLICATED,
    }
    found = settled(name, {"m2": 1}, placement=placement)
    found["status"]["schedulerObservingAffinityName"] = "backup"
    return found


def _state(server: FakeApiServer) -> tuple[Any, str]:
    found = server.get("ResourceBinding", "web") or {}
    return server.targets("web"), found["status"]["schedulerObservingAffinityName"]


def _decision(address: str) -> Any:
    """Return what the scheduler says about the binding; it has not been written since the start."""
    try:
        with urllib.request.urlopen(f"http://{address}/v1/decisions/default/web", timeout=5) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


def _release(lease: Object) -> None:
    lease["spec"]["holderIdentity"] = ""


def test_a_binding_returns_after_its_wait_and_not_before(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1", taints=TAINT))
        server.put(cluster("m2"))
        server.put(_on_backup())
        records = f"127.0.0.1:{free_port()}"
        flags = [_config(tmp_path), f"--explain-bind-address={records}"]
        with start_scheduler(server, tmp_path, *flags) as scheduler:
            wait_for(
                lambda: scheduler.metric(
                    'karmada_scheduler_failback_total{plugin="FailBack",result="missed"}'
                ),
                "a check",
                scheduler,
            )
            began = time.monotonic()
            server.change("Cluster", "m1", lambda found: found["spec"].update(taints=[]))
            wait_for(
                lambda: scheduler.metric("karmada_scheduler_failback_waiting") == 1, "the wait", scheduler
            )
            proposal = _decision(records)["queue"]["proposal"]
            assert proposal["plugin"] == "FailBack"
            assert proposal["reason"] == (
                "the earlier term primary could take it; returns after 2s without a miss"
            )
            assert 0 <= proposal["dueInSeconds"] <= WAIT
            wait_for(lambda: _state(server) == ({"m1": 1}, "primary"), "the return", scheduler)
            assert time.monotonic() - began >= WAIT
            assert (
                scheduler.metric('karmada_scheduler_failback_total{plugin="FailBack",result="accepted"}') == 1
            )
            assert server.count("PATCH", "/resourcebindings/web") == 2


@pytest.mark.parametrize("strategy", [DUPLICATED, DYNAMIC])
def test_a_process_that_ends_between_the_two_patches_of_a_return_has_a_successor_that_completes_it(
    tmp_path: Path, strategy: Object
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2"))
        server.put(_on_backup(**strategy))
        lost = server.fault(method="PATCH", path="/web/status", drop=True)
        with start_scheduler(server, tmp_path, _config(tmp_path)) as scheduler:
            wait_for(lambda: lost.hits and server.targets("web") == {"m1": 1}, "the first patch", scheduler)
            scheduler.kill()
        assert _state(server) == ({"m1": 1}, "backup")
        server.heal()
        server.change("Lease", "my-scheduler", _release, "karmada-system")
        written = server.count("PATCH", "/resourcebindings/web")
        with start_scheduler(server, tmp_path, _config(tmp_path)) as scheduler:
            wait_for(lambda: _state(server) == ({"m1": 1}, "primary"), "the term", scheduler)
            assert server.count("PATCH", "/resourcebindings/web") == written + 1
