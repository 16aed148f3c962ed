"""Who has read what of the page: one line of JSON for each request, in a file or on standard output.

A thread writes. A file system or a reader of the log that hangs costs lines and no answers; the next line says how many.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Self

from karmada_scheduler.http_server.messages import AnsweredRequest

log = logging.getLogger(__name__)

_MAX_LINES: Final = 10_000
"""Lines that wait to be written: some 2 MB."""
_MAX_VALUE: Final = 253
"""Characters of a value of a path; names of Kubernetes are not longer."""
_END_SECONDS: Final = 2.0


class AuditLog:
    """A log of requests; ``with`` writes it."""

    def __init__(
        self,
        write: Callable[[bytes], object],
        *,
        ignored: Callable[[str], bool] = lambda _: False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Call ``write`` with each line; routes that are ``ignored`` have none."""
        self._write = write
        self._ignored = ignored
        self._now = now
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue(_MAX_LINES)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write_lines, name="audit log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what waits, for at most ``_END_SECONDS``."""
        try:
            self._lines.put(None, timeout=_END_SECONDS)
        except queue.Full:
            return
        self._thread.join(_END_SECONDS)

    def add(self, answered: AnsweredRequest) -> None:
        """Note a request. It never waits."""
        if self._ignored(answered.route):
            return
        line = {
            "time": self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "user": answered.user,
            "method": answered.method,
            "route": answered.route,
            **{name: value[:_MAX_VALUE] for name, value in answered.path.items()},
            "status": answered.status,
            "milliseconds": round(answered.seconds * 1000),
        }
        if self._dropped:
            line["dropped"] = self._dropped
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1
        else:
            self._dropped = 0

    def _write_lines(self) -> None:
        is_failing = False
        while (line := self._lines.get()) is not None:
            try:
                self._write(json.dumps(line).encode() + b"\n")
            except OSError as error:
                if not is_failing:
                    log.warning("The audit log cannot be written: %s", error)
                is_failing = True
            else:
                is_failing = False
            finally:
                self._lines.task_done()
