"""JSON that is nested too deeply for orjson, or has an invalid object in a list or an event."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada_scheduler import json_body
from karmada_scheduler.json_body import MAX_DEPTH, checked, decode, encode, shallow, unreadable


def _nested(depth: int, inner: bytes = b"1") -> bytes:
    return b'{"a":[' * (depth // 2) + inner + b"]}" * (depth // 2)


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, dict | list) and value:
        value = value["a"] if isinstance(value, dict) else value[0]
        depth += 1
    return depth


@pytest.mark.parametrize("depth", [1_100, 9_990, 200_000])
def test_deep_values_are_cut_out_and_the_rest_is_read(depth: int) -> None:
    body = b'{"before":"x","deep":' + _nested(depth) + b',"after":[{"y":"}]"}]}'
    found = decode(body)
    assert (found["before"], found["after"]) == ("x", [{"y": "}]"}])
    assert _depth(found["deep"]) == MAX_DEPTH - 1


def test_documents_that_orjson_reads_are_not_changed() -> None:
    assert _depth(decode(_nested(1_000))) == 1_000


def test_quotes_brackets_and_backslashes_in_strings_are_no_structure() -> None:
    text = '"]}\\"[{\\\\" \n\t ü'
    document = {"a": text, text: [text], "deep": None}
    body = json.dumps(document).encode().replace(b"null", _nested(2_000, json.dumps(text).encode()))
    found = decode(body)
    assert found["a"] == text
    assert found[text] == [text]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=30,
    )
)
def test_values_next_to_deep_ones_are_read_unchanged(value: Any) -> None:
    body = b'{"deep":' + _nested(1_200) + b',"value":' + json.dumps(value).encode() + b"}"
    try:
        wanted = orjson.loads(json.dumps(value))
    except orjson.JSONDecodeError:  # a lone surrogate
        return
    assert decode(body)["value"] == wanted


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{",
        b'{"a":1',
        b"]",
        b"}" * 9,
        b'"',
        b'{"a":"\\',
        b"[" * 5_000,
        b"{}{}",
        b"NaN",
        b"\xff\xfe",
    ],
)
def test_text_that_is_not_json_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode(body)


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"\udc00x", "\ufffdx"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\\ud800", r"\ud800"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (b"\xff", "\ufffd"),
    ],
)
def test_invalid_unicode_is_read_as_in_go(escaped: bytes, read: str) -> None:
    assert decode(b'{"a":"' + escaped + b'","b":"\xc3"}')["a"] == read


def test_an_integer_of_more_than_64_bits_is_read_and_an_absurd_one_makes_a_placeholder() -> None:
    assert decode(b"[18446744073709551616]") == [18446744073709551616.0]
    event = decode(b'{"type":"ADDED","object":{"metadata":{"name":"m"},"spec":' + b"9" * 5_000 + b"}}")
    assert unreadable(event["object"])


def test_a_broken_item_of_a_list_becomes_a_placeholder_with_its_name() -> None:
    broken = (
        b'{"kind":"X","metadata":{"labels":{"name":"not this"},"name":"m","namespace":"n","ownerReferences":'
        b'[{"name":"nor this","uid":"o"}],"uid":"u"},"spec":{"metadata":{"name":"nor that"},"a":NaN}}'
    )
    body = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},' + broken + b',{"b":1}]}'
    found = decode(body)
    assert found["metadata"] == {"resourceVersion": "7"}
    assert found["items"][0] == {"metadata": {"name": "a"}}
    assert found["items"][1]["metadata"] == {"name": "m", "namespace": "n", "uid": "u"}
    assert unreadable(found["items"][1])
    assert found["items"][2] == {"b": 1}


def test_the_broken_object_of_an_event_becomes_a_placeholder_with_its_name() -> None:
    event = decode(b'{"type":"ADDED","object":{"metadata":{"name":"m"},"spec":nonsense}}')
    assert event["type"] == "ADDED"
    assert event["object"]["metadata"] == {"name": "m"}
    assert unreadable(event["object"])


def test_an_object_with_valid_metadata_is_returned_unchanged() -> None:
    found = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"}, "spec": 5}
    assert checked(found) is found


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "expected an object, got None"),
        ([], "expected an object, got []"),
        ({}, "metadata: expected an object, got None"),
        ({"metadata": "a"}, "metadata: expected an object, got 'a'"),
        ({"metadata": {}}, "metadata.name: is missing"),
        ({"metadata": {"name": {}}}, "metadata.name: expected a string, got {}"),
        ({"metadata": {"name": "a", "namespace": 5}}, "metadata.namespace: expected a string, got 5"),
        ({"metadata": {"name": "a", "uid": []}}, "metadata.uid: expected a string, got []"),
        ({"metadata": {"name": "a", "resourceVersion": 7}}, "metadata.resourceVersion: expected a string, got 7"),
        ({"metadata": {"name": "a", "resourceVersion": ""}}, "metadata.resourceVersion: expected a number, got ''"),
        ({"metadata": {"name": "a", "resourceVersion": "-1"}}, "metadata.resourceVersion: expected a number, got '-1'"),
        ({"metadata": {"name": "a", "resourceVersion": "٣"}}, "metadata.resourceVersion: expected a number, got '٣'"),
    ],
)  # fmt: skip
def test_an_object_with_invalid_metadata_becomes_a_placeholder(found: object, problem: str) -> None:
    placeholder = checked(found)
    assert unreadable(placeholder) == problem
    assert set(placeholder["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}
    assert all(isinstance(value, str) for value in placeholder["metadata"].values())
    assert checked(placeholder) is placeholder


def test_only_placeholders_are_unreadable() -> None:
    assert unreadable({"metadata": {}}) is None
    assert unreadable(None) is None


def test_a_value_is_cut_off_below_some_levels() -> None:
    assert shallow({"a": [{"b": 1}], "c": 2}, 2) == {"a": [None], "c": 2}
    deep: list[Any] = []
    for _ in range(250):
        deep = [deep]
    assert orjson.dumps(shallow(deep)) == b"[" * MAX_DEPTH + b"null" + b"]" * MAX_DEPTH
    assert json_body.shallow(5) == 5


def test_what_orjson_cannot_write_is_written_all_the_same() -> None:
    assert encode({"message": "a\ud800é"}) == '{"message":"a?é"}'.encode()
    assert encode([1 << 70]) == b"[1180591620717411303424]"
    assert encode(orjson.loads(_nested(600))) == _nested(600)


def _deeper_than_any_stack() -> Any:
    value: list[Any] = []
    for _ in range(200_000):  # from Python 3.12 on, json writes some thousand levels
        value = [value]
    return value


@pytest.mark.parametrize("value", [{1, 2}, {"a": "\ud800", "b": float("nan")}, _deeper_than_any_stack()])
def test_a_value_that_is_no_json_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError):
        encode(value)
