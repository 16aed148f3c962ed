"""Return values of plugins that no extension point allows: an error that names the plugin, and no further harm."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from karmada_scheduler.framework import Code, PluginError, Result, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import MAX_RETRY_SECONDS
from karmada_scheduler.framework.runtime.validation import invalid_answer, validated
from karmada_scheduler.testing import binding, cluster, decide
from tests.unit.framework.plugins import answering, plugin, with_in_tree

ODD = plugin("Odd")


class UnreadableList(Sequence[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: Any) -> Any:
        raise LookupError("no")


class UnreadableSet(AbstractSet[Any]):
    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("no")

    def __contains__(self, _: object) -> bool:
        raise LookupError("no")


def _error_with(**methods: Any) -> str:
    """Decide about a binding on m1 with a plugin, and return the text of the PluginError."""
    builder = binding("web").replicas(4).on(m1=4)
    decision = decide(builder, cluster("m1"), cluster("m2"), plugins=with_in_tree(plugin("Odd", **methods)))
    assert isinstance(decision.error, PluginError)
    assert decision.targets is None
    return str(decision.error)


@pytest.mark.parametrize("names", [{cluster("m1").build().conditions}, {1}, {None}, {b"m1"}, UnreadableSet()])
def test_a_set_of_anything_but_names_from_pre_filter_is_an_error_and_refuses_no_cluster(names: Any) -> None:
    assert 'plugin "Odd" returned ' in _error_with(pre_filter=answering(names))
    assert "at PreFilter, expected a set of cluster names" in _error_with(pre_filter=answering(names))


@pytest.mark.parametrize(
    ("point", "answer"), [("select", []), ("assign", {}), ("assign", []), ("assign", "")]
)
def test_an_empty_answer_is_an_error_and_clears_no_placement(point: str, answer: Any) -> None:
    assert 'plugin "Odd" returned ' in _error_with(**{point: answering(answer)})


def test_a_text_is_no_list_of_targets() -> None:
    assert "expected replicas by cluster name" in _error_with(assign=answering(""))


def test_an_empty_answer_clears_no_placement_of_a_resource_without_replicas_either() -> None:
    builder = binding("config").dynamic_weight().on("m1")
    odd = with_in_tree(plugin("Odd", assign=answering([])))
    decision = decide(builder, cluster("m1"), plugins=odd)
    assert decision.targets is None
    assert "expected at least one cluster" in str(decision.error)


@pytest.mark.parametrize("point", ["select", "assign"])
def test_a_container_that_cannot_be_read_is_an_error_that_names_the_plugin(point: str) -> None:
    assert 'plugin "Odd" returned ' in _error_with(**{point: answering(UnreadableList())})


@pytest.mark.parametrize("answer", [range(10**12), [1] * 10**6, dict.fromkeys(range(10**4), 1)])
def test_a_huge_answer_is_an_error_of_a_few_words(answer: Any) -> None:
    for point in ("select", "assign"):
        text = _error_with(**{point: answering(answer)})
        assert 'plugin "Odd" returned ' in text
        assert len(text) < 200


def test_more_candidates_than_there_are_is_no_selection() -> None:
    text = _error_with(select=lambda context: [context.candidates[0]] * 10**5)
    assert "expected some of the candidates" in text


def test_long_values_are_cut() -> None:
    assert str(invalid_answer(ODD, Point.SELECT, ["m1"] * 10**6, "x")) == (
        'plugin "Odd" returned list with 1000000 entries at Select, expected x'
    )
    result = validated(ODD, Point.FILTER, Result(Code.UNSCHEDULABLE, ("a" * 10**6,) * 10**3))
    assert len(result.reasons) == 100
    assert set(result.reasons) == {"a" * 4096}

    def fails(_: Any) -> None:
        raise RuntimeError("a" * 10**6)

    assert len(_error_with(filter=fails)) < 5000


@pytest.mark.parametrize(
    ("requested", "used"),
    [
        (0.0, 0.0),
        (5, 5),
        (sys.maxsize, MAX_RETRY_SECONDS),
        (1e300, MAX_RETRY_SECONDS),
        (10**400, MAX_RETRY_SECONDS),
    ],
)
def test_a_plugin_may_delay_an_attempt_by_30_days_at_most(requested: float, used: float) -> None:
    refusal = Result(Code.UNSCHEDULABLE, ("later",), retry_after=requested)
    assert validated(ODD, Point.PRE_ENQUEUE, refusal).retry_after == used
    assert UnschedulableError("later", retry_after=requested).retry_after == used


@pytest.mark.parametrize("requested", [math.nan, -1.0, -math.inf])
def test_an_error_of_a_plugin_with_an_impossible_delay_has_none(requested: float) -> None:
    assert UnschedulableError("later", retry_after=requested).retry_after == 0.0
