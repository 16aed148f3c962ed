"""ClusterCaps: at most N replicas of a namespace on each cluster."""

from __future__ import annotations

from karmada_scheduler.api_error import ApiError
from karmada_scheduler.testing import FakeHandle, binding, cluster, schedule
from tests.docs.conftest import Example

MEMBERS = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=100), cluster("m3").capacity(cpu=100)]


def test_a_binding_is_divided_where_a_refusal_would_come_again_and_again(example: Example) -> None:
    handle = FakeHandle()
    run = schedule(
        binding("web").replicas(20, cpu=1).dynamic_weight(),
        *MEMBERS,
        plugins=example("cluster_caps", handle=handle),
        handle=handle,
    )
    assert sum(run.placed.values()) == 20
    assert max(run.placed.values()) <= 10


def test_the_cap_is_for_all_workloads_of_a_namespace_together(example: Example) -> None:
    handle = FakeHandle(
        binding("old").replicas(8).on(m2=8), binding("other", namespace="b").replicas(9).on(m3=9)
    )
    plugins = example("cluster_caps", handle=handle)
    first = schedule(
        binding("a").replicas(12, cpu=1).dynamic_weight(), *MEMBERS, plugins=plugins, handle=handle
    )
    assert first.placed["m2"] <= 2
    second = schedule(
        binding("b").replicas(4, cpu=1).dynamic_weight(), *MEMBERS, plugins=plugins, handle=handle
    )
    for name in ("m1", "m2", "m3"):
        on = [each.spec.clusters for each in handle.bindings() if each.key.namespace == "default"]
        assert sum(target.replicas for targets in on for target in targets if target.name == name) <= 10
    assert sum(second.placed.values()) == 4


def test_a_scaled_binding_keeps_what_it_has_above_the_cap(example: Example) -> None:
    web = binding("web").replicas(16, cpu=1).dynamic_weight().on(m2=14)
    run = schedule(web, *MEMBERS, plugins=example("cluster_caps"))
    assert run.placed["m2"] == 14
    assert sum(run.placed.values()) == 16


def test_what_does_not_fit_under_the_cap_is_unschedulable(example: Example) -> None:
    run = schedule(
        binding("web").replicas(30, cpu=1).dynamic_weight(), *MEMBERS, plugins=example("cluster_caps")
    )
    assert run.condition.reason == "Unschedulable"
    assert "available replicas 24 are not enough" in run.condition.message


def test_a_binding_that_was_not_written_counts_no_more_and_one_that_may_be_does(example: Example) -> None:
    for code, is_free in ((409, True), (504, False)):
        handle = FakeHandle()
        plugins = example("cluster_caps", handle=handle, replicas=4)
        fails = ApiError("no", code=code, reason="x")
        web = binding("web").replicas(12, cpu=1).dynamic_weight()
        assert schedule(web, *MEMBERS, plugins=plugins, handle=handle, write_fails=fails).error is fails
        run = schedule(
            binding("api").replicas(12, cpu=1).dynamic_weight(), *MEMBERS, plugins=plugins, handle=handle
        )
        assert (run.error is None) is is_free, run
