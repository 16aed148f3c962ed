"""Filter plugins that are asked about several clusters at once."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.framework import SUCCESS, FilterClustersContext, Result
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.plugin_problems import plugin_problems
from karmada_scheduler.testing import Run, binding, cluster, schedule
from tests.unit.framework.plugins import answering, plugin, raising, with_in_tree

MEMBERS = [cluster("m1").labels(tier="prod"), cluster("m2"), cluster("m3").labels(tier="prod")]
NO = Result.unschedulable("prod", retry_after=5)


def by_label(context: FilterClustersContext) -> list[Result]:
    return [NO if each.labels.get("tier") == "prod" else SUCCESS for each in context.clusters]


def run(*plugins: Any, builder: Any = None) -> Run:
    return schedule(
        builder or binding("web").replicas(2).duplicated(), *MEMBERS, plugins=with_in_tree(*plugins)
    )


def test_it_refuses_as_filter_does() -> None:
    at_once = run(plugin("P", filter_clusters=by_label))
    single = run(plugin("P", filter=lambda context: NO if context.cluster.labels.get("tier") else SUCCESS))
    assert at_once.placed == single.placed == {"m2": 2}
    assert at_once.decision.attempts[0].diagnosis == single.decision.attempts[0].diagnosis
    assert at_once.refused == {"m1": "prod", "m3": "prod"}


def test_it_is_asked_about_the_clusters_that_passed_before() -> None:
    asked: list[list[str]] = []

    def record(context: FilterClustersContext) -> list[Result]:
        asked.append([each.name for each in context.clusters])
        return [SUCCESS] * len(context.clusters)

    one = plugin("One", filter=lambda context: NO if context.cluster.name == "m2" else SUCCESS)
    run(one, plugin("Two", filter_clusters=record), plugin("Three", filter_clusters=by_label))
    assert asked[0] == ["m1", "m3"]


def test_filters_behind_it_are_asked_about_the_clusters_that_it_lets_pass() -> None:
    asked: list[str] = []

    def record(context: Any) -> Result:
        asked.append(context.cluster.name)
        return SUCCESS

    assert run(plugin("One", filter_clusters=by_label), plugin("Two", filter=record)).placed == {"m2": 2}
    assert set(asked) == {"m2"}


def test_with_a_key_it_is_called_once_for_clusters_that_have_not_changed() -> None:
    assert run(plugin("P", filter_clusters=by_label, filter_key=answering(()))).placed == {"m2": 2}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answering([SUCCESS]), "at Filter, expected a list of 3 Results"),
        (answering([SUCCESS] * 4), "at Filter, expected a list of 3 Results"),
        (answering(SUCCESS), "at Filter, expected a list of 3 Results"),
        (answering({"m1": SUCCESS}), "at Filter, expected a list of 3 Results"),
        (answering(None), "returned None at Filter, expected a list of 3 Results"),
        (answering([SUCCESS, None, SUCCESS]), "returned None at Filter, expected a Result"),
        (answering([SUCCESS, Result.wait(1), SUCCESS]), "at Filter, expected Success, Unschedulable"),
        (answering([SUCCESS, Result.error("unknown"), SUCCESS]), 'running Filter plugin "P": unknown'),
        (raising(), 'plugin "P" failed at Filter: RuntimeError: boom'),
        (raising(StopIteration()), 'plugin "P" failed at Filter: StopIteration'),
    ],
)
def test_an_invalid_answer_is_an_error_of_the_binding_and_the_placement_stays(answer: Any, text: str) -> None:
    found = run(plugin("P", filter_clusters=answer), builder=binding("web").replicas(2).duplicated().on(m1=1))
    assert found.condition.reason == "SchedulerError"
    assert text in found.condition.message
    assert [tuple(each) for each in found.binding.spec.clusters] == [("m1", 1)]


def test_a_class_has_one_of_the_two_methods() -> None:
    assert Point.FILTER.is_served_by(plugin("P", filter_clusters=by_label))
    assert not list(plugin_problems(plugin("P", filter_clusters=by_label)))
    both = plugin("P", filter=answering(SUCCESS), filter_clusters=by_label)
    assert "has filter and filter_clusters; keep one of them" in list(plugin_problems(both))
    wrong = plugin("P", filter=answering(SUCCESS), filter_cluster=by_label)
    assert any("did you mean filter_clusters?" in each for each in plugin_problems(wrong))
