"""Cases 14-27 of the specification's list, and 114-115 as far as they are ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.framework import (
    SKIP,
    SUCCESS,
    Code,
    Cycle,
    FilterContext,
    NormalizeScoreContext,
    PluginError,
    Result,
    ScoreContext,
)
from karmada_scheduler.framework.extension_points import is_plugin
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import binding, cluster, decide, framework, score_context
from tests.unit.framework.plugins import at_their_points, plugin

NO = Result.unschedulable("no")
FAILED = Result.error("foo")


class Filter:
    def __init__(self, name: str, answer: Callable[[FilterContext], Any]) -> None:
        self.name = name
        self.answer = answer
        self.calls = 0

    def filter(self, context: FilterContext, /) -> Result:
        self.calls += 1
        return self.answer(context)  # type: ignore[no-any-return]


class Score:
    def __init__(self, name: str, answer: Callable[[ScoreContext], Any]) -> None:
        self.name = name
        self.answer = answer

    def score(self, context: ScoreContext, /) -> int:
        return self.answer(context)  # type: ignore[no-any-return]


class Normalizing(Score):
    def __init__(self, name: str, answer: Callable[[Sequence[int]], Any]) -> None:
        super().__init__(name, lambda _: 60)
        self.finish = answer

    def normalize_score(self, context: NormalizeScoreContext, /) -> Sequence[int]:
        return self.finish(context.scores)  # type: ignore[no-any-return]


def raises(_: object) -> None:
    raise RuntimeError("foo")


def run(*plugins: Any) -> Framework:
    return Framework(at_their_points({plugin.name: plugin for plugin in plugins}))


def filter_result(*plugins: Any) -> Result:
    """Return the filter result of M1."""
    _, refused = run(*plugins).run_filter(CYCLE, [M1])
    return refused.get("m1", SUCCESS)


def scores(plugins: Framework, *clusters: Cluster) -> dict[str, list[int]]:
    return run_sync(plugins.run_score(CYCLE, clusters))


CYCLE: Cycle = score_context(binding("web"), cluster("m1")).cycle
M1 = cluster("m1").build()


@pytest.mark.parametrize(
    ("answers", "passes"),
    [
        pytest.param([], True, id="no-plugins"),
        pytest.param([NO], False, id="refusal"),
        pytest.param([SUCCESS], True, id="success"),
        pytest.param([NO, SUCCESS], False, id="refusal-then-success"),
        pytest.param([SUCCESS, NO], False, id="success-then-refusal"),
    ],
)
def test_a_cluster_passes_if_no_filter_refuses_it(answers: list[Result], passes: bool) -> None:
    plugins = [Filter(f"p{i}", lambda _, answer=answer: answer) for i, answer in enumerate(answers)]  # type: ignore[misc]
    assert filter_result(*plugins).is_success is passes


def test_the_first_refusal_counts_and_names_its_plugin() -> None:
    first, second = Filter("first", lambda _: NO), Filter("second", lambda _: FAILED)
    assert filter_result(first, second) == Result(Code.UNSCHEDULABLE, ("no",), "first")
    assert second.calls == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (raises, 'plugin "X" failed at Filter for cluster m1: RuntimeError: foo'),
        (lambda _: None, 'plugin "X" returned None at Filter, expected a Result'),
    ],
)
def test_a_filter_that_raises_is_an_error_and_refuses_no_cluster(
    answer: Callable[..., Any], message: str
) -> None:
    with pytest.raises(PluginError) as caught:
        filter_result(Filter("X", answer))
    assert str(caught.value) == message


def test_a_filter_that_raises_keeps_the_placement() -> None:
    decision = decide(
        binding("web").replicas(1).on(m1=1), cluster("m1"), plugins=framework(Filter("X", raises))
    )
    assert decision.targets is None
    assert (
        str(decision.error)
        == 'failed to find fit clusters: plugin "X" failed at Filter for cluster m1: RuntimeError: foo'
    )


def test_a_filter_that_returns_error_refuses_no_cluster_and_keeps_the_placement() -> None:
    """Upstream's refuses the cluster, and of a binding that no cluster takes the placement is cleared."""
    decision = decide(
        binding("web").replicas(1).on(m1=1), cluster("m1"), plugins=framework(Filter("X", lambda _: FAILED))
    )
    assert decision.targets is None
    assert str(decision.error) == 'failed to find fit clusters: running Filter plugin "X": foo'


