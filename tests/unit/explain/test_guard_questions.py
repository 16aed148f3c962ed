"""Why a binding stays where it is although a decision would move it: Guard plugins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.model import NextState
from karmada_advisor.explain.situation import Situation
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_scheduler.framework import GuardAnswer, Result
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import BindingBuilder, FakeHandle, binding, cluster, make
from karmada_scheduler_plugins.fail_back import FailBack
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests.unit.explain.asking import explained, inputs_of, outcome, placement, primary


def guard(**args: Any) -> PlacementGuard:
    return make(PlacementGuard, args, handle=FakeHandle())


def on_m1() -> BindingBuilder:
    return (
        binding("web")
        .replicas(2)
        .aggregated()
        .on(m1=2)
        .health(m1="Healthy")
        .last_scheduled("2026-01-01T00:00:00Z")
    )


def test_a_kept_binding_is_stuck_and_names_the_guard_and_the_retry() -> None:
    asked = on_m1().names("m9")
    found = primary(asked, cluster("m1"), plugins=[guard()])
    assert found.code == "KeptAtGuard"
    assert found.evidence == {
        "plugin": "PlacementGuard",
        "reason": "nothingFits is keep",
        "retryAfterSeconds": None,
    }
    explanation = explained(asked, cluster("m1"), plugins=[guard()])
    assert outcome(explanation) is NextState.STUCK
    assert placement(explanation) == {"m1": 2}
    assert explanation.would_be is not None
    assert "Retried by timer" in explanation.would_be.text
    assert [each.code for each in explanation.causes] != ["KeptAtGuard"]  # the filters follow


def test_a_held_binding_names_the_guard_the_wait_and_the_targets() -> None:
    asked = on_m1().names("m2")
    explanation = explained(
        asked, cluster("m1"), cluster("m2"), plugins=[guard(lastHealthyCopy={"maxWaitSeconds": 20})]
    )
    (found,) = [each for each in explanation.causes if each.primary]
    assert found.code == "HeldAtGuard"
    assert found.evidence["refused"] == {"m2": 2}
    assert found.evidence["retryAfterSeconds"] == 20
    assert "m1 has the last healthy copy" in found.text
    assert found.text.endswith("again in 20 s")
    assert outcome(explanation) is NextState.STUCK


def test_a_graceful_move_names_what_it_waits_for_and_how_long() -> None:
    task = {
        "fromCluster": "m1",
        "producer": "default-scheduler",
        "reason": "Rescheduled",
        "gracePeriodSeconds": 600,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    asked = binding("web").replicas(2).aggregated().names("m2").on(m2=2).applied()
    inputs = inputs_of(asked, cluster("m1"), cluster("m2"), plugins=[guard(graceful={"enabled": True})])
    manifest = asked.manifest()
    manifest["spec"]["gracefulEvictionTasks"] = [task]
    built = type(inputs.binding).from_manifest(manifest)
    inputs = replace(
        inputs, binding=built, facts=replace(inputs.facts, now=datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    )
    found = causes_of_binding(Situation(inputs))[0]
    assert found.code == "LeavingGracefully"
    assert found.evidence == {
        "clusters": ["m1"],
        "waitsFor": "it is ready elsewhere: m2 has not applied it",
        "secondsLeft": 540,
    }


def test_an_annotation_of_the_scheduler_that_cannot_be_read_is_named() -> None:
    asked = on_m1().names("m1").applied()
    inputs = inputs_of(asked, cluster("m1"), plugins=[guard()])
    name = "pyscheduler.karmada.io/last-move"
    for text, codes in (("?", ["AnnotationUnreadable"]), ('{"moves":[]}', [])):
        found = replace(inputs.binding, annotations={**inputs.binding.annotations, name: text})
        changed = replace(inputs, binding=found)
        causes = [
            each for each in causes_of_binding(Situation(changed)) if each.code == "AnnotationUnreadable"
        ]
        assert [each.code for each in causes] == codes
        for each in causes:
            assert each.text.startswith(f"the annotation {name} cannot be read: ")


def test_without_a_guard_plugin_nothing_is_said_about_guards() -> None:
    codes = {each.code for each in explained(on_m1().names("m9"), cluster("m1")).causes}
    assert not any("Guard" in code for code in codes)


def test_a_binding_that_may_return_to_an_earlier_term_names_the_plugin_that_proposes_it() -> None:
    asked = binding("web").replicas(2).aggregated().term("first", "m1").term("second", "m2")
    asked.on(m2=2).observing("second").applied().last_scheduled("2026-01-01T00:00:00Z")
    asked.observed_generation(1).condition(type="Scheduled", status="True").generation(1)
    plugins = [make(FailBack, {}, handle=FakeHandle())]
    fleet = (cluster("m1"), cluster("m2"))
    found = primary(asked, *fleet, plugins=plugins)
    assert found.code == "TermBehind"
    assert found.evidence == {"term": "first", "inUse": "second", "proposedBy": "FailBack"}
    assert found.text == (
        "the term first works again, and FailBack proposes to return there; its Events say what it waits for"
    )
    found = primary(asked, *fleet, why_not="m1", plugins=plugins)
    assert (found.code, found.evidence["proposedBy"]) == ("TermBehind", "FailBack")
    reason = "the earlier term first could take it; returns after 300s without a miss"
    proposal = {"plugin": "FailBack", "reason": reason, "dueInSeconds": 112.4}
    inputs = inputs_of(asked, *fleet, plugins=plugins)
    inputs = replace(inputs, process=ProcessView(proposal=proposal))
    found = causes_of_binding(Situation(inputs))[0]
    assert found.text.endswith(f"FailBack proposes to return there: {reason}, in 112 s if nothing changes")
    assert found.evidence["dueInSeconds"] == 112.4


class Content:
    """Finds every placement good."""

    name = "Content"

    def guard(self, _context: object, /) -> GuardAnswer:
        return GuardAnswer(Result.unschedulable("the saving is too small"), stays=True)


def test_a_placement_that_is_good_as_it_is_is_no_failure_and_names_the_plugin() -> None:
    explanation = explained(on_m1().names("m2"), cluster("m1"), cluster("m2"), plugins=[Content])
    found = next(each for each in explanation.causes if each.code == "KeptAtGuard")
    assert found.evidence["plugin"] == "Content"
    assert found.evidence["refused"] == {"m2": 2}
    assert found.text == "Content finds the placement good as it is: the saving is too small"
    assert placement(explanation) == {"m1": 2}
    assert outcome(explanation) not in {NextState.STUCK, NextState.NOT_PLACED}
