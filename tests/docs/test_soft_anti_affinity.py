"""SoftAntiAffinity: apart, if there is a choice."""

from __future__ import annotations

from karmada_scheduler.testing import FakeHandle, binding, cluster, schedule
from tests.docs.conftest import Example

# All bindings of the test kit belong to one policy.
ANYWHERE = binding("web").replicas(2).spread("cluster", 1, 1)


def test_the_cluster_with_the_fewest_peers_is_chosen(example: Example) -> None:
    handle = FakeHandle(binding("a").on("m1", "m2"), binding("b").on("m1"))
    plugins = example("soft_anti_affinity", handle=handle)
    run = schedule(ANYWHERE, cluster("m1"), cluster("m2"), cluster("m3"), plugins=plugins)
    assert run.scores["SoftAntiAffinity"] == {"m1": 0, "m2": 500, "m3": 1000}
    assert run.placed == {"m3": 2}


def test_consecutive_bindings_are_spread(example: Example) -> None:
    handle = FakeHandle()
    plugins = example("soft_anti_affinity", handle=handle)
    for name in ("m1", "m2"):
        builder = binding(f"on-{name}").replicas(1).spread("cluster", 1, 1)
        run = schedule(builder, cluster("m1"), cluster("m2"), plugins=plugins, handle=handle)
        assert run.placed == {name: 1}


def test_without_a_choice_peers_share_a_cluster(example: Example) -> None:
    plugins = example("soft_anti_affinity", handle=FakeHandle(binding("a").on("m1")))
    assert schedule(ANYWHERE, cluster("m1"), plugins=plugins).placed == {"m1": 2}


def test_bindings_with_another_label_do_not_count(example: Example) -> None:
    handle = FakeHandle(binding("a", namespace="").on("m1"))  # of a ClusterPropagationPolicy
    plugins = example("soft_anti_affinity", handle=handle)
    run = schedule(ANYWHERE, cluster("m1"), cluster("m2"), plugins=plugins)
    assert run.scores["SoftAntiAffinity"] == {"m1": 1000, "m2": 1000}


def test_a_binding_without_the_label_is_not_scored(example: Example) -> None:
    plugins = example("soft_anti_affinity", label="example.com/group")
    assert "SoftAntiAffinity" not in schedule(ANYWHERE, cluster("m1"), plugins=plugins).scores
