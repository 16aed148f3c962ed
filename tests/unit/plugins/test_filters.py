"""Results and reasons of the in-tree filters."""

from __future__ import annotations

import pytest

from karmada_scheduler.framework import FilterPlugin
from karmada_scheduler.testing import (
    BindingBuilder,
    ClusterBuilder,
    binding,
    cluster,
    filter_context,
    score_context,
)
from karmada_scheduler_plugins.api_enablement import APIEnablement
from karmada_scheduler_plugins.cluster_affinity import ClusterAffinity
from karmada_scheduler_plugins.cluster_eviction import ClusterEviction
from karmada_scheduler_plugins.default_plugins import ClusterLocality
from karmada_scheduler_plugins.spread_constraint import SpreadConstraint
from karmada_scheduler_plugins.taint_toleration import TaintToleration

APPS = {"apps/v1": ["Deployment"]}


def refusal(plugin: FilterPlugin, builder: BindingBuilder, target: ClusterBuilder) -> str:
    """Return the reason of a refusal, empty if the cluster passes."""
    result = plugin.filter(filter_context(builder, target))
    assert result.is_success or len(result.reasons) == 1
    return result.message


# --- APIEnablement ---

NOT_SERVED = "cluster(s) did not have the API resource"


@pytest.mark.parametrize(
    ("api_version", "kind", "target", "reason"),
    [
        pytest.param("apps/v1", "Deployment", cluster("m1").serves(APPS), "", id="served"),
        pytest.param("v1", "Pod", cluster("m1").serves({"v1": ["Pod"]}), "", id="core-group"),
        pytest.param("/v1", "Pod", cluster("m1").serves({"v1": ["Pod"]}), "", id="core-group-with-slash"),
        pytest.param(
            "custom.io/v1", "CustomResource", cluster("m1").serves(APPS), NOT_SERVED, id="group-missing"
        ),
        pytest.param("apps/v1", "StatefulSet", cluster("m1").serves(APPS), NOT_SERVED, id="kind-missing"),
        pytest.param(
            "apps/v1",
            "StatefulSet",
            cluster("m1").serves(APPS, complete=False),
            NOT_SERVED,
            id="kind-unknown",
        ),
        pytest.param("apps/v1", "deployment", cluster("m1").serves(APPS), NOT_SERVED, id="case-counts"),
        pytest.param("apps/v1", "Deployment", cluster("m1").serves({}), NOT_SERVED, id="empty-list"),
        pytest.param(
            "a/b/c", "Deployment", cluster("m1").serves({"": ["Deployment"]}), "", id="malformed-version"
        ),
        pytest.param("/", "Deployment", cluster("m1").serves({"": ["Deployment"]}), "", id="slash-alone"),
    ],
)
def test_a_cluster_must_serve_the_kind(
    api_version: str, kind: str, target: ClusterBuilder, reason: str
) -> None:
    assert refusal(APIEnablement(), binding("web").resource(api_version, kind), target) == reason


def test_a_current_cluster_need_not_serve_the_kind_any_more() -> None:
    placed = binding("web").resource("custom.io/v1", "CustomResource").on("m1")
    assert refusal(APIEnablement(), placed, cluster("m1").serves(APPS)) == ""


# --- TaintToleration ---


@pytest.mark.parametrize(
    ("builder", "target", "reason"),
    [
        pytest.param(binding("web"), cluster("m1"), "", id="no-taints"),
        pytest.param(
            binding("web").tolerates(key="key1", operator="Equal", value="value1", effect="NoSchedule"),
            cluster("m1").taint("key1=value1:NoSchedule"),
            "",
            id="tolerated",
        ),
        pytest.param(
            binding("web"),
            cluster("m1").taint("key1=value1:NoSchedule"),
            "cluster(s) had untolerated taint {key1=value1:NoSchedule}",
            id="with-value",
        ),
        pytest.param(
            binding("web"),
            cluster("m1").taint("a:NoExecute"),
            "cluster(s) had untolerated taint {a:NoExecute}",
            id="no-value",
        ),
        pytest.param(binding("web"), cluster("m1").taint("a:PreferNoSchedule"), "", id="preference-only"),
        pytest.param(
            binding("web").tolerates(key="a", operator="Exists"),
            cluster("m1").taint("a:NoSchedule").taint("b=1:NoExecute").taint("c:NoExecute"),
            "cluster(s) had untolerated taint {b=1:NoExecute}",
            id="the-first-that-is-not-tolerated",
        ),
        pytest.param(
            binding("web").on(m1=1),
            cluster("m1").taint("cluster.karmada.io/not-ready:NoSchedule"),
            "",
            id="placed",
        ),
        pytest.param(
            binding("web").on(m2=1),
            cluster("m1").taint("cluster.karmada.io/not-ready:NoSchedule"),
            "cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}",
            id="placed-elsewhere",
        ),
    ],
)
def test_taints_refuse_new_bindings_only(
    builder: BindingBuilder, target: ClusterBuilder, reason: str
) -> None:
    assert refusal(TaintToleration(), builder, target) == reason


# --- ClusterAffinity ---

NO_MATCH = "cluster(s) did not match the placement cluster affinity constraint"


def overflowing() -> BindingBuilder:
    return binding("web").term("affinity1", "c1", overflow=[["c2"], ["c3"]]).observing("affinity1")


