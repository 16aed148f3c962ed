"""Short answers are computed one after the other in the main thread, long ones in processes; each can be ended."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.web import computing, forked_job
from karmada_advisor.web.computing import MAX_WAITING, Computer
from karmada_advisor.web.jobs import BusyError, TooLongError


def during(
    computer: Computer,
    ask: Callable[[], Awaitable[Any]],
    *,
    idle: Callable[[], bool] = lambda: False,
    ended: Callable[[], None] = lambda: None,
) -> Any:
    """Return the result of a coroutine in another thread, while the computer serves in this one, the main thread."""
    found: list[Any] = []

    async def run() -> Any:
        return await asyncio.wait_for(ask(), 20)

    def run_thread() -> None:
        try:
            found.append(asyncio.run(run()))
        except BaseException as error:  # noqa: BLE001 (raised below)
            found.append(error)
        finally:
            computer.stop()

    thread = threading.Thread(target=run_thread)
    thread.start()
    computer.serve(idle, ended=ended)
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def is_alive(process: str) -> bool:
    return Path("/proc", process).exists()


def spin() -> None:
    while True:
        pass


def test_answers_are_computed_in_the_thread_that_serves_and_are_kept() -> None:
    computer = Computer()
    seen: list[int] = []

    def work() -> int:
        seen.append(threading.get_ident())
        return 7

    async def ask() -> None:
        for _ in range(2):
            assert await computer.answer("key", work) == 7
        with pytest.raises(ZeroDivisionError):
            await computer.answer("other", lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="StopIteration"):  # which a future of asyncio does not take
            await computer.answer("third", lambda: next(iter(())))

    during(computer, ask)
    assert seen == [threading.get_ident()]


async def test_too_many_waiting_questions_are_refused_at_once() -> None:
    computer = Computer()
    waiting = [
        asyncio.create_task(computer.answer(number, lambda: 1, requester=str(number)))
        for number in range(MAX_WAITING)
    ]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="8 answers are being computed"):
        await computer.answer("one more", lambda: 1, requester="one more")
    for each in waiting:
        each.cancel()


async def test_a_requester_has_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "_TURN_SECONDS", 0.01)
    computer = Computer()
    first = asyncio.create_task(computer.answer("first", lambda: 1, requester="a"))
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="your question before this one"):
        await computer.answer("second", lambda: 1, requester="a")
    other = asyncio.create_task(computer.answer("third", lambda: 1, requester="b"))
    await asyncio.sleep(0)
    assert computer._jobs.qsize() == 2
    for each in (first, other):
        each.cancel()


def test_questions_of_one_requester_are_answered_in_turn() -> None:
    computer = Computer()
    count: list[str] = []

    def answer(key: str) -> Awaitable[str]:
        def work() -> str:
            count.append(key)
            return key

        return computer.answer(key, work, requester="r")

    async def ask() -> list[str]:
        return await asyncio.gather(*map(answer, "abab"))

    assert during(computer, ask) == ["a", "b", "a", "b"]
    assert count == ["a", "b"]


async def test_a_question_without_an_answer_in_time_is_given_up() -> None:
    with pytest.raises(BusyError, match="no answer within"):
        await Computer(seconds=0.01).answer("key", lambda: 1)


def test_an_answer_that_takes_too_much_cpu_time_is_ended_and_not_begun_again() -> None:
    computer = Computer(cpu_seconds=0.2)
    begun: list[int] = []
    dropped: list[int] = []

    def work() -> None:
        begun.append(1)
        spin()

    async def ask() -> int:
        for _ in range(2):
            with pytest.raises(TooLongError, match=r"more than 0\.2 s of CPU time"):
                await computer.answer("key", work)
        return await computer.answer("other", lambda: 5)

    assert during(computer, ask, ended=lambda: dropped.append(1)) == 5
    assert (len(begun), len(dropped)) == (1, 1)


def test_an_answer_that_has_used_its_share_begins_again_in_a_process_while_others_are_answered() -> None:
    computer = Computer(share=0.1)
    answered: list[str] = []
    dropped: list[int] = []

    def long() -> int:
        end = time.thread_time() + 0.5
        while time.thread_time() < end:
            pass
        return os.getpid()

    async def ask() -> int:
        async def hog() -> int:
            process = await computer.answer("hog", long, requester="a")
            answered.append("hog")
            return process

        waiting = asyncio.create_task(hog())
        for number in range(5):
            assert await computer.answer(number, os.getpid, requester="b") == os.getpid()
            answered.append("other")
        return await waiting

    assert during(computer, ask, ended=lambda: dropped.append(1)) != os.getpid()
    assert answered == ["other"] * 5 + ["hog"]
    assert dropped == [1]


def test_a_process_is_ended_when_it_has_used_its_cpu_time_and_when_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    computer = Computer(share=0.05, cpu_seconds=0.3)
    number = tmp_path / "process"

    def wait() -> None:
        number.write_text(str(os.getpid()))
        threading.Event().wait(60)

    async def ask() -> None:
        with pytest.raises(TooLongError, match=r"more than 0\.3 s of CPU time"):
            await computer.answer("spins", spin)
        gone = asyncio.create_task(computer.answer("waits", wait, is_plan=True))
        while not number.exists() or not number.read_text():
            await asyncio.sleep(0.01)
        gone.cancel()
        while is_alive(number.read_text()):
            await asyncio.sleep(0.01)

    during(computer, ask)


def test_a_process_that_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_job, "MAX_MIB", 50)
    computer = Computer()

    def large() -> int:
        found = b"1" * (80 * 2**20)
        threading.Event().wait(60)
        return len(found)

    async def ask() -> int:
        with pytest.raises(TooLongError, match="more than 50 MiB of memory"):
            await computer.answer("large", large, is_plan=True)
        return await computer.answer("small", lambda: len(b"1" * (20 * 2**20)), is_plan=True)

    assert during(computer, ask) == 20 * 2**20


def test_a_process_leaves_half_of_what_its_container_may_still_take(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "memory.max").write_text(f"{500 * 2**20}\n")
    (tmp_path / "memory.current").write_text(f"{440 * 2**20}\n")
    monkeypatch.setattr(forked_job, "CGROUP", tmp_path)
    computer = Computer()

    def large() -> int:
        found = b"1" * (40 * 2**20)
        threading.Event().wait(60)
        return len(found)

    async def ask() -> None:
        with pytest.raises(TooLongError, match="more than 30 MiB of memory"):
            await computer.answer("large", large, is_plan=True)

    during(computer, ask)


def test_processes_end_with_the_page(tmp_path: Path) -> None:
    computer = Computer()
    number = tmp_path / "process"

    def wait() -> None:
        number.write_text(str(os.getpid()))
        threading.Event().wait(60)

    async def ask() -> None:
        asked = asyncio.create_task(computer.answer("waits", wait, is_plan=True))
        while not number.exists() or not number.read_text():
            await asyncio.sleep(0.01)
        computer.stop()
        with pytest.raises(RuntimeError, match="has ended with status -9"):
            await asked

    during(computer, ask)
    assert not is_alive(number.read_text())


def test_two_processes_run_at_once_and_further_long_answers_wait(tmp_path: Path) -> None:
    computer = Computer()
    go_on = tmp_path / "go on"

    def work(name: str) -> str:
        (tmp_path / name).touch()
        while not go_on.exists():
            time.sleep(0.01)
        return name

    def begun() -> set[str]:
        return {each.name for each in tmp_path.iterdir()} - {go_on.name}

    async def ask() -> list[str]:
        asked = [
            asyncio.create_task(computer.answer(name, partial(work, name), requester=name, is_plan=True))
            for name in "abc"
        ]
        while len(begun()) < 2:
            await asyncio.sleep(0.01)
        assert await computer.answer("short", lambda: 5, requester="d") == 5
        assert begun() == {"a", "b"}
        go_on.touch()
        return await asyncio.gather(*asked)

    assert during(computer, ask) == ["a", "b", "c"]


class TakesTwoError(Exception):
    """An error that cannot be built from its own arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def test_errors_in_a_process_are_those_of_the_answer() -> None:
    computer = Computer()

    def fail(error: Exception) -> int:
        raise error

    async def ask() -> int:
        for key, work, expected, text in (
            ("own", lambda: fail(NoAnswerError("does not exist")), NoAnswerError, "does not exist"),
            ("strange", lambda: fail(TakesTwoError("a", "b")), RuntimeError, r"TakesTwoError\('ab'\)"),
            ("no result", lambda: lambda: 1, AttributeError, "pickle"),
            ("stop", lambda: next(iter(())), RuntimeError, "StopIteration"),
            ("ended", lambda: os._exit(3), RuntimeError, "has ended with status 3"),
            (
                "killed",
                lambda: os.kill(os.getpid(), signal.SIGKILL),
                RuntimeError,
                "has ended with status -9",
            ),
        ):
            with pytest.raises(expected, match=text):
                await computer.answer(key, work, is_plan=True)
        return await computer.answer("other", lambda: 5, is_plan=True)

    assert during(computer, ask) == 5


