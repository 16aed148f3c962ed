"""The exhaustive search finds what the search misses, and what it claims wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from karmada_advisor.whynot.found_edits import FoundEdits
from karmada_advisor.whynot.search import Search
from karmada_scheduler.framework.edits import Harm
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.whynot import exhaustive
from tests.unit.whynot.exhaustive import MOST_CLUSTERS, Comparison, Smallest, compare
from tests.unit.whynot.questions import CheckedQuestion, questions


def _compared(
    tmp_path: Path, asked: BindingBuilder, clusters: Sequence[ClusterBuilder], **options: Any
) -> Comparison:
    question = CheckedQuestion(
        "test", [each.manifest() for each in clusters], [asked.manifest()], asked.manifest(), "m1", ()
    )
    with mock.patch.object(exhaustive, "questions", return_value=iter([question])):
        [comparison] = compare(tmp_path, seed=1, cases=1, **options)
    return comparison


def _tainted() -> list[ClusterBuilder]:
    return [cluster("m1").capacity(cpu=9).taint("a:NoSchedule"), cluster("m2").capacity(cpu=9)]


def _two_refusals() -> BindingBuilder:
    return binding("web").replicas(2, cpu=1).dynamic_weight().names("m2")


def test_one_edit_is_enough_for_one_refusal(tmp_path: Path) -> None:
    found = _compared(tmp_path, binding("web").replicas(2, cpu=1).dynamic_weight(), _tainted())

    assert found.outcomes == {"answered, with the fewest edits": 1}
    assert found.problems == []


def test_two_refusals_need_two_edits(tmp_path: Path) -> None:
    found = _compared(tmp_path, _two_refusals(), _tainted())

    assert found.outcomes == {"answered, with the fewest edits": 1}


def test_a_search_that_has_left_out_a_change_without_any_effect_does_not_claim_that_nothing_was_left(
    tmp_path: Path,
) -> None:
    asked = (each for each in questions(719, most_clusters=MOST_CLUSTERS) if each.identity == "719/4/5")
    with mock.patch.object(exhaustive, "questions", return_value=asked):
        [comparison] = compare(tmp_path, seed=719, cases=1)

    assert comparison.missed == ["719/4/5: setReplicas; setStrategy"]
    assert comparison.problems == []


def test_a_cluster_that_is_being_deleted_has_no_answer(tmp_path: Path) -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()

    found = _compared(
        tmp_path, asked, [cluster("m1").capacity(cpu=9).deleting(), cluster("m2").capacity(cpu=9)]
    )

    assert found.outcomes == {"none up to the depth, by both": 1}
    assert "0 of 0" in found.report()


def test_a_question_with_too_many_sets_is_given_up(tmp_path: Path) -> None:
    assert _compared(tmp_path, _two_refusals(), _tainted(), most_tried=5).outcomes == {"too many sets": 1}


@pytest.mark.parametrize(("complete", "problems"), [(True, 1), (False, 0)])
def test_an_answer_that_the_search_misses_is_found_and_so_is_a_wrong_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, complete: bool, problems: int
) -> None:
    monkeypatch.setattr(Search, "run", lambda _: FoundEdits(complete=complete, all_singles=False))

    found = _compared(tmp_path, _two_refusals(), _tainted())

    assert found.outcomes == {"missed": 1}
    assert len(found.problems) == problems
    assert "0 of 1 (0.0 %)" in found.report()


def test_a_wrong_claim_that_all_single_edits_were_tried_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Search, "run", lambda _: FoundEdits(complete=False, all_singles=True))

    found = _compared(tmp_path, binding("web").replicas(2, cpu=1).dynamic_weight(), _tainted())

    assert found.outcomes == {"missed": 1}
    [problem] = found.problems
    assert "claims that it tried all single edits" in problem


@pytest.mark.parametrize(("is_on_cluster", "problems"), [(False, 0), (True, 1)])
def test_a_remedy_on_another_cluster_says_nothing_about_what_is_left_out_as_worse(
    monkeypatch: pytest.MonkeyPatch, *, is_on_cluster: bool, problems: int
) -> None:
    def remedy(harm: Harm, *, uses_cluster: bool) -> Any:
        return SimpleNamespace(edits=("a", "b"), harm=harm, uses_cluster=uses_cluster, flags=())

    single: Any = mock.Mock(op="dropLabelSelector")
    monkeypatch.setattr(exhaustive, "harm_of", lambda _: Harm.WIDENS)
    answer: Any = SimpleNamespace(
        remedies=[remedy(Harm.NONE, uses_cluster=True), remedy(Harm.WIDENS, uses_cluster=is_on_cluster)],
        goal=SimpleNamespace(type=SimpleNamespace(value="onCluster")),
        search=SimpleNamespace(complete=False, exhausted_singles=True),
    )
    found = Comparison()
    found.add("1/2/3", answer, Smallest(1, (frozenset({single}),)), 2, {single})
    assert len(found.problems) == problems
