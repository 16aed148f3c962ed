from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_pyscheduler.binding_cycle.writer import compare_resource_versions
from karmada_scheduler.api.binding import (
    CLUSTER_RESOURCE_BINDING,
    RESOURCE_BINDING,
    Binding,
    BindingKey,
    ObjectReference,
    TargetCluster,
    template_binding_name,
)
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError, format_time, parse_time, read_time, second_after
from karmada_scheduler.api.policy import Policy, PolicyKey
from karmada_scheduler.testing import binding, cluster

Change = Callable[[dict[str, Any]], object]


def test_a_key_is_shown_with_kind_and_namespace() -> None:
    namespaced = BindingKey(RESOURCE_BINDING, "ns", "web")
    assert (str(namespaced), namespaced.display) == ("ns/web", "ResourceBinding(ns/web)")
    scoped = BindingKey(CLUSTER_RESOURCE_BINDING, "", "web")
    assert (str(scoped), scoped.display) == ("web", "ClusterResourceBinding(web)")


def test_a_binding_is_read_field_by_field() -> None:
    built = (
        binding("web")
        .resource("apps/v1", "Deployment", uid="u1")
        .replicas(3, cpu="500m")
        .on(m1=2, m2=1)
        .duplicated()
        .applied()
        .evicted_from("m3")
        .scheduler("mine")
        .reschedule_triggered("2026-01-31T13:00:00Z")
        .last_scheduled("2026-01-31T12:59:59Z")
        .observing("primary")
        .observed_generation(4)
        .condition(type="Scheduled", status="True")
        .groups(affinity="app=a")
        .build()
    )
    assert built.key == BindingKey(RESOURCE_BINDING, "default", "web-deployment")
    assert built.spec.resource == ObjectReference("apps/v1", "Deployment", "default", "web", "u1")
    assert built.spec.clusters == (TargetCluster("m1", 2), TargetCluster("m2", 1))
    assert built.spec.replica_requirements is not None
    assert built.spec.replica_requirements.resource_request["cpu"].milli_value == 500
    assert [task.from_cluster for task in built.spec.graceful_eviction_tasks] == ["m3"]
    assert built.applied_placement == built.spec.placement
    assert built.reschedule_triggered
    assert built.spec.scheduler_name == "mine"
    assert built.spec.workload_affinity_groups == ("app=a", "")
    assert built.status.scheduler_observing_affinity_name == "primary"
    assert built.status.scheduler_observed_generation == 4
    assert built.status.condition("Scheduled") == {"type": "Scheduled", "status": "True"}
    assert built.status.condition("FullyApplied") is None


@pytest.mark.parametrize(
    ("spec", "is_workload"),
    [
        ({}, False),
        ({"replicas": 0, "components": [], "clusters": None}, False),
        ({"replicas": 1}, True),
        ({"replicaRequirements": {}}, True),
        ({"components": [{"name": "a"}]}, True),
    ],
)
def test_a_workload_has_replicas_requirements_or_components(spec: dict[str, Any], is_workload: bool) -> None:
    manifest = binding("web").manifest()
    manifest["spec"] |= spec
    assert Binding.from_manifest(manifest).spec.is_workload is is_workload


def test_suspension_of_scheduling_is_not_that_of_dispatching() -> None:
    manifest = binding("web").manifest()
    manifest["spec"]["suspension"] = {"dispatching": True}
    assert not Binding.from_manifest(manifest).spec.scheduling_suspended
    manifest["spec"]["suspension"] = {"scheduling": True}
    assert Binding.from_manifest(manifest).spec.scheduling_suspended


