"""FairShare on a real control plane: three tenants with backlogs share a full fleet by their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.conftest import StartScheduler, enabling
from tests.e2e.namespaces import new_namespace
from tests.e2e.test_strict_priority import CLUSTERS, CPU, Jobs
from tests.e2e.workload import WORK, condition, placed
from tools.controlplane import ControlPlane, Object

GATES = "--feature-gates=PriorityBasedScheduling=true,SchedulingOvercommitProtection=true"
LABEL = "fair-share-test"


class Tenants:
    """Three namespaces with more jobs of one cpu each than a cluster can take."""

    def __init__(self, plane: ControlPlane, namespaces: list[str]) -> None:
        self.plane, self.namespaces = plane, namespaces
        self.jobs = [Jobs(plane, namespace) for namespace in namespaces]
        self.jobs[0].report(sim_c1=CPU)
        for jobs in self.jobs:
            for number in range(CPU):
                jobs.create(f"job-{number}", "sim-c1", replicas=1)

    def _listed(self, namespace: str) -> list[Object]:
        return self.plane.client.list(f"{WORK}/namespaces/{namespace}/resourcebindings")

    def shares(self) -> list[int]:
        """Return how many jobs of each tenant are placed."""
        return [sum(bool(placed(job)) for job in self._listed(each)) for each in self.namespaces]

    def wait_decided(self) -> None:
        """Wait until all jobs have been placed or refused."""
        for each in self.namespaces:
            self.plane.wait_for(
                partial(self._listed, each),
                f"decisions about {each}",
                until=lambda found: all(condition(job) for job in found),
            )

    def end_jobs(self, tenant: int, count: int) -> None:
        """Delete jobs that are placed, and enqueue all that wait: they are when a label of a cluster changes."""
        path = f"{WORK}/namespaces/{self.namespaces[tenant]}/resourcebindings"
        for job in [job for job in self._listed(self.namespaces[tenant]) if placed(job)][:count]:
            self.plane.client.delete(f"{path}/{job['metadata']['name']}")
        self.label("changed")

    def label(self, value: str | None) -> None:
        self.plane.client.patch(f"{CLUSTERS}/sim-c1", {"metadata": {"labels": {LABEL: value}}})


@pytest.fixture
def tenants(controlplane: ControlPlane, namespace: str) -> Iterator[Tenants]:
    with ExitStack() as stack:
        names = [f"{namespace}-{name}" for name in "abc"]
        for name in names:
            stack.enter_context(new_namespace(controlplane.client, name))
        made = Tenants(controlplane, names)
        yield made
        made.jobs[0].restore()
        made.label(None)


def test_three_tenants_share_a_full_fleet_by_their_weights(
    tenants: Tenants, start_scheduler: StartScheduler, tmp_path: Path
) -> None:
    heavy = {"name": "heavy", "namespaces": tenants.namespaces[2:], "weight": 2}
    start_scheduler(GATES, enabling(tmp_path, FairShare={"tenants": [heavy]}))
    tenants.wait_decided()
    assert tenants.shares() == [2, 2, 4]
    tenants.end_jobs(
        2, 2
    )  # the share of their tenant is now the smallest, and others have waited for as long
    tenants.plane.wait_for(tenants.shares, "shares of 2, 2 and 4", until=lambda found: sum(found) == CPU)
    assert tenants.shares() == [2, 2, 4]


def test_without_the_plugin_the_first_tenant_takes_it_all(
    tenants: Tenants, start_scheduler: StartScheduler
) -> None:
    start_scheduler(GATES)
    tenants.wait_decided()
    assert tenants.shares() == [8, 0, 0]
