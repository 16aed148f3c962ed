"""Clusters that are missing or unreadable: no binding loses its clusters, and waiting ones are placed in the end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fake_apiserver import Answer, FakeApiServer, binding, cluster, start_scheduler, status, wait_for
from tests.fake_apiserver.objects import DUPLICATED, settled

SPREAD_OUT = {"replicaScheduling": DUPLICATED}
ON_BOTH = {"m1": 2, "m2": 2}


def _list(server: FakeApiServer, *items: dict[str, Any]) -> Answer:
    document = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "ClusterList",
        "metadata": {"resourceVersion": str(server.version)},
        "items": items,
    }
    return Answer(200, orjson.dumps(document))


def _lose_clusters(server: FakeApiServer) -> None:
    """Let the API server report no Cluster, as after the loss of its storage."""
    server.fault(method="LIST", path="/clusters$", answer=_list(server))
    for name in ("m1", "m2"):
        gone = status(404, "NotFound", details={"name": name, "kind": "clusters"})
        server.fault(method="GET", path=f"/clusters/{name}$", answer=gone)
    server.end_watches("Cluster")


def _scale(server: FakeApiServer, name: str, replicas: int) -> None:
    def change(found: dict[str, Any]) -> None:
        found["spec"]["replicas"] = replicas

    server.change("ResourceBinding", name, change)


def _touch(server: FakeApiServer, name: str) -> None:
    server.change("Cluster", name, lambda found: found["metadata"].update(labels={"touched": "yes"}))


def _set_taints(server: FakeApiServer, name: str, taints: object) -> None:
    def change(found: dict[str, Any]) -> None:
        found["spec"]["taints"] = taints

    server.change("Cluster", name, change)


def test_a_list_without_clusters_needs_a_confirmation(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        with start_scheduler(server, tmp_path, "--resync-period=0.5s") as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the Lease", scheduler)
            before = server.count("LIST", "/clusters")
            _lose_clusters(server)
            wait_for(lambda: server.count("LIST", "/clusters") > before + 1, "two lists", scheduler)
            _scale(server, "web", 3)
            wait_for(lambda: server.targets("web") == {"m1": 3, "m2": 3}, "the binding to grow", scheduler)


def test_a_list_that_lacks_a_cluster_takes_no_binding_away_from_it(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        first = server.get("Cluster", "m1")
        assert first is not None
        server.fault(method="LIST", path="/clusters$", answer=_list(server, first))
        with start_scheduler(server, tmp_path, "--resync-period=0.5s") as scheduler:
            wait_for(lambda: server.lease().get("holderIdentity"), "the Lease", scheduler)
            _scale(server, "web", 3)
            wait_for(lambda: server.targets("web") == {"m1": 3, "m2": 3}, "the binding to grow", scheduler)
            before = server.count("LIST", "/clusters")
            server.end_watches("Cluster")
            wait_for(lambda: server.count("LIST", "/clusters") > before + 1, "two lists", scheduler)
            _scale(server, "web", 4)
            wait_for(lambda: server.targets("web") == {"m1": 4, "m2": 4}, "the binding to grow", scheduler)


def test_a_start_during_an_outage_of_clusters_clears_no_placement_and_places_all_bindings_afterwards(
    tmp_path: Path,
) -> None:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        server.put(binding("new", replicas=1))
        _lose_clusters(server)
        with start_scheduler(server, tmp_path, "--resync-period=0.5s") as scheduler:
            wait_for(
                lambda: "no cluster is known" in server.condition("web").get("message", ""),
                "the condition to say so", scheduler,
            )  # fmt: skip
            wait_for(lambda: server.condition("new").get("reason") == "NoClusterFit", "the other", scheduler)
            assert server.targets("web") == ON_BOTH
            server.heal()
            wait_for(lambda: server.targets("new"), "the new one to be placed", scheduler)
            wait_for(lambda: server.condition("web").get("status") == "True", "success", scheduler)
            assert server.targets("web") == ON_BOTH


def test_the_first_cluster_to_come_back_does_not_get_the_replicas_of_two(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        _lose_clusters(server)
        with start_scheduler(server, tmp_path) as scheduler:
            _touch(server, "m1")
            wait_for(
                lambda: "cluster m2 is not known again" in server.condition("web").get("message", ""),
                "the condition to say so", scheduler,
            )  # fmt: skip
            assert server.targets("web") == ON_BOTH
            _touch(server, "m2")
            wait_for(lambda: server.condition("web").get("status") == "True", "success", scheduler)
            assert server.targets("web") == ON_BOTH


def test_a_binding_keeps_its_placement_on_an_unreadable_cluster(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        _set_taints(server, "m2", "none")
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        server.put(binding("new", replicas=1, placement=SPREAD_OUT))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.targets("new") == {"m1": 1}, "the new one to be placed", scheduler)
            wait_for(lambda: server.condition("web").get("status") == "False", "an error", scheduler)
            message = server.condition("web")["message"]
            assert "m2" in message
            assert "spec.taints" in message
            assert server.targets("web") == ON_BOTH
            _set_taints(server, "m2", [])
            wait_for(lambda: server.targets("new") == {"m1": 1, "m2": 1}, "it to go there, too", scheduler)
            wait_for(lambda: server.condition("web").get("status") == "True", "success", scheduler)
            assert server.targets("web") == ON_BOTH


def test_an_absurd_quantity_affects_only_its_resource(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        odd = cluster("m2")
        odd["status"]["resourceSummary"]["allocatable"]["example.com/gpu"] = "1e20000"
        server.put(odd)
        server.put(settled("web", ON_BOTH, replicas=2, placement=SPREAD_OUT))
        server.put(binding("wants", replicas=2, requests={"example.com/gpu": "1"}))
        with start_scheduler(server, tmp_path) as scheduler:
            server.put(binding("even", replicas=2))
            wait_for(lambda: server.targets("even") == {"m1": 1, "m2": 1}, "both to be used", scheduler)
            assert server.targets("web") == ON_BOTH
            assert server.targets("wants") is None
            assert "allocatable.example.com/gpu" in scheduler.log


def test_an_added_cluster_gets_the_bindings_that_fitted_nowhere(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1", taints=[{"key": "k", "effect": "NoSchedule"}]))
        server.put(binding("web", replicas=1))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.condition("web").get("reason") == "NoClusterFit", "no fit", scheduler)
            server.put(cluster("m2", apis=[]))
            server.put(binding("new", replicas=1))
            wait_for(lambda: server.condition("new").get("reason") == "NoClusterFit", "no fit", scheduler)
            assert server.targets("web") is None
            apis = cluster("m2")["status"]["apiEnablements"]
            server.change("Cluster", "m2", lambda found: found["status"].update(apiEnablements=apis))
            wait_for(lambda: server.targets("web") == {"m2": 1}, "the binding to be placed", scheduler)
            wait_for(lambda: server.targets("new") == {"m2": 1}, "the other to be placed", scheduler)


ODD_NAMES = (
    "",
    "a/b",
    "m1/status",
    "../x",
    "..",
    "a?b",
    "a%2Fb",
    "A B",
    "m1#x",
    "x" * 300,
    "no-such-cluster",
)


def _with_odd_clusters(scheduler_name: str, *, is_claimed: bool = True) -> list[dict[str, Any]]:
    found = []
    for number, name in enumerate(ODD_NAMES):
        odd = binding(f"odd-{number}", namespace="tenant", clusters={name: 1}, scheduler=scheduler_name)
        if not is_claimed:
            odd["metadata"]["labels"] = {}
        found.append(odd)
    return found


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(_with_odd_clusters("my-scheduler"), id="ours"),
        pytest.param(_with_odd_clusters("default-scheduler"), id="of-another-scheduler"),
        pytest.param(_with_odd_clusters("my-scheduler", is_claimed=False), id="unclaimed"),
    ],
)
def test_a_binding_with_the_name_of_no_cluster_delays_no_start(
    tmp_path: Path, odd: list[dict[str, Any]]
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        for item in odd:
            server.put(item)
        server.put(binding("web", replicas=1))
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.targets("web") == {"m1": 1}, "the other to be placed", scheduler)
            assert scheduler.answers("/readyz") == 200
            paths = {request.path for request in server.requests if "clusters/" in request.path}
            assert all(path.endswith("/clusters/no-such-cluster") for path in paths), paths


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"answer": status(403, "Forbidden")}, id="refused"),
        pytest.param({"answer": status(500, "InternalError")}, id="failed"),
        pytest.param({"delay": 60.0}, id="not-answered"),
        pytest.param({"answer": Answer(404, b"<html>not here</html>")}, id="a-proxy-s-404"),
    ],
)
def test_a_cluster_that_cannot_be_read_delays_no_start_and_keeps_its_bindings(
    tmp_path: Path, fault: dict[str, Any]
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(settled("held", {"m1": 2, "m9": 2}, replicas=2, placement=SPREAD_OUT))
        server.put(binding("web", replicas=1))
        server.fault(method="GET", path="/clusters/m9$", **fault)
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.targets("web") == {"m1": 1}, "the other to be placed", scheduler)
            _scale(server, "held", 3)
            wait_for(
                lambda: "cluster m9 cannot be read" in server.condition("held").get("message", ""),
                "the condition to say so", scheduler,
            )  # fmt: skip
            assert server.targets("held") == {"m1": 2, "m9": 2}
            server.heal()
            server.put(cluster("m9"))
            wait_for(lambda: server.targets("held") == {"m1": 3, "m9": 3}, "it to grow", scheduler)


def _seconds_until_ready(server: FakeApiServer, scheduler: Any) -> float:
    begun = time.monotonic()
    wait_for(lambda: scheduler.answers("/readyz") == 200, "ready", scheduler)
    assert server.get("Cluster", "m1") is not None
    return time.monotonic() - begun


def test_thousands_of_unknown_clusters_delay_a_start_by_seconds_and_are_read_slowly(tmp_path: Path) -> None:
    names = [f"c{number:05}-{'x' * 30}" for number in range(15_000)]
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=1))
        with start_scheduler(server, tmp_path, wait_ready=False) as scheduler:
            without = _seconds_until_ready(server, scheduler)
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        server.put(binding("web", replicas=1))
        many = binding("many", clusters=dict.fromkeys(names, 1))
        server.put(many)
        server.fault(method="GET", path="/clusters/c", delay=0.02)
        with start_scheduler(server, tmp_path, "--resync-period=1s", wait_ready=False) as scheduler:
            assert _seconds_until_ready(server, scheduler) < without + 5
            wait_for(lambda: server.targets("web") == {"m1": 1}, "the other to be placed", scheduler)
            before, begun = server.count("GET", "/clusters/c"), time.monotonic()
            listed = server.count("LIST", "/clusters")
            wait_for(lambda: server.count("LIST", "/clusters") > listed + 1, "two more lists", scheduler)
            reads = server.count("GET", "/clusters/c") - before
            assert 0 < reads <= 5 * (time.monotonic() - begun) + 2
            assert server.targets("many") == dict.fromkeys(names, 1)