def test_scores_are_kept_by_plugin() -> None:
    plugins = run(Score("a", lambda _: 60), Normalizing("b", lambda given: [each // 2 for each in given]))
    assert scores(plugins, M1, M1) == {"a": [60, 60], "b": [30, 30]}


def test_normalization_runs_for_no_clusters_too() -> None:
    seen: list[Sequence[int]] = []

    def remember(scores: Sequence[int]) -> Sequence[int]:
        seen.append(scores)
        return scores

    scores(run(Normalizing("b", remember)))
    assert seen == [[]]


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Score("foo", raises), 'plugin "foo" failed with: RuntimeError: foo'),
        (Normalizing("foo", raises), 'plugin "foo" normalizeScore failed with: RuntimeError: foo'),
        (Score("foo", lambda _: 1.5), 'plugin "foo" failed with: expected an integer, got 1.5'),
        (Score("foo", lambda _: True), 'plugin "foo" failed with: expected an integer, got True'),
        (
            Normalizing("foo", lambda _: []),
            'plugin "foo" normalizeScore failed with: expected 1 integer, got []',
        ),
    ],
)
def test_a_score_plugin_that_raises_fails_the_attempt(plugin: Score, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        scores(run(plugin), M1)
    assert str(caught.value) == message
    decision = decide(binding("web").replicas(1).on(m1=1), cluster("m1"), plugins=framework(plugin))
    assert decision.targets is None
    assert str(decision.error) == f"failed to prioritize clusters: {message}"


@pytest.mark.parametrize("score", [101, -1])
def test_a_score_out_of_range_is_an_error_that_names_plugin_and_cluster(score: int) -> None:
    plugins = framework(Score("a", lambda _: score))
    decision = decide(binding("web").replicas(1), cluster("m1"), plugins=plugins)
    assert str(decision.error) == (
        f'failed to prioritize clusters: plugin "a" returns an invalid score {score} for cluster m1, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_a_score_out_of_range_may_be_normalized_into_it() -> None:
    class Wild(Normalizing):
        def score(self, context: ScoreContext, /) -> int:
            return 4000

    assert scores(run(Wild("w", lambda given: [each // 100 for each in given])), M1) == {"w": [40]}


def test_weights_multiply_normalized_scores() -> None:
    plugin = Normalizing("a", lambda given: [each // 2 for each in given])
    assert scores(Framework(ProfilePlugins(score=[plugin], weights={"a": 3})), M1) == {"a": [90]}


def test_a_plugin_has_a_name_and_an_extension_point() -> None:
    assert is_plugin(plugin("P", filter=lambda _: NO))
    assert not is_plugin(plugin("P"))
    for name in (None, 7):
        assert not is_plugin(type("Nameless", (), {"name": name, "filter": lambda *_: NO})())
    assert not is_plugin(object())


class Counts:
    def __init__(self) -> None:
        self.points: Counter[tuple[str, str]] = Counter()
        self.plugins: Counter[tuple[str, str, str]] = Counter()
        self.steps: Counter[str] = Counter()

    def extension_point(self, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        assert 0 <= seconds < 60
        self.points[point, code.value] += count

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        assert 0 <= seconds < 60
        self.plugins[plugin, point, code.value] += count

    def step(self, step: str, seconds: float, /) -> None:
        assert 0 <= seconds < 60
        self.steps[step] += 1


def observed(*plugins: Any) -> tuple[Framework, Counts]:
    counts = Counts()
    everything = {each.name: each for each in (*framework().plugins.unique, *plugins)}
    return Framework(at_their_points(everything), caller=PluginCaller(observer=counts)), counts


def test_every_cluster_plugin_and_step_is_observed() -> None:
    plugins, counts = observed(Normalizing("N", lambda scores: scores))
    decide(
        binding("web").replicas(3).dynamic_weight(),
        cluster("m1").serves({}),
        cluster("m2"),
        cluster("m3"),
        plugins=plugins,
    )
    assert counts.points == {
        ("Filter", "Success"): 2,
        ("Filter", "Unschedulable"): 1,
        ("Score", "Success"): 1,
    }
    assert counts.steps == {"Filter": 1, "Score": 1, "Select": 1, "AssignReplicas": 1}
    assert counts.plugins["APIEnablement", "Filter", "Unschedulable"] == 1
    assert counts.plugins["TaintToleration", "Filter", "Success"] == 2
    assert counts.plugins["ClusterLocality", "Score", "Success"] == 2
    assert counts.plugins["N", "ScoreExtensionNormalize", "Success"] == 1


def test_a_coroutine_is_observed_with_its_result() -> None:
    async def pre_score(_: object) -> Result:
        return SKIP

    plugins, counts = observed(plugin("P", pre_score=pre_score))
    decide(binding("web").replicas(3).dynamic_weight(), cluster("m1"), plugins=plugins)
    assert counts.plugins["P", "PreScore", "Skip"] == 1


def test_without_feasible_clusters_only_the_filter_step_is_observed() -> None:
    plugins, counts = observed()
    decide(binding("web").replicas(3).dynamic_weight(), cluster("m1").serves({}), plugins=plugins)
    assert counts.steps == {"Filter": 1}


def test_failures_are_observed_too() -> None:
    plugins, counts = observed(Score("X", raises))
    decide(binding("web").replicas(3).dynamic_weight(), cluster("m1"), plugins=plugins)
    assert counts.points["Score", "Error"] == 1
    assert counts.plugins["X", "Score", "Error"] == 1
    assert counts.steps == {"Filter": 1, "Score": 1}
