"""Equal parts of many objects are one object in memory."""

from typing import Any

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from tools.bench import recorded_fleet
from tools.bench.recording import Sizes

SIZES = Sizes(bindings=2_000, clusters=300)


def _parsed_again(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(orjson.dumps(manifest))
    return found


def _bindings() -> list[Binding]:
    found = recorded_fleet.bindings("ResourceBinding", SIZES)
    return [Binding.from_manifest(_parsed_again(each)) for each in found]


def test_bindings_of_a_policy_share_placement_and_annotations() -> None:
    bindings = [binding for binding in _bindings() if binding.spec.clusters]
    placements = {binding.spec.placement for binding in bindings}
    assert len({id(binding.spec.placement) for binding in bindings}) == len(placements) <= 200
    assert len({id(binding.annotations) for binding in bindings}) <= 200


def test_bindings_share_namespaces_cluster_names_and_conditions() -> None:
    bindings = _bindings()
    assert len({id(binding.key.namespace) for binding in bindings}) <= 200
    assert all(binding.key.namespace is binding.spec.resource.namespace for binding in bindings)
    targets = [target for binding in bindings for target in binding.spec.clusters]
    reports = [report for binding in bindings for report in binding.status.aggregated_status]
    assert len({id(target) for target in targets}) == len(set(targets)) < len(targets)
    assert len({id(report) for report in reports}) == len(set(reports)) < len(reports)


def test_unique_values_are_not_interned() -> None:
    manifest = next(iter(recorded_fleet.bindings("ResourceBinding", SIZES)))
    binding = Binding.from_manifest(manifest)
    assert binding.labels == manifest["metadata"]["labels"]
    assert binding.annotations == manifest["metadata"]["annotations"]
    assert list(binding.status.conditions) == manifest["status"]["conditions"]


def test_clusters_share_kinds_and_models_and_parse_them_once() -> None:
    manifests = [_parsed_again(each) for each in recorded_fleet.clusters(SIZES)]
    clusters = [Cluster.from_manifest(each) for each in manifests]
    assert len(clusters[0].api_kinds) == len(set(clusters[0].api_kinds)) > 50
    assert len({id(cluster.api_kinds) for cluster in clusters}) == 1
    assert len({id(cluster.resource_models) for cluster in clusters}) == 1
