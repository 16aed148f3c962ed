"""PreFilter to Assign: what each answer means at each point, as the docstrings of the points promise."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.core.condition import condition_for
from karmada_scheduler.framework import (
    SKIP,
    SUCCESS,
    AssignContext,
    Code,
    FilterContext,
    NormalizeScoreContext,
    PluginError,
    PostFilterContext,
    PreFilterContext,
    Result,
    ScoreContext,
    SelectContext,
    StateKey,
)
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.binding_points import RefusedError
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, binding, cluster, decide, placed
from tests.unit.framework.plugins import (
    IgnoringObserver,
    answering,
    at_their_points,
    coroutine,
    plugin,
    raising,
    with_in_tree,
)

CLUSTERS = ("m1", "m2", "m3")
NOTE: StateKey[list[str]] = StateKey("note")
NO = Result.unschedulable("not today")
NEVER = Result.unresolvable("not ever")
BROKEN = Result.error("unknown state")


def web(replicas: int = 4) -> BindingBuilder:
    return binding("web").replicas(replicas).dynamic_weight()


def decided(
    *plugins: Any, web: BindingBuilder | None = None, first: bool = False, caller: PluginCaller | None = None
) -> Any:
    builder = web or binding("web").replicas(4).on(m1=4)
    return decide(
        builder, *map(cluster, CLUSTERS), plugins=with_in_tree(*plugins, first=first, caller=caller)
    )


# --- PreFilter ---


def test_the_contexts_of_one_cluster_can_be_unpacked() -> None:
    class Unpacks:
        name = "Unpacks"

        def filter(self, context: FilterContext) -> Result:
            _, found = context
            return Result.unschedulable("no") if found.name == "m1" else SUCCESS

        def score(self, context: ScoreContext) -> int:
            cycle, found = context
            return 100 if found.name == cycle.binding.spec.resource.name else 0

    made = binding("m3").replicas(1).aggregated().spread("cluster", 1, 1)
    decision = decide(made, cluster("m1"), cluster("m2"), cluster("m3"), plugins=[Unpacks])
    assert placed(decision) == {"m3": 1}


def test_success_at_pre_filter_keeps_all_clusters() -> None:
    assert set(placed(decided(plugin("P", pre_filter=answering(SUCCESS))))) == set(CLUSTERS)


def test_pre_filter_sees_the_clusters_that_are_not_being_deleted() -> None:
    seen: list[str] = []

    def record(context: PreFilterContext) -> Result:
        seen.extend(each.name for each in context.clusters)
        return SUCCESS

    plugins = with_in_tree(plugin("P", pre_filter=record))
    decide(web(), cluster("m2"), cluster("m1"), cluster("m3").deleting(), plugins=plugins)
    assert seen == ["m1", "m2"]


def test_names_from_pre_filter_restrict_the_clusters_and_are_intersected() -> None:
    filtered: list[str] = []

    def run_filter(context: Any) -> Result:
        filtered.append(context.cluster.name)
        return SUCCESS

    decision = decided(
        plugin("A", pre_filter=answering({"m1", "m2"})),
        plugin("B", pre_filter=answering(frozenset({"m2", "m3", "nowhere"}))),
        plugin("F", filter=run_filter),
    )
    assert placed(decision) == {"m2": 4}
    assert set(filtered) == {"m2"}
    refused = decision.attempts[0].diagnosis.result_by_cluster
    assert refused["m1"].reasons == ("cluster(s) didn't satisfy plugin(s) [B]",)
    assert refused["m3"].reasons == ("cluster(s) didn't satisfy plugin(s) [A]",)


def test_disjoint_names_from_pre_filter_refuse_all_clusters() -> None:
    decision = decided(
        plugin("A", pre_filter=answering({"m1"})),
        plugin("B", pre_filter=answering({"m2"})),
    )
    assert decision.targets == ()
    assert str(decision.error) == (
        "0/3 clusters are available: 1 cluster(s) didn't satisfy plugin(s) [A B], "
        "1 cluster(s) didn't satisfy plugin(s) [A], 1 cluster(s) didn't satisfy plugin(s) [B]."
    )


def test_after_skip_at_pre_filter_neither_filter_nor_add_binding_is_called() -> None:
    skips = plugin(
        "S", pre_filter=answering(SKIP), filter=raising(), add_binding=raising(), remove_binding=raising()
    )
    others = decide(
        web(),
        *map(cluster, CLUSTERS),
        plugins=with_in_tree(skips),
        in_flight=[binding("other").replicas(1).on(m1=1)],
    )
    assert set(placed(others)) == set(CLUSTERS)


def test_a_refusal_at_pre_filter_refuses_all_clusters_after_the_other_plugins() -> None:
    called: list[str] = []

    def recording(name: str, answer: Any) -> Any:
        def pre_filter(_: PreFilterContext) -> Any:
            called.append(name)
            return answer

        return plugin(name, pre_filter=pre_filter, filter=raising())

    decision = decided(
        recording("A", NO), recording("B", Result(Code.PENDING, ("wait",))), recording("C", SUCCESS)
    )
    assert called[:3] == ["A", "B", "C"]
    assert decision.targets == ()
    assert str(decision.error) == "0/3 clusters are available: 3 not today."


def test_an_unresolvable_refusal_at_pre_filter_refuses_all_clusters_at_once() -> None:
    decision = decided(
        plugin("A", pre_filter=answering(NO)),
        plugin("B", pre_filter=answering(NEVER)),
        plugin("C", pre_filter=raising()),
    )
    assert str(decision.error) == "0/3 clusters are available: 3 not ever."


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answering(BROKEN), 'running PreFilter plugin "P": unknown state'),
        (raising(), 'plugin "P" failed at PreFilter: RuntimeError: boom'),
        (
            answering(None),
            'plugin "P" returned None at PreFilter, expected a Result or a set of cluster names',
        ),
        (
            answering(["m1"]),
            "plugin \"P\" returned ['m1'] at PreFilter, expected a Result or a set of cluster names",
        ),
        (
            answering(Result.wait(1)),
            "plugin \"P\" returned 'Wait' at PreFilter, expected cluster names, Success, Skip, Unschedulable or Error",
        ),
        (coroutine(BROKEN), 'running PreFilter plugin "P": unknown state'),
    ],
)
def test_an_error_at_pre_filter_fails_the_attempt_and_keeps_the_placement(answer: Any, text: str) -> None:
    decision = decided(plugin("P", pre_filter=answer))
    assert decision.targets is None
    assert str(decision.error) == f"failed to find fit clusters: {text}"
    assert condition_for(decision.error).reason == "SchedulerError"


def test_a_refusal_with_retry_after_delays_the_next_attempt() -> None:
    later = Result.unschedulable("closed", retry_after=60.0)
    assert decided(plugin("P", pre_filter=answering(later))).retry_after == 60.0


# --- PreFilter extensions ---


class Counting:
    """Counts the bindings on each cluster, and implements AddBinding and RemoveBinding."""

    name = "Counting"

    def __init__(self, *known: BindingBuilder) -> None:
        self.known = [each.build() for each in known]
        self.calls: list[tuple[str, str, str, int]] = []

    def pre_filter(self, context: PreFilterContext, /) -> Result:
        context.cycle.state.write(
            NOTE,
            [
                target.name
                for each in self.known
                for target in each.spec.clusters
                for _ in range(target.replicas)
            ],
        )
        return SUCCESS

    def add_binding(self, context: Any, /) -> Result:
        return self._count("add", context)

    def remove_binding(self, context: Any, /) -> Result:
        return self._count("remove", context)

    def _count(self, what: str, context: Any) -> Result:
        name = context.cluster.name
        [replicas] = [each.replicas for each in context.peer.spec.clusters if each.name == name]
        self.calls.append((what, context.peer.key.name, name, replicas))
        note = context.cycle.state.read(NOTE)
        for _ in range(replicas):
            if what == "add":
                note.append(name)
            else:
                note.remove(name)
        return SUCCESS

    def filter(self, context: Any, /) -> Result:
        count = context.cycle.state.read(NOTE).count(context.cluster.name)
        return SUCCESS if count < 3 else Result.unschedulable("full")


def test_bindings_in_flight_are_removed_as_stored_and_added_as_decided() -> None:
    stored = binding("other").replicas(3).on(m1=2, m2=1)
    counting = Counting(stored)
    framework = Framework(at_their_points({"Counting": counting}))
    builder = web()
    from karmada_scheduler.framework import Cycle, Placement
    from karmada_scheduler.framework.cycle import InFlight
    from karmada_scheduler.testing import snapshot

    cycle = Cycle(builder.build(), Placement(), snapshot=snapshot(*map(cluster, CLUSTERS)))
    planned = binding("other").replicas(3).on(m1=3, gone=1)
    in_flight = [InFlight(stored.build(), planned.build()), InFlight(None, builder.on(m3=9).build())]
    run_sync(framework.pre_filter.run(cycle, tuple(cycle.snapshot), in_flight))
    assert counting.calls == [
        ("remove", "other-deployment", "m1", 2),
        ("remove", "other-deployment", "m2", 1),
        ("add", "other-deployment", "m1", 3),
    ]
    assert cycle.state.read(NOTE) == ["m1", "m1", "m1"]


def test_a_binding_in_flight_counts_for_the_filter() -> None:
    decision = decide(
        binding("web").replicas(1),
        *map(cluster, CLUSTERS),
        plugins=with_in_tree(Counting()),
        in_flight=[binding("other").replicas(3).on(m1=3, m2=1)],
    )
    assert set(placed(decision)) == {"m2", "m3"}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answering(NO), 'running add_binding on PreFilter plugin "P": not today'),
        (raising(), 'plugin "P" failed at PreFilter: RuntimeError: boom'),
        (answering(True), 'plugin "P" returned True at PreFilter'),
    ],
)
def test_add_binding_without_success_fails_the_attempt(answer: Any, text: str) -> None:
    broken = plugin("P", pre_filter=answering(SUCCESS), add_binding=answer, remove_binding=answer)
    decision = decide(
        binding("web").replicas(1).on(m1=1),
        *map(cluster, CLUSTERS),
        plugins=with_in_tree(broken),
        in_flight=[binding("other").replicas(3).on(m1=3)],
    )
    assert decision.targets is None
    assert text in str(decision.error)


# --- Filter ---


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING])
def test_a_refusal_at_filter_excludes_the_cluster(code: Code) -> None:
    filters = plugin(
        "F", filter=lambda context: SUCCESS if context.cluster.name == "m2" else Result(code, ("no",))
    )
    decision = decided(filters)
    assert placed(decision) == {"m2": 4}
    assert decision.attempts[0].diagnosis.result_by_cluster["m1"] == Result(code, ("no",), "F")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (Result.error("the price service is away"), 'running Filter plugin "F": the price service is away'),
        (Result.wait(60), "plugin \"F\" returned 'Wait' at Filter, expected Success, Unschedulable, "),
        (SKIP, "plugin \"F\" returned 'Skip' at Filter, expected Success, Unschedulable, "),
    ],
)
@pytest.mark.parametrize("observed", [False, True])
def test_an_error_at_filter_fails_the_attempt_and_keeps_the_placement(
    result: Result, text: str, observed: bool
) -> None:
    caller = PluginCaller(observer=IgnoringObserver() if observed else None)
    decision = decided(plugin("F", filter=answering(result)), caller=caller)
    assert decision.targets is None
    assert isinstance(decision.error, PluginError)
    assert text in str(decision.error)
    assert decision.failed_terms == ()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Result(Code.UNSCHEDULABLE, "no"), "texts as reasons, in a tuple"),  # type: ignore[arg-type]
        (Result(Code.UNSCHEDULABLE, (1,)), "texts as reasons, in a tuple"),  # type: ignore[arg-type]
        (Result("Success"), "a Code in the Result"),  # type: ignore[arg-type]
        (Result(Code.UNSCHEDULABLE, retry_after="5"), "seconds as timeout and retry_after"),  # type: ignore[arg-type]
        (Result(Code.UNSCHEDULABLE, retry_after=float("nan")), "seconds as timeout and retry_after"),
        (Result(Code.WAIT, timeout=-1), "seconds as timeout and retry_after"),
    ],
)
def test_a_result_with_invalid_fields_is_an_error_that_names_the_plugin(
    result: Result, expected: str
) -> None:
    decision = decided(plugin("F", filter=answering(result)))
    assert decision.targets is None
    assert str(decision.error).startswith('failed to find fit clusters: plugin "F" returned Result(')
    assert str(decision.error).endswith(f" at Filter, expected {expected}")


@pytest.mark.parametrize(
    "last", [Result(Code.SUCCESS), Result.unschedulable("no"), Result.unschedulable("other")]
)
def test_each_cluster_has_its_own_result_though_a_plugin_returns_equal_ones(last: Result) -> None:
    answers = {"m1": Result.unschedulable("no"), "m2": Result.unschedulable("no"), "m3": last}
    decision = decided(plugin("F", filter=lambda context: answers[context.cluster.name]))
    refused = decision.attempts[0].diagnosis.result_by_cluster
    expected = {name: result.reasons for name, result in answers.items() if not result.is_success}
    assert {name: result.reasons for name, result in refused.items()} == expected
    assert {result.plugin for result in refused.values()} == {"F"}


@pytest.mark.parametrize(
    "last", [None, 1, Result.error("away"), Result(Code.UNSCHEDULABLE, ("no",), retry_after=float("nan"))]
)
def test_an_invalid_result_after_a_valid_one_is_an_error(last: Any) -> None:
    answers = {"m1": SUCCESS, "m2": Result.unschedulable("no"), "m3": last}
    decision = decided(plugin("F", filter=lambda context: answers[context.cluster.name]))
    assert isinstance(decision.error, PluginError)


def test_a_list_of_reasons_is_read_for_each_cluster() -> None:
    reasons: list[str] = []

    def refuse(context: FilterContext) -> Result:
        reasons[:] = [context.cluster.name]
        return shared

    shared = Result(Code.UNSCHEDULABLE, reasons)  # type: ignore[arg-type]
    refused = decided(plugin("F", filter=refuse)).attempts[0].diagnosis.result_by_cluster
    assert {name: result.reasons for name, result in refused.items()} == {
        name: (name,) for name in ("m1", "m2", "m3")
    }


def test_reasons_may_be_a_list() -> None:
    decision = decided(plugin("F", filter=answering(Result(Code.UNSCHEDULABLE, ["no"]))))  # type: ignore[arg-type]
    assert str(decision.error) == "0/3 clusters are available: 3 no."


def test_an_exception_whose_str_raises_is_reported_by_its_type() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    class Odd:
        def __repr__(self) -> str:
            raise ValueError

    assert 'plugin "F" failed at Filter for cluster m1: MuteError' in str(
        decided(plugin("F", filter=raising(MuteError()))).error
    )
    assert 'plugin "F" returned a Odd at Filter, expected a Result' in str(
        decided(plugin("F", filter=answering(Odd()))).error
    )


# --- PostFilter ---


def nowhere(*post: Any) -> Any:
    return decided(plugin("F", filter=answering(NO)), *post)


def test_post_filter_is_called_only_when_no_cluster_passes() -> None:
    assert decided(plugin("P", post_filter=raising())).error is None


@pytest.mark.parametrize(
    ("answers", "may_work"),
    [
        ([SUCCESS], True),
        ([NO, SUCCESS], True),
        ([SKIP, SUCCESS], True),
        ([NEVER, SUCCESS], False),
        ([BROKEN, SUCCESS], False),
        ([NO, NO], False),
        ([], False),
    ],
)
def test_post_filters_are_called_until_one_succeeds_or_is_unresolvable(
    answers: list[Result], may_work: bool
) -> None:
    plugins = [plugin(f"P{i}", post_filter=answering(answer)) for i, answer in enumerate(answers)]
    decision = nowhere(*plugins)
    assert decision.may_work_next_time is may_work
    assert decision.targets == ()
    assert str(decision.error) == "0/3 clusters are available: 3 not today."


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (raising(), 'plugin "P" failed at PostFilter: RuntimeError: boom'),
        (answering(None), 'plugin "P" returned None at PostFilter, expected a Result'),
        (answering(BROKEN), 'running PostFilter plugin "P": unknown state'),
    ],
)
def test_a_post_filter_that_raises_is_logged_and_the_reasons_of_the_filters_stay(
    answer: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        decision = nowhere(plugin("P", post_filter=answer))
    assert text in caplog.text
    assert str(decision.error) == "0/3 clusters are available: 3 not today."


def test_fits_without_removes_bindings_on_a_copy_of_the_cycle_state() -> None:
    big = binding("big").replicas(3).on(m1=3)
    counting = Counting(big, binding("b2").replicas(3).on(m2=3), binding("b3").replicas(3).on(m3=3))
    found: dict[str, Result] = {}

    def record(context: PostFilterContext) -> Result:
        for each in context.cycle.snapshot:
            peers = [big.build()] if each.name == "m1" else []
            found[each.name] = context.fits_without(each, peers)
        assert context.cycle.state.read(NOTE).count("m1") == 3
        return SUCCESS

    decision = decided(counting, plugin("P", post_filter=record))
    assert found == {
        "m1": SUCCESS,
        "m2": Result(Code.UNSCHEDULABLE, ("full",), "Counting"),
        "m3": Result(Code.UNSCHEDULABLE, ("full",), "Counting"),
    }
    assert decision.may_work_next_time


def test_fits_without_respects_skip_and_refusals_of_pre_filter() -> None:
    skips = plugin(
        "S", pre_filter=answering(SKIP), filter=raising(), add_binding=raising(), remove_binding=raising()
    )
    narrows = plugin("N", pre_filter=answering({"m1"}))
    refuses = plugin("F", filter=answering(NO))
    found: dict[str, str] = {}

    def record(context: PostFilterContext) -> Result:
        for each in context.cycle.snapshot:
            found[each.name] = context.fits_without(each, [binding("b").replicas(1).on(m1=1).build()]).message
        return SKIP

    decided(skips, narrows, refuses, plugin("P", post_filter=record))
    assert found == {
        "m1": "not today",
        "m2": "cluster(s) didn't satisfy plugin(s) [N]",
        "m3": "cluster(s) didn't satisfy plugin(s) [N]",
    }


# --- PreScore, Score ---


def test_pre_score_gets_the_clusters_that_passed_and_skip_omits_the_score() -> None:
    seen: list[str] = []

    def record(context: Any) -> Result:
        seen.extend(each.name for each in context.clusters)
        return SKIP

    filters = plugin("F", filter=lambda context: NO if context.cluster.name == "m1" else SUCCESS)
    scores = plugin("S", pre_score=record, score=raising())
    decision = decided(filters, scores, web=binding("web").replicas(4))
    assert seen[:2] == ["m2", "m3"]
    assert decision.error is None
    assert "S" not in decision.attempts[-1].scores


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answering(BROKEN), 'running PreScore plugin "P": unknown state'),
        (
            answering(NO),
            "plugin \"P\" returned 'Unschedulable' at PreScore, expected Success, Skip or Error",
        ),
        (raising(), 'plugin "P" failed at PreScore: RuntimeError: boom'),
        (answering(None), 'plugin "P" returned None at PreScore, expected a Result'),
    ],
)
def test_another_code_than_success_and_skip_at_pre_score_fails_the_attempt(answer: Any, text: str) -> None:
    decision = decided(plugin("P", pre_score=answer))
    assert decision.targets is None
    assert str(decision.error) == f"failed to prioritize clusters: {text}"


def test_scores_are_normalized_multiplied_and_added_up() -> None:
    a = plugin("A", score=lambda context: 10 * int(context.cluster.name[1]))

    def normalized(context: NormalizeScoreContext) -> list[int]:
        return [100 - score for score in context.scores]

    b = plugin("B", score=answering(40), normalize_score=normalized)
    plugins = replace(at_their_points({"A": a, "B": b}), weights={"A": 3})
    from karmada_scheduler.framework import Cycle, Placement
    from karmada_scheduler.testing import snapshot

    cycle = Cycle(web().build(), Placement(), snapshot=snapshot(*map(cluster, CLUSTERS)))
    scores = run_sync(Framework(plugins).run_score(cycle, tuple(cycle.snapshot)))
    assert scores == {"A": [30, 60, 90], "B": [60, 60, 60]}


def test_a_cluster_with_a_higher_score_is_preferred() -> None:
    likes = plugin("S", score=lambda context: 100 if context.cluster.name == "m2" else 0)
    builder = binding("web").replicas(4).spread("cluster", 1, 1)
    assert placed(decided(likes, web=builder)) == {"m2": 4}


@pytest.mark.parametrize("scores", [None, [1, 2], [1, True, 2], [1, "a", 2]])
def test_invalid_normalized_scores_are_an_error(scores: Any) -> None:
    broken = plugin("S", score=answering(1), normalize_score=answering(scores))
    assert str(decided(broken).error) == (
        f'failed to prioritize clusters: plugin "S" normalizeScore failed with: expected 3 integers, got {scores!r}'
    )


# --- Select, Assign ---


def test_the_first_select_that_does_not_skip_chooses() -> None:
    def last(context: SelectContext) -> Any:
        return context.candidates[-1:]

    decision = decided(
        plugin("A", select=answering(SKIP)),
        plugin("B", select=last),
        plugin("C", select=raising()),
    )
    assert [each.name for each in decision.attempts[-1].selected] == list(placed(decision))
    assert len(placed(decision)) == 1


def test_if_all_skip_the_default_selects_and_assigns() -> None:
    skips = plugin("A", select=answering(SKIP), assign=coroutine(SKIP))
    assert placed(decided(skips)) == placed(decided())


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        (answering(NO), "Unschedulable", "refused at Select by P: not today"),
        (answering(NEVER), "Unschedulable", "refused at Select by P: not ever"),
        (answering(BROKEN), "SchedulerError", 'running Select plugin "P": unknown state'),
        (raising(), "SchedulerError", 'plugin "P" failed at Select: RuntimeError: boom'),
        (
            answering(None),
            "SchedulerError",
            'plugin "P" returned None at Select, expected some of the candidates',
        ),
        (
            answering(["m1"]),
            "SchedulerError",
            "plugin \"P\" returned ['m1'] at Select, expected some of the candidates",
        ),
        (
            answering(""),
            "SchedulerError",
            "plugin \"P\" returned '' at Select, expected some of the candidates",
        ),
        (
            lambda context: [context.candidates[0]] * 2,
            "SchedulerError",
            "plugin \"P\" returned ['m1', 'm1'] at Select, expected candidates, each at most once",
        ),
        (
            lambda context: [context.candidates[0]._replace(cluster=cluster("m9").build())],
            "SchedulerError",
            "plugin \"P\" returned ['m9'] at Select, expected candidates, each at most once",
        ),
        (
            answering(Result.wait(1)),
            "SchedulerError",
            "plugin \"P\" returned 'Wait' at Select, expected some of the candidates, Skip, Unschedulable or Error",
        ),
        (
            answering(SUCCESS),
            "SchedulerError",
            "plugin \"P\" returned 'Success' at Select, expected some of the candidates, Skip, Unschedulable or Error",
        ),
        (coroutine(NO), "Unschedulable", "refused at Select by P: not today"),
    ],
)
def test_an_invalid_answer_of_select_keeps_the_placement(answer: Any, reason: str, text: str) -> None:
    decision = decided(plugin("P", select=answer))
    assert decision.targets is None
    assert condition_for(decision.error) == ("False", reason, f"failed to select clusters: {text}")


def test_a_refusal_at_select_or_assign_has_retry_after() -> None:
    later = Result.unschedulable("closed", retry_after=60.0)
    for point in ("select", "assign"):
        error = decided(plugin("P", **{point: answering(later)})).error
        assert error is not None
        assert error.retry_after == 60.0
        assert isinstance(error, RefusedError)
        assert (error.plugin, error.point.value, error.why) == ("P", point, "closed")
        assert str(error).endswith(f"refused at {error.point.label} by P: closed")


@pytest.mark.parametrize(
    "answer",
    [
        {"m1": 1, "m2": 3},
        [TargetCluster("m1", 1), TargetCluster("m2", 3)],
    ],
)
def test_an_assign_plugin_returns_replicas_by_name_or_targets(answer: Any) -> None:
    assert placed(decided(plugin("P", assign=answering(answer)), web=web(4))) == {"m1": 1, "m2": 3}


def test_replicas_need_not_add_up_unless_the_placement_divides_them() -> None:
    assert placed(decided(plugin("P", assign=answering({"m1": 1})))) == {"m1": 1}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "returned None at Assign, expected replicas by cluster name"),
        (7, "returned 7 at Assign, expected replicas by cluster name"),
        ("m1", "returned 'm1' at Assign, expected replicas by cluster name"),
        ({"m1": 1.0}, "returned {'m1': 1.0} at Assign, expected replicas by cluster name"),
        ({"m1": True}, "returned {'m1': True} at Assign, expected replicas by cluster name"),
        ({"m9": 4}, "returned ['m9'] at Assign, expected some of ['m1', 'm2', 'm3'], each at most once"),
        ({1: 4}, "returned {1: 4} at Assign, expected replicas by cluster name"),
        (
            [TargetCluster("m1", 2), TargetCluster("m1", 2)],
            "returned ['m1', 'm1'] at Assign, expected some of ['m1', 'm2', 'm3'], each at most once",
        ),
        ({"m1": 5, "m2": -1}, "returned {'m2': -1} at Assign, expected 0 to 2147483647 replicas"),
        ({"m1": 2**31}, "returned {'m1': 2147483648} at Assign, expected 0 to 2147483647 replicas"),
        ({"m1": 3}, "returned '3 replicas in all' at Assign, expected 4"),
        (
            SUCCESS,
            "returned 'Success' at Assign, expected replicas by cluster name, Skip, Unschedulable or Error",
        ),
        (BROKEN, 'running Assign plugin "P": unknown state'),
    ],
)
def test_an_invalid_answer_of_assign_is_an_error_with_the_expected_value(answer: Any, text: str) -> None:
    decision = decided(plugin("P", assign=answering(answer)), web=web(4).on(m1=4))
    assert decision.targets is None
    expected = text if text.startswith("running") else f'plugin "P" {text}'
    assert str(decision.error) == f"failed to assign replicas: {expected}"


def test_an_assign_plugin_gets_the_selected_clusters() -> None:
    seen: list[str] = []

    def record(context: AssignContext) -> dict[str, int]:
        seen.extend(each.name for each in context.selected)
        return {"m2": 4}

    decided(
        plugin("P", select=lambda context: [each for each in context.candidates if each.name != "m1"]),
        plugin("Q", assign=record),
        web=web(4),
    )
    assert "m1" not in seen


# --- terms and passes ---


def terms() -> BindingBuilder:
    return binding("web").replicas(2).term("near", "m1").term("far", "m2", "m3")


def test_after_a_plugin_error_the_next_affinity_term_is_not_tried() -> None:
    broken = plugin("P", filter=lambda context: None if context.cluster.name == "m1" else SUCCESS)
    decision = decide(terms(), *map(cluster, CLUSTERS), plugins=with_in_tree(broken, first=True))
    assert decision.targets is None
    assert len(decision.attempts) == 1
    assert 'plugin "P" returned None at Filter' in str(decision.error)


def test_each_affinity_term_has_its_own_cycle_state() -> None:
    seen: list[bool] = []

    def record(context: PreFilterContext) -> Result:
        seen.append(NOTE in context.cycle.state)
        context.cycle.state.write(NOTE, [])
        return SUCCESS

    refuses = plugin("F", filter=lambda context: NO if context.cluster.name == "m1" else SUCCESS)
    decide(terms(), *map(cluster, CLUSTERS), plugins=with_in_tree(plugin("P", pre_filter=record), refuses))
    assert seen
    assert not any(seen)


def test_a_decision_that_fails_on_a_later_pass_writes_nothing() -> None:
    calls: list[int] = []

    def breaks_later(_: PreFilterContext) -> Result:
        calls.append(1)
        return SUCCESS if len(calls) == 1 else BROKEN

    decision = decided(plugin("P", pre_filter=breaks_later), web=binding("web").replicas(4))
    assert len(calls) == 2
    assert decision.targets is None
    assert not decision.was_placed
    assert 'running PreFilter plugin "P": unknown state' in str(decision.error)


# --- cost without plugins ---


def test_one_profile_that_needs_bindings_in_flight_or_workloads_is_enough() -> None:
    takes = with_in_tree(
        plugin(
            "P",
            pre_filter=answering(SUCCESS),
            add_binding=answering(SUCCESS),
            remove_binding=answering(SUCCESS),
        )
    )
    assert takes.pre_filter.needs_in_flight
    profiles = Profiles({"a": with_in_tree(), "b": takes})
    assert profiles.needs_in_flight
    assert not profiles.need_workloads
    assert not profiles.needs_workload(binding("web").scheduler("a").build())
    assert not profiles.needs_workload(binding("web").scheduler("another").build())
    profiles.replace({"a": with_in_tree(), "b": with_in_tree()})
    assert not profiles.needs_in_flight


def test_without_coroutines_a_decision_is_synchronous() -> None:
    assert not with_in_tree().is_async
    assert not with_in_tree().pre_filter.needs_in_flight
    for point in ("pre_filter", "post_filter", "pre_score", "select", "assign"):
        assert with_in_tree(plugin("P", **{point: coroutine(SKIP)})).is_async, point
    assert not with_in_tree(plugin("P", permit=coroutine(SUCCESS), bind=coroutine(SKIP))).is_async


def test_extension_points_without_plugins_cost_no_call() -> None:
    class Counted(PluginCaller):
        calls = 0

        def call(self, *arguments: Any) -> Any:
            Counted.calls += 1
            return super().call(*arguments)

        async def call_async(self, *arguments: Any) -> Any:
            Counted.calls += 1
            return await super().call_async(*arguments)

    decide(web(), *map(cluster, CLUSTERS), plugins=with_in_tree(caller=Counted()))
    assert Counted.calls == 2  # DefaultSelector, DefaultAssigner
