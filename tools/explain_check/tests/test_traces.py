"""Traces equal decisions: a part of ``make check-traces`` in the fast tests, and a trace that is wrong is found."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from karmada_advisor.explain import situation
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.model import NextState
from karmada_advisor.explain.situation import attempt_of
from karmada_advisor.explain.trace_model import Mismatch
from karmada_advisor.views.fields import as_json, document_fields
from karmada_advisor.views.layout import Style
from karmada_advisor.views.text import explanation_text
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster
from tests.unit.explain.asking import inputs_of
from tools.explain_check.__main__ import generated, generated_inputs
from tools.explain_check.check import Tally, check


def test_the_traces_of_generated_decisions_equal_them() -> None:
    tally = generated(400, seed=20261122)

    assert tally.found == []
    assert tally.decisions == 400
    assert set(tally.traced) == {"divide", "filter", "placed", "select"}


def test_a_decision_that_the_traces_do_not_explain_is_a_mismatch() -> None:
    inputs = inputs_of(binding("web").replicas(4, cpu=1).dynamic_weight(), cluster("m1"), cluster("m2"))
    decision = inputs.decide()
    attempt = attempt_of(decision)
    assert attempt is not None
    wrong = replace(
        attempt, targets=tuple(reversed([each._replace(replicas=1) for each in attempt.targets or ()]))
    )
    tally = Tally()

    check("case", replace(decision, attempts=(wrong,)), inputs, tally)

    assert len(tally.found) == 1
    assert tally.found[0].startswith("case: divide targets")


def test_a_wrong_trace_is_shown_as_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation, "compare_divide", lambda *_: [Mismatch("divide", "targets", "4", "5")])
    inputs = inputs_of(binding("web").replicas(4, cpu=1).dynamic_weight(), cluster("m1"))

    text = explanation_text(explain(inputs), Style())

    assert "! defect of this explanation: the trace divide of targets has 4, the decision 5" in text


def test_every_explanation_of_a_generated_case_is_complete_and_can_be_written() -> None:
    for case, inputs in islice(generated_inputs(seed=22), 120):
        explanation = explain(inputs)

        assert explanation.mismatches == (), case
        assert [each.primary for each in explanation.causes] == [
            index == 0 for index in range(len(explanation.causes))
        ], case
        without = [each.name for each in explanation.clusters if not each.is_target and not each.cause]
        assert without == [], case
        if explanation.would_be is not None and explanation.would_be.outcome in {
            NextState.NOT_PLACED,
            NextState.STUCK,
        }:
            assert explanation.causes, case
        assert explanation_text(explanation, Style(width=80))
        assert json.loads(as_json(document_fields(explanation)))["kind"] == "Explanation"
