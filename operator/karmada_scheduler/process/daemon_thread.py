"""Runs what blocks in a thread that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T], *, name: str) -> T:
    """Call a function in a daemon thread of its own and wait for it; ``name`` is that of the thread.

    Raises:
        Exception: What it raised. SystemExit and the like, which would end the event loop, become a RuntimeError.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(found: T | None, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(found)  # type: ignore[arg-type]  # None only if that is what it returned

    def run() -> None:
        found, failure = None, None
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
            failure = error if isinstance(error, Exception) else None
            if failure is None or isinstance(error, StopIteration):  # which a future refuses
                failure = RuntimeError(f"{type(error).__name__}: {error}")
                failure.__cause__ = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await result
