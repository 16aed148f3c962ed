"""StrictPriority on a real control plane: who waits with the best priority gets the capacity that becomes free (karmada-io/karmada#7802)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import manifests
from tests.e2e.audit_log import names_of_results
from tests.e2e.conftest import StartScheduler, enabling
from tests.e2e.workload import DYNAMIC, WORK, condition, named, placed
from tools.controlplane import ControlPlane, Object

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
CPU = 8
GATE = "--feature-gates=PriorityBasedScheduling=true"


class Jobs:
    """Bindings of jobs in a namespace, and two clusters of which a test says how much cpu is free."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace
        self.before = {
            name: plane.client.get(f"{CLUSTERS}/{name}")["status"]["resourceSummary"]
            for name in ("sim-c1", "sim-c2")
        }

    def create(self, name: str, *clusters: str, replicas: int, priority: int = 0, one: bool = False) -> None:
        """Create the binding of a job of so many cpu; with ``one`` all of it needs one cluster."""
        spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}] if one else []
        self.plane.client.create(
            manifests.untemplated(
                self.namespace,
                name,
                uid=f"uid-{name}",
                policy_id="jobs",
                replicas=replicas,
                replicaRequirements={"resourceRequest": {"cpu": "1"}},
                schedulePriority={"priority": priority},
                schedulerName="my-scheduler",
                placement=named(*clusters, replicaScheduling=DYNAMIC, spreadConstraints=spread),
            )
        )

    def report(self, **free: int) -> None:
        """Let clusters report so much free cpu, as their agents do when Pods have ended."""
        for name, cpu in free.items():
            allocatable = {"cpu": str(CPU), "memory": "32Gi", "pods": "110"}
            summary = {"allocatable": allocatable, "allocated": {"cpu": str(CPU - cpu)}}
            path = f"{CLUSTERS}/{name.replace('_', '-')}/status"
            self.plane.client.patch(path, {"status": {"resourceSummary": summary}})

    def restore(self) -> None:
        for name, summary in self.before.items():
            self.plane.client.patch(f"{CLUSTERS}/{name}/status", {"status": {"resourceSummary": summary}})

    def get(self, name: str) -> Object:
        return self.plane.client.get(f"{WORK}/namespaces/{self.namespace}/resourcebindings/{name}")

    def wait_placed(self, name: str, on: dict[str, int]) -> None:
        self.plane.wait_for(
            lambda: placed(self.get(name)), f"{name} on {on}", until=lambda found: found == on
        )

    def create_until_placed(self, name: str, cluster: str, *, replicas: int) -> None:
        """Create equal jobs until one is placed: then the scheduler has seen what the cluster reported."""
        for number in range(20):
            job = f"{name}-{number}"
            self.create(job, cluster, replicas=replicas)
            self.plane.wait_for(partial(self._scheduled, job), f"a decision about {job}")
            if placed(self.get(job)):
                return
        raise AssertionError(f"none of 20 jobs of {replicas} replicas was placed on {cluster}")

    def _scheduled(self, name: str) -> Object:
        return condition(self.get(name))

    def wait_refused(self, name: str, text: str) -> None:
        self.plane.wait_for(
            lambda: condition(self.get(name)).get("message", ""),
            f"{name}: {text}",
            until=lambda found: text in found,
        )


@pytest.fixture
def jobs(controlplane: ControlPlane, namespace: str) -> Iterator[Jobs]:
    made = Jobs(controlplane, namespace)
    yield made
    made.restore()


def test_the_best_priority_that_waits_is_placed_first_and_the_others_after_it(
    controlplane: ControlPlane, jobs: Jobs, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    jobs.report(sim_c1=0)  # before the start: a watch of Clusters may be later than one of bindings
    start_scheduler(GATE, enabling(tmp_path, StrictPriority={}))
    jobs.create("young", "sim-c1", replicas=2)
    jobs.wait_refused("young", "Waits for capacity: 1st of 1 by priority; no capacity is held for it")
    jobs.create("important", "sim-c1", replicas=4, priority=1000)
    jobs.wait_refused("important", "Waits for capacity: 1st of 2 by priority")
    jobs.report(sim_c1=3)
    jobs.create("new", "sim-c1", replicas=2)
    jobs.wait_refused("new", f"first is {jobs.namespace}/important")
    began = time.monotonic()
    jobs.report(sim_c1=5)
    jobs.wait_placed("important", {"sim-c1": 4})
    assert time.monotonic() - began < 5
    assert [placed(jobs.get(name)) for name in ("young", "new")] == [{}, {}]
    jobs.report(sim_c1=8)
    for name in ("young", "new"):
        jobs.wait_placed(name, {"sim-c1": 2})
    assert names_of_results(controlplane, "my-scheduler", jobs.namespace)[0] == "important"


def test_without_the_plugin_a_lower_priority_takes_the_capacity(
    jobs: Jobs, start_scheduler: StartScheduler
) -> None:
    jobs.report(sim_c1=0)
    start_scheduler(GATE)
    jobs.create("important", "sim-c1", replicas=4, priority=1000)
    jobs.wait_refused("important", "not enough to schedule.")
    jobs.report(sim_c1=3)
    jobs.create("new", "sim-c1", replicas=2)
    jobs.wait_placed("new", {"sim-c1": 2})
    jobs.report(sim_c1=8)
    jobs.create_until_placed("later", "sim-c1", replicas=6)
    assert placed(jobs.get("important")) == {}


def test_a_large_job_for_one_cluster_gets_its_turn_among_small_ones_elsewhere(
    jobs: Jobs, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    jobs.report(sim_c1=3, sim_c2=5)
    start_scheduler(GATE, enabling(tmp_path, StrictPriority={}))
    jobs.create("large", "sim-c1", "sim-c2", replicas=7, priority=10, one=True)
    jobs.wait_refused("large", "5 of 7 replicas are held on sim-c2")
    for number in range(3):
        jobs.create(f"small-{number}", "sim-c1", "sim-c2", replicas=1)
        jobs.wait_placed(f"small-{number}", {"sim-c1": 1})
    jobs.report(sim_c2=7)
    jobs.wait_placed("large", {"sim-c2": 7})