@pytest.mark.parametrize(
    ("triggered", "last", "expected"),
    [
        pytest.param(None, "2026-01-01T00:00:00Z", False, id="never-requested"),
        pytest.param("2026-01-01T00:00:00Z", None, False, id="never-scheduled"),
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", False, id="requested-before"),
        pytest.param(
            "2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z", False, id="requested-in-the-same-second"
        ),
        pytest.param("2026-01-01T01:00:02+01:00", "2026-01-01T00:00:01Z", True, id="requested-later"),
    ],
)
def test_a_reschedule_is_triggered_by_a_later_time(
    triggered: str | None, last: str | None, expected: bool
) -> None:
    manifest = binding("web").manifest()
    manifest["spec"]["rescheduleTriggeredAt"] = triggered
    manifest["status"]["lastScheduledTime"] = last
    assert Binding.from_manifest(manifest).reschedule_triggered is expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(kind="Deployment"), "kind: expected ResourceBinding or ClusterResourceBinding"),
        (lambda m: m.update(kind=["ResourceBinding"]), "kind: expected ResourceBinding or ClusterResource"),
        (lambda m: m["metadata"].pop("name"), "metadata.name: is missing"),
        (lambda m: m["metadata"].pop("namespace"), "metadata.namespace: is missing"),
        (lambda m: m.update(spec=[]), "spec: expected an object, got list []"),
        (lambda m: m["spec"].update(replicas="3"), "spec.replicas: expected an integer, got str '3'"),
        (lambda m: m["spec"].update(replicas=True), "spec.replicas: expected an integer, got bool True"),
        (lambda m: m["spec"].update(replicas=2**31), "spec.replicas: 2147483648 does not fit into 32 bits"),
        (lambda m: m["spec"].update(clusters={"m1": 1}), "spec.clusters: expected a list"),
        (
            lambda m: m["spec"].update(clusters=[{"name": "m1"}, {"name": 2}]),
            "spec.clusters[1].name: expected a string, got int 2",
        ),
        (
            lambda m: m["spec"].update(placement={"clusterAffinity": "m1"}),
            "spec.placement.clusterAffinity: expected an object, got str 'm1'",
        ),
        (lambda m: m["spec"].update(placement=[]), "spec.placement: expected an object, got list []"),
        (
            lambda m: m["spec"].update(replicaRequirements={"resourceRequest": {"cpu": "lots"}}),
            "spec.replicaRequirements.resourceRequest.cpu: expected a quantity",
        ),
        (
            lambda m: m["spec"].update(components=[{"replicaRequirements": {"resourceRequest": 1}}]),
            "spec.components[0].replicaRequirements.resourceRequest: expected an object",
        ),
        (
            lambda m: m["spec"].update(suspension={"scheduling": "yes"}),
            "spec.suspension.scheduling: expected true",
        ),
        (
            lambda m: m["spec"].update(rescheduleTriggeredAt="today"),
            "spec.rescheduleTriggeredAt: expected an RFC 3339 time",
        ),
        (lambda m: m["metadata"].update(labels={"a": 1}), "metadata.labels.a: expected a string, got int 1"),
        (lambda m: m.update(status={"conditions": ["x"]}), "status.conditions[0]: expected an object"),
    ],
)
def test_a_malformed_binding_names_the_field(change: Change, message: str) -> None:
    manifest = binding("web").manifest()
    change(manifest)
    with pytest.raises(ManifestError) as caught:
        Binding.from_manifest(manifest)
    assert str(caught.value).startswith(message)


def test_nulls_are_zero_values_as_in_go() -> None:
    manifest = binding("web").manifest()
    manifest["metadata"]["labels"] = {"a": None}
    manifest["spec"] |= {"replicas": None, "clusters": [None], "placement": None, "schedulePriority": None}
    manifest["status"] = None
    built = Binding.from_manifest(manifest)
    assert built.labels == {"a": ""}
    assert built.spec.clusters == (TargetCluster(""),)
    assert built.spec.placement is None


def test_unknown_fields_of_a_target_are_kept() -> None:
    manifest = binding("web").on(m1=2, m2=1).manifest()
    plain = Binding.from_manifest(manifest)
    manifest["spec"]["clusters"][1]["components"] = [{"name": "jobmanager", "replicas": 1}]
    manifest["spec"]["clusters"].append({"name": "m3", "zone": "a"})
    built = Binding.from_manifest(manifest)
    assert plain.spec.unknown_target_fields is None
    assert built.spec.clusters == (*plain.spec.clusters, TargetCluster("m3"))
    assert built.spec.unknown_target_fields == {
        TargetCluster("m2", 1): {"components": [{"name": "jobmanager", "replicas": 1}]},
        TargetCluster("m3"): {"zone": "a"},
    }


def test_unknown_fields_do_not_count_in_comparisons() -> None:
    manifest = binding("web").on(m1=2).manifest()
    plain = Binding.from_manifest(manifest)
    manifest["spec"]["clusters"][0]["components"] = []
    built = Binding.from_manifest(manifest)
    assert built.spec.unknown_target_fields is not None
    assert (built, hash(built.spec.clusters)) == (plain, hash(plain.spec.clusters))


def test_unknown_fields_that_cannot_be_written_are_dropped() -> None:
    manifest = binding("web").on(m1=2, m2=1).manifest()
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    manifest["spec"]["clusters"][0]["deep"] = deep
    manifest["spec"]["clusters"][1]["flat"] = {}
    built = Binding.from_manifest(manifest)
    assert built.spec.clusters == (TargetCluster("m1", 2), TargetCluster("m2", 1))
    assert built.spec.unknown_target_fields == {TargetCluster("m2", 1): {"flat": {}}}


def test_a_cluster_resource_binding_has_no_namespace() -> None:
    assert binding("role", namespace="").build().key == BindingKey(CLUSTER_RESOURCE_BINDING, "", "role")


def test_reading_a_status_alone_equals_reading_the_whole_manifest() -> None:
    before = binding("web").resource("apps/v1", "Deployment", uid="u1").replicas(3).on(m1=3).manifest()
    after = {**before, "metadata": {**before["metadata"], "resourceVersion": "99"}}
    after["status"] = {"schedulerObservedGeneration": 7, "lastScheduledTime": "2026-01-02T03:04:05Z"}
    answered = Binding.from_manifest(before).with_status(after)
    assert answered == Binding.from_manifest(after)
    assert answered.status.scheduler_observed_generation == 7


