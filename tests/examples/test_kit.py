"""karmada_scheduler.testing takes bindings through all plugins, and tells what happened."""

from __future__ import annotations

import asyncio

import pytest

from karmada_scheduler.config.mistakes import ConfigError
from karmada_scheduler.framework import SUCCESS, BindContext, Handle, PreScoreContext, Result, ScoreContext
from karmada_scheduler.testing import (
    BindingBuilder,
    FakeHandle,
    binding,
    cluster,
    decide,
    make,
    placed,
    schedule,
    scheduling,
)


def web() -> BindingBuilder:
    """A builder of the test's own: what is said to one changes it."""
    return binding("web").replicas(2)


class Ledger:
    """Keeps books, and can be told to refuse."""

    name = "Ledger"

    def __init__(self, refusal: Result = SUCCESS) -> None:
        self.refusal = refusal

    def reserve(self, context: BindContext, /) -> Result:
        return self.refusal

    def unreserve(self, context: BindContext, /) -> None:
        """Give back."""

    async def post_bind(self, context: BindContext, /) -> None:
        """Take note."""


class Gang:
    """Lets bindings wait until there are two of them."""

    name = "Gang"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    async def permit(self, context: BindContext, /) -> Result:
        for waiting in self.handle.waiting():
            waiting.allow(self.name)
            return SUCCESS
        return Result.wait(60)


class Talks:
    """Scores by an answer that takes a while."""

    name = "Talks"

    async def pre_score(self, context: PreScoreContext, /) -> Result:
        await asyncio.sleep(0)
        self.best = context.clusters[-1].name
        return SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        return 100 if context.cluster.name == self.best else 0


def test_a_binding_goes_all_the_way_and_is_written() -> None:
    handle = FakeHandle()
    run = schedule(web(), cluster("m1"), plugins=[Ledger()], handle=handle)
    assert run.placed == {"m1": 2}
    assert run.condition.reason == "Success"
    assert run.methods_of("Ledger") == ["reserve", "post_bind"]
    assert handle.binding(run.binding.key) == run.binding
    assert [each.name for each in handle.snapshot()] == ["m1"]


def test_a_refusal_keeps_the_placement_and_gives_back_what_was_claimed() -> None:
    plugin = Ledger(Result.unschedulable("sold out", retry_after=30))
    run = schedule(binding("web").on("m1").names("m2"), cluster("m1"), cluster("m2"), plugins=[plugin])
    assert run.condition == ("False", "Unschedulable", "sold out")
    assert run.retry_after == 30
    assert run.methods_of("Ledger") == ["reserve", "unreserve"]
    assert [target.name for target in run.binding.spec.clusters] == ["m1"]
    with pytest.raises(AssertionError, match="not placed: sold out"):
        run.placed  # noqa: B018


def test_a_write_that_fails_gives_back_what_was_claimed() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Ledger()], write_fails=OSError("connection lost"))
    assert str(run.error) == "connection lost"
    assert run.methods_of("Ledger") == ["reserve", "unreserve"]


def test_a_placement_that_stays_as_it_is_passes_the_plugins_by() -> None:
    run = schedule(web().on(m1=2).applied(), cluster("m1"), plugins=[Ledger()])
    assert run.placed == {"m1": 2}
    assert run.methods_of("Ledger") == []


def test_a_binding_that_no_cluster_fits_loses_its_placement() -> None:
    run = schedule(binding("web").on("m1").names("m2"), cluster("m1"), plugins=[Ledger()])
    assert run.condition.reason == "NoClusterFit"
    assert run.refused == {"m1": "cluster(s) did not match the placement cluster affinity constraint"}
    assert run.binding.spec.clusters == ()
    assert run.methods_of("Ledger") == []


def test_what_waits_can_be_allowed() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Gang], when_waiting=lambda waiting: waiting.allow("Gang"))
    assert run.placed == {"m1": 2}


def test_what_waits_can_be_rejected() -> None:
    run = schedule(
        web(), cluster("m1"), plugins=[Gang], when_waiting=lambda waiting: waiting.reject("Gang", "not today")
    )
    assert run.condition == ("False", "Unschedulable", "not today")


def test_what_nobody_answers_has_waited_long_enough_at_once() -> None:
    run = schedule(web(), cluster("m1"), plugins=[Gang])
    assert run.condition.message == "rejected due to timeout after waiting 60s at plugin Gang"


async def test_bindings_can_wait_for_each_other() -> None:
    handle = FakeHandle()
    other = binding("other").replicas(1)
    runs = await asyncio.gather(
        *(scheduling(each, cluster("m1"), plugins=[Gang], handle=handle) for each in (web(), other))
    )
    assert [run.placed for run in runs] == [{"m1": 2}, {"m1": 1}]
    assert handle.waiting() == ()


def test_plugins_that_talk_can_decide() -> None:
    builder = binding("web").replicas(1).spread("cluster", 1, 1)
    assert placed(decide(builder, cluster("m1"), cluster("m2"), plugins=[Talks])) == {"m2": 1}


def test_a_plugin_that_is_made_gets_args_as_a_configuration_has_them() -> None:
    with pytest.raises(ConfigError, match="the plugin takes none"):
        make(Talks, {"speed": 3})


def test_the_story_can_be_read() -> None:
    run = schedule(
        web().spread("cluster", 1, 1),
        cluster("m1"),
        cluster("m2").taint("a:NoSchedule"),
        plugins=[Talks, Ledger],
    )
    story = str(run).splitlines()
    assert (
        story[0]
        == "ResourceBinding(default/web-deployment): Success: Binding has been scheduled successfully."
    )
    assert "  Talks scored: {'m1': 100}" in story
    assert "  Ledger.reserve: Success" in story
    assert story[-1] == "  on m1:2"
    assert any(line.startswith("  m2 refused: cluster(s) had untolerated taint") for line in story)
