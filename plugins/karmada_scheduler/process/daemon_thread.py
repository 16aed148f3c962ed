"""Runs a blocking function in a daemon thread, for which the end of the process does not wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

T = TypeVar("T")


class InThread(Protocol):
    """Calls a blocking function apart from the event loop; see ``in_daemon_thread``."""

    async def __call__(self, work: Callable[[], T], *, name: str) -> T: ...


async def in_daemon_thread(work: Callable[[], T], *, name: str) -> T:
    """Call a function in a new daemon thread and return its result; ``name`` is the name of the thread.

    Raises:
        Exception: The function's exception. SystemExit and others that would end the event loop become a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def set_result(found: T | None, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(found)  # type: ignore[arg-type]  # None only as the function's result

    def run() -> None:
        found, failure = None, None
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 (raised by the await)
            failure = error if isinstance(error, Exception) else None
            if failure is None or isinstance(error, StopIteration):  # a future refuses it
                failure = RuntimeError(f"{type(error).__name__}: {error}")
                failure.__cause__ = error
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(set_result, found, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await result
