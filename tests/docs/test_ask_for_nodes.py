"""AskForNodes: too little capacity names the cluster that has to grow."""

from __future__ import annotations

from karmada_scheduler.testing import FakeHandle, binding, cluster, schedule
from tests.docs.conftest import Example

MEMBERS = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=6)]


def test_the_event_names_the_cluster_and_the_replicas_that_are_missing(example: Example) -> None:
    handle = FakeHandle()
    plugins = example("ask_for_nodes", handle=handle)
    run = schedule(
        binding("web").replicas(12, cpu=1).dynamic_weight(), *MEMBERS, plugins=plugins, handle=handle
    )
    assert run.condition.reason == "Unschedulable"
    assert "available replicas 10 are not enough" in run.condition.message
    assert run.retry_after == 30
    [event] = handle.events
    assert (event.reason, event.text) == ("NeedsNodes", "fits if m2 can take 2 more replicas")


def test_on_one_cluster_the_one_that_needs_the_least_is_named(example: Example) -> None:
    handle = FakeHandle()
    plugins = example("ask_for_nodes", handle=handle)
    web = binding("web").replicas(9, cpu=1).dynamic_weight().spread("cluster", 1, 1)
    schedule(web, *MEMBERS, plugins=plugins, handle=handle)
    assert [event.text for event in handle.events] == ["fits if m2 can take 3 more replicas"]


def test_what_fits_asks_for_nothing(example: Example) -> None:
    handle = FakeHandle()
    plugins = example("ask_for_nodes", handle=handle)
    assert schedule(binding("web").replicas(4, cpu=1), *MEMBERS, plugins=plugins, handle=handle).placed
    assert not handle.events
