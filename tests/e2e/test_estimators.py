"""The real karmada-scheduler-estimator on real API servers with Node and Pod objects; by itself, and in the loop."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_pyscheduler.client.connection import connect
from karmada_pyscheduler.estimator.accurate import AccurateEstimator
from karmada_pyscheduler.estimator.connections import Connections
from karmada_pyscheduler.estimator.session import PARTIAL, UPSTREAM, FailurePolicy
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import AssumedWorkload, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.core.available_replicas import EstimationError
from karmada_scheduler.testing import binding, cluster
from tests.commands import run
from tests.e2e.asking import reader
from tests.e2e.conftest import StartScheduler, StartUpstream
from tests.e2e.estimator_members import NAMES, EstimatorMembers, running
from tests.e2e.workload import WORK, condition, placed
from tools.controlplane import ControlPlane, Object

pytestmark = pytest.mark.in_members

CLUSTERS = [cluster(name).build() for name in NAMES]
CAPACITY = {"estimated1": 48, "estimated2": 24}
"""How many replicas of 250m the nodes hold."""
BURST = 200


@pytest.fixture(scope="module")
def all_members(controlplane: ControlPlane) -> Iterator[EstimatorMembers]:
    with running(controlplane) as made:
        yield made


@pytest.fixture
def members(all_members: EstimatorMembers) -> Iterator[EstimatorMembers]:
    """Two small members without Pods, and their estimators."""
    yield all_members
    all_members.clear()
    for name in NAMES:
        if name not in all_members.estimators:
            all_members.start_estimator(name)


def settings(plane: ControlPlane, **changes: Any) -> EstimatorOptions:
    flags = dict(flag.removeprefix("--").split("=") for flag in plane.estimator_client_flags())
    files = {
        name: flags[f"scheduler-estimator-{name.replace('_', '-')}"]
        for name in ("ca_file", "cert_file", "key_file")
    }
    return EstimatorOptions(**{**files, **changes})


class Client:
    """Our client, as the scheduler would use it."""

    def __init__(self, connections: Connections, policy: FailurePolicy) -> None:
        self.connections = connections
        self.estimator = AccurateEstimator(
            connections,
            timeout=10.0,
            policy=policy,
            answer_ttl=0.0,
            observer=Metrics().estimators,
            clock=time.monotonic,
        )

    async def replicas(
        self,
        requirements: ReplicaRequirements | None,
        clusters: list[Cluster] = CLUSTERS,
        assumed: dict[str, list[AssumedWorkload]] | None = None,
    ) -> list[int]:
        session = self.estimator.session(binding("web").build())
        return await session.max_available_replicas(clusters, requirements, assumed or {})

    async def sets(self, *components: Component) -> list[int]:
        session = self.estimator.session(binding("web").build())
        return await session.max_available_component_sets(CLUSTERS, components, "default", {})


class Clients:
    """Makes clients with other settings."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._made: list[tuple[Client, Any]] = []

    async def make(self, policy: FailurePolicy = PARTIAL, **changes: Any) -> Client:
        connection = await connect(kubeconfig=str(self._plane.kubeconfig), master="")

        async def read(namespace: str, name: str) -> Any:
            return await connection.request("GET", f"/api/v1/namespaces/{namespace}/services/{name}")

        class Nobody:
            def added(self) -> None: ...
            def retried(self) -> None: ...
            def taken(self, waited: float, /) -> None: ...
            def finished(self, worked: float, /) -> None: ...

        connections = Connections(
            settings(self._plane, **changes), read, observer=Nobody(), clock=time.monotonic
        )
        client = Client(connections, policy)
        self._made.append((client, connection))
        for each in CLUSTERS:
            connections.on_cluster(None, each)
        return client

    async def close(self) -> None:
        for client, connection in self._made:
            await client.estimator.close()
            await client.connections.close()
            await connection.close()


@pytest.fixture
async def clients(controlplane: ControlPlane, members: EstimatorMembers) -> AsyncIterator[Clients]:
    made = Clients(controlplane)
    yield made
    await made.close()