def test_the_name_of_a_binding_is_derived_from_its_template() -> None:
    assert template_binding_name(ObjectReference(kind="Deployment", name="nginx")) == "nginx-deployment"
    assert (
        template_binding_name(ObjectReference(kind="ClusterRole", name="system:Node"))
        == "system.node-clusterrole"
    )


def test_equal_api_lists_are_one_object() -> None:
    assert cluster("m1").build().api_kinds is cluster("m2").build().api_kinds


def test_capacity_is_neither_allocated_nor_allocating() -> None:
    built = (
        cluster("m1").capacity(cpu=4, memory="8Gi").allocated({"cpu": 1}).allocating({"cpu": "500m"}).build()
    )
    assert built.resource_summary is not None
    assert built.resource_summary.available["cpu"].milli_value == 2500
    assert built.resource_summary.available["memory"].value == 8 * 2**30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(metadata={}), "metadata.name: is missing"),
        (lambda m: m["spec"].update(taints=[{"key": 1}]), "spec.taints[0].key: expected a string"),
        (
            lambda m: m["spec"].update(
                resourceModels=[{"grade": 0, "ranges": [{"name": "cpu", "min": "x"}]}]
            ),
            "spec.resourceModels[0].ranges[0].min: expected a quantity",
        ),
        (
            lambda m: m["status"].update(apiEnablements=[{"groupVersion": "v1", "resources": [{"kind": 5}]}]),
            "status.apiEnablements[0].resources.kind: expected a string",
        ),
    ],
)
def test_a_malformed_cluster_names_the_field(change: Change, message: str) -> None:
    manifest = cluster("m1").manifest()
    change(manifest)
    with pytest.raises(ManifestError) as caught:
        Cluster.from_manifest(manifest)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("where", ["allocatable", "allocated", "allocating"])
@pytest.mark.parametrize("amount", ["many", "1e20000"])
def test_an_unreadable_quantity_removes_only_its_resource(where: str, amount: str) -> None:
    manifest = cluster("m1").capacity(cpu=4, memory="8Gi").manifest()
    manifest["status"]["resourceSummary"].setdefault(where, {})["cpu"] = amount
    built = Cluster.from_manifest(manifest)
    assert built.resource_summary is not None
    assert built.resource_summary.left("cpu").value == 0
    assert built.resource_summary.left("memory").value == 8 * 2**30
    (problem,) = built.unreadable_fields
    assert problem.startswith(f"status.resourceSummary.{where}.cpu: expected a quantity")


@pytest.mark.parametrize(
    ("nodes", "ready"),
    [({"readyNum": 3}, 3), ({}, None), (None, None), (["3"], None), ({"readyNum": "3"}, None)],
)
def test_the_number_of_ready_nodes_is_known_if_it_is_a_number(nodes: object, ready: int | None) -> None:
    manifest = cluster("m1").manifest()
    manifest["status"]["nodeSummary"] = nodes
    assert Cluster.from_manifest(manifest).ready_nodes == ready


@pytest.mark.parametrize(
    ("kind", "namespace", "label"),
    [
        ("PropagationPolicy", "ns", "propagationpolicy.karmada.io/permanent-id"),
        ("ClusterPropagationPolicy", "", "clusterpropagationpolicy.karmada.io/permanent-id"),
    ],
)
def test_a_policy_matches_the_bindings_with_its_id(kind: str, namespace: str, label: str) -> None:
    metadata = {"name": "p", "namespace": namespace or None, "labels": {label: "id-1"}, "generation": 2}
    policy = Policy.from_manifest({"kind": kind, "metadata": metadata, "spec": {"schedulerName": "mine"}})
    assert policy == Policy(
        PolicyKey(kind, namespace, "p"), generation=2, permanent_id="id-1", scheduler_name="mine"
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("10", "9", 1), ("9", "10", -1), ("10", "10", 0), ("9" * 30, "1" + "0" * 30, -1)],
)
def test_resource_versions_are_compared_as_numbers_of_any_length(one: str, other: str, expected: int) -> None:
    assert compare_resource_versions(one, other) == expected


@pytest.mark.parametrize("version", ["", "0", "01", "a", "-1"])
def test_a_malformed_resource_version_cannot_be_compared(version: str) -> None:
    with pytest.raises(ValueError, match=f"^resource version is not well formed: {version}$"):
        compare_resource_versions("1", version)


def test_times_are_written_as_kubernetes_does() -> None:
    moment = datetime(2026, 1, 31, 13, 0, 0, 999_999, tzinfo=UTC)
    assert format_time(moment) == "2026-01-31T13:00:00Z"
    assert parse_time("2026-01-31T14:00:00.5+01:00") == datetime(2026, 1, 31, 13, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_at_the_end_of_time_can_be_compared_written_and_has_a_second_after(
    text: str, expected: str
) -> None:
    moment = parse_time(text)
    assert format_time(moment) == expected
    assert second_after(moment) >= moment
    assert datetime.fromtimestamp(moment.timestamp(), UTC) == moment
    assert read_time({"at": datetime.fromisoformat(text)}, "at", "") == moment


@pytest.mark.parametrize("text", ["2026-13-45T99:99:99Z", "2026-01-31", "", "2026-01-31T13:00:00", "now"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)
