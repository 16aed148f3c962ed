"""Metrics: the same workload gives the same samples in both programs."""

from __future__ import annotations

import re
from collections import defaultdict

import requests

from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler, StartUpstream
from tools.controlplane import ControlPlane
from tools.controlplane.processes import free_port

OURS = re.compile(r"(karmada_|workqueue_|rest_client_|leader_election_)")
SAMPLE = re.compile(r"^([a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? (\S+)$")
COUNT = 10


def families(exposition: str) -> dict[str, set[str]]:
    """Family name to the names of its labels, for the families that are the scheduler's own."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in exposition.splitlines():
        match = SAMPLE.match(line)
        if match and OURS.match(match[1]) and not match[1].endswith("_created"):
            found[match[1]] |= set(re.findall(r'(\w+)="', match[2] or "")) - {"le"}
    return found


def samples(exposition: str, name: str) -> dict[str, float]:
    """The samples of one counter by their sorted labels."""
    found = {}
    for line in exposition.splitlines():
        match = re.match(rf"{name}\{{(.*)\}} (\S+)$", line)
        if match:
            found[",".join(sorted(match[1].split(",")))] = float(match[2])
    return found


def test_both_programs_expose_the_same_families_with_the_same_labels_and_counts(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, start_upstream: StartUpstream
) -> None:
    port = free_port()
    start_upstream(
        "metrics-go",
        f"--metrics-bind-address=127.0.0.1:{port}",
        "--leader-elect-resource-name=metrics-go",
        leader_elect=True,
    )
    ours = start_scheduler(name="metrics-py")
    for scheduler in ("metrics-go", "metrics-py"):
        controlplane.client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-{scheduler}"}}
        )
        backlog = Backlog(controlplane, f"{namespace}-{scheduler}", scheduler)
        backlog.create(range(COUNT))
        backlog.wait_placed(COUNT, timeout=60)
        backlog.wait_settled(timeout=60)

    with requests.Session() as session:
        session.trust_env = False
        go = session.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    python = ours.scrape()
    missing = {name: labels for name, labels in families(go).items() if families(python).get(name) != labels}
    assert missing == {}
    attempts = "karmada_scheduler_schedule_attempts_total"
    assert samples(python, attempts) == samples(go, attempts) != {}
    incoming = "karmada_scheduler_queue_incoming_bindings_total"
    assert (
        samples(python, incoming)['event="BindingAdd"']
        == samples(go, incoming)['event="BindingAdd"']
        == COUNT
    )
    # Upstream's own writes come back to it as updates; ours are known.
    assert samples(go, incoming)['event="BindingUpdate"'] == COUNT
    assert samples(python, incoming).get('event="BindingUpdate"', 0) <= COUNT
    for text in (go, python):
        assert {'"scheduler-queue"', '"ClusterReconcileWorker"'} <= set(re.findall(r'name=("[^"]+")', text))
    for scheduler in ("metrics-go", "metrics-py"):
        controlplane.client.delete(f"/api/v1/namespaces/{namespace}-{scheduler}")