def demand(node_claim: dict[str, Any] | None = None, **request: str) -> ReplicaRequirements:
    return ReplicaRequirements(
        {name: quantity.parse(amount) for name, amount in request.items()}, node_claim=node_claim
    )


def affinity(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, "values": list(values)}
    return {"hardNodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


async def test_estimators_count_what_fits_on_their_nodes(clients: Clients) -> None:
    client = await clients.make(UPSTREAM)
    assert await client.replicas(demand(cpu="1")) == [12, 6]
    assert await client.replicas(demand(cpu="1500m", memory="2Gi")) == [7, 4]  # 5 + 2, 4
    assert await client.replicas(demand(cpu="7")) == [1, 0]
    assert await client.replicas(None) == [220, 110]


async def test_node_requirements_of_a_workload_reach_the_estimator(clients: Clients) -> None:
    client = await clients.make()
    assert await client.replicas(demand({"nodeSelector": {"disk": "ssd"}}, cpu="1")) == [8, 0]
    assert await client.replicas(demand(affinity("disk", "In", "ssd", "nvme"), cpu="1")) == [8, 0]
    assert await client.replicas(demand(affinity("disk", "NotIn", "ssd"), cpu="1")) == [4, 6]


async def test_tolerations_of_a_workload_reach_the_estimator(
    clients: Clients, members: EstimatorMembers
) -> None:
    client = await clients.make()
    path = "/api/v1/nodes/estimated2-node-1"
    member = members.plane.members["estimated2"].client
    member.patch(path, {"spec": {"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]}})
    try:
        tolerations = [{"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]
        await eventually(client, demand(cpu="1"), [12, 0])
        assert await client.replicas(demand({"tolerations": tolerations}, cpu="1")) == [12, 6]
        tolerations[0]["value"] = "b"
        assert await client.replicas(demand({"tolerations": tolerations}, cpu="1")) == [12, 0]
    finally:
        member.patch(path, {"spec": {"taints": None}})
    await eventually(client, demand(cpu="1"), [12, 6])


async def test_sets_of_components_are_counted_together(clients: Clients) -> None:
    client = await clients.make()
    manager, worker = Component("jm", 1, demand(cpu="1")), Component("tm", 2, demand(cpu="1500m"))
    assert await client.sets(manager, worker) == [3, 1]
    assert await client.sets(Component("tm", 1, demand(cpu="7"))) == [1, 0]


async def test_assumed_workloads_reduce_the_capacity_of_a_cluster(clients: Clients) -> None:
    client = await clients.make()
    placed = AssumedWorkload("default", (Component("web", 3, demand(cpu="2")),))
    assert await client.replicas(demand(cpu="1"), assumed={"estimated1": [placed]}) == [6, 6]
    assert await client.replicas(
        demand(cpu="1"), assumed={"estimated1": [placed], "estimated2": [placed]}
    ) == [6, 0]


async def test_an_estimator_that_serves_another_cluster_is_a_failure(
    clients: Clients, controlplane: ControlPlane
) -> None:
    service = "/api/v1/namespaces/karmada-system/services/karmada-scheduler-estimator-estimated"
    ports = controlplane.client.get(f"{service}1")["spec"]["ports"]
    controlplane.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "karmada-scheduler-estimator-elsewhere", "namespace": "karmada-system"},
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports},
        }
    )
    client, elsewhere = await clients.make(UPSTREAM), cluster("elsewhere").build()
    client.connections.on_cluster(None, elsewhere)
    with pytest.raises(
        EstimationError, match="cluster name does not match, got: elsewhere, desire: estimated1"
    ):
        await client.replicas(demand(cpu="1"), [*CLUSTERS, elsewhere])
    controlplane.client.delete(f"{service.removesuffix('estimated')}elsewhere")


async def eventually(client: Client, requirements: ReplicaRequirements, expected: list[int]) -> None:
    """Repeat the request until the answer is as expected: estimators see Nodes and Pods by watches of their own."""
    last: object = None
    deadline = time.monotonic() + 80
    while time.monotonic() < deadline:
        try:
            last = await client.replicas(requirements)
        except EstimationError as error:
            last = error
        if last == expected:
            return
    raise AssertionError(f"expected {expected}, last seen {last}")


def test_both_schedulers_decide_alike_with_and_without_one_of_the_estimators(
    controlplane: ControlPlane,
    members: EstimatorMembers,
    namespace: str,
    start_scheduler: StartScheduler,
    start_upstream: StartUpstream,
) -> None:
    policies = {"with-partial": "partial", "with-upstream": "upstream"}
    schedulers = {
        name: start_scheduler(*members.flags(), f"--estimator-failure-policy={policy}", name=name)
        for name, policy in policies.items()
    }
    start_upstream("karmada-estimating", *members.flags())
    all_names = [*policies, "karmada-estimating"]

    def results(prefix: str) -> dict[str, dict[str, int]]:
        for name in all_names:
            members.place(namespace, f"{prefix}-{name}", scheduler=name, cpu="1", replicas=6)
        paths = {
            name: f"{WORK}/namespaces/{namespace}/resourcebindings/{prefix}-{name}" for name in all_names
        }
        return controlplane.wait_for(
            lambda: {name: placed(controlplane.client.get(path)) for name, path in paths.items()},
            f"{prefix} to be placed by all three",
            until=lambda found: all(found.values()),
        )

    # The estimators report 12 and 6; both summaries have 999.
    assert results("all-answer") == {name: {"estimated1": 4, "estimated2": 2} for name in all_names}

    members.stop_estimator("estimated1")
    controlplane.wait_for(
        lambda: [scheduler.log.count("Lost the connection") for scheduler in schedulers.values()],
        "the loss to be noticed",
        until=all,
    )
    found = results("one-is-gone")
    assert found == {
        "with-partial": {"estimated1": 6},  # 999 by its summary, 6 by estimated2's estimator
        "with-upstream": {"estimated1": 3, "estimated2": 3},
        "karmada-estimating": {"estimated1": 3, "estimated2": 3},
    }

    for scheduler in schedulers.values():
        assert "fell back to the resource summary" in scheduler.log
    exposition = schedulers["with-partial"].scrape()
    assert 'karmada_scheduler_estimate_fallbacks_total{extent="some"} 1.0' in exposition
    assert 'karmada_scheduler_estimators{standing="connected"} 1.0' in exposition
    assert (
        'karmada_scheduler_estimate_fallbacks_total{extent="all"} 1.0' in schedulers["with-upstream"].scrape()
    )


def test_the_adviser_tells_what_estimators_decided_from_what_is_decided_without_them(
    controlplane: ControlPlane,
    members: EstimatorMembers,
    namespace: str,
    start_upstream: StartUpstream,
    tmp_path: Path,
) -> None:
    """Estimators report 12 and 6 of a cpu, the summaries have 999; the adviser asks no estimator."""
    start_upstream("karmada-estimating", *members.flags())
    members.place(namespace, "six", scheduler="karmada-estimating", cpu="1", replicas=6)
    members.place(namespace, "forty", scheduler="karmada-estimating", cpu="1", replicas=40)
    at = f"{WORK}/namespaces/{namespace}/resourcebindings"
    controlplane.wait_for(
        lambda: controlplane.client.list(at), "decisions", until=lambda found: all(map(has_condition, found))
    )
    manifest = tmp_path / "scheduler.yaml"
    command = ["karmada-scheduler", "--scheduler-name=karmada-estimating", *members.flags()]
    container = {"name": "karmada-scheduler", "image": "karmada-scheduler:v1.18.2", "command": command}
    spec = {"template": {"spec": {"containers": [container]}}}
    metadata = {"name": "karmada-scheduler"}
    manifest.write_text(
        yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    )
    asking = (
        f"--kubeconfig={reader(controlplane)}",
        f"--scheduler-manifest={manifest}",
        "--width=300",
    )

    placed_by_estimators = run("explain", f"{namespace}/six", *asking)
    refused_by_estimators = run("explain", f"{namespace}/forty", *asking)
    controlplane.client.patch(f"{at}/six", {"spec": {"replicas": 40}})
    controlplane.wait_for(
        lambda: condition(controlplane.client.get(f"{at}/six")),
        "the scale to be refused",
        until=lambda found: found.get("status") == "False",
    )
    kept = run("explain", f"{namespace}/six", *asking)

    assert "PLACED   estimated1 4, estimated2 2" in placed_by_estimators.out
    assert "a WorkloadRebalancer would give estimated1 3, estimated2 3." in placed_by_estimators.out
    assert "NOT PLACED" in refused_by_estimators.out
    assert "Would be: estimated1 20, estimated2 20 (a decision now)." in refused_by_estimators.out
    assert "PLACED IN PART, stuck   keeps 6 of 40: estimated1 4, estimated2 2" in kept.out
    assert "Would be: estimated1 21, estimated2 19 (a decision now)." in kept.out
    for each in (placed_by_estimators, refused_by_estimators, kept):
        assert "No estimator in a member cluster was asked" in each.out
        assert "asks estimators in member clusters, which are not asked here" in each.err


def test_a_burst_fills_every_cluster_to_its_capacity_and_none_beyond_it(
    controlplane: ControlPlane, members: EstimatorMembers, namespace: str, start_scheduler: StartScheduler
) -> None:
    for number in range(BURST):
        members.place(namespace, f"work-{number}", scheduler="burst", cpu="250m")
    start_scheduler(
        *members.flags(),
        "--feature-gates=SchedulingOvercommitProtection=true",
        "--rate-limiter-max-delay=1s",
        name="burst",
    )

    def full() -> list[Object]:
        """All capacity is used, and the other bindings have their condition."""
        found = members.bindings(namespace)
        assert taken(found) == CAPACITY
        assert all(has_condition(each) for each in found)
        return found

    found = controlplane.wait_for(full, "both members to be full", timeout=90)

    # The members report some of it: Pods instead of assumptions, one for one.
    in_second = [each for each in found if "estimated2" in placed(each)]
    for each in in_second[:10]:
        members.run("estimated2", each["metadata"]["name"], cpu="250m")
        report_healthy(controlplane, each, "estimated2")
    # Two of them go with their Pods, and two that were only assumed: capacity for four more, and no more.
    for each in (*in_second[:2], *in_second[-2:]):
        controlplane.client.delete(
            f"{WORK}/namespaces/{namespace}/resourcebindings/{each['metadata']['name']}"
        )
    member = controlplane.members["estimated2"].client
    for each in in_second[:2]:
        path = f"/api/v1/namespaces/default/pods/{each['metadata']['name']}"
        member.request("DELETE", path, params={"gracePeriodSeconds": "0"})
    gone = {each["metadata"]["name"] for each in (*in_second[:2], *in_second[-2:])}

    def full_again() -> bool:
        left = members.bindings(namespace)
        assert not gone & {each["metadata"]["name"] for each in left}
        assert taken(left)["estimated2"] <= CAPACITY["estimated2"]
        return taken(left) == CAPACITY

    controlplane.wait_for(full_again, "four others to take their place", timeout=60)


def taken(bindings: list[Object]) -> dict[str, int]:
    """Cluster name to replicas, over all bindings."""
    count: Counter[str] = Counter()
    for each in bindings:
        count.update(placed(each))
    return dict(count)


def has_condition(found: Object) -> bool:
    return any(each["type"] == "Scheduled" for each in found.get("status", {}).get("conditions", []))


def report_healthy(plane: ControlPlane, found: Object, cluster: str) -> None:
    name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
    report = {"clusterName": cluster, "applied": True, "health": "Healthy"}
    plane.client.patch(
        f"{WORK}/namespaces/{namespace}/resourcebindings/{name}/status",
        {"status": {"aggregatedStatus": [report]}},
    )
