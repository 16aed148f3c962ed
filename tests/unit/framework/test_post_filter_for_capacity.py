"""PostFilter plugins that are called when clusters pass and cannot take the replicas."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.framework import (
    SUCCESS,
    Code,
    PostFilterContext,
    ReplicaEstimate,
    Result,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.extension_points import FOR_CAPACITY
from karmada_scheduler.framework.profile.plugin_problems import plugin_problems
from karmada_scheduler.testing import BindingBuilder, Run, binding, cluster, schedule
from tests.unit.framework.plugins import answering, plugin, with_in_tree

MEMBERS = [cluster("m1").capacity(cpu=4), cluster("m2").capacity(cpu=6)]


def divided(replicas: int) -> BindingBuilder:
    return binding("web").replicas(replicas, cpu=1).dynamic_weight()


class Asks:
    """Asks what other numbers would give, and keeps what it saw."""

    name = "Asks"
    post_filter_for = frozenset({"capacity"})

    def __init__(self, *estimates: ReplicaEstimate, answer: Result = Result.unschedulable("no")) -> None:  # noqa: B008
        self.estimates, self.answer = estimates, answer
        self.seen: list[PostFilterContext] = []
        self.answers: list[Any] = []

    async def post_filter(self, context: PostFilterContext, /) -> Result:
        self.seen.append(context)
        for estimate in self.estimates:
            assert context.decide is not None
            self.answers.append(await context.decide(estimate))
        return self.answer


def run(asks: Any, builder: BindingBuilder, *more: Any) -> Run:
    return schedule(builder, *MEMBERS, plugins=with_in_tree(asks, *more))


def test_the_reasons_of_a_pending_result_follow_in_the_condition() -> None:
    found = run(Asks(answer=Result(Code.PENDING, ("Waits for nodes",), retry_after=7)), divided(12))
    assert found.condition.message.endswith("replicas 10 are not enough to schedule. Waits for nodes")
    assert (found.condition.reason, found.retry_after) == ("Unschedulable", 7)


def test_it_is_called_for_lack_of_capacity_at_assign_and_at_select() -> None:
    for builder, text in (
        (divided(12), "Clusters available replicas 10 are not enough to schedule."),
        (divided(8).spread("cluster", 1, 1), "no enough resource when selecting 1 clusters"),
        (
            binding("web").replicas(12, cpu=1).dynamic_weight().term("a", "m1", overflow=[["m2"]]),
            "not enough",
        ),
    ):
        asks = Asks()
        found = run(asks, builder)
        [context] = asks.seen
        assert context.shortage is not None
        assert context.shortage.needed == builder.build().spec.replicas
        assert {each.name: each.allocatable for each in context.shortage.candidates} == {"m1": 4, "m2": 6}
        assert text in str(context.shortage.error)
        assert str(found.error) == str(context.shortage.error)


def test_condition_and_text_are_those_without_the_plugin() -> None:
    for builder in (divided(12), divided(8).spread("cluster", 1, 1)):
        assert run(Asks(), builder).condition == schedule(builder, *MEMBERS).condition


def test_it_is_not_called_when_all_clusters_are_refused_nor_after_a_success() -> None:
    asks = Asks()
    refuses = plugin("F", filter=answering(Result.unschedulable("no")))
    assert run(asks, divided(2), refuses).condition.reason == "NoClusterFit"
    assert run(asks, divided(2)).error is None
    assert not asks.seen


def test_without_the_declaration_it_is_called_for_refused_clusters_only() -> None:
    asks = Asks()
    asks.post_filter_for = frozenset({"filter"})
    run(asks, divided(12))
    assert not asks.seen
    refuses = plugin("F", filter=answering(Result.unschedulable("no")))
    run(asks, divided(2), refuses)
    assert [each.shortage for each in asks.seen] == [None]


def test_both_cases_can_be_declared() -> None:
    asks = Asks()
    asks.post_filter_for = frozenset({"filter", "capacity"})
    run(asks, divided(12))
    run(asks, divided(2), plugin("F", filter=answering(Result.unschedulable("no"))))
    assert [each.shortage is None for each in asks.seen] == [False, True]


def test_decide_selects_and_divides_again_with_places_that_would_become_free() -> None:
    asks = Asks(ReplicaEstimate(at_least={"m1": 6}), ReplicaEstimate(at_least={"m1": 5}))
    run(asks, divided(12))
    fits, short = asks.answers
    assert {each.name: each.replicas for each in fits} == {"m1": 6, "m2": 6}
    assert isinstance(short, UnschedulableError)
    assert "available replicas 11 are not enough" in str(short)


def test_decide_respects_the_caps_of_other_plugins() -> None:
    caps = plugin("Caps", estimate_replicas=answering(ReplicaEstimate(most={"m1": 3}, less={"m2": 2})))
    asks = Asks(ReplicaEstimate(at_least={"m1": 6}), ReplicaEstimate(at_least={"m2": 9}))
    run(asks, divided(12), caps)
    capped, fits = asks.answers
    assert "available replicas 7 are not enough" in str(capped)
    assert {each.name: each.replicas for each in fits} == {"m1": 3, "m2": 9}


def test_decide_changes_no_decision_and_calls_no_filter() -> None:
    calls: list[str] = []

    def filtering(context: Any) -> Result:
        calls.append(context.cluster.name)
        return SUCCESS

    asks = Asks(ReplicaEstimate(at_least={"m1": 60}))
    found = run(asks, divided(13).on(m1=2), plugin("F", filter=filtering))
    assert calls == ["m1", "m2"]
    assert found.condition.reason == "Unschedulable"
    assert [tuple(each) for each in found.binding.spec.clusters] == [("m1", 2)]


def test_it_is_called_after_all_terms_have_failed_in_their_order() -> None:
    asks = Asks()
    terms = divided(12).term("a", "m1").term("b", "m2").term("c", "m1", "m2")
    run(asks, terms)
    assert [each.cycle.affinity_name for each in asks.seen] == ["a", "b", "c"]
    asks = Asks(answer=SUCCESS)
    run(asks, terms)
    assert [each.cycle.affinity_name for each in asks.seen] == ["a"]
    asks = Asks()
    assert run(asks, divided(6).term("a", "m1").term("b", "m2")).placed == {"m2": 6}
    assert not asks.seen


@pytest.mark.parametrize(
    ("answer", "delay", "may_work"),
    [
        (SUCCESS, 1.0, True),
        (Result.unschedulable("wait", retry_after=30.0), 30.0, False),
        (Result.unschedulable("no"), 0.0, False),
    ],
)
def test_the_answer_says_when_the_binding_is_tried_again(
    answer: Result, delay: float, may_work: bool
) -> None:
    found = run(Asks(answer=answer), divided(12))
    assert (found.retry_after, found.decision.may_work_next_time) == (delay, may_work)


def test_a_plugin_that_fails_or_asks_with_an_invalid_estimate_is_logged_and_the_error_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = schedule(divided(12), *MEMBERS).condition
    assert run(Asks(ReplicaEstimate(most={"m9": 1})), divided(12)).condition == expected
    assert "plugin \"Asks\" returned 'm9' at EstimateReplicas" in caplog.text
    assert run(Asks(answer=None), divided(12)).condition == expected  # type: ignore[arg-type]
    assert 'plugin "Asks" returned None at PostFilter' in caplog.text


def test_a_profile_without_such_a_plugin_notes_no_shortage() -> None:
    plain = with_in_tree(plugin("P", post_filter=answering(SUCCESS)))
    assert plain.post_filters[FOR_CAPACITY] == ()
    assert not schedule(divided(12), *MEMBERS, plugins=plain).methods_of("P")


@pytest.mark.parametrize("cases", [{"room"}, "capacity", (), 7, {"filter", "other"}])
def test_another_declaration_is_refused(cases: Any) -> None:
    made = plugin("P", post_filter=answering(SUCCESS))
    type(made).post_filter_for = cases
    assert any(
        "post_filter_for must be {'filter'}, {'capacity'} or both" in each for each in plugin_problems(made)
    )


def test_a_misspelt_declaration_is_refused_with_the_right_one() -> None:
    made = plugin("P", post_filter=answering(SUCCESS))
    type(made).post_filters_for = {"capacity"}
    assert "post_filters_for declares nothing; did you mean post_filter_for?" in list(plugin_problems(made))


def test_the_error_says_that_it_is_for_lack_of_capacity() -> None:
    from karmada_scheduler.framework import NotEnoughCapacityError

    for builder, reason in (
        (divided(12), "Unschedulable"),
        (divided(8).spread("cluster", 1, 1), "SchedulerError"),
    ):
        found = schedule(builder, *MEMBERS)
        assert isinstance(found.error, NotEnoughCapacityError)
        assert isinstance(found.error, SchedulingError)
        assert found.condition.reason == reason
