"""Answers are computed in forks, with one bound; each can be ended."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.web import answer_worker
from karmada_advisor.web.answer_worker import MAX_AT_ONCE, MAX_WAITING, AnswerWorker, BusyError, TooLongError


def is_alive(process: str) -> bool:
    return Path("/proc", process).exists()


def spin() -> None:
    while True:
        pass


def spin_in_c() -> None:
    re.match(r"(a|a)*b", "a" * 60)


class Begun:
    """A function that has begun, and waits until it is ended or may go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def work(self, name: str = "work") -> str:
        part = self._folder / f"part {os.getpid()}"
        part.write_text(str(os.getpid()))
        part.rename(self._folder / name)
        while not (self._folder / "go on").exists():
            time.sleep(0.01)
        return name

    async def process(self, name: str = "work") -> str:
        while not (self._folder / name).exists():
            await asyncio.sleep(0.01)
        return (self._folder / name).read_text()

    def go_on(self) -> None:
        (self._folder / "go on").touch()


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    return Begun(tmp_path)


async def test_an_answer_is_computed_in_another_process_and_kept(tmp_path: Path) -> None:
    worker = AnswerWorker()

    def work() -> int:
        with (tmp_path / "count").open("a") as file:
            file.write("x")
        return os.getpid()

    first, second = [await worker.answer("key", work) for _ in range(2)]

    assert first == second != os.getpid()
    assert (tmp_path / "count").read_text() == "x"


async def test_too_many_waiting_questions_are_refused_at_once(begun: Begun) -> None:
    worker = AnswerWorker()
    asked = [
        asyncio.create_task(worker.answer(number, begun.work, requester=str(number)))
        for number in range(MAX_AT_ONCE + MAX_WAITING)
    ]
    await begun.process()
    with pytest.raises(BusyError, match="8 questions wait"):
        await worker.answer("one more", lambda: 1, requester="one more")
    begun.go_on()
    await asyncio.gather(*asked)
    assert worker.waiting == 0


async def test_a_requester_has_one_question_at_a_time(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_worker, "_TURN_SECONDS", 0.01)
    worker = AnswerWorker()
    first = asyncio.create_task(worker.answer("first", begun.work, requester="a"))
    await begun.process()
    with pytest.raises(BusyError, match="your question before this one"):
        await worker.answer("second", lambda: 1, requester="a")
    assert await worker.answer("third", lambda: 3, requester="b") == 3
    begun.go_on()
    assert await first == "work"


async def test_questions_of_one_requester_are_answered_in_turn() -> None:
    noted: list[str] = []
    worker = AnswerWorker(computed=noted.append)

    def answer(key: str) -> Awaitable[str]:
        return worker.answer(key, lambda: key, requester="r")

    assert await asyncio.gather(*map(answer, "abab")) == ["a", "b", "a", "b"]
    assert noted == ["a", "b"]


async def test_a_question_that_is_not_begun_in_time_is_given_up(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_worker, "_WAIT_SECONDS", 0.01)
    worker = AnswerWorker()
    names = ["a", "b"]
    asked = [
        asyncio.create_task(worker.answer(name, partial(begun.work, name), requester=name)) for name in names
    ]
    for name in names:
        await begun.process(name)
    with pytest.raises(BusyError, match="other questions are being answered"):
        await worker.answer("c", lambda: 1, requester="c")
    begun.go_on()
    assert await asyncio.gather(*asked) == names


@pytest.mark.parametrize("work", [spin, spin_in_c])
async def test_an_answer_that_takes_too_long_is_ended_and_not_begun_again(work: Callable[[], None]) -> None:
    ended: list[str] = []
    worker = AnswerWorker(seconds=0.2, on_ended=ended.append)
    for _ in range(2):
        with pytest.raises(TooLongError, match=r"more than 0\.2 s"):
            await worker.answer("key", work)
    assert ended == ["time"]
    assert await worker.answer("other", lambda: 5) == 5


