"""The supervisor's thread while the main event loop is blocked: continuing work, and the end of the process."""

import asyncio
import faulthandler
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from karmada_pyscheduler.process import supervisor as module
from karmada_pyscheduler.process.supervisor import Supervisor


class FakeExit:
    """Records how the process would have ended."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.words: list[str] = []
        self.happened = threading.Event()

    def __call__(self, status: int, *, log_last: Callable[[], object] = lambda: None) -> None:
        self.statuses.append(status)
        log_last()
        self.happened.set()


@contextmanager
def supervisor(monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> Iterator[tuple[Supervisor, FakeExit]]:
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.01)
    exits = FakeExit()
    made = Supervisor(clock=time.monotonic, end=exits, **arguments)
    made.start()
    try:
        yield made, exits
    finally:
        made.close()


async def test_work_runs_in_the_other_thread_and_its_result_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def name() -> str:
        return threading.current_thread().name

    with supervisor(monkeypatch) as (made, _):
        assert await made.run(name()) == "supervisor"


def test_the_loop_runs_when_start_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = asyncio.Runner

    def slow() -> asyncio.Runner:
        time.sleep(0.05)
        return runner()

    monkeypatch.setattr(asyncio, "Runner", slow)
    with supervisor(monkeypatch) as (made, _):
        assert made._closed is not None


async def test_an_exception_of_the_work_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise LookupError("there")

    with supervisor(monkeypatch) as (made, _), pytest.raises(LookupError, match="there"):
        await made.run(fail())


async def test_cancelling_the_caller_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with supervisor(monkeypatch) as (made, _):
        task = asyncio.create_task(made.run(wait()))
        while not began.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        assert await asyncio.to_thread(cancelled.wait, 5)


async def test_work_continues_while_the_main_loop_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    async def tick() -> None:
        nonlocal count
        while True:
            count += 1
            await asyncio.sleep(0.005)

    with supervisor(monkeypatch) as (made, _):
        task = asyncio.create_task(made.run(tick()))
        await asyncio.sleep(0.05)
        before, until = count, time.monotonic() + 5.0
        while count - before < 10 and time.monotonic() < until:  # plain Python that never waits
            pass
        assert count - before >= 10
        task.cancel()


async def test_a_leader_with_a_blocked_loop_ends_and_logs_its_stack(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gave_up = threading.Event()

    async def give_up() -> None:
        gave_up.set()

    with supervisor(monkeypatch, on_stall=give_up, stall_seconds=0.2) as (made, exits):
        made.leading = True
        beating = asyncio.create_task(made.beat())
        await asyncio.sleep(0.01)
        _block_until(exits.happened)
        assert gave_up.is_set()
        assert exits.statuses[0] == 1
        stack = caplog.records[-1].__dict__["stack"]
        assert "_block_until" in stack
        assert stack.count('  File "') <= 12
        beating.cancel()


async def test_a_standby_with_a_blocked_loop_is_unhealthy_and_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with supervisor(monkeypatch, stall_seconds=0.05) as (made, exits):
        beating = asyncio.create_task(made.beat())
        await asyncio.sleep(0.01)
        assert not made.problem
        time.sleep(0.2)  # noqa: ASYNC251 (blocks the loop)
        assert "has not turned" in str(made.problem)
        assert not exits.happened.is_set()
        await asyncio.sleep(0.05)
        beating.cancel()


@pytest.mark.parametrize(("silence", "problem"), [(3.9, None), (4.0, "the event loop has not turned for 4s")])
def test_a_loop_is_blocked_when_it_was_silent_for_the_whole_time(silence: float, problem: str | None) -> None:
    made = Supervisor(clock=lambda: 100.0 + silence, stall_seconds=4.0)
    made._last_beat = 100.0
    assert made.problem == problem


async def test_a_loop_that_has_not_started_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    with supervisor(monkeypatch, stall_seconds=0.0001) as (made, _):
        assert made.problem is None


async def test_a_stop_that_takes_too_long_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with supervisor(monkeypatch) as (made, exits):
        made.stop_within(0.1)
        made.stop_within(100)  # the first signal counts
        assert await asyncio.to_thread(exits.happened.wait, 5)
        assert exits.statuses[0] == 1


async def test_the_process_ends_at_the_time_that_is_set() -> None:
    now, exits = 100.0, FakeExit()
    made = Supervisor(clock=lambda: now, end=exits)
    made.stop_within(10.0)
    await made._check()
    assert exits.statuses == []
    now = 110.0
    await made._check()
    assert exits.statuses == [1]


async def test_a_leader_whose_loop_turns_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with supervisor(monkeypatch) as (made, exits):
        made.leading = True
        beating = asyncio.create_task(made.beat())
        made.stop_within(100)
        await asyncio.sleep(0.1)
        assert not exits.happened.is_set()
        beating.cancel()


def test_closing_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with supervisor(monkeypatch) as (made, _):
        assert made.is_running
        thread = made
    assert not thread.is_running
    Supervisor(clock=time.monotonic, end=FakeExit()).close()  # it was not started


def test_the_watchdog_is_armed_at_the_start_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[dict[str, Any]] = []
    beats: list[float] = []
    disarmed: list[int] = []
    monkeypatch.setattr(module, "_REARM_BEATS", 3)
    monkeypatch.setattr(module, "_stderr", lambda: 2)
    monkeypatch.setattr(
        faulthandler,
        "dump_traceback_later",
        lambda _, **fields: armed.append(fields | {"at": len(beats)}),
    )

    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: disarmed.append(len(armed)))

    async def check(_: Supervisor) -> None:
        beats.append(0)

    monkeypatch.setattr(Supervisor, "_check", check)
    with supervisor(monkeypatch):
        until = time.monotonic() + 5
        while len(armed) < 3 and time.monotonic() < until:
            time.sleep(0.001)
        assert not disarmed
    assert armed[:3] == [{"exit": True, "file": 2, "at": at} for at in (0, 3, 6)]
    assert disarmed == [len(armed)]


@pytest.mark.parametrize("problem", [AttributeError(), OSError(), ValueError()])
def test_a_process_without_standard_error_has_no_watchdog(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    class Closed:
        def fileno(self) -> int:
            raise problem

    monkeypatch.setattr("sys.stderr", Closed())
    assert module._stderr() is None


def _block_until(happened: threading.Event) -> None:
    assert happened.wait(5)
