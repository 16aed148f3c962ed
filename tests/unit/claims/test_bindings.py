"""What a binding receives: karmada v1.18.2 pkg/detector/detector.go, pkg/resourceinterpreter/default/native/replica.go."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.claims.binding_spec import binary_text, decimal_text, replicas_of
from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import (
    DetectorOptions,
    PolicyWritten,
    Waits,
)
from karmada_advisor.claims.template import read_template, template_of
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config.features import FeatureGates
from tests.unit.claims.objects import (
    NAMESPACE,
    Cluster,
    Manifest,
    by_labels,
    by_name,
    claimed_by,
    cluster_policy,
    cluster_with,
    deployment,
    goes_to,
    only,
    policy,
)


def spec_of(shop: Cluster, *manifests: Manifest) -> dict[str, Any]:
    binding = only(shop.apply(*manifests)).binding_after
    assert binding is not None
    return dict(binding["spec"])


def test_a_new_binding_can_be_scheduled() -> None:
    shop = Cluster()
    result = only(shop.apply(policy("own"), deployment()))
    assert result.binding_after is not None
    binding = Binding.from_manifest(result.binding_after)
    assert str(binding.key) == f"{NAMESPACE}/web-deployment"
    assert (binding.spec.replicas, binding.spec.scheduler_name) == (3, "default-scheduler")
    assert binding.spec.resource.uid == "uid-web"
    assert result.binding_after["metadata"]["generation"] == 1


def test_what_the_policy_says_is_copied() -> None:
    spec = spec_of(
        Cluster(),
        policy(
            "own",
            schedulerName="mine",
            conflictResolution="Overwrite",
            propagateDeps=True,
            preserveResourcesOnDeletion=False,
            suspension={"dispatching": True},
            failover={"application": {"decisionConditions": {}}, "cluster": {}},
        ),
        deployment(),
    )
    assert spec["schedulerName"] == "mine"
    assert spec["conflictResolution"] == "Overwrite"
    assert spec["propagateDeps"] is True
    assert spec["preserveResourcesOnDeletion"] is False
    assert spec["suspension"] == {"dispatching": True}
    assert spec["failover"] == {
        "application": {
            "decisionConditions": {"tolerationSeconds": 300},
            "purgeMode": "Gracefully",
            "gracePeriodSeconds": 600,
        },
        "cluster": {"purgeMode": "Gracefully"},
    }


def test_a_placement_gets_the_defaults_of_crd_and_webhook() -> None:
    placement = {
        "clusterTolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
        "spreadConstraints": [{}, {"spreadByLabel": "zone", "maxGroups": 2}],
        "replicaScheduling": {"weightPreference": {}},
    }
    spec = spec_of(Cluster(), policy("own", placement=placement), deployment())
    assert spec["placement"] == {
        "clusterTolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
        "spreadConstraints": [
            {"spreadByField": "cluster", "minGroups": 1},
            {"spreadByLabel": "zone", "maxGroups": 2, "minGroups": 1},
        ],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {},
        },
    }


def test_a_weight_that_is_null_is_0_and_a_field_of_another_type_is_an_error() -> None:
    weights = {"staticWeightList": [{"weight": None}]}
    placement = {"replicaScheduling": {"weightPreference": weights}}
    spec = spec_of(Cluster(), policy("own", placement=placement), deployment())
    [found] = spec["placement"]["replicaScheduling"]["weightPreference"]["staticWeightList"]
    assert found == {"targetCluster": {}, "weight": 0}

    with pytest.raises(ManifestError, match=r"spec\.failover\.cluster\.purgeMode: expected a string"):
        Cluster().apply(policy("own", failover={"cluster": {"purgeMode": 5}}))


def test_the_scheduling_suspension_of_others_stays() -> None:
    shop = Cluster()
    key = only(shop.apply(policy("own"), deployment())).binding
    binding = shop.bindings[key]
    shop.bindings[key] = {**binding, "spec": {**binding["spec"], "suspension": {"scheduling": True}}}
    edited = policy("own", suspension={"dispatching": True})
    assert spec_of(shop, edited)["suspension"] == {"dispatching": True, "scheduling": True}
    assert spec_of(shop, policy("own"))["suspension"] == {"scheduling": True}


def test_priorities_and_groups_need_their_gates() -> None:
    placement = {"workloadAffinity": {"affinity": {"groupByLabelKey": "app"}}}
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}
    own, web = (
        policy("own", placement=placement, schedulePriority=priority),
        deployment(labels={"app": "web"}),
    )
    assert not {"schedulePriority", "workloadAffinityGroups"} & spec_of(Cluster(), own, web).keys()
    gates = FeatureGates({"WorkloadAffinity": True, "PriorityBasedScheduling": True})
    spec = spec_of(Cluster(DetectorOptions(gates, {"high": 1000})), own, web)
    assert spec["schedulePriority"] == {"priority": 1000}
    assert spec["workloadAffinityGroups"] == {"affinityGroup": "app=web"}


def test_without_its_priority_class_a_template_is_claimed_and_gets_no_binding() -> None:
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "missing"}
    shop = Cluster(DetectorOptions(FeatureGates({"PriorityBasedScheduling": True}), {}))
    result = shop.apply(policy("own", schedulePriority=priority), deployment())
    assert (claimed_by(result), goes_to(result), only(result).waits) == ("own", None, Waits.PRIORITY_CLASS)


def test_a_cluster_scoped_binding_keeps_whether_dependencies_follow() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    selector = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    shop = Cluster()
    assert "propagateDeps" not in spec_of(shop, cluster_policy("own", selector), role)
    spec = spec_of(shop, cluster_policy("own", selector, propagateDeps=True, conflictResolution="Overwrite"))
    assert "propagateDeps" not in spec
    assert spec["conflictResolution"] == "Overwrite"


def test_the_webhook_refuses_another_scheduler_name() -> None:
    shop = cluster_with(policy("own"), deployment())
    result = shop.apply(policy("own", schedulerName="mine", to="there"))
    assert "delete the policy and create it again" in result.refusals[0].text
    assert goes_to(result) == "own"


@pytest.mark.parametrize(
    ("manifest", "replicas"),
    [
        (deployment(replicas=None), 1),
        (deployment(replicas=0), 0),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {}}, 1),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 5, "completions": 2}}, 2),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 5}}, 5),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"completions": 5}}, 1),
        ({"apiVersion": "v1", "kind": "Pod", "spec": {}}, 1),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, 0),
    ],
)
def test_replicas_are_read_as_the_default_interpreter_does(manifest: Manifest, replicas: int) -> None:
    template = read_template({"metadata": {"name": "x"}, **manifest})
    assert replicas_of(template) == (replicas, None, True)


def test_requests_are_the_sum_of_containers_at_least_the_largest_init_container_and_overhead() -> None:
    pod_spec = {
        "containers": [
            {
                "resources": {
                    "requests": {"cpu": "1500m", "memory": "64Mi", "example.com/gpu": "1", "unknown": "1"}
                }
            },
            {"resources": {"limits": {"cpu": "500m", "memory": "1000000"}}},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "3", "memory": "1"}}}],
        "overhead": {"cpu": "250m"},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"podAffinity": {}},
    }
    template = read_template(deployment(template={"spec": pod_spec}))
    assert replicas_of(template).requirements == {
        "nodeClaim": {"nodeSelector": {"disk": "ssd"}},
        "resourceRequest": {"cpu": "3250m", "memory": "68108864", "example.com/gpu": "1"},
    }


def test_resources_of_the_pod_itself_and_a_sidecar_after_its_start_do_not_count() -> None:
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "300m"}}}
    pod_spec = {
        "resources": {"requests": {"cpu": "2"}},
        "containers": [{"resources": {"requests": {"cpu": "500m"}}}],
        "initContainers": [sidecar],
        "overhead": {"cpu": "250m"},
    }
    found = replicas_of(read_template(deployment(template={"spec": pod_spec}))).requirements

    assert found == {"resourceRequest": {"cpu": "750m"}}


@pytest.mark.parametrize(
    ("digits", "exponent", "text"),
    [
        (1500, -3, "1500m"),
        (2000, -3, "2"),
        (2_000_000, -3, "2k"),
        (20, 0, "20"),
        (1_500_000, 0, "1500k"),
        (0, 0, "0"),
    ],
)
def test_decimal_quantities_are_written_as_kubernetes_does(digits: int, exponent: int, text: str) -> None:
    assert decimal_text(digits, exponent) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (64 << 20, "64Mi"),
        (1 << 30, "1Gi"),
        (1536 << 20, "1536Mi"),
        (1000, "1k"),
        (1500, "1500"),
        (1_000_000, "1M"),
    ],
)
def test_bytes_are_written_as_in_a_new_binding(amount: int, text: str) -> None:
    assert binary_text(amount) == text


def test_replicas_of_a_kind_with_a_customized_interpreter_stay_as_they_are() -> None:
    template = read_template(
        {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "x"}}
    )
    assert not replicas_of(template).known


def test_a_template_known_by_its_binding_keeps_claim_replicas_and_uid() -> None:
    shop = Cluster()
    own = policy("own", by_labels(app="web"))
    before = only(shop.apply(own, deployment(labels={"app": "web"}))).binding_after
    assert before is not None
    edited = policy("own", by_labels(app="web"), to="there")
    result = only(claim([template_of(before)], [own], [before], events=[PolicyWritten(edited)]))
    assert (result.labels_assumed, result.replicas_known) == (True, False)
    assert result.binding_after is not None
    assert result.binding_after["spec"]["replicas"] == 3
    assert result.binding_after["spec"]["resource"] == before["spec"]["resource"]
    assert result.binding_after["spec"]["placement"]["clusterAffinity"]["clusterNames"] == ["there"]


def test_a_name_is_enough_to_release_a_template_known_by_its_binding() -> None:
    shop = Cluster()
    own = policy("own", by_name())
    before = only(shop.apply(own, deployment())).binding_after
    assert before is not None
    result = only(
        claim([template_of(before)], [own], [before], events=[PolicyWritten(policy("own", by_name("api")))])
    )
    assert result.policy_after is None


def test_requirements_that_are_equal_but_written_in_another_way_are_no_change() -> None:
    resources = {"resources": {"requests": {"memory": "100M"}}}
    shop, web = Cluster(), deployment(template={"spec": {"containers": [resources]}})
    key = only(shop.apply(policy("own"), web)).binding
    binding = shop.bindings[key]
    # So it is written by an update, for which there is no webhook.
    requirements = {"resourceRequest": {"memory": "100000000"}}
    shop.bindings[key] = {**binding, "spec": {**binding["spec"], "replicaRequirements": requirements}}
    result = only(shop.apply(policy("own", priority=1)))
    assert result.binding_after is result.binding_before
