"""The annotations of this scheduler: what is written can be read, and anything else has a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from karmada_scheduler.api.own_annotations import (
    FAIL_BACK,
    HELD,
    LAST_MOVE,
    MAX_CHARACTERS,
    HeldDecision,
    RecordedMove,
    TermChange,
    Unreadable,
    change_in,
    held_in,
    moves_in,
    moves_text,
    unreadable_annotation,
)
from karmada_scheduler.api.quantity import MAX_INT32

times = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
numbers = st.integers(0, 2 * MAX_INT32)
names = st.text(max_size=60)


clusters = st.lists(names | names.map(lambda name: 60 * name), max_size=300)


@given(st.lists(st.tuples(times, numbers), max_size=60), clusters, names | st.just("[" * 200))
@example([(0.0, 1)], ["n" * 200] * 100, "term")
@example([(0.0, 1)], ["\u00e9" * 48] * 100, "term")
@example([(0.0, 1)], ["[{" * 24] * 100, "[" * 200)
@example([(0.0, 1)], ["n" * 20_000, "m1"], "t" * 20_000)
def test_moves_that_are_written_can_be_read(
    moves: list[tuple[float, int]], clusters: list[str], term: str
) -> None:
    given_moves = sorted(RecordedMove(*each) for each in moves)
    text = moves_text(given_moves, clusters=clusters, cause="x", term=term)
    found = moves_in(text)
    assert not isinstance(found, Unreadable)
    assert len(found) == min(20, len(moves))
    assert [each.at for each in found] == pytest.approx([each.at for each in given_moves[-20:]])
    total = sum(each.replicas for each in given_moves)
    assert sum(each.replicas for each in found) == total or max(each.replicas for each in found) == MAX_INT32


@given(numbers, times, names, names, st.none() | times)
def test_a_change_of_the_term_that_is_written_can_be_read(
    number: int, at: float, source: str, target: str, left: float | None
) -> None:
    found = change_in(TermChange(number, at, source, target, left).text())
    assert isinstance(found, TermChange)
    assert (found.number, found.source, found.target) == (min(number, MAX_INT32), source, target)
    assert found.at == pytest.approx(at)
    assert found.left == pytest.approx(left)


@given(times, names)
def test_a_wait_that_is_written_can_be_read(since: float, cause: str) -> None:
    found = held_in(HeldDecision(since, cause).text())
    assert isinstance(found, HeldDecision)
    assert found.since == pytest.approx(since)
    assert found.cause == cause


AT = "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (LAST_MOVE, "x" * (MAX_CHARACTERS + 1), "it has 16385 characters, at most 16384 are read"),
        (LAST_MOVE, "[" * 200, "it has more than 128 opening brackets"),
        (LAST_MOVE, "[]", "it is no JSON object"),
        (LAST_MOVE, "{}", "'moves' is missing"),
        (LAST_MOVE, '{"moves":{}}', "moves must be a list of at most 20"),
        (HELD, json.dumps({"since": AT, "cause": 1}), "a name must be a text of at most 253 characters"),
        (
            HELD,
            json.dumps({"since": 1, "cause": "x"}),
            "a time must be a text such as 2026-01-01T00:00:00.000Z",
        ),
        (HELD, json.dumps({"since": AT[:-1], "cause": "x"}), "the time 2026-01-02T00:00:00 has no zone"),
        (
            HELD,
            json.dumps({"since": "0001-01-01T00:00:00+14:00", "cause": "x"}),
            "the time 0001-01-01T00:00:00+14:00 is not between 1970 and 9999",
        ),
        (
            FAIL_BACK,
            json.dumps({"n": -1, "at": AT, "from": "", "to": ""}),
            "a number must be an integer from 0 to 2147483647",
        ),
    ],
)
def test_the_reason_names_the_limit_or_the_field(name: str, text: str, why: str) -> None:
    assert unreadable_annotation({"other": "?", name: text}) == (name, why)


def test_annotations_that_can_be_read_or_are_missing_have_no_problem() -> None:
    assert unreadable_annotation({}) is None
    assert unreadable_annotation({LAST_MOVE: '{"moves":[]}', HELD: ""}) is None


def test_fields_of_a_newer_version_are_ignored() -> None:
    at, newer = "1970-01-01T00:00:01.000Z", {"newer": ["field"]}
    moves = {"moves": [{"at": at, "replicas": 2, **newer}], **newer}
    assert moves_in(json.dumps(moves)) == (RecordedMove(1.0, 2),)
    assert held_in(json.dumps({"since": at, "cause": "budget", **newer})) == HeldDecision(1.0, "budget")
    change = {"n": 1, "at": at, "from": "a", "to": "b", **newer}
    assert change_in(json.dumps(change)) == TermChange(1, 1.0, "a", "b")
