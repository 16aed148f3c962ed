# ruff: noqa: BLE001, ASYNC251, PT012 (plugins as they should not be)
"""A plugin that raises, hangs or returns an invalid result fails its own attempt and affects no other binding."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import uvloop

import karmada_pyscheduler
import karmada_scheduler
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_scheduler.binding_cycle.transaction import BindingTransaction
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.framework import SUCCESS, PluginError, Result
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.load_timeout import call_in_thread
from karmada_scheduler.framework.runtime import coroutine_timeouts, timeouts
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.failure_log import FailureLog
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import BlockTimeout, PluginTimeoutError, SigalrmTimeout
from karmada_scheduler.framework.runtime.waiting_bindings import PendingPermit
from karmada_scheduler.testing import binding, cluster, decide, placed
from tests.unit.framework.plugins import answering, plugin, raising, with_in_tree

BUDGET = 0.2


@pytest.fixture
def alarm() -> Iterator[SigalrmTimeout]:
    watch = SigalrmTimeout(BUDGET)
    yield watch
    assert watch._depth == 0
    watch.close()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.fixture
def caller(alarm: SigalrmTimeout) -> PluginCaller:
    return PluginCaller(timeout=alarm, coroutine_seconds=BUDGET)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Run a coroutine as the scheduler does, and check that the event loop continues meanwhile."""

    def run(work: Any) -> Any:
        async def main() -> Any:
            turns = itertools.count()

            async def turn() -> None:
                while True:
                    next(turns)
                    await asyncio.sleep(0)

            other = asyncio.create_task(turn())
            await asyncio.sleep(0)
            try:
                return await work
            finally:
                before = next(turns)
                await asyncio.sleep(0)
                assert next(turns) > before + 1
                other.cancel()

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main())

    return run


def loops(*_: Any) -> Any:
    while True:
        pass


def sleeps(*_: Any) -> Any:
    time.sleep(60)


def catches_exceptions(*_: Any) -> Any:
    while True:
        try:
            loops()
        except Exception:
            continue


def tries_again(*_: Any) -> Any:
    while True:
        try:
            time.sleep(60)
        except:  # noqa: E722
            time.sleep(1)


def goes_on_when_late(*_: Any) -> Any:
    with contextlib.suppress(BaseException):
        loops()
    return SUCCESS


def in_a_while() -> bool:
    time.sleep(0.03)
    return True


def calls_deeply(depth: int = 50, *_: Any) -> Any:
    return loops() if depth == 0 else calls_deeply(depth - 1)


HANGS = [
    loops,
    sleeps,
    catches_exceptions,
    tries_again,
    goes_on_when_late,
    lambda *_: calls_deeply(),
]
NAMES = [getattr(each, "__name__", "deeply") for each in HANGS]


@pytest.mark.parametrize("hangs", HANGS, ids=NAMES)
def test_a_plain_function_that_hangs_is_an_error_that_names_plugin_and_point(
    hangs: Callable[..., Any], caller: PluginCaller
) -> None:
    with pytest.raises(PluginError) as caught:
        caller.call(plugin("Slow", reserve=hangs), Point.RESERVE, hangs, None)
    assert str(caught.value) == 'plugin "Slow" took longer than 0.2s at Reserve'
    assert caller.call(plugin("Other"), Point.RESERVE, answering(SUCCESS), None) is SUCCESS


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        ({"filter": loops}, 'plugin "P" took longer than 0.2s at Filter for cluster m1'),
        ({"filter": goes_on_when_late}, 'plugin "P" took longer than 0.2s at Filter for cluster m1'),
        ({"score": sleeps}, 'plugin "P" took longer than 0.2s at Score'),
        ({"score": answering(1), "normalize_score": loops}, 'plugin "P" took longer than 0.2s at Score'),
        ({"pre_filter": loops}, 'plugin "P" took longer than 0.2s at PreFilter'),
        ({"pre_score": loops}, 'plugin "P" took longer than 0.2s at PreScore'),
        ({"select": loops}, 'plugin "P" took longer than 0.2s at Select'),
        ({"assign": tries_again}, 'plugin "P" took longer than 0.2s at Assign'),
    ],
)
def test_a_hang_at_any_point_keeps_the_placement_and_the_next_binding_is_placed(
    methods: dict[str, Any], text: str, caller: PluginCaller
) -> None:
    plugins = with_in_tree(plugin("P", **methods), caller=caller)
    decision = decide(binding("web").replicas(1).on(m1=1), cluster("m1"), plugins=plugins)
    assert decision.targets is None
    assert text in str(decision.error)
    good = decide(binding("web").replicas(1), cluster("m1"), plugins=with_in_tree(caller=caller))
    assert placed(good) == {"m1": 1}


