"""FreshFirst: workloads without a place are not behind all those that are decided again (karmada-io/karmada#7485)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import yaml

from tests.e2e.audit_log import order_of_results
from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tools.controlplane import ControlPlane

PLACED, FRESH = 40, 5


def test_fresh_bindings_go_before_those_that_are_decided_again(
    controlplane: ControlPlane,
    namespace: str,
    start_scheduler: StartScheduler,
    tmp_path: Path,
) -> None:
    name = "fresh-first"
    backlog = Backlog(controlplane, namespace, name)
    backlog.create(range(PLACED))
    scheduler = start_scheduler("--max-in-flight=1", f"--config={config(tmp_path, name)}", name=name)
    backlog.wait_placed(PLACED, timeout=60)
    backlog.wait_settled(timeout=60)
    before = len(order_of_results(controlplane, name, namespace))
    os.kill(scheduler.process.pid, signal.SIGSTOP)  # so that it finds all of them at once
    try:
        for number in range(PLACED):  # each has to be decided again, and stays where it is
            tolerations = {"clusterTolerations": [{"key": "edited", "operator": "Exists"}]}
            controlplane.client.patch(f"{backlog.path}/work-{number}", {"spec": {"placement": tolerations}})
        backlog.create(range(PLACED, PLACED + FRESH))
    finally:
        os.kill(scheduler.process.pid, signal.SIGCONT)
    backlog.wait_placed(PLACED + FRESH, timeout=60)
    backlog.wait_settled(timeout=60)
    order = order_of_results(controlplane, name, namespace)[before:]
    places = [place for place, number in enumerate(order) if number >= PLACED]
    assert len(places) == FRESH
    assert max(places) < PLACED / 2


def config(folder: Path, scheduler: str) -> Path:
    """Write a configuration with FreshFirst instead of PrioritySort."""
    path = folder / "config.yaml"
    sort = {"enabled": [{"name": "FreshFirst"}], "disabled": [{"name": "PrioritySort"}]}
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    profile = {"schedulerName": scheduler, "plugins": {"queueSort": sort}}
    path.write_text(yaml.safe_dump({**kind, "profiles": [profile]}))
    return path
