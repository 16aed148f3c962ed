"""Requests to watch a kind, each of which brings events until it ends or fails; failures are waited out.

kopf would decode each line by ``json.loads``, which ends its watch at an object that is more than 1,000 levels deep, would
repeat a request with the credentials of before for ever, and would ask again at once where a proxy answers in place of
the API server. docs/decisions/0018-api-server-input.md has more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.watch_lines import event_of

log = logging.getLogger(__name__)

Event = dict[str, Any]
"""``type`` and ``object``; see ``watch_lines.event_of``."""

Connect = Callable[[str, Callable[[], None]], AsyncGenerator[bytes, None]]
"""Opens a watch: path and query, and what to call when it is accepted. As ``Connection.watch``."""

_GONE: Final = 410
_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between two requests that fail."""

_WORKED_SECONDS: Final = 5.0
"""A request that lasted as long as this has worked, even if it brought nothing."""

_REMIND_AT: Final = frozenset({4, 8})
_REMIND_EVERY: Final = 16
"""After how many failures in a row the same error is logged again; in the end every three minutes or so."""


class WatchRequests:
    """The requests of one process to watch kinds; failures are counted by path."""

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what opens a watch; ``clock`` is in seconds and never runs backwards, ``sleep`` waits for so many."""
        self._connect = connect
        self._clock = clock
        self._sleep = sleep
        self._failures: dict[str, int] = {}
        self._logged: dict[str, str] = {}

    async def events(
        self, target: str, accepted: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events that one request brings; returns when it has ended and another one may be sent.

        A line that cannot be read is logged and left out, unless it tells which object it is about. An ERROR event
        has the code 410, which has kopf begin anew with a list, whatever the reason was.

        Args:
            target: Path and query.
            accepted: Called when the API server has accepted the request.
        """
        path = target.partition("?")[0]
        begun = self._clock()
        problem = ""
        anew = worked = False
        try:
            async with aclosing(self._connect(target, accepted)) as lines:
                async for line in lines:
                    event = self._event(path, line)
                    if event is None:
                        continue
                    if event["type"] == "ERROR":
                        problem, anew = _text(event), True
                        break
                    if not worked:
                        worked = True
                        self._worked(path)
                    yield event
        except ApiError as error:
            problem, anew = str(error), error.code == _GONE
        if worked or self._clock() - begun >= _WORKED_SECONDS:
            self._failures.pop(path, None)
        else:
            failures = self._failed(path, problem or "it ended without an event")
            await self._sleep(_PAUSES[min(failures, len(_PAUSES)) - 1])
        if anew:
            yield {"type": "ERROR", "object": {"code": _GONE, "message": problem}}

    def _event(self, path: str, line: bytes) -> Event | None:
        try:
            return event_of(line)
        except ValueError as problem:
            text = f"{problem}, in: {line[:100].decode(errors='replace')}"
            self._log_once(path, "A line of a watch cannot be read, it is left out", text)
            return None

    def _worked(self, path: str) -> None:
        if self._failures.pop(path, 0) and self._logged.pop(path, ""):
            log.info("The watch works again", extra={"path": path})

    def _failed(self, path: str, problem: str) -> int:
        failures = self._failures[path] = self._failures.get(path, 0) + 1
        if failures in _REMIND_AT or failures % _REMIND_EVERY == 0:
            self._logged.pop(path, None)
        if failures > 1:  # one is what every restart of an API server brings
            self._log_once(path, "Cannot watch, trying again", problem)
        return failures

    def _log_once(self, path: str, message: str, text: str) -> None:
        if self._logged.get(path) != text:
            self._logged[path] = text
            log.warning("%s", message, extra={"path": path, "error": text})


def _text(event: Event) -> str:
    found = event["object"]
    return f"{found['code']} {found.get('reason') or ''}: {found.get('message') or ''}"