def test_the_timeout_of_filter_holds_for_all_clusters_together(
    caller: PluginCaller,
) -> None:
    plugins = with_in_tree(plugin("P", filter=lambda _: SUCCESS if in_a_while() else None), caller=caller)
    began = time.monotonic()
    clusters = [cluster(f"m{number}") for number in range(400)]
    decision = decide(binding("web").replicas(1), *clusters, plugins=plugins)
    assert 'plugin "P" took longer than 0.2s at Filter for cluster m' in str(decision.error)
    assert time.monotonic() - began < 10


def test_a_filter_that_hangs_in_fits_without_is_named(caller: PluginCaller) -> None:
    calls = itertools.count()

    def hangs_later(context: Any) -> Any:
        return loops() if next(calls) else Result.unschedulable("no")

    errors: list[str] = []

    def look_without(context: Any) -> Result:
        try:
            context.fits_without(next(iter(context.cycle.snapshot)), [])
        except PluginError as error:
            errors.append(str(error))
        return SUCCESS

    plugins = with_in_tree(
        plugin("F", filter=hangs_later), plugin("P", post_filter=look_without), caller=caller, first=True
    )
    decide(binding("web").replicas(1), cluster("m1"), plugins=plugins)
    assert errors == ['plugin "F" took longer than 0.2s at Filter for cluster m1']


class StoppedProcess:
    """A timeout whose process is stopped before it calls a plugin."""

    def __init__(self, alarm: SigalrmTimeout) -> None:
        self._alarm = alarm

    def __enter__(self) -> Self:
        self._alarm.__enter__()
        try:
            time.sleep(60)
        except BaseException as error:
            self._alarm.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alarm.__exit__(kind, error, trace)

    def part(self, share: float, *, adds_up: bool = False) -> BlockTimeout:
        return self._alarm.part(share, adds_up=adds_up)


@pytest.mark.parametrize("others", [[], [plugin("P", filter=lambda _: SUCCESS)]], ids=["cached", "uncached"])
def test_a_process_that_was_stopped_before_the_first_filter_tries_the_binding_again(
    alarm: SigalrmTimeout, others: list[Any]
) -> None:
    caller = PluginCaller(timeout=StoppedProcess(alarm), coroutine_seconds=BUDGET)
    decision = decide(binding("web").replicas(1), cluster("m1"), plugins=with_in_tree(*others, caller=caller))
    assert decision.targets is None
    assert (
        "the process took longer than 0.2s to reach the first plugin at Filter: it was stopped, or had no CPU time"
        in str(decision.error)
    )


# --- coroutines ---


async def never(*_: Any) -> Any:
    await asyncio.get_running_loop().create_future()


async def blocks(*_: Any) -> Any:
    await asyncio.sleep(0)
    time.sleep(60)


async def blocks_in_python(*_: Any) -> Any:
    await asyncio.sleep(0)
    loops()


async def stays(release: threading.Event) -> Any:
    while not release.is_set():
        try:
            await asyncio.sleep(60)
        except BaseException:
            continue


async def stays_and_cancels_its_task(release: threading.Event) -> Any:
    task = asyncio.current_task()
    assert task is not None
    while not release.is_set():
        with contextlib.suppress(BaseException):
            task.cancel()
            await asyncio.sleep(60)


async def answers_when_cancelled(*_: Any) -> Any:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return SUCCESS


