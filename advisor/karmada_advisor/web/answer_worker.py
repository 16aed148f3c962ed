"""Answers that need decisions. Each is computed in a fork, with one bound: its time and its memory, and one of each requester.

A fork has all objects as they are. A signal ends it, code in C included. Only the thread that forks exists in the copy. That is
the thread of the event loop, so no callback is half-way. A lock that another thread holds at that moment is never released in the
copy, which then ends with its time.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import re
import resource
import signal
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from weakref import WeakValueDictionary

from karmada_scheduler.structs import IdentityStruct, field

T = TypeVar("T")

SECONDS: Final = 30.0
"""The time of one answer. At 5,000 clusters, 99 of 100 questions take 3.2 s, and the largest plans 17 s, if nothing else runs."""
MAX_AT_ONCE: Final = 2
MAX_WAITING: Final = 8
"""Questions that wait, those of different requesters together."""
_WAIT_SECONDS: Final = 10.0
"""How long a question waits until it is begun."""
_TURN_SECONDS: Final = 2.0
"""How long it waits for the one before it of the same requester, such as another tab of the browser."""
_KEPT: Final = 32
"""Results that are kept, for pages that are loaded again."""


_NICENESS: Final = 5
"""Lists come first."""
_NICENESS_OF_REPORTS: Final = 15
"""Of what may take longer than an answer: nobody waits for it."""
MAX_MIB: Final = 1024
"""Memory that it may take besides that of the page; less in a container that has less."""
MOST_AT_ONCE: Final = 3
"""Forks that may share what a container has left."""
CGROUP: Final = Path("/sys/fs/cgroup")
_PRIVATE: Final = re.compile(r"^Private_Dirty: +(\d+) kB$", re.MULTILINE)
_LOOK_SECONDS: Final = 0.2
"""Until its time and its memory are looked at again."""
_FILE_DESCRIPTORS: Final = 65_536
"""Those below are closed in the copy, or a connection would stay open until it ends."""


class LimitError(Exception):
    """The function has used its time or its memory; ``reason`` is ``time`` or ``memory``."""

    def __init__(self, text: str, reason: str) -> None:
        """Take the limit for people, and which one it is."""
        super().__init__(text)
        self.reason = reason


class Forked:
    """A function that has begun."""

    def __init__(self, work: Callable[[], Any], seconds: float) -> None:
        """Begin it.

        Args:
            work: Computes the result, which can be pickled.
            seconds: The time after which it is ended.

        Raises:
            OSError: There is no memory for another process, or there are too many.
        """
        self._reading, writing = os.pipe()
        try:
            self._process = _forked()
        except OSError:
            os.close(self._reading)
            os.close(writing)
            raise
        if not self._process:
            _run(work, seconds, writing)
        os.close(writing)
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._most_bytes = min(MAX_MIB * 2**20, _free() // MOST_AT_ONCE)

    async def result(self) -> Any:
        """Wait for the result, and return it; called once. If it is cancelled, the function is ended.

        Raises:
            LimitError: It has used its time or its memory.
            RuntimeError: It has ended without a result.
            Exception: What the function has raised.
        """
        reading = asyncio.create_task(asyncio.to_thread(_whole, self._reading))
        try:
            while not (await asyncio.wait({reading}, timeout=_LOOK_SECONDS))[0]:
                self._check_limits()
        finally:
            if not reading.done():
                os.kill(self._process, signal.SIGKILL)
            _, status = await asyncio.to_thread(os.waitpid, self._process, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"the process that computes the answer has ended with status {code}")
        is_good, value = await asyncio.to_thread(pickle.loads, reading.result())
        if not is_good:
            raise value
        return value

    def _check_limits(self) -> None:
        if time.monotonic() >= self._ends_at:
            raise LimitError(f"{self._seconds:g} s", "time")
        if _own_memory(self._process) > self._most_bytes:
            raise LimitError(f"{self._most_bytes // 2**20} MiB of memory", "memory")


def _whole(reading: int) -> bytes:
    """Return what a pipe has until all its writers have ended."""
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def _own_memory(process: int) -> int:
    """Return the bytes of memory that a copy takes besides the original; 0 where it is not known.

    That is what it has written to, new or not: its resident memory does not grow where it writes to pages of the original,
    or uses those that the original has freed.
    """
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = _PRIVATE.search(text)
    return int(found[1]) * 1024 if found else 0


def _free() -> int:
    """Return the bytes that the container may still take; very many where it has no limit."""
    try:
        limit, taken = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # another system, or "max"
        return 1 << 62
    return max(0, limit - taken)


def _forked() -> int:
    with warnings.catch_warnings():  # Python 3.12 warns of other threads
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run(work: Callable[[], Any], seconds: float, writing: int) -> NoReturn:
    """Run a function in the copy and write its result; never returns, whatever happens."""
    status = 1
    try:
        _separate(seconds, writing)
        found = _pickled(work)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(found)
        status = 0
    finally:
        os._exit(status)


def _separate(seconds: float, writing: int) -> None:
    """Take from the copy what belongs to the original: its signals, its connections, its garbage, its priority."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.closerange(3, writing)
    os.closerange(writing + 1, min(_FILE_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    gc.freeze()  # a collection would write to the pages of all objects, and so copy them
    gc.disable()  # a quarter of the time of a large plan; the memory is bounded
    os.nice(_NICENESS if seconds <= SECONDS else _NICENESS_OF_REPORTS)
    limit = int(seconds) + 1  # the kernel ends it where the page was killed
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


def _pickled(work: Callable[[], Any]) -> bytes:
    """Return the result or the error of a function, as bytes."""
    try:
        return pickle.dumps((True, work()))
    except StopIteration as error:  # no future takes it
        return pickle.dumps((False, RuntimeError(repr(error))))
    except Exception as error:  # noqa: BLE001 (the request gets it)
        with suppress(Exception):
            found = pickle.dumps((False, error))
            pickle.loads(found)  # noqa: S301 (our own; an error whose constructor takes something else fails here)
            return found
        return pickle.dumps((False, RuntimeError(repr(error))))


class BusyError(Exception):
    """Too many answers are being waited for; the same question may have an answer later."""


class TooLongError(Exception):
    """The answer takes more time or memory than it may; the same question has none later either."""


class AnswerWorker(IdentityStruct, kw_only=True):
    """Computes answers in forks of the thread that asks; results are kept as long as the objects are the same.

    Attributes:
        seconds: The time of one answer.
        computed: Called with each result.
        on_ended: Called with the reason for which an answer was ended: ``time``, ``memory``, or ``abandoned`` where nobody
            waits any more.
        on_process: Called for each process that has begun.
        waiting: Questions that wait until they are begun.
    """

    seconds: float = SECONDS
    computed: Callable[[Any], None] = lambda _: None
    on_ended: Callable[[str], None] = lambda _: None
    on_process: Callable[[], None] = lambda: None
    waiting: int = 0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_AT_ONCE))
    _kept: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def answer(self, key: Hashable, work: Callable[[], T], *, requester: str = "") -> T:
        """Return the result of a function, or the one that is kept under the same key.

        Of one requester, one question is answered or waits; a second one waits for it for a moment.

        Args:
            key: Of the question.
            work: Computes the result, which can be pickled.
            requester: Who asks.

        Raises:
            BusyError: Too many questions wait, or it has waited for too long.
            TooLongError: It took too much time or memory.
        """
        if key not in self._kept:
            turn = self._turns.setdefault(requester, asyncio.Lock())
            try:
                async with asyncio.timeout(_TURN_SECONDS):
                    await turn.acquire()
            except TimeoutError:
                raise BusyError(
                    "your question before this one is being answered; try again in a moment"
                ) from None
            try:
                if key not in self._kept:
                    self._keep(key, await self._result(work))
            finally:
                turn.release()
        found: T | TooLongError = self._kept[key]
        if isinstance(found, TooLongError):
            raise found
        return found

    def _keep(self, key: Hashable, result: object) -> None:
        self.computed(result)
        self._kept[key] = result
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    async def _result(self, work: Callable[[], T]) -> T | TooLongError:
        if self.waiting >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} questions wait for an answer; try again in a moment")
        self.waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise BusyError("other questions are being answered; try again in a moment") from None
        finally:
            self.waiting -= 1
        try:
            return await self.run(work, self.seconds)
        except TooLongError as error:
            return error
        finally:
            self._slots.release()

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of a function, whatever else is computed.

        Args:
            work: Computes the result, which can be pickled.
            seconds: Its time.

        Raises:
            BusyError: No process can be started.
            TooLongError: It took too much time or memory.
        """
        try:
            forked = Forked(work, seconds)
        except OSError as problem:
            raise BusyError(f"no process can be started for the answer: {problem}") from problem
        self.on_process()
        try:
            result: T = await forked.result()
        except LimitError as limit:
            self.on_ended(limit.reason)
            raise TooLongError(f"the answer takes more than {limit}") from None
        except asyncio.CancelledError:
            self.on_ended("abandoned")
            raise
        return result