async def test_an_answer_for_which_nobody_waits_any_more_is_ended(begun: Begun) -> None:
    ended: list[str] = []
    worker = AnswerWorker(on_ended=ended.append)
    asked = asyncio.create_task(worker.answer("waits", begun.work))
    process = await begun.process()
    asked.cancel()
    while is_alive(process):
        await asyncio.sleep(0.01)
    assert ended == ["abandoned"]


async def test_a_process_that_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_worker, "MAX_MIB", 50)
    worker = AnswerWorker()

    def large() -> int:
        found = b"1" * (80 * 2**20)
        time.sleep(60)
        return len(found)

    with pytest.raises(TooLongError, match="more than 50 MiB of memory"):
        await worker.answer("large", large)
    assert await worker.answer("small", lambda: len(b"1" * (20 * 2**20))) == 20 * 2**20


async def test_a_process_leaves_some_of_what_its_container_may_still_take(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "memory.max").write_text(f"{500 * 2**20}\n")
    (tmp_path / "memory.current").write_text(f"{410 * 2**20}\n")
    monkeypatch.setattr(answer_worker, "CGROUP", tmp_path)

    def large() -> int:
        found = b"1" * (40 * 2**20)
        time.sleep(60)
        return len(found)

    with pytest.raises(TooLongError, match="more than 30 MiB of memory"):
        await AnswerWorker().answer("large", large)


async def test_memory_of_the_page_that_an_answer_writes_to_counts_as_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_worker, "MAX_MIB", 30)
    of_page = bytearray(b"1" * (40 * 2**20))

    def overwrite() -> None:
        of_page[:: resource.getpagesize()] = bytes(len(of_page) // resource.getpagesize())
        time.sleep(60)

    with pytest.raises(TooLongError, match="more than 30 MiB of memory"):
        await AnswerWorker().answer("overwrite", overwrite)


class TakesTwoError(Exception):
    """An error that cannot be built from its own arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def fail(error: Exception) -> int:
    raise error


@pytest.mark.parametrize(
    ("work", "expected", "text"),
    [
        (lambda: fail(NoAnswerError("does not exist")), NoAnswerError, "does not exist"),
        (lambda: fail(TakesTwoError("a", "b")), RuntimeError, r"TakesTwoError\('ab'\)"),
        (lambda: lambda: 1, AttributeError, "pickle"),
        (lambda: next(iter(())), RuntimeError, "StopIteration"),
        (lambda: os._exit(3), RuntimeError, "has ended with status 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), RuntimeError, "has ended with status -9"),
    ],
    ids=["own", "strange", "no result", "stop", "ended", "killed"],
)
async def test_errors_in_a_process_are_those_of_the_answer(
    work: Callable[[], object], expected: type[Exception], text: str
) -> None:
    worker = AnswerWorker()
    with pytest.raises(expected, match=text):
        await worker.answer("key", work)
    assert await worker.answer("other", lambda: 5) == 5


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_if_no_process_can_be_started_an_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    before = open_files()
    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(BusyError, match="no process can be started for the answer: Resource temporarily"):
        await AnswerWorker().answer("key", lambda: 1)
    assert open_files() == before


async def test_a_process_holds_no_connection_of_the_page() -> None:
    ours, theirs = socket.socketpair()

    def inherited() -> list[str]:
        found = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir() if int(file.name) > 2]
        return [target for target in found if "socket:" in target or "anon_inode:" in target]

    with ours, theirs:
        assert inherited()
        assert await AnswerWorker().answer("files", inherited) == []


async def test_an_answer_may_have_an_event_loop_of_its_own() -> None:
    async def later() -> int:
        await asyncio.sleep(0)
        return 7

    assert await AnswerWorker().answer("key", lambda: asyncio.run(later())) == 7


async def test_what_takes_longer_than_an_answer_leaves_the_cores_to_answers() -> None:
    worker = AnswerWorker()
    answer, report = [
        await worker.run(lambda: os.nice(0), seconds) for seconds in (answer_worker.SECONDS, 600.0)
    ]
    assert os.nice(0) < answer < report
