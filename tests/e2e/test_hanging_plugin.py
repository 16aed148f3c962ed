"""A plugin that hangs fails its own bindings and affects no other binding: on the real control plane."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
import yaml

from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import condition
from tools.controlplane import ControlPlane, Object
from tools.controlplane.ours import Scheduler

SLEEPS = """
import time
from karmada_scheduler.framework import SUCCESS

class Sleeps:
    name = "Sleeps"

    def filter(self, context):
        time.sleep(60)
        return SUCCESS
"""
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "my-scheduler",
            "plugins": {"multiPoint": {"enabled": [{"name": "Sleeps"}]}},
        },
        {"schedulerName": "others"},
    ],
}
HANGING = range(1000, 1060)
OTHERS = range(60)
PER_SECOND = 5.0
LONGEST_SECONDS = 30.0


class Placements:
    """Records when each binding gets its first clusters."""

    def __init__(self, backlog: Backlog) -> None:
        self.at: dict[str, float] = {}
        self._backlog = backlog
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        for _, found in self._backlog.plane.client.watch(self._backlog.path, stop=self._stop):
            if found["spec"].get("clusters"):
                self.at.setdefault(found["metadata"]["name"], time.monotonic())

    @contextmanager
    def noted(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(30)


class Health:
    """Requests ``/healthz`` ten times a second, with ten seconds for an answer: a call that hangs is 60 s long."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.failures: list[str] = []
        self.answers = 0
        self._url = scheduler.health + "/healthz"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._request, daemon=True)

    def _request(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while not self._stop.wait(0.1):
                try:
                    answer = session.get(self._url, timeout=10)
                    answer.raise_for_status()
                    self.answers += 1
                except requests.RequestException as failure:
                    self.failures.append(str(failure))

    @contextmanager
    def requested(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join(10)


def _lease(plane: ControlPlane) -> Object:
    leases = plane.client.list("/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases")
    held = [each for each in leases if each["metadata"]["name"].startswith("my-scheduler")]
    newest = max(held, key=lambda lease: str(lease["spec"].get("acquireTime")))
    return {
        "holder": newest["spec"]["holderIdentity"], "transitions": newest["spec"].get("leaseTransitions", 0),
    }  # fmt: skip


def test_sixty_bindings_with_a_sleeping_filter_delay_no_other_binding(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    plugins, config = tmp_path / "plugins", tmp_path / "config.yaml"
    plugins.mkdir()
    (plugins / "sleeps.py").write_text(SLEEPS)
    config.write_text(yaml.safe_dump(CONFIGURATION))
    scheduler = start_scheduler(f"--plugin-dir={plugins}", f"--config={config}")
    hanging = Backlog(controlplane, namespace, "my-scheduler")
    others = Backlog(controlplane, namespace, "others")
    placements, health = Placements(others), Health(scheduler)
    # The first of all makes sure that it leads.
    others.create(range(999, 1000))
    others.wait_placed(1, timeout=40)
    lease = _lease(controlplane)

    created: dict[str, float] = {}
    with placements.noted(), health.requested():
        hanging.create(HANGING)
        began = time.monotonic()
        for number in OTHERS:
            time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            created[f"work-{number}"] = time.monotonic()
            others.create(range(number, number + 1))
        controlplane.wait_for(
            lambda: created.keys() - placements.at.keys(),
            "all others to be placed",
            until=lambda missing: not missing,
            timeout=30,
        )
        calls = hanging.all()

    waited = sorted(placements.at[name] - at for name, at in created.items())
    print(f"placed within {waited[len(waited) // 2]:.2f} s (median), {waited[-1]:.2f} s at most")
    # If they waited for the calls of the sixty, which are stopped after two seconds each, it would be minutes.
    assert waited[-1] < LONGEST_SECONDS, waited
    assert health.failures == []
    assert health.answers > 20
    assert _lease(controlplane) == lease
    assert "leaderelection lost" not in scheduler.log
    assert scheduler.process.exit_status is None
    for number in HANGING:
        found = calls[f"work-{number}"]
        assert not found["spec"].get("clusters")
        message = condition(found)["message"]
        assert re.search(
            r'plugin "Sleeps" took longer than [\d.]+s at Filter for .* and is not called for', message
        )
