"""The fast fake API server behaves as a real one where schedulers depend on it, and measures what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests import manifests
from tools.bench import scenarios
from tools.fast_apiserver import server as fast_apiserver
from tools.fast_apiserver.ceiling import NAMESPACE, fleet, requests_of
from tools.fast_apiserver.schedulers import NAME
from tools.fast_apiserver.server import FastApiServer
from tools.fast_apiserver.storms import BINDINGS, CLUSTERS, LOST

pytestmark = pytest.mark.e2e  # needs Go

PATH = f"{BINDINGS}/work-0"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"


def _placed(number: int) -> dict[str, Any]:
    return scenarios.placed(NAMESPACE, f"work-{number}", number, "dynamic", 3, NAME)


@pytest.fixture(scope="module")
def program() -> Iterator[FastApiServer]:
    with fast_apiserver.running() as found:
        yield found


@pytest.fixture
def server(program: FastApiServer) -> FastApiServer:
    """A server with a placed binding on two of three clusters."""
    program.clear()
    program.load(fleet(3))
    program.load([_placed(0)])
    program.reset()
    return program


def _patch(server: FastApiServer, path: str, patch: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/merge-patch+json"}
    found: dict[str, Any] = server.request("PATCH", path, data=json.dumps(patch), headers=headers)
    return found


def _events(server: FastApiServer, path: str, version: str, count: int) -> list[dict[str, Any]]:
    query = f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=10"
    with requests.get(server.url + query, stream=True, timeout=20) as response:
        response.raise_for_status()
        lines = response.iter_lines()
        return [json.loads(next(lines)) for _ in range(count)]


def _refusal(server: FastApiServer, method: str, path: str, **options: Any) -> dict[str, Any]:
    response = requests.request(method, server.url + path, timeout=20, **options)
    assert not response.ok
    found: dict[str, Any] = response.json()
    assert (found["kind"], found["code"]) == ("Status", response.status_code)
    return found


def test_a_change_of_the_spec_has_a_new_version_and_generation_and_one_of_the_status_only_a_version(
    server: FastApiServer,
) -> None:
    before = server.request("GET", PATH)
    after = _patch(server, PATH, {"spec": {"replicas": 7}, "status": {"schedulerObservedGeneration": 9}})
    status = _patch(
        server, f"{PATH}/status", {"status": {"schedulerObservedGeneration": 2}, "spec": {"replicas": 8}}
    )
    assert before["metadata"]["generation"] == 1
    assert (after["metadata"]["generation"], after["status"]) == (2, before["status"])
    assert (status["metadata"]["generation"], status["spec"]["replicas"]) == (2, 7)
    assert status["status"]["schedulerObservedGeneration"] == 2
    versions = [int(each["metadata"]["resourceVersion"]) for each in (before, after, status)]
    assert versions == sorted(set(versions))


def test_a_write_that_changes_nothing_has_no_new_version(server: FastApiServer) -> None:
    before = server.request("GET", PATH)
    assert _patch(server, PATH, {"spec": {"replicas": before["spec"]["replicas"]}}) == before


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_a_write_that_names_an_old_version_is_a_conflict(server: FastApiServer, method: str) -> None:
    old = server.request("GET", PATH)
    _patch(server, PATH, {"spec": {"replicas": 7}})
    body = old if method == "PUT" else {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}
    assert _refusal(server, method, PATH, json={**body, "spec": {"replicas": 8}})["reason"] == "Conflict"
    assert server.request("GET", PATH)["spec"]["replicas"] == 7


def test_null_in_a_merge_patch_deletes_a_field(server: FastApiServer) -> None:
    assert "placement" not in _patch(server, PATH, {"spec": {"placement": None}})["spec"]


def test_what_exists_cannot_be_created_and_what_is_missing_is_not_found(server: FastApiServer) -> None:
    manifest = scenarios.binding(NAMESPACE, "work-0", 0, "dynamic", "bench")
    assert _refusal(server, "POST", BINDINGS, json=manifest)["reason"] == "AlreadyExists"
    assert _refusal(server, "GET", f"{BINDINGS}/none")["reason"] == "NotFound"
    assert _refusal(server, "GET", "/apis/none/v1/nothing")["reason"] == "NotFound"


def test_a_watch_from_a_version_has_every_later_change_in_order(server: FastApiServer) -> None:
    version = server.request("GET", BINDINGS)["metadata"]["resourceVersion"]
    for replicas in (6, 7):
        _patch(server, PATH, {"spec": {"replicas": replicas}})
    server.request("DELETE", PATH)
    found = _events(server, BINDINGS, version, 3)
    assert [(each["type"], each["object"]["spec"]["replicas"]) for each in found] == [
        ("MODIFIED", 6),
        ("MODIFIED", 7),
        ("DELETED", 7),
    ]


def test_a_watch_from_a_version_whose_changes_are_gone_has_expired(server: FastApiServer) -> None:
    server.clear()
    query = f"{BINDINGS}?watch=true&resourceVersion=1"
    assert _refusal(server, "GET", query)["code"] == 410


def test_pages_have_all_objects_once_and_the_version_of_the_first(server: FastApiServer) -> None:
    server.load(_placed(number) for number in range(1, 7))
    names, token, versions = [], "", set()
    while True:
        page = server.request("GET", f"{BINDINGS}?limit=3&continue={token}")
        names += [each["metadata"]["name"] for each in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        if not (token := page["metadata"].get("continue", "")):
            break
        server.load([manifests.cluster(f"later-{len(names)}")])
    assert names == [f"work-{number}" for number in range(7)]
    assert len(versions) == 1


def test_an_object_with_a_finalizer_is_being_deleted_until_it_has_none(server: FastApiServer) -> None:
    path = f"{CLUSTERS}/{LOST}"
    _patch(server, path, {"metadata": {"finalizers": ["keep"]}})
    assert server.request("DELETE", path)["metadata"]["deletionTimestamp"]
    _patch(server, path, {"metadata": {"finalizers": None}})
    assert _refusal(server, "GET", path)["code"] == 404


def test_selectors_are_refused_rather_than_ignored(server: FastApiServer) -> None:
    assert _refusal(server, "GET", f"{BINDINGS}?labelSelector=a%3Db")["code"] == 400


def test_discovery_names_every_resource_with_its_status(server: FastApiServer) -> None:
    listed = server.request("GET", "/apis/work.karmada.io/v1alpha2")["resources"]
    assert {"resourcebindings", "resourcebindings/status", "clusterresourcebindings"} <= {
        each["name"] for each in listed
    }
    groups = [each["name"] for each in server.request("GET", "/apis")["groups"]]
    assert "cluster.karmada.io" in groups


def test_a_lease_in_protobuf_is_read_as_client_go_writes_it(server: FastApiServer) -> None:
    """An envelope with the kind, and metadata (name, namespace) and spec (holderIdentity, duration, renewTime)."""

    def part(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    metadata = part(1, b"leader") + part(3, b"karmada-system")
    renewed = (
        b"\x08" + b"\x80\x92\xb8\xc3\x06" + b"\x10\x80\xc2\xd7\x2f"
    )  # 1,752,041,728 s and 100,000,000 ns
    spec = part(1, b"me") + b"\x10\x0f" + part(4, renewed)
    lease = part(1, metadata) + part(2, spec)
    types = part(1, b"coordination.k8s.io/v1") + part(2, b"Lease")
    body = b"k8s\x00" + part(1, types) + part(2, lease)
    found = server.request(
        "POST", LEASES, data=body, headers={"Content-Type": "application/vnd.kubernetes.protobuf"}
    )
    assert found["metadata"]["name"] == "leader"
    assert found["spec"]["holderIdentity"] == "me"
    assert found["spec"]["leaseDurationSeconds"] == 15
    assert found["spec"]["renewTime"].endswith(".100000Z")


def test_a_body_that_cannot_be_read_is_a_bad_request(server: FastApiServer) -> None:
    assert _refusal(server, "POST", LEASES, data=b"k8s\x00\x0a\xff")["reason"] == "BadRequest"
    assert _refusal(server, "POST", LEASES, data=b"{")["reason"] == "BadRequest"


def test_changes_of_clusters_are_counted_and_statuses_are_not(server: FastApiServer) -> None:
    prefix = f"{NAMESPACE}/work-"
    _patch(server, PATH, {"spec": {"clusters": [{"name": "m1", "replicas": 5}]}})
    _patch(server, f"{PATH}/status", {"status": {"schedulerObservedGeneration": 1}})
    assert server.changed(prefix, least=1) == 1
    assert server.changed(prefix, least=2) == 0
    assert requests_of(server.times(), "resourcebindings", "resourcebindings/status") == 2


def test_a_lease_that_nobody_renews_any_more_counts_with_its_age(server: FastApiServer) -> None:
    server.request("POST", LEASES, json={"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}})
    server.reset()
    before = server.times()["longest"]["karmada-system/leader"]
    after = server.times()["longest"]["karmada-system/leader"]
    assert 0 < before < after


def test_patches_of_the_benchmark_reach_the_watch(server: FastApiServer) -> None:
    version = server.request("GET", CLUSTERS)["metadata"]["resourceVersion"]
    server.patch([(f"{CLUSTERS}/{LOST}", {"metadata": {"labels": {"tier": "other"}}})])
    [event] = _events(server, CLUSTERS, version, 1)
    assert event["object"]["metadata"]["labels"]["tier"] == "other"