def test_if_no_process_can_be_started_a_long_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fail)
    computer = Computer()
    before = len(list(Path("/proc/self/fd").iterdir()))

    async def ask() -> int:
        with pytest.raises(BusyError, match="no process can be started for the answer: Resource temporarily"):
            await computer.answer("plan", lambda: 1, is_plan=True)
        return await computer.answer("other", lambda: 5)

    assert during(computer, ask) == 5
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_process_holds_no_connection_of_the_page() -> None:
    ours, theirs = socket.socketpair()
    computer = Computer()

    def inherited() -> list[str]:
        found = [
            (each, os.path.realpath(each)) for each in Path("/proc/self/fd").iterdir() if int(each.name) > 2
        ]
        return [target for each, target in found if "socket:" in target or "anon_inode:" in target]

    async def ask() -> list[str]:
        return await computer.answer("files", inherited, is_plan=True)

    with ours, theirs:
        assert inherited()
        assert during(computer, ask) == []


def test_a_process_is_forked_while_the_thread_of_the_requests_holds_no_lock() -> None:
    computer = Computer(seconds=5)
    lock = threading.Lock()

    async def hold() -> None:
        while True:
            with lock:
                sum(range(20_000))
            await asyncio.sleep(0)

    def work() -> bool:
        return lock.acquire(timeout=2)

    async def ask() -> list[bool]:
        holding = asyncio.create_task(hold())
        found = [await computer.answer(number, work, is_plan=True) for number in range(5)]
        holding.cancel()
        return found

    assert during(computer, ask) == [True] * 5


