"""The scheduler as the soak test runs it: the real command, and a socket that tells what the process holds.

    SOAK_SOCKET=/tmp/inspect python -m tools.soak.program FLAGS

SOAK_LEAKS has the names of leaks to plant (``planted``), separated by commas.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from karmada_scheduler.process.process_exit import TERMINATION


def main() -> int:
    """Run the command line of the process and return its exit status."""
    TERMINATION.install()
    from karmada_scheduler import command
    from karmada_scheduler.app.application import Application
    from tools.soak.planted import LEAKS

    for name in filter(None, os.environ.get("SOAK_LEAKS", "").split(",")):
        LEAKS[name]()
    original = Application.run

    async def run(self: Application) -> None:
        arguments = _listener(), asyncio.get_running_loop(), self
        threading.Thread(target=_answer, args=arguments, name="soak", daemon=True).start()
        await original(self)

    Application.run = run  # type: ignore[method-assign]
    return command.main()


def _listener() -> socket.socket:
    path = Path(os.environ["SOAK_SOCKET"])
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def _answer(listener: socket.socket, loop: asyncio.AbstractEventLoop, application: Any) -> None:
    """Answer each connection; what the answer has is read in the main event loop.

    A connection that sends ``v`` gets the newest resourceVersion and the number of the objects of each
    watched kind, one that sends ``g`` what a full collection freed, one that sends ``m`` the totals of the
    allocators, any other one a report.
    """
    from karmada_scheduler.client.karmada import WATCHED
    from karmada_scheduler.informer.object_kinds import key_kind
    from tools.soak.inspection import garbage, report
    from tools.soak.memory import allocators

    def versions() -> dict[str, tuple[int, int]]:
        handlers = application._event_handlers
        return {
            each.kind: (
                handlers.newest_version(each.kind),
                sum(key_kind(key) == each.kind for key in handlers._kinds[each.kind].store._versions),
            )
            for each in WATCHED
        }

    def totals() -> dict[str, int]:
        return {
            **allocators(),
            "blocks": sys.getallocatedblocks(),
            "tasks": len(asyncio.all_tasks()),
        }

    while True:
        connection, _ = listener.accept()
        with connection:
            wanted = connection.recv(1)
            future: Future[dict[str, Any]] = Future()
            functions: dict[bytes, Callable[[], dict[str, Any]]] = {
                b"v": versions,
                b"g": garbage,
                b"m": totals,
            }
            function = functions.get(wanted, partial(report, {"application": application}))
            loop.call_soon_threadsafe(_fulfil, future, function)
            connection.sendall(orjson.dumps(future.result()))


def _fulfil(future: Future[Any], function: Callable[[], object]) -> None:
    try:
        future.set_result(function())
    except Exception as error:  # noqa: BLE001 (the other side gets it)
        future.set_result({"error": repr(error)})


if __name__ == "__main__":
    sys.exit(main())
