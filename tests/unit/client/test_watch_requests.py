"""Requests to watch a kind: their events, and the pauses after failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import orjson
import pytest

from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_scheduler.api_error import ApiError

TARGET = "/apis/a/v1/clusters?watch=true&resourceVersion=7"
EVENT = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "8"}}}
LINE = orjson.dumps(EVENT)


class RequestsHarness:
    """Requests to a server that responds to each with the next lines, or the next error."""

    def __init__(self, *answers: list[bytes] | ApiError, seconds: float = 0.0) -> None:
        self.answers = list(answers)
        self.pauses: list[float] = []
        self.now = 0.0
        self.accepted = 0
        self._seconds = seconds
        self.requests = WatchRequests(self._connect, clock=lambda: self.now, sleep=self._sleep)

    async def _connect(self, target: str, accepted: Callable[[], None]) -> AsyncGenerator[bytes, None]:
        assert target == TARGET
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        accepted()
        for line in answer:
            yield line
        self.now += self._seconds

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def _accept(self) -> None:
        self.accepted += 1

    async def request(self) -> list[Any]:
        return [event async for event in self.requests.events(TARGET, self._accept)]


async def test_events_are_yielded_and_the_next_request_follows_at_once() -> None:
    harness = RequestsHarness([LINE, LINE])
    assert await harness.request() == [EVENT, EVENT]
    assert harness.pauses == []
    assert harness.accepted == 1


async def test_an_unreadable_line_is_skipped_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RequestsHarness([b"<html>", b"<html>", LINE])
    assert await harness.request() == [EVENT]
    assert [record.message for record in caplog.records] == [
        "A line of a watch cannot be read, it is skipped"
    ]
    assert "<html>" in caplog.records[0].__dict__["error"]


@pytest.mark.parametrize("answer", [[], [b"<html>"], ApiError("away"), ApiError("busy", code=503)])
async def test_pauses_between_failures_grow_and_end_with_the_first_event(answer: Any) -> None:
    harness = RequestsHarness(*[answer] * 4, [LINE], answer)
    for _ in range(4):
        assert await harness.request() == []
    assert harness.pauses == [0.2, 0.5, 1.0, 2.0]
    await harness.request()
    await harness.request()
    assert harness.pauses[4:] == [0.2]


async def test_a_request_that_lasted_counts_as_successful_without_an_event() -> None:
    harness = RequestsHarness([], [], seconds=60.0)
    await harness.request()
    await harness.request()
    assert harness.pauses == []


@pytest.mark.parametrize(
    ("code", "restarts"), [(410, 1), (400, 0), (403, 0), (404, 0), (401, 0), (500, 0), (0, 0)]
)
async def test_the_watch_starts_from_scratch_when_its_version_is_gone_and_not_when_it_is_refused(
    code: int, restarts: int
) -> None:
    # A new list after each refusal would be too expensive.
    harness = RequestsHarness(*[ApiError("no", code=code)] * 6)
    for _ in range(6):
        events = await harness.request()
        assert [event["object"]["code"] for event in events] == [410] * restarts


@pytest.mark.parametrize("code", [410, 500, None])
async def test_any_error_event_restarts_the_watch_from_scratch(code: int | None) -> None:
    line = orjson.dumps({"type": "ERROR", "object": {"code": code, "message": "storage is not ready"}})
    harness = RequestsHarness([LINE, line, LINE])
    events = await harness.request()
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert events[1]["object"]["code"] == 410
    assert harness.pauses == []


async def test_immediate_error_events_are_paced() -> None:
    line = orjson.dumps({"type": "ERROR", "object": {"code": 410}})
    harness = RequestsHarness(*[[line]] * 3)
    for _ in range(3):
        assert len(await harness.request()) == 1
    assert harness.pauses == [0.2, 0.5, 1.0]


async def test_a_lasting_error_is_logged_again_at_intervals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RequestsHarness(*[ApiError("away")] * 49)
    logged = []
    for number in range(1, 50):
        await harness.request()
        if caplog.records:
            logged.append(number)
            caplog.clear()
    assert logged == [2, 4, 8, 16, 32, 48]


async def test_the_second_failure_in_a_row_and_the_recovery_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    harness = RequestsHarness(*[ApiError("away")] * 3, [LINE])
    for _ in range(4):
        await harness.request()
    assert [record.message for record in caplog.records] == [
        "Cannot watch, trying again",
        "The watch works again",
    ]
