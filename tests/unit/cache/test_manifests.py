"""The cache of manifests for extenders: complete, newest version, small."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import Policy
from tests import manifests

WEB = BindingKey("ResourceBinding", "demo", "web-deployment")


@pytest.fixture
def cache() -> ManifestCache:
    return ManifestCache(is_needed=lambda _: True, clusters=True)


def put(cache: ManifestCache, manifest: dict[str, Any]) -> None:
    parse = Cluster.from_manifest if manifest["kind"] == "Cluster" else Binding.from_manifest
    cache.stored(parse(manifest), manifest)


def read(document: bytes | None) -> Any:
    assert document is not None
    return orjson.loads(document)


def test_a_stored_manifest_is_returned_complete(cache: ManifestCache) -> None:
    web, m1 = manifests.binding(unknown={"field": [1, 2.5, None, "ü"]}), manifests.cluster("m1")
    put(cache, web)
    put(cache, m1)
    assert read(cache.binding(WEB)) == web
    assert read(cache.cluster("m1")) == m1
    assert len(cache) == 2


def test_a_newer_version_replaces_the_stored_manifest(cache: ManifestCache) -> None:
    put(cache, manifests.binding(version=1))
    put(cache, manifests.binding(version=2, replicas=7))
    assert read(cache.binding(WEB))["spec"]["replicas"] == 7
    assert len(cache) == 1


def test_managed_fields_are_omitted_and_the_manifest_is_not_changed(cache: ManifestCache) -> None:
    web = manifests.binding()
    web["metadata"]["managedFields"] = [{"manager": "karmada-controller-manager"}]
    put(cache, web)
    assert "managedFields" in web["metadata"]
    assert "managedFields" not in read(cache.binding(WEB))["metadata"]


def test_items_of_a_list_get_their_kind_and_version(cache: ManifestCache) -> None:
    web, m1 = manifests.binding(), manifests.cluster("m1")
    parsed = Binding.from_manifest(web)
    cache.stored(parsed, {name: web[name] for name in ("metadata", "spec")})
    cache.stored(Cluster.from_manifest(m1), {"metadata": m1["metadata"]})
    assert read(cache.binding(WEB)) == web
    found = read(cache.cluster("m1"))
    assert (found["apiVersion"], found["kind"]) == (m1["apiVersion"], "Cluster")


def test_a_removed_object_has_no_manifest(cache: ManifestCache) -> None:
    put(cache, manifests.binding())
    put(cache, manifests.cluster("m1"))
    for key in (WEB, "m1", "m1", BindingKey("ResourceBinding", "demo", "other")):
        cache.forgotten(key)
    assert (cache.binding(WEB), cache.cluster("m1"), len(cache)) == (None, None, 0)


def test_only_objects_that_requests_can_contain_are_stored() -> None:
    cache = ManifestCache(is_needed=lambda binding: binding.spec.scheduler_name == "ours", clusters=False)
    put(cache, manifests.binding())
    put(cache, manifests.binding("other", schedulerName="theirs"))
    put(cache, manifests.cluster("m1"))
    policy = manifests.policy()
    cache.stored(Policy.from_manifest(policy), policy)
    assert len(cache) == 1
    put(cache, manifests.binding(version=2, schedulerName="theirs"))
    assert len(cache) == 0


def test_policies_are_not_stored_where_clusters_are(cache: ManifestCache) -> None:
    policy = manifests.policy()
    cache.stored(Policy.from_manifest(policy), policy)
    assert len(cache) == 0


def test_bindings_of_both_kinds_are_distinguished(cache: ManifestCache) -> None:
    everywhere = manifests.binding() | {"kind": "ClusterResourceBinding"}
    put(cache, manifests.binding())
    put(cache, everywhere)
    key = BindingKey("ClusterResourceBinding", "", "web-deployment")
    assert read(cache.binding(key))["kind"] == "ClusterResourceBinding"
    assert read(cache.binding(WEB))["kind"] == "ResourceBinding"


def test_similar_bindings_take_little_memory(cache: ManifestCache) -> None:
    plain = 0
    for number in range(100):
        web = manifests.binding(f"web-{number}", version=number)
        plain += len(orjson.dumps(web))
        put(cache, web)
    kept = sum(len(compressed) for compressed in cache._bindings.values())
    assert kept < plain / 4
    assert read(cache.binding(BindingKey("ResourceBinding", "demo", "web-42")))["metadata"]["uid"] == (
        "uid-web-42"
    )


@pytest.mark.parametrize("depth", [200, 300, 900])
def test_a_status_that_is_too_deep_to_be_written_is_cut_off(cache: ManifestCache, depth: int) -> None:
    web = manifests.binding()
    web["status"] = {
        "aggregatedStatus": [{"clusterName": "m1", "status": orjson.loads(b"[" * depth + b"]" * depth)}]
    }
    put(cache, web)
    found = read(cache.binding(WEB))
    assert found["spec"] == web["spec"]
    assert found["status"]["aggregatedStatus"][0]["clusterName"] == "m1"
