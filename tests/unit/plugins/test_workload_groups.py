"""Affinity and anti-affinity between workloads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.framework import FilterPlugin
from karmada_scheduler.testing import (
    BindingBuilder,
    Group,
    binding,
    cluster,
    decide,
    filter_context,
    gates,
    placed,
)
from karmada_scheduler_plugins.registry import in_tree
from karmada_scheduler_plugins.workload_affinity import WorkloadAffinity, WorkloadAntiAffinity

NAMES = ("m1", "m2", "m3")
ON = gates(WorkloadAffinity=True)


def friend(name: str, *, namespace: str = "default") -> BindingBuilder:
    return binding(name, namespace=namespace).replicas(1).groups(affinity="app=a")


def foe(name: str, *, namespace: str = "default") -> BindingBuilder:
    return binding(name, namespace=namespace).replicas(1).groups(anti_affinity="app=a")


def admitted(plugin: FilterPlugin, builder: BindingBuilder, peers: Group | None) -> set[str]:
    return {
        name
        for name in NAMES
        if plugin.filter(filter_context(builder, cluster(name), peers=peers)).is_success
    }


def reason(plugin: FilterPlugin, builder: BindingBuilder, peers: Group | None) -> str:
    return plugin.filter(filter_context(builder, cluster("m1"), peers=peers)).message


@pytest.mark.parametrize(
    ("peers", "names"),
    [
        pytest.param(
            Group(friend("b").on("m1", "m2"), friend("c").on("m2", "m3")), {"m2"}, id="where-all-peers-are"
        ),
        pytest.param(Group(friend("b")), set(NAMES), id="unscheduled-peer"),
        pytest.param(Group(), set(NAMES), id="no-peer"),
        pytest.param(
            Group(friend("b", namespace="other").on("m1")), set(NAMES), id="peer-of-another-namespace"
        ),
        pytest.param(Group(friend("a").on("m1")), set(NAMES), id="itself"),
        pytest.param(Group(foe("b").on("m1")), set(NAMES), id="another-group"),
    ],
)
def test_affinity_admits_the_clusters_of_the_peers(peers: Group, names: set[str]) -> None:
    assert admitted(WorkloadAffinity(), friend("a"), peers) == names


@pytest.mark.parametrize(
    ("peers", "names"),
    [
        pytest.param(Group(foe("b").on("m1"), foe("c").on("m3")), {"m2"}, id="where-no-peer-is"),
        pytest.param(Group(foe("b")), set(NAMES), id="unscheduled-peer"),
        pytest.param(Group(foe("b", namespace="other").on("m1")), set(NAMES), id="peer-of-another-namespace"),
        pytest.param(Group(foe("a").on("m1")), set(NAMES), id="itself"),
    ],
)
def test_anti_affinity_refuses_the_clusters_of_the_peers(peers: Group, names: set[str]) -> None:
    assert admitted(WorkloadAntiAffinity(), foe("a"), peers) == names


def test_refusals_have_upstreams_texts() -> None:
    assert reason(WorkloadAffinity(), friend("a"), Group(friend("b").on("m2"))) == (
        "ResourceBinding with the same affinity group does not target this cluster"
    )
    assert reason(WorkloadAntiAffinity(), foe("a"), Group(foe("b").on("m1"))) == (
        "cluster already has workload with the same anti-affinity group"
    )


@pytest.mark.parametrize(("plugin", "member"), [(WorkloadAffinity(), friend), (WorkloadAntiAffinity(), foe)])
class TestBoth:
    def test_a_placed_binding_keeps_its_clusters_in_spite_of_its_peers(
        self, plugin: FilterPlugin, member: Callable[[str], BindingBuilder]
    ) -> None:
        peers = Group(friend("b").on("m2"), foe("c").on("m1"))
        assert reason(plugin, member("a").on("m1"), peers) == ""

    def test_without_peers_a_group_is_an_error(
        self, plugin: FilterPlugin, member: Callable[[str], BindingBuilder]
    ) -> None:
        assert reason(plugin, member("a"), None) == "ResourceBindingIndexer is nil"
        assert reason(plugin, binding("a"), None) == ""


def test_anti_affinity_separates_bindings_and_affinity_joins_them() -> None:
    clusters = [cluster(name) for name in NAMES]
    one = foe("a").spread("cluster", 1, 1).dynamic_weight()
    decision = decide(one, *clusters, gates=ON, peers=Group(foe("b").on("m1")))
    assert list(placed(decision)) == ["m2"]
    other = friend("a").spread("cluster", 1, 1).dynamic_weight()
    decision = decide(other, *clusters, gates=ON, peers=Group(friend("b").on("m3")))
    assert list(placed(decision)) == ["m3"]


def test_conflicting_rules_fit_nowhere() -> None:
    both = binding("a").replicas(1).groups(affinity="app=a", anti_affinity="app=a").names("m1")
    peers = Group(friend("b").on("m1"), foe("c").on("m1"))
    decision = decide(both, cluster("m1"), gates=ON, peers=peers)
    assert decision.targets == ()
    assert str(decision.error).startswith("0/1 clusters are available: ")


def test_without_the_gate_groups_are_ignored() -> None:
    assert "WorkloadAffinity" not in in_tree(FeatureGates())
    assert {"WorkloadAffinity", "WorkloadAntiAffinity"} <= set(in_tree(ON))
    decision = decide(foe("a").names("m1"), cluster("m1"), peers=Group(foe("b").on("m1")))
    assert list(placed(decision)) == ["m1"]


def test_in_tree_plugins_run_in_the_order_of_their_names() -> None:
    upstream_s = [name for name, plugin in in_tree(ON).items() if not (plugin.mandatory or plugin.opt_in)]
    assert upstream_s == sorted(upstream_s)
