"""Which clusters of several are searched, and how they share the time."""

from __future__ import annotations

from unittest.mock import Mock

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.whynot.clusters import answer_clusters


def test_each_cause_is_searched_before_a_second_cluster_of_one_and_the_time_is_shared() -> None:
    codes = {**{f"a{number}": "A" for number in range(12)}, "b": "B", "c": "C"}
    causes = {name: Cause(code, Stage.FILTER, {}, "") for name, code in codes.items()}
    ask = Mock(return_value=Mock(remedies=()))

    found = answer_clusters("tier=prod", causes, (), ask, 80.0)

    assert [call.args[0] for call in ask.call_args_list] == ["a0", "b", "c", "a1", "a2", "a3", "a4", "a5"]
    assert 9 < ask.call_args_list[0].args[1] <= 10
    assert [group.count for group in found.groups] == [12, 1, 1]