def test_each_result_is_noted_once() -> None:
    noted: list[int] = []
    computer = Computer(computed=noted.append)

    async def ask() -> None:
        for _ in range(2):
            await computer.answer("short", lambda: 1)
            await computer.answer("long", lambda: 2, is_plan=True)

    during(computer, ask)
    assert noted == [1, 2]


def test_a_question_may_have_more_cpu_time_than_others() -> None:
    computer = Computer(cpu_seconds=0.1)

    def work() -> int:
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        return 7

    async def ask() -> int:
        with pytest.raises(TooLongError):
            await computer.answer("question", spin)
        return await computer.answer("plan", work, is_plan=True)

    assert during(computer, ask) == 7


def test_other_threads_do_not_use_up_the_cpu_time_of_an_answer() -> None:
    computer = Computer(cpu_seconds=0.15)
    done = threading.Event()

    def burn() -> None:
        while not done.is_set():
            pass

    burner = threading.Thread(target=burn)

    def work() -> int:
        began = time.thread_time()
        while time.thread_time() - began < 0.1:
            pass
        return 1

    async def ask() -> int:
        return sum([await computer.answer(number, work) for number in range(2)])

    burner.start()
    try:
        assert during(computer, ask) == 2
    finally:
        done.set()
        burner.join()


def test_an_answer_that_waits_is_ended_when_its_reader_has_gone() -> None:
    computer = Computer()
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        threading.Event().wait(60)

    async def ask() -> int:
        asked = asyncio.create_task(computer.answer("key", work))
        await asyncio.to_thread(begun.wait)
        asked.cancel()
        return await computer.answer("other", lambda: 5)

    assert during(computer, ask, ended=ended.set) == 5
    assert ended.is_set()