@pytest.mark.parametrize(
    ("builder", "admitted"),
    [
        pytest.param(binding("web").names("c1"), {"c1"}, id="named"),
        pytest.param(binding("web"), {"c1", "c2", "c3", "c4"}, id="no-affinity"),
        pytest.param(
            binding("web").term("affinity1", "c1").observing("affinity1"), {"c1"}, id="term-in-force"
        ),
        pytest.param(
            binding("web").term("affinity1", "c1").observing("other"),
            {"c1", "c2", "c3", "c4"},
            id="no-such-term",
        ),
        pytest.param(overflowing().replicas(1), {"c1", "c2", "c3"}, id="overflow-of-a-workload"),
        pytest.param(overflowing().component("a", 1), {"c1", "c2", "c3"}, id="overflow-of-components"),
        pytest.param(overflowing(), {"c1"}, id="overflow-without-replicas"),
        pytest.param(
            binding("web").names("c1").term("affinity1", "c2").observing("affinity1"),
            {"c1"},
            id="single-affinity-wins",
        ),
        pytest.param(binding("web").names("c1").on("c2"), {"c1"}, id="placed-clusters-are-not-exempt"),
    ],
)
def test_clusters_must_match_the_affinity(builder: BindingBuilder, admitted: set[str]) -> None:
    reasons = {name: refusal(ClusterAffinity(), builder, cluster(name)) for name in ("c1", "c2", "c3", "c4")}
    assert reasons == {name: "" if name in admitted else NO_MATCH for name in reasons}


def test_a_cluster_excluded_by_the_affinity_may_match_an_overflow_affinity() -> None:
    placement = {
        "clusterAffinities": [
            {
                "affinityName": "a",
                "exclude": ["c1"],
                "overflowAffinities": [{"affinityName": "b", "clusterNames": ["c1"]}],
            }
        ]
    }
    builder = binding("web").replicas(1).placement(placement).observing("a")
    assert refusal(ClusterAffinity(), builder, cluster("c1")) == ""


def test_cluster_affinity_scores_zero() -> None:
    assert ClusterAffinity().score(score_context(binding("web").names("m1"), cluster("m1"))) == 0


# --- ClusterEviction ---


@pytest.mark.parametrize(
    ("builder", "reason"),
    [
        pytest.param(
            binding("web").evicted_from("m1"), "cluster(s) is in the process of eviction", id="evicted"
        ),
        pytest.param(binding("web").evicted_from("m2"), "", id="evicted-elsewhere"),
        pytest.param(binding("web"), "", id="no-tasks"),
        pytest.param(
            binding("web").on("m1").evicted_from("m1"),
            "cluster(s) is in the process of eviction",
            id="still-placed",
        ),
    ],
)
def test_a_cluster_under_eviction_is_refused(builder: BindingBuilder, reason: str) -> None:
    assert refusal(ClusterEviction(), builder, cluster("m1")) == reason


# --- ClusterLocality ---


@pytest.mark.parametrize(
    ("builder", "score"),
    [
        pytest.param(binding("web"), 0, id="placed-nowhere"),
        pytest.param(binding("web").on("m1", "m2"), 100, id="placed-here"),
        pytest.param(binding("web").on("m2", "m3"), 0, id="placed-elsewhere"),
        pytest.param(binding("web").on(m1=0), 100, id="placed-here-without-replicas"),
    ],
)
def test_current_clusters_score_highest(builder: BindingBuilder, score: int) -> None:
    assert ClusterLocality().score(score_context(builder, cluster("m1"))) == score


# --- SpreadConstraint ---

NO_PROVIDER = "cluster(s) did not have provider property"
NO_REGION = "cluster(s) did not have region property"
NO_ZONES = "cluster(s) did not have zones property"


def with_deprecated_zone() -> ClusterBuilder:
    builder = cluster("m1")
    builder.manifest()["spec"]["zone"] = "z"
    return builder


@pytest.mark.parametrize(
    ("builder", "target", "reason"),
    [
        pytest.param(binding("web"), cluster("m1"), "", id="no-constraint"),
        pytest.param(binding("web").spread("cluster"), cluster("m1"), "", id="by-cluster"),
        pytest.param(binding("web").spread("provider"), cluster("m1").provider("aws"), "", id="provider"),
        pytest.param(binding("web").spread("provider"), cluster("m1"), NO_PROVIDER, id="no-provider"),
        pytest.param(binding("web").spread("region"), cluster("m1").region("us-west-2"), "", id="region"),
        pytest.param(binding("web").spread("region"), cluster("m1"), NO_REGION, id="no-region"),
        pytest.param(binding("web").spread("zone"), cluster("m1").zones("us-west-2a"), "", id="zone"),
        pytest.param(binding("web").spread("zone"), cluster("m1"), NO_ZONES, id="no-zone"),
        pytest.param(binding("web").spread("zone"), with_deprecated_zone(), NO_ZONES, id="deprecated-zone"),
        pytest.param(
            binding("web").spread("region").spread("provider"),
            cluster("m1"),
            NO_REGION,
            id="the-first-that-fails",
        ),
        pytest.param(
            binding("web").static_weights(m1=1).spread("region"), cluster("m1"), NO_REGION, id="static-weight"
        ),
        pytest.param(binding("web").on("m1").spread("region"), cluster("m1"), NO_REGION, id="placed"),
    ],
)
def test_clusters_must_have_the_property_to_spread_by(
    builder: BindingBuilder, target: ClusterBuilder, reason: str
) -> None:
    assert refusal(SpreadConstraint(), builder, target) == reason
