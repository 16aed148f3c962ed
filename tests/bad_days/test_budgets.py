"""Budgets of PlacementGuard in the real process: writes under way and lost answers count, texts of others do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import DUPLICATED, Object, settled

BINDINGS = 20
LAST_MOVE = "pyscheduler.karmada.io/last-move"


def _config(folder: Path, budget: dict[str, Any]) -> str:
    path = folder / "config.yaml"
    args = {"graceful": {"enabled": True}, "budgets": [{"scope": "profile", **budget}]}
    profile = {
        "schedulerName": "my-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "PlacementGuard"}]}},
        "pluginConfig": [{"name": "PlacementGuard", "args": args}],
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    path.write_text(json.dumps({**kind, "profiles": [profile]}))
    return f"--config={path}"


def _on(name: str, where: str) -> Object:
    """Return a binding that is settled on a cluster, and healthy there."""
    placement = {"clusterAffinity": {"clusterNames": [where]}, "replicaScheduling": DUPLICATED}
    found = settled(name, {where: 1}, placement=placement)
    item = {"clusterName": where, "applied": True, "health": "Healthy", "status": {"readyReplicas": 1}}
    found["status"]["aggregatedStatus"] = [item]
    return found


def _edit_all(server: FakeApiServer, where: str) -> None:
    def edit(found: Object) -> None:
        found["spec"]["placement"]["clusterAffinity"]["clusterNames"] = [where]

    for number in range(BINDINGS):
        server.change("ResourceBinding", f"w{number}", edit)


def _moved(server: FakeApiServer) -> list[int]:
    return [number for number in range(BINDINGS) if server.targets(f"w{number}") == {"m2": 1}]


def _all_are_decided(server: FakeApiServer) -> bool:
    """Return whether each binding has moved or is held."""
    held = [server.condition(f"w{each}").get("reason") == "Unschedulable" for each in range(BINDINGS)]
    return bool(sum(held) + len(_moved(server)) >= BINDINGS)


def _storm(server: FakeApiServer, scheduler: SchedulerProcess) -> None:
    _edit_all(server, "m2")
    wait_for(lambda: _all_are_decided(server), "each binding to move or to be held", scheduler, timeout=30)


@pytest.mark.parametrize("budget", [{"replicas": 2}, {"atOnce": 2}])
def test_no_more_than_the_budget_moves_although_writes_are_slow_and_answers_get_lost(
    tmp_path: Path, budget: dict[str, Any]
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2"))
        for number in range(BINDINGS):
            server.put(_on(f"w{number}", "m1"))
        spec = r"/resourcebindings/w\d+$"
        lost = server.fault(method="PATCH", path=spec, times=1, carried_out=True, drop=True, delay=0.2)
        slow = server.fault(method="PATCH", path=spec, delay=0.5)
        with start_scheduler(server, tmp_path, _config(tmp_path, budget)) as scheduler:
            _storm(server, scheduler)
            assert (lost.hits, slow.hits) >= (1, 1)
            assert len(_moved(server)) == 2


TEXTS = (
    "[" * 100_000,
    '{"moves":[{"at":"2026-01-01T00:00:00Z","replicas":1e999}]}',
    '{"moves":[{"at":"2026-01-01T00:00:00Z","replicas":-1000000}]}',
)


def test_annotations_of_some_bindings_neither_stop_nor_lift_the_budget_of_others(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(cluster("m2"))
        for number in range(BINDINGS):
            server.put(_on(f"w{number}", "m1"))
        for number, text in enumerate(TEXTS):
            odd = _on(f"odd-{number}", "m1")
            odd["metadata"]["annotations"][LAST_MOVE] = text
            server.put(odd)
        with start_scheduler(server, tmp_path, _config(tmp_path, {"replicas": 2})) as scheduler:
            _storm(server, scheduler)
            assert len(_moved(server)) == 2
            unreadable = scheduler.metric('karmada_scheduler_guarded_bindings{state="unreadable"}')
            assert unreadable == scheduler.log.count("cannot be read") == len(TEXTS)