def test_an_answer_that_ignores_its_end_once_is_ended_all_the_same() -> None:
    computer = Computer(cpu_seconds=0.1)

    def work() -> None:
        try:
            spin()
        except BaseException:  # noqa: BLE001 (as a destructor does)
            spin()

    async def ask() -> None:
        with pytest.raises(TooLongError):
            await computer.answer("key", work)

    during(computer, ask)


def test_the_event_loop_of_an_answer_is_ended_with_it() -> None:
    computer = Computer(seconds=0.2)

    async def forever() -> None:
        await asyncio.sleep(60)

    async def ask() -> int:
        with pytest.raises(BusyError, match=r"no answer within 0\.2 s"):
            await computer.answer("key", lambda: asyncio.run(forever()))
        return await computer.answer("other", lambda: 5)

    assert during(computer, ask) == 5


def test_work_in_idle_moments_that_fails_or_never_ends_does_not_stop_answers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "_IDLE_CPU_SECONDS", 0.1)
    monkeypatch.setattr(computing, "_IDLE_PAUSE_SECONDS", 0.0)
    computer = Computer()
    rounds: list[Callable[[], bool]] = [lambda: bool(1 // 0), lambda: bool(spin()), lambda: False]  # type: ignore[func-returns-value]
    finished = threading.Event()

    def idle() -> bool:
        if not rounds:
            finished.set()
            return False
        return rounds.pop(0)()

    async def ask() -> int:
        await asyncio.to_thread(finished.wait)
        return await computer.answer("key", lambda: 5)

    with caplog.at_level(logging.ERROR):
        assert during(computer, ask, idle=idle) == 5
    assert "ZeroDivisionError" in caplog.text
    assert "more than 0.1 s of CPU time" in caplog.text


def test_work_in_idle_moments_that_fails_again_and_again_is_logged_once_and_pauses(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computing, "_IDLE_PAUSE_SECONDS", 0.3)
    computer = Computer()
    begun: list[int] = []

    def idle() -> bool:
        begun.append(1)
        return bool(1 // 0)

    async def ask() -> None:
        while len(begun) < 2:
            await asyncio.sleep(0.01)

    began = time.monotonic()
    during(computer, ask, idle=idle)
    assert time.monotonic() - began >= 0.3
    assert caplog.text.count("Work in idle moments has failed") == 1


def test_work_in_idle_moments_leaves_most_of_the_time_to_others() -> None:
    computer = Computer()
    begun: list[float] = []

    def idle() -> bool:
        begun.append(time.monotonic())
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return True

    async def ask() -> int:
        while len(begun) < 4:
            await asyncio.sleep(0.01)
        return await computer.answer("key", lambda: 5)

    assert during(computer, ask, idle=idle) == 5
    assert begun[3] - begun[0] >= 3 * 0.05 * 4


def test_what_cannot_be_cleaned_up_does_not_stop_answers(caplog: pytest.LogCaptureFixture) -> None:
    computer = Computer(cpu_seconds=0.1)

    async def ask() -> int:
        with pytest.raises(TooLongError):
            await computer.answer("key", spin)
        return await computer.answer("other", lambda: 5)

    assert during(computer, ask, ended=lambda: 1 // 0) == 5  # type: ignore[arg-type]
    assert "Cannot clean up" in caplog.text
