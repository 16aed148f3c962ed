"""Equal parts of many objects are one object in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster

RECORDED: dict[str, Any] = orjson.loads(Path(__file__).with_name("recorded.json").read_bytes())
"""A binding and a Cluster as a control plane stored them, with managedFields and status."""

POLICIES = 200
CLUSTERS = 300


def _binding_manifests(count: int = 2_000) -> Iterator[dict[str, Any]]:
    """Yield the recorded binding under other names, of some policies with a namespace each, on other clusters."""
    base = RECORDED["binding"]
    metadata, spec, status = base["metadata"], base["spec"], base["status"]
    report = status["aggregatedStatus"][0]
    for number in range(count):
        policy, name = number % POLICIES, f"service-{number:06d}"
        namespace = f"team-{policy:03d}"
        placement = {
            **spec["placement"],
            "clusterAffinity": {"labelSelector": {"matchLabels": {"policy": f"policy-{policy}"}}},
        }
        annotations = {
            "propagationpolicy.karmada.io/name": f"policy-{policy}",
            "propagationpolicy.karmada.io/namespace": namespace,
            "policy.karmada.io/applied-placement": orjson.dumps(placement).decode(),
        }
        chosen = [f"member-{(number + each * 17) % CLUSTERS:04d}" for each in range(2 + number % 4)]
        yield {
            **base,
            "metadata": {
                **metadata,
                "name": f"{name}-deployment",
                "namespace": namespace,
                "uid": f"uid-{number}",
                "annotations": annotations,
            },
            "spec": {
                **spec,
                "placement": placement,
                "resource": {**spec["resource"], "name": name, "namespace": namespace},
                "clusters": [{"name": each, "replicas": 3} for each in chosen],
            },
            "status": {
                **status,
                "aggregatedStatus": [{**report, "clusterName": each} for each in chosen],
            },
        }


def _parsed_again(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(orjson.dumps(manifest))
    return found


def _bindings() -> list[Binding]:
    return [Binding.from_manifest(_parsed_again(each)) for each in _binding_manifests()]


def test_bindings_of_a_policy_share_placement_and_annotations() -> None:
    bindings = _bindings()
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
    manifest = next(_binding_manifests())
    binding = Binding.from_manifest(manifest)
    assert binding.labels == manifest["metadata"]["labels"]
    assert binding.annotations == manifest["metadata"]["annotations"]
    assert list(binding.status.conditions) == manifest["status"]["conditions"]


def test_clusters_share_kinds_and_models_and_parse_them_once() -> None:
    clusters = [
        Cluster.from_manifest(
            _parsed_again({**RECORDED["cluster"], "metadata": {"name": f"member-{number}"}})
        )
        for number in range(CLUSTERS)
    ]
    assert len(clusters[0].api_kinds) == len(set(clusters[0].api_kinds)) > 50
    assert len({id(cluster.api_kinds) for cluster in clusters}) == 1
    assert len({id(cluster.resource_models) for cluster in clusters}) == 1