@pytest.mark.parametrize(
    "hangs", [never, blocks, blocks_in_python, stays, stays_and_cancels_its_task, answers_when_cancelled]
)
def test_a_coroutine_that_hangs_or_blocks_is_stopped(
    hangs: Callable[..., Any],
    caller: PluginCaller,
    run: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coroutine_timeouts, "CLEANUP_SECONDS", 0.1)
    monkeypatch.setattr(coroutine_timeouts, "_unclosed", [])
    release = threading.Event()
    with pytest.raises(PluginError) as caught:
        run(caller.call_async(plugin("Slow"), Point.PERMIT, hangs, release))
    assert str(caught.value) == 'plugin "Slow" took longer than 0.2s at Permit'
    del caught
    gc.collect()  # must not resume the coroutine
    release.set()


def test_a_coroutine_may_clean_up_after_its_timeout(caller: PluginCaller, run: Callable[[Any], Any]) -> None:
    cleaned: list[bool] = []

    async def careful(_: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    with pytest.raises(PluginError, match="took longer"):
        run(caller.call_async(plugin("Slow"), Point.PERMIT, careful, None))
    assert cleaned


def test_a_plugin_may_have_a_timeout_of_its_own(caller: PluginCaller, run: Callable[[Any], Any]) -> None:
    patient = plugin("Patient", permit=never)
    patient.timeout = 0.05
    with pytest.raises(PluginError, match=r'"Patient" took longer than 0.05s at Permit'):
        run(caller.call_async(patient, Point.PERMIT, never, None))

    async def takes_a_while(_: object) -> Result:
        await asyncio.sleep(2 * BUDGET)
        return SUCCESS

    patient.timeout = None
    assert run(caller.call_async(patient, Point.PERMIT, takes_a_while, None)) is SUCCESS


def test_a_coroutine_that_awaits_a_cancelled_future_fails(
    caller: PluginCaller, run: Callable[[Any], Any]
) -> None:
    async def waits(_: object) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    with pytest.raises(PluginError) as caught:
        run(caller.call_async(plugin("P"), Point.PRE_BIND, waits, None))
    assert str(caught.value) == 'plugin "P" failed at PreBind: RuntimeError: what it waited for was cancelled'


def test_a_stop_of_the_scheduler_reaches_a_coroutine(caller: PluginCaller, run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        task = asyncio.create_task(caller.call_async(plugin("P"), Point.PRE_BIND, never, None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_a_timeout_error_of_the_plugin_itself_is_an_error(
    caller: PluginCaller, run: Callable[[Any], Any]
) -> None:
    async def impatient(_: object) -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    with pytest.raises(PluginError, match=r'^plugin "P" failed at PreBind: TimeoutError$'):
        run(caller.call_async(plugin("P"), Point.PRE_BIND, impatient, None))


def test_a_coroutine_that_does_not_wait_needs_no_event_loop(caller: PluginCaller) -> None:
    async def answers(_: object) -> Result:
        return SUCCESS

    assert run_sync(caller.call_async(plugin("P"), Point.PRE_FILTER, answers, None)) is SUCCESS


# --- exceptions of plugins ---


class OwnError(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (OwnError("odd"), "OwnError: odd"),
        (asyncio.CancelledError("mine"), "CancelledError: mine"),
        (StopIteration("end"), "StopIteration: end"),
        (TimeoutError(), "TimeoutError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
    ],
)
def test_any_exception_of_a_plugin_is_an_error_that_names_it(
    error: BaseException, text: str, caller: PluginCaller
) -> None:
    raises = raising(error)
    with pytest.raises(PluginError) as caught:
        caller.call(plugin("P"), Point.RESERVE, raises, None)
    assert str(caught.value) == f'plugin "P" failed at Reserve: {text}'
    assert caught.value.__cause__ is error
    with pytest.raises(PluginError):
        run_sync(caller.call_async(plugin("P"), Point.PRE_FILTER, raises, None))
    for method in ("filter", "score"):
        plugins = with_in_tree(plugin("P", **{method: raises}), caller=caller)
        decision = decide(binding("web").replicas(1).on(m1=1), cluster("m1"), plugins=plugins)
        assert decision.targets is None
        assert text in str(decision.error)
        assert '"P"' in str(decision.error)


def test_keyboard_interrupt_ends_a_command() -> None:
    """Without an event loop, SIGINT raises KeyboardInterrupt in the code that runs."""
    interrupt = raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        PluginCaller().call(plugin("P"), Point.RESERVE, interrupt, None)
    for method in ("filter", "score", "filter_key"):
        with pytest.raises(KeyboardInterrupt):
            decide(
                binding("web"),
                cluster("m1"),
                plugins=with_in_tree(plugin("P", **{"filter": answering(SUCCESS), method: interrupt})),
            )


async def raises_generator_exit(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise GeneratorExit


async def interrupts(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise KeyboardInterrupt


async def cancels_itself(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)


async def cancels_itself_before_a_turn(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def cancels_itself_and_returns(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("so there")
    return 7


async def cancels_itself_and_raises(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    task.cancel()
    raise KeyError("x")


async def raises_cancelled(*_: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("unusual", "text"),
    [
        (raises_generator_exit, "RuntimeError: it raised GeneratorExit"),
        (interrupts, "KeyboardInterrupt"),
        (cancels_itself, "RuntimeError: what it waited for was cancelled"),
        (cancels_itself_before_a_turn, "RuntimeError: what it waited for was cancelled"),
        (cancels_itself_and_raises, "KeyError: 'x'"),
        (raises_cancelled, "RuntimeError: what it waited for was cancelled"),
    ],
)
@pytest.mark.parametrize("seconds", [None, 60.0], ids=["without limit", "with a limit"])
def test_a_coroutine_that_raises_cancellation_is_an_error(
    unusual: Callable[..., Any],
    text: str,
    seconds: float | None,
    caller: PluginCaller,
    run: Callable[[Any], Any],
) -> None:
    called = plugin("P")
    called.timeout = seconds

    async def main() -> None:
        with pytest.raises(PluginError) as caught:
            await caller.call_async(called, Point.PRE_BIND, unusual, None)
        assert str(caught.value) == f'plugin "P" failed at PreBind: {text}'
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # no alarm interrupts it

    run(main())


def test_a_coroutine_that_cancels_its_task_and_returns_has_returned(
    caller: PluginCaller, run: Callable[[Any], Any]
) -> None:
    async def main() -> None:
        assert await caller.call_async(plugin("P"), Point.PRE_BIND, cancels_itself_and_returns, None) == 7
        await asyncio.sleep(0)

    run(main())


def test_a_cancellation_reaches_the_caller_of_a_coroutine_that_cancels_itself(
    caller: PluginCaller, run: Callable[[Any], Any]
) -> None:
    async def cancels_itself_later(_: object) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await cancels_itself_and_returns()

    async def main() -> None:
        task = asyncio.create_task(caller.call_async(plugin("P"), Point.PRE_BIND, cancels_itself_later, None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled() or task.result() is None

    run(main())


def test_a_coroutine_can_be_closed(caller: PluginCaller) -> None:
    call = caller.call_async(plugin("P"), Point.PRE_BIND, never_without_a_loop, None)
    call.send(None)
    call.close()


async def never_without_a_loop(*_: Any) -> Any:
    class Never:
        def __await__(self) -> Generator[None, None, None]:
            yield

    await Never()


# --- timers and alarms ---


@pytest.mark.parametrize("problem", [[], [ValueError]])
def test_no_alarm_raises_after_a_block(alarm: SigalrmTimeout, problem: list[type[Exception]]) -> None:
    with contextlib.suppress(*problem), alarm:
        for each in problem:
            raise each
    time.sleep(2 * BUDGET)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    signal.raise_signal(signal.SIGALRM)  # as if it had been under way


def test_an_alarm_that_is_left_from_a_block_does_not_shorten_the_next_one(alarm: SigalrmTimeout) -> None:
    with alarm:
        pass
    time.sleep(BUDGET / 2)
    began = time.monotonic()
    with pytest.raises(PluginTimeoutError), alarm:
        loops()
    assert time.monotonic() - began >= BUDGET


def test_blocks_after_one_another_set_the_timer_once(
    alarm: SigalrmTimeout, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    monkeypatch.setattr(signal, "setitimer", lambda _, seconds: calls.append(seconds))
    for _ in range(3):
        with alarm:
            pass
    monkeypatch.undo()
    assert calls == [BUDGET]


def test_the_timeout_of_the_outermost_block_counts(alarm: SigalrmTimeout) -> None:
    began = time.monotonic()
    with pytest.raises(PluginTimeoutError), alarm:
        while True:
            with alarm:
                time.sleep(BUDGET / 10)
    assert time.monotonic() - began < 20 * BUDGET


def test_after_a_shorter_block_the_error_of_the_outer_one_has_its_own_timeout(alarm: SigalrmTimeout) -> None:
    with pytest.raises(PluginTimeoutError) as raised, alarm:
        with alarm.part(0.5):
            pass
        time.sleep(10 * BUDGET)
    assert raised.value.seconds == BUDGET


@pytest.mark.parametrize(("seconds", "limit"), [(1.5, 1.5), (2.0, 2.0), (2.1, 2.0), (600.0, 2.0)])
def test_plain_functions_have_two_seconds_at_most(seconds: float, limit: float) -> None:
    alarm = SigalrmTimeout(seconds)
    try:
        with alarm:
            left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert limit - 0.5 < left <= limit
    finally:
        alarm.close()


def test_blocks_that_add_up_have_one_timeout_together(alarm: SigalrmTimeout) -> None:
    part = alarm.part(0.5, adds_up=True)
    with pytest.raises(PluginTimeoutError), part:
        time.sleep(BUDGET)
    began = time.monotonic()
    with pytest.raises(PluginTimeoutError), part:
        time.sleep(BUDGET)  # nothing is left for a second block
    assert time.monotonic() - began < BUDGET / 2


def test_an_alarm_while_a_block_is_entered_or_left_does_not_raise(
    alarm: SigalrmTimeout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes whenever it likes: at each line of entering and leaving here."""

    def at_every_line(frame: Any, event: str, argument: object) -> Any:
        if frame.f_code in timeouts._OWN_CODE:
            alarm._on_alarm(signal.SIGALRM, frame)
            return at_every_line
        return None

    sys.settrace(at_every_line)
    try:
        with alarm:
            pass
    finally:
        sys.settrace(None)
    assert alarm._depth == 0


def test_an_alarm_does_not_interrupt_shielded_code(
    alarm: SigalrmTimeout,
) -> None:
    namespace = {"__timeout_shield__": True, "time": time, "seconds": 2 * BUDGET}
    exec(  # as if it were a method of the handle
        "def activate(done):\n    end = time.monotonic() + seconds\n"
        "    while time.monotonic() < end:\n        pass\n    done.append(True)\n",
        namespace,
    )
    done: list[bool] = []
    with pytest.raises(PluginTimeoutError), alarm:
        namespace["activate"](done)  # type: ignore[operator]
        loops()
    assert done == [True]


@pytest.mark.parametrize(
    "called_by_plugins",
    [PluginHandle, HandleBackend, BindingTransaction, PendingPermit, CircuitBreakers, FailureLog],
    ids=lambda each: each.__name__,
)
def test_modules_that_plugins_call_are_shielded(called_by_plugins: type) -> None:
    assert vars(sys.modules[called_by_plugins.__module__])["__timeout_shield__"] is True


def test_every_module_that_calls_plugins_with_a_timeout_is_marked_as_a_runner() -> None:
    """Without the mark, the timeout may be raised in the functions of the scheduler that called the plugin."""
    packages = (karmada_scheduler, karmada_pyscheduler)
    sources = sorted(path for package in packages for path in Path(package.__path__[0]).rglob("*.py"))
    statement = re.compile(r"^ *with \S*(?:timeout(?:\(\))?|timeout_of\(.*\)|_shorter\[.*\]):", re.MULTILINE)
    runners = [path for path in sources if statement.search(path.read_text())]
    assert {path.name for path in runners} >= {
        "plugin_call.py",
        "coroutine_timeouts.py",
        "filtering.py",
        "keyed_results.py",
        "scoring.py",
        "queue_sort.py",
    }
    assert [path.name for path in runners if "__plugin_runner__ = True" not in path.read_text()] == []


def test_logging_is_not_interrupted(alarm: SigalrmTimeout, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("plugin")
    with pytest.raises(PluginTimeoutError), alarm:
        while True:
            log.warning("again")
    caplog.clear()

    def write() -> bool:
        log.warning("from elsewhere")
        return True

    assert call_in_thread(write)  # no thread holds a lock


def test_only_the_main_thread_can_have_the_timeout() -> None:
    with pytest.raises(ValueError, match="only the main thread"):
        call_in_thread(lambda: SigalrmTimeout(1))
