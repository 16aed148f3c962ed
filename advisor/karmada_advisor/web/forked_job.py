"""A job in a process of its own: a fork, which has all objects as they are, so nothing is sent to it but memory pages.

Only the thread that forks exists in the copy. A lock that another thread holds at that moment would never be released
there, so the caller sees to it that no other thread is in the middle of anything.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

_NICENESS: Final = 5
"""Lists and short answers come first."""
MAX_MIB: Final = 1024
"""Memory that it may take besides that of the page; less in a container that has less."""
CGROUP: Final = Path("/sys/fs/cgroup")
_LOOK_SECONDS: Final = 0.2
"""Until its memory is looked at again."""
_FILE_DESCRIPTORS: Final = 65_536
"""Those below are closed in the copy, or a connection would stay open until the job ends."""


class LimitError(Exception):
    """The job has used its CPU time or its memory; ``reason`` is ``cpu`` or ``memory``."""

    def __init__(self, text: str, reason: str) -> None:
        """Take the limit for people, and which one it is."""
        super().__init__(text)
        self.reason = reason


class ForkedJob:
    """A job that has begun."""

    def __init__(self, work: Callable[[], Any], cpu_seconds: float) -> None:
        """Begin it.

        Args:
            work: Computes the result, which can be pickled.
            cpu_seconds: The CPU time after which the kernel ends it.

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
            _run(work, cpu_seconds, writing)
        os.close(writing)
        self._cpu_seconds = cpu_seconds
        self._limit = min(
            MAX_MIB * 2**20, _free() // 2
        )  # two may run at once, and they copy pages of the page
        self._memory = self._resident() + self._limit
        self._lock = threading.Lock()
        self._has_ended = False

    def kill(self) -> None:
        """End it, if it has not ended."""
        with self._lock:
            if not self._has_ended:
                os.kill(self._process, signal.SIGKILL)

    def result(self) -> Any:
        """Wait for the result, and return it; called once.

        Raises:
            LimitError: It has used its CPU time or its memory.
            RuntimeError: It has ended without a result.
            Exception: What the work has raised.
        """
        with os.fdopen(self._reading, "rb") as pipe:
            readable = select.poll()  # select.select() takes no number above 1023
            readable.register(pipe)
            is_large = False
            while not readable.poll(1000 * _LOOK_SECONDS) and not is_large:
                is_large = self._resident() > self._memory
            if is_large:
                self.kill()
            found = pipe.read()
        with self._lock:  # after it has been waited for, its number may be that of another process
            self._has_ended = True
        _, status = os.waitpid(self._process, 0)
        code = os.waitstatus_to_exitcode(status)
        if is_large:
            raise LimitError(f"{self._limit // 2**20} MiB of memory", "memory")
        if code == -signal.SIGPROF:
            raise LimitError(f"{self._cpu_seconds:g} s of CPU time", "cpu")
        if code:
            raise RuntimeError(f"the process that computes the answer has ended with status {code}")
        is_good, value = pickle.loads(found)  # noqa: S301 (from our own fork)
        if not is_good:
            raise value
        return value

    def _resident(self) -> int:
        """Return its resident memory in bytes, with that which it shares; 0 where the system does not tell."""
        try:
            return int(Path(f"/proc/{self._process}/statm").read_text().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0


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


def _run(work: Callable[[], Any], cpu_seconds: float, writing: int) -> NoReturn:
    """Run a job in the copy and write its result; never returns, whatever happens."""
    status = 1
    try:
        _separate(writing)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        found = _pickled(work)
        signal.setitimer(signal.ITIMER_PROF, 0)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(found)
        status = 0
    finally:
        os._exit(status)


def _separate(writing: int) -> None:
    """Take from the copy what belongs to the original: its signals, its connections, its garbage, its priority."""
    signal.set_wakeup_fd(-1)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF):
        signal.signal(each, signal.SIG_DFL)
    os.closerange(3, writing)
    os.closerange(writing + 1, min(_FILE_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    gc.freeze()  # a collection would write to the pages of all objects, and so copy them
    os.nice(_NICENESS)
    with suppress(OSError):  # Linux only: without memory, this process ends and not the page
        Path("/proc/self/oom_score_adj").write_text("1000")


def _pickled(work: Callable[[], Any]) -> bytes:
    """Return the result or the error of a job, as bytes."""
    try:
        return pickle.dumps((True, work()))
    except Exception as error:  # noqa: BLE001 (the request gets it)
        with suppress(Exception):
            found = pickle.dumps((False, error))
            pickle.loads(found)  # noqa: S301 (our own; an error whose constructor takes something else fails here)
            return found
        return pickle.dumps((False, RuntimeError(repr(error))))
