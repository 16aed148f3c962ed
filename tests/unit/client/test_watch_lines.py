"""The bytes of a watch are split into lines, and each line is an event."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest

from karmada_pyscheduler.client.watch_requests import Lines, LongLine, event_of, read_event
from karmada_scheduler import json_body
from karmada_scheduler.json_body import unreadable

OBJECT = {"metadata": {"name": "a", "resourceVersion": "7"}}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_complete_for_any_size_of_chunks(size: int) -> None:
    arriving = b"one\n\ntwo\nthree and more\n\nrest"
    lines = Lines()
    found = [line for at in range(0, len(arriving), size) for line in lines.feed(arriving[at : at + size])]
    assert found == [b"one", b"two", b"three and more"]
    assert lines.end() == b"rest"
    assert lines.end() == b""


@pytest.mark.parametrize("size", [1, 3, 100])
def test_only_the_start_of_a_long_line_is_kept(size: int) -> None:
    lines = Lines(longest=5)
    arriving = b"12345\n123456\n1234567890\nab\n"
    found = [line for at in range(0, len(arriving), size) for line in lines.feed(arriving[at : at + size])]
    assert found == [b"12345", b"12345", b"12345", b"ab"]
    assert [type(line) for line in found] == [bytes, LongLine, LongLine, bytes]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_is_returned_unchanged(kind: str) -> None:
    event = {"type": kind, "object": OBJECT}
    assert event_of(orjson.dumps(event)) == event


def test_a_bookmark_is_returned_unchanged() -> None:
    event = {"type": "BOOKMARK", "object": {"kind": "Cluster", "metadata": {"resourceVersion": "9"}}}
    assert event_of(orjson.dumps(event)) == event


@pytest.mark.parametrize(
    ("found", "code"),
    [({"code": 410, "reason": "Expired"}, 410), ({}, 500), (None, 500), ({"code": "x"}, 500)],
)
def test_an_error_has_a_code(found: Any, code: int) -> None:
    assert event_of(orjson.dumps({"type": "ERROR", "object": found}))["object"]["code"] == code


@pytest.mark.parametrize(
    "found",
    [
        b"<html>", b"7", b"null", b"[]", b'{"type":"ADDED"', b"{}", b'{"type":7,"object":{}}',
        b'{"type":"OTHER","object":{}}', b'{"type":"BOOKMARK"}', b'{"type":"BOOKMARK","object":{"metadata":7}}',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"x"}}}',
    ],
)  # fmt: skip
def test_a_document_that_is_not_an_event_is_an_error(found: bytes) -> None:
    with pytest.raises(ValueError):
        event_of(found)


@pytest.mark.parametrize(
    "found", [b"null", b"[]", b'{"metadata":7}', b'{"metadata":{"name":7}}', b'{"metadata":{"resourceVersion":"7"}}']
)  # fmt: skip
def test_an_invalid_object_becomes_a_placeholder(found: bytes) -> None:
    assert unreadable(event_of(b'{"type":"DELETED","object":' + found + b"}")["object"])


def test_a_line_that_is_too_long_becomes_a_placeholder_if_its_start_has_the_name() -> None:
    head = b'{"type":"ADDED","object":{"kind":"X","metadata":{"name":"a","namespace":"n"},"spec":{"b":"ccccc'
    event = event_of(LongLine(head))
    assert event["object"]["metadata"] == {"name": "a", "namespace": "n"}
    assert "longer than" in (unreadable(event["object"]) or "")
    with pytest.raises(ValueError, match="longer than"):
        event_of(LongLine(head[:20]))


def test_an_object_that_is_nested_too_deeply_is_read_without_the_deep_values() -> None:
    status = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"status":' + status + b',"spec":{"b":1}}}'
    assert event_of(line)["object"]["spec"] == {"b": 1}


@pytest.mark.parametrize(("levels", "is_slow"), [(1_000, False), (1_100, False), (20_000, True)])
async def test_a_long_line_that_is_nested_too_deeply_is_decoded_in_a_thread(
    levels: int, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = {threading.current_thread()}
    decode = json_body.decode

    def recorded(body: bytes) -> Any:
        threads.add(threading.current_thread())
        return decode(body)

    monkeypatch.setattr(json_body, "decode", recorded)
    status = b'{"a":' * levels + b"1" + b"}" * levels
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"status":' + status + b',"spec":{"b":1}}}'
    assert (await read_event(line))["object"]["spec"] == {"b": 1}
    assert (len(threads) > 1) == is_slow


async def test_an_event_is_checked_wherever_it_is_decoded() -> None:
    for line in (b"[]", b"7", b"{", b'{"type":"ADDED"', b"[" * 100_000, LongLine(b"[]")):
        with pytest.raises(ValueError):
            await read_event(line)
