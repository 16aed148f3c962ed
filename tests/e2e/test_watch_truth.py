"""Changes during a watch gap leave no stale object in the caches."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import DUPLICATED, WORK, Workload, labelled, placed
from tools.controlplane import ControlPlane
from tools.controlplane.ours import Scheduler

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
ALONE = "--leader-elect=false"


@contextmanager
def frozen(scheduler: Scheduler) -> Iterator[None]:
    """Stop the process, so that its watches receive no events meanwhile."""
    os.kill(scheduler.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(scheduler.process.pid, signal.SIGCONT)


def sample(scheduler: Scheduler, name: str) -> float:
    """Return one sample of its metrics, 0 if there is none."""
    for line in scheduler.scrape().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[-1])
    return 0.0


def test_what_changes_in_a_watch_gap_that_ends_with_410_gone_is_noticed(
    controlplane: ControlPlane, web: Workload, start_scheduler: StartScheduler
) -> None:
    scheduler = start_scheduler(ALONE)
    controlplane.add_simulated_member("ghost", labels={"kind": "ghostly"})
    controlplane.client.patch(f"{CLUSTERS}/sim-a1", {"metadata": {"labels": {"haunted": "yes"}}})
    controlplane.client.patch(f"{CLUSTERS}/ghost", {"metadata": {"labels": {"haunted": "yes"}}})
    placement = {"clusterAffinity": {"labelSelector": {"matchLabels": {"haunted": "yes"}}}}
    gone, old = (
        Workload(controlplane, web.namespace, name).create(labelled("sim"), replicas=1)
        for name in ("gone", "old")
    )
    for each in (gone, old):
        each.wait(placed, "to be placed")

    with frozen(scheduler):
        controlplane.restart_apiserver()  # ends its watches, so it cannot learn of what comes now
        web.create({**placement, "replicaScheduling": DUPLICATED}, replicas=1)
        old.scale(2)
        controlplane.client.delete(gone.deployment_path)
        controlplane.client.delete(f"{CLUSTERS}/ghost")
        controlplane.wait_for(
            lambda: controlplane.client.find(f"{CLUSTERS}/ghost") is None,
            "the cluster to be gone",
            timeout=90,
        )
        controlplane.wait_for(
            lambda: controlplane.client.find(gone.binding_path) is None, "the binding to be gone", timeout=60
        )
        controlplane.wait_for(
            lambda: old.binding()["spec"]["replicas"],
            "the binding to follow",
            until=lambda replicas: replicas == 2,
        )
        controlplane.wait_for(lambda: controlplane.client.find(web.binding_path), "the new binding")
        controlplane.compact_etcd()

    web.wait_placed({"sim-a1": 1}, timeout=60)
    old.wait_settled(replicas=2, timeout=60)
    for kind, path in (("Cluster", CLUSTERS), ("ResourceBinding", f"{WORK}/resourcebindings")):
        name = f'karmada_scheduler_cached_objects{{kind="{kind}"}}'
        controlplane.wait_for(
            lambda name=name, path=path: (  # type: ignore[misc]
                sample(scheduler, name),
                len(controlplane.client.list(path)),
            ),
            f"the cache to hold every {kind} there is and no ghost",
            until=lambda counts: counts[0] == counts[1],
            timeout=60,
        )
    controlplane.client.patch(f"{CLUSTERS}/sim-a1", {"metadata": {"labels": {"haunted": None}}})
