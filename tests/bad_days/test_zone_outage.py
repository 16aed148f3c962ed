"""A zone goes away: every cluster in it changes at once, again and again, and most bindings are concerned.

``BAD_DAYS_BINDINGS=50000 pytest -s tests/bad_days/test_zone_outage.py`` runs it at the size of a large fleet and prints
what it saw.
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path
from typing import Any

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, binding, cluster, start_scheduler, wait_for
from tests.fake_apiserver.objects import DUPLICATED, settled

BINDINGS = int(os.environ.get("BAD_DAYS_BINDINGS", "3000"))
IS_BY_HAND = "BAD_DAYS_BINDINGS" in os.environ
CLUSTERS = 8
LEAST_FLAPS = 3
MOST_SECONDS = 2.0 if IS_BY_HAND else 30.0  # a busy machine is slow; the counts below are what must hold
PLACEMENT = {"replicaScheduling": DUPLICATED}
ON_ALL = {"elsewhere": 1} | {f"m{number}": 1 for number in range(CLUSTERS)}


def _taint(server: FakeApiServer, *, down: bool) -> None:
    taints = [{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}] if down else []

    def change(found: dict[str, Any]) -> None:
        found["spec"]["taints"] = taints

    for number in range(CLUSTERS):
        server.change("Cluster", f"m{number}", change)


def _fill(server: FakeApiServer) -> None:
    for number in range(CLUSTERS):
        server.put(cluster(f"m{number}"))
    server.put(cluster("elsewhere"))
    made = settled("@", ON_ALL, replicas=1, placement=PLACEMENT)
    for number in range(BINDINGS):
        made["metadata"]["name"] = made["spec"]["resource"]["name"] = f"b{number}"
        server.put(made)


def _renewals(server: FakeApiServer) -> list[float]:
    return [each.time for each in server.requests if each.verb == "PUT" and "/leases/" in each.path]


def _answer_seconds(scheduler: SchedulerProcess) -> float:
    began = time.monotonic()
    assert scheduler.answers("/healthz") == 200
    return time.monotonic() - began


def test_a_zone_that_flaps_delays_neither_the_lease_nor_a_fresh_binding(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        _fill(server)
        with start_scheduler(server, tmp_path, wait_ready=False) as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the Lease", scheduler, timeout=120)
            server.put(binding("settled", placement=PLACEMENT))
            wait_for(lambda: server.targets("settled"), "the start to be over", scheduler, timeout=120)
            began = time.monotonic()
            placing: list[float] = []
            answers: list[float] = []
            requeued = 'karmada_scheduler_queue_incoming_bindings_total{event="ClusterChanged"}'
            while len(placing) < LEAST_FLAPS or scheduler.metric(requeued) < BINDINGS:
                _taint(server, down=len(placing) % 2 == 0)
                name, put = f"fresh{len(placing)}", time.monotonic()
                server.put(binding(name, placement=PLACEMENT))
                while server.targets(name) is None:
                    answers.append(_answer_seconds(scheduler))
                    assert time.monotonic() - put < 60, scheduler.log[-3000:]
                placing.append(time.monotonic() - put)
            wait_for(_is_idle(scheduler), "the queue to be empty", scheduler, timeout=300, every=0.2)
            ended = time.monotonic()
            renewals = [began, *(each for each in _renewals(server) if each > began), ended]
            gap = max(after - before for before, after in itertools.pairwise(renewals))
            lines = scheduler.log.count("Requeue ")
            print(
                f"{BINDINGS} bindings, {len(placing)} flaps of {CLUSTERS} clusters: a fresh binding placed after "
                f"{max(placing):.2f} s at most; /healthz at most {max(answers):.2f} s; "
                f"{ended - began:.1f} s until all was quiet, {scheduler.metric(requeued):.0f} requeued; "
                f"longest pause between renewals {gap:.1f} s; {lines} lines about requeued bindings"
            )
            assert max(placing) < MOST_SECONDS
            assert max(answers) < MOST_SECONDS
            assert gap < (5 if IS_BY_HAND else 15)
            assert lines == 0
            assert server.targets("b0") == ON_ALL
            assert scheduler.exit_status is None


def _is_idle(scheduler: SchedulerProcess) -> Any:
    labels = '{controller="%s",name="%s"%s}'
    names = ("scheduler-queue", "ClusterReconcileWorker")

    def look() -> bool:
        text = scheduler.scrape()
        samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return all(
            float(samples["workqueue_depth" + labels % (name, name, ',priority=""')]) == 0
            and float(samples["workqueue_unfinished_work_seconds" + labels % (name, name, "")]) == 0
            for name in names
        )

    return look
