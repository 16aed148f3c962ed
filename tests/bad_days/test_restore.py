"""A restore of etcd from a backup: resourceVersions are lower than before."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.fake_apiserver import (
    FakeApiServer,
    Gate,
    SchedulerProcess,
    binding,
    cluster,
    policy,
    start_scheduler,
    status,
    wait_for,
)

IN_ZONE_A = {
    "clusterAffinity": {"labelSelector": {"matchLabels": {"zone": "a"}}},
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
}


def _fill(server: FakeApiServer, *bindings: str) -> None:
    server.put(cluster("m1", labels={"zone": "a"}))
    server.put(cluster("m2", labels={"zone": "b"}))
    for name in bindings:
        server.put(binding(name, replicas=2, placement=IN_ZONE_A))


def _scale(server: FakeApiServer, name: str, replicas: int) -> None:
    server.change("ResourceBinding", name, lambda found: found["spec"].update(replicas=replicas))


def _label(server: FakeApiServer, name: str, zone: str) -> None:
    server.change("Cluster", name, lambda found: found["metadata"]["labels"].update(zone=zone))


def _go_on(server: FakeApiServer) -> None:
    """Let the versions grow far beyond the backup's."""
    for number in range(100):
        server.put(policy(f"p{number}"))


def _placed(server: FakeApiServer, scheduler: SchedulerProcess, **targets: dict[str, int]) -> None:
    for name, expected in targets.items():
        wait_for(lambda: server.targets(name) == expected, f"{name} on {expected}", scheduler)  # noqa: B023
        wait_for(lambda: server.condition(name).get("status") == "True", "its condition", scheduler)  # noqa: B023


def test_a_leader_notices_a_restore_at_once_and_goes_on_scheduling(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        _fill(server, "web", "shop")
        with start_scheduler(server, tmp_path) as scheduler:
            _placed(server, scheduler, web={"m1": 2}, shop={"m1": 2})
            backup = server.backup()
            _scale(server, "web", 5)
            _placed(server, scheduler, web={"m1": 5})
            _go_on(server)
            wait_for(
                lambda: scheduler.metric('karmada_scheduler_cached_objects{kind="PropagationPolicy"}') == 100,
                "the policies to be known",
                scheduler,
            )

            before = len(server.requests)
            server.restore(backup)
            # The same generation as that of the change which the backup does not have.
            _scale(server, "web", 7)
            _label(server, "m2", "a")
            wait_for(
                lambda: sum((server.targets("web") or {}).values()) == 7, "web to be scaled again", scheduler
            )
            _scale(server, "shop", 4)
            wait_for(lambda: "m2" in (server.targets("shop") or {}), "the new label to count", scheduler)
            assert "went back to older versions" in scheduler.log
            assert scheduler.answers("/readyz") == 200
            time.sleep(0.5)  # a storm would go on
            requests = server.requests[before:]
            assert len(requests) < 120, [(each.verb, each.path) for each in requests]


def test_a_standby_from_before_the_restore_leads_with_the_restored_objects(tmp_path: Path) -> None:
    def held_by(holder: str) -> dict[str, Any]:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "my-scheduler", "namespace": "karmada-system"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 1},
        }

    with FakeApiServer() as server:
        _fill(server, "web")
        server.put(held_by("another"))
        backup = server.backup()
        _scale(server, "web", 5)
        server.delete("Cluster", "m1")
        _label(server, "m2", "a")
        _go_on(server)
        with start_scheduler(server, tmp_path) as scheduler:
            server.restore(backup)
            _scale(server, "web", 3)
            wait_for(lambda: "went back to older versions" in scheduler.log, "it to notice", scheduler)
            server.put(held_by(""))
            _placed(server, scheduler, web={"m1": 3})


def test_conflicts_are_paced_and_request_a_comparison(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        names = [f"web-{number}" for number in range(3)]
        _fill(server, *names)
        with start_scheduler(server, tmp_path) as scheduler:
            _placed(server, scheduler, **{name: {"m1": 2} for name in names})
            backup = server.backup()
            _go_on(server)
            gate = Gate()
            held = server.fault(method="PATCH", path="resourcebindings", gate=gate)
            for name in names:
                _scale(server, name, 5)
            wait_for(lambda: held.hits == len(names), "the results to be written", scheduler)
            # Neither a list nor a watch can show the restore, only conflicts can.
            server.fault(method="LIST", answer=status(500, "InternalError"))
            server.fault(method="WATCH", answer=status(500, "InternalError"))
            server.restore(backup)
            gate.open()
            wait_for(lambda: server.count("PATCH", "resourcebindings/web") > 9, "some conflicts", scheduler)
            before, began = server.count("GET", "resourcebindings/web"), time.monotonic()
            time.sleep(1.5)  # the time in which requests are counted
            rate = (server.count("GET", "resourcebindings/web") - before) / (time.monotonic() - began)
            assert rate < 60, rate  # it was hundreds
            assert "conflicts again" in scheduler.log
            server.heal()
            for name in names:
                _scale(server, name, 7)
            _placed(server, scheduler, **{name: {"m1": 7} for name in names})


@pytest.mark.parametrize("method", ["PATCH", "GET"])
def test_a_404_without_the_name_of_the_binding_drops_none(tmp_path: Path, method: str) -> None:
    not_served = status(404, "NotFound", "the server could not find the requested resource")
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path) as scheduler:
            names = [f"web-{number}" for number in range(5)]
            fault = server.fault(method="PATCH", path="resourcebindings/web", answer=not_served)
            if method == "GET":
                fault.answer, fault.times = status(409, "Conflict", "the object has been modified"), 5
                fault = server.fault(method="GET", path="resourcebindings/web", answer=not_served)
            for name in names:
                server.put(binding(name, replicas=2))
            wait_for(lambda: fault.hits >= 5, "the requests to fail", scheduler)
            server.heal(fault)
            _placed(server, scheduler, **{name: {"m1": 2} for name in names})
