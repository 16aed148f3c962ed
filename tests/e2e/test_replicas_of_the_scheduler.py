"""Several replicas, restarts and outages: one leads, nothing is lost."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest

from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import Workload, is_settled, named
from tools.controlplane import ControlPlane, wait_for

QUICK = (
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=1s",
)
COUNT = 150
"""Bindings of a backlog: a few seconds of writes."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"


def holder(plane: ControlPlane, lease: str) -> str:
    found = plane.client.find(f"{LEASES}/{lease}")
    return str(found["spec"].get("holderIdentity") or "") if found else ""


def test_a_standby_takes_over_when_the_leader_is_killed(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    leader = start_scheduler(*QUICK, lease="failover")
    controlplane.wait_for(lambda: holder(controlplane, "failover"), "a leader")
    standby = start_scheduler(*QUICK, lease="failover")
    assert 'leader_election_master_status{name=""} 1.0' in leader.scrape()
    assert 'leader_election_master_status{name=""} 0.0' in standby.scrape()
    first = holder(controlplane, "failover")
    web.create(named("sim-a1"), replicas=1).wait_placed({"sim-a1": 1})

    leader.process.kill()
    controlplane.forget(leader.process)
    second = Workload(controlplane, web.namespace, "second").create(named("sim-a2"), replicas=1)
    second.wait_placed({"sim-a2": 1}, timeout=60)
    assert holder(controlplane, "failover") not in ("", first)
    assert web.placed() == {"sim-a1": 1}
    assert 'leader_election_master_status{name=""} 1.0' in standby.scrape()


def test_a_stopped_leader_releases_the_lease_and_exits_cleanly(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    leader = start_scheduler(lease="clean-stop")
    controlplane.wait_for(lambda: holder(controlplane, "clean-stop"), "a leader")
    standby = start_scheduler(lease="clean-stop")
    assert leader.process.stop() == 0
    controlplane.forget(leader.process)
    web.create(named("sim-a1"), replicas=1).wait_placed({"sim-a1": 1}, timeout=30)
    assert 'leader_election_master_status{name=""} 1.0' in standby.scrape()


def test_ours_and_karmada_scheduler_on_one_lease_exclude_each_other(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    theirs = controlplane.start_karmada_scheduler(
        "shared-scheduler", "--leader-elect-resource-name=shared", leader_elect=True
    )
    controlplane.wait_for(lambda: holder(controlplane, "shared"), "karmada-scheduler to lead")
    go_holder = holder(controlplane, "shared")
    ours = start_scheduler(name="shared-scheduler", lease="shared")
    web.create(named("sim-a1"), replicas=1, scheduler="shared-scheduler").wait_placed({"sim-a1": 1})
    assert holder(controlplane, "shared") == go_holder
    assert 'leader_election_master_status{name=""} 0.0' in ours.scrape()

    theirs.kill()
    controlplane.forget(theirs)
    second = Workload(controlplane, web.namespace, "second")
    second.create(named("sim-a2"), replicas=1, scheduler="shared-scheduler")
    second.wait_placed({"sim-a2": 1}, timeout=40)
    assert holder(controlplane, "shared") not in ("", go_holder)


def test_an_api_server_that_is_away_costs_no_binding_and_who_starts_meanwhile_waits_for_it(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    # A busy machine may need longer for the restart than the lease is renewed for by default.
    running = start_scheduler("--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
    web.create(named("sim-a1"), replicas=1).wait_placed({"sim-a1": 1})
    kubeconfig = controlplane.kubeconfig_for_scheduler("early-scheduler", lease="early")
    controlplane.kill_apiserver()
    try:
        early = start_scheduler(
            name="early-scheduler", lease="early", kubeconfig=kubeconfig, wait_ready=False
        )
        controlplane.wait_for(
            lambda: early.log, "the complaint", until=lambda text: "Waiting for the API server" in text
        )
        assert early.answers("/healthz") == 200
        assert early.answers("/readyz") == 503
    finally:
        controlplane.restart_apiserver()
    for number, name in enumerate(("my-scheduler", "early-scheduler")):
        later = Workload(controlplane, web.namespace, f"later-{number}")
        create = partial(later.create, named("sim-b1"), replicas=1, scheduler=name)
        controlplane.wait_for(create, "objects to be accepted again")
        later.wait_placed({"sim-b1": 1}, timeout=40)
    controlplane.wait_for(
        lambda: running.answers("/readyz"), "the scheduler to be ready", until=lambda code: code == 200
    )


@pytest.mark.parametrize("limits", [(), ("--kube-api-qps=40", "--kube-api-burst=1")], ids=["fast", "slow"])
def test_a_leader_stopped_during_its_writes_leaves_no_binding_half_written(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, limits: tuple[str, ...]
) -> None:
    """The slow one is sure to have writes under way; the fast one leaves more Events for the end."""
    name = f"stopped-{len(limits)}"
    backlog = Backlog(controlplane, namespace, name)
    backlog.create(range(COUNT))
    scheduler = start_scheduler(*limits, name=name, lease=name, wait_ready=False)
    wait_for(
        backlog.results, "a few placements", until=lambda results: len(results) >= 5, check=controlplane.check
    )
    controlplane.forget(scheduler.process)
    os.kill(scheduler.process.pid, signal.SIGTERM)
    status = wait_for(
        lambda: scheduler.process.exit_status,
        "it to end",
        until=lambda found: found is not None,
        timeout=30,
    )
    assert status == 0
    assert holder(controlplane, name) == ""
    bindings = backlog.all()
    placed = {name for name, found in bindings.items() if found["spec"].get("clusters")}
    assert not limits or len(placed) < COUNT
    assert {name for name, found in bindings.items() if is_settled(found)} == placed
    assert all(not found.get("status") for name, found in bindings.items() if name not in placed)
    reported = [
        (event["involvedObject"].get("kind"), event["involvedObject"].get("name"))
        for event in controlplane.client.list(f"/api/v1/namespaces/{namespace}/events")
        if event["reason"] == "ScheduleBindingSucceed"
    ]
    expected = [(kind, name) for kind in ("Deployment", "ResourceBinding") for name in placed]
    assert sorted(reported) == sorted(expected)


def test_bindings_with_the_names_of_no_cluster_delay_no_start(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    """The API server stores any text as the name of a target cluster."""
    for number, (target, scheduler_name) in enumerate(
        [("a/b", "my-scheduler"), ("sim-a1/status", "nobody"), ("a?b", "nobody"), ("gone", "my-scheduler")]
    ):
        controlplane.client.create(
            {
                "apiVersion": "work.karmada.io/v1alpha2",
                "kind": "ResourceBinding",
                "metadata": {"name": f"odd-{number}", "namespace": web.namespace},
                "spec": {
                    "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"odd-{number}"},
                    "schedulerName": scheduler_name,
                    "clusters": [{"name": target, "replicas": 1}],
                },
            }
        )
    web.create(named("sim-a1"), replicas=1)
    scheduler = start_scheduler()
    web.wait_placed({"sim-a1": 1})
    assert scheduler.answers("/readyz") == 200
