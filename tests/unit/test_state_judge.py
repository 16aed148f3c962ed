"""The judge sees what is wrong in each aspect by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.commands import Ran
from tests.e2e.state.judge import at, effect_of, headline_of, judged, judged_also, remedy_text
from tests.e2e.state.model import Also, Expected
from tests.e2e.state.situations import SITUATIONS

HEADLINE = "NOT PLACED, held   refused by a quota: cpu"
TEXT = f"demo/web-deployment   4 replicas\n{HEADLINE}\n\nCauses\n  QuotaRefused: refused by a quota: cpu\n"
EXPECTED = Expected(
    "held", "none", headline="quota", cause="^QuotaRefused: .*cpu", remedy="scale to 1", would_be='"m1"'
)
RIGHT: Mapping[str, Any] = {
    "state": {"name": "held", "placed": "none", "headline": HEADLINE, "clusters": []},
    "wouldBe": {"placement": [{"name": "m1", "replicas": 4}]},
    "causes": [{"code": "QuotaRefused", "text": "refused by a quota: cpu", "primary": True}],
    "remedies": [{"edits": [{"side": "workload", "object": {"kind": "Deployment"}, "text": "scale to 1"}]}],
}


def wrong(
    *,
    expected: Expected = EXPECTED,
    text: str = TEXT,
    status: int = 1,
    err: str = "",
    stored: Any = (),
    **fields: Any,
) -> set[str]:
    """Return the aspects that are judged to be wrong."""
    found = {**RIGHT, **fields}
    answers = Ran(status, text, ""), None, Ran(status, json.dumps(found), err)
    return {aspect for aspect, problems in judged(expected, *answers, stored) if problems}


def test_an_answer_that_says_all_that_is_expected_is_right() -> None:
    assert wrong() == set()


def test_a_headline_that_begins_otherwise_is_wrong_although_the_words_occur_further_down() -> None:
    said = TEXT.replace("NOT PLACED, held", "PLACED")
    state = {**RIGHT["state"], "headline": HEADLINE.replace("NOT PLACED, held", "PLACED")}
    assert wrong(text=f"{said}\nNOT PLACED, held", state=state) == {"headline"}


def test_a_headline_of_the_text_that_is_not_that_of_the_json_is_wrong() -> None:
    assert wrong(state={**RIGHT["state"], "headline": "PLACED"}) == {"headline"}


def test_a_cause_that_is_not_the_first_is_wrong() -> None:
    other = {"code": "BackingOff", "text": "it would be placed now", "primary": True}
    later = {**RIGHT["causes"][0], "primary": False}
    assert wrong(text=f"{TEXT}  BackingOff: it", causes=[other, later]) == {"cause"}


def test_a_cause_where_none_is_expected_is_wrong() -> None:
    assert wrong(expected=Expected("held", "none", headline="", remedy="scale")) == {"cause"}


def test_a_remedy_that_is_not_the_first_is_wrong() -> None:
    other = {"edits": [{"side": "policy", "object": {}, "text": "drop clusterAffinity"}]}
    assert wrong(remedies=[other, *RIGHT["remedies"]]) == {"remedy"}
    assert wrong(remedies=[]) == {"remedy"}


def test_a_harmful_remedy_is_wrong_wherever_it_stands_unless_it_says_so() -> None:
    expected = Expected(
        "held", "none", headline="", cause=".", remedy="scale", never=r"^[^(]*no requests[^(]*$"
    )
    bare = {"edits": [{"side": "workload", "object": {}, "text": "no requests"}]}
    assert wrong(expected=expected, remedies=[*RIGHT["remedies"], bare]) == {"remedy"}
    cautious = {**bare, "caution": "all Pods would stay Pending"}
    assert wrong(expected=expected, remedies=[*RIGHT["remedies"], cautious]) == set()


def test_the_exit_status_follows_the_state() -> None:
    assert wrong(status=0) == {"exit status"}
    assert [Expected(name, "all", headline="").exit_status for name in ("placed", "held")] == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"stored": [{"name": "m1", "replicas": 2}]},
        {"state": {**RIGHT["state"], "placed": "all"}},
        {"err": "Warning: leases cannot be read"},
    ],
)
def test_json_has_to_agree_with_what_is_stored(change: dict[str, Any]) -> None:
    assert wrong(**change) == {"json"}


def test_an_error_instead_of_an_answer_has_to_say_what_is_expected() -> None:
    expected = Expected("unknown", "none", headline="", problem='cannot list resource "clusters"', status=2)
    error = 'Error: clusters: cannot list resource "clusters"'
    for err, aspects in ((error, set()), ("Error: forbidden", {"headline", "json"})):
        answer = Ran(2, "", err)
        assert {name for name, wrong in judged(expected, answer, None, answer, ()) if wrong} == aspects


def test_the_headline_is_the_first_line_with_the_words_of_a_state() -> None:
    assert headline_of("demo/web\nPLACED IN PART, held    2 of 4: m1 2\nPLACED") == (
        "PLACED IN PART, held   2 of 4: m1 2"
    )
    assert headline_of("Would be: m1 4") == ""


def test_values_are_found_by_their_path() -> None:
    fields = {"state": {"rows": [{"name": "m1"}, {"name": "m2"}]}}
    assert at(fields, "state.rows.1.name") == "m2"
    assert at(fields, "state.rows.2.name") is None


def test_another_command_is_judged_by_its_first_line_and_what_it_must_not_say() -> None:
    also = Also(
        ["plan"],
        0,
        "^1 moved",
        {"counts.placed": 0, "total": re.compile("^[1-9]")},
        never="at the next event",
    )
    good = Ran(0, "1 moved\n", "")
    assert not list(judged_also(also, good, {"counts": {"placed": 0}, "total": 3}))
    bad = Ran(1, "0 moved\nat the next event\n", "")
    assert len(list(judged_also(also, bad, {"counts": {"placed": 1}, "total": 0}))) == 5


def test_the_effect_of_a_plan_on_a_binding_is_unchanged_if_the_plan_does_not_list_it() -> None:
    plan = {"bindings": [{"namespace": "demo", "name": "web", "effect": "held"}]}
    assert [effect_of(plan, name) for name in ("demo/web", "demo/api")] == ["held", "unchanged"]
    also = Also(["plan"], 0, says="quota", effect="^held$")
    answer = Ran(0, "held by a quota", "")
    assert not list(judged_also(also, answer, plan, "demo/web"))
    assert len(list(judged_also(also, answer, plan, "demo/api"))) == 1
    assert len(list(judged_also(also, answer, {}, "demo/web"))) == 1
    assert len(list(judged_also(also, Ran(0, "held", ""), plan, "demo/web"))) == 1


def test_a_remedy_is_shown_with_what_speaks_against_it() -> None:
    edits = [{"side": "policy", "object": {"kind": "PropagationPolicy", "name": "web"}, "text": "drop a"}]
    assert remedy_text({"edits": edits, "caution": "It widens."}) == (
        "policy PropagationPolicy web: drop a (It widens.)"
    )


def test_each_situation_has_a_name_of_its_own_and_patterns_that_can_be_compiled() -> None:
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS) >= 60
    for each in SITUATIONS:
        expected = each.expected
        for pattern in (
            expected.headline,
            expected.cause,
            expected.remedy,
            expected.never,
            expected.would_be,
        ):
            re.compile(pattern)
