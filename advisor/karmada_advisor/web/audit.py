"""Who has read what of the page: one line of JSON for each request, in a file or on standard output.

A file system, or a reader of the log, that hangs or fails costs lines and no answers; later lines say how many so far.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from karmada_scheduler.http_server.messages import AnsweredRequest
from karmada_scheduler.records.log_file import LogFile
from karmada_scheduler.records.record import timestamp

_MAX_VALUE: Final = 253
"""Characters of a value of a path; names of Kubernetes are not longer."""


class AuditLog:
    """A log of requests; ``with`` writes it."""

    def __init__(
        self,
        path: Path,
        *,
        descriptor: int | None = None,
        ignored: Callable[[str], bool] = lambda _: False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Append to a file.

        Args:
            path: See ``LogFile``.
            descriptor: See ``LogFile``.
            ignored: Returns whether requests of a route have no line.
            now: Returns seconds since 1970.
        """
        self._ignored = ignored
        self._now = now
        self._dropped = 0
        self._lock = threading.Lock()
        self._file = LogFile(
            path, name="audit log", descriptor=descriptor, on_lost=self._lost, on_error=lambda: None
        )

    def __enter__(self) -> Self:
        self._file.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answered: AnsweredRequest) -> None:
        """Note a request. It never waits for the file."""
        if self._ignored(answered.route):
            return
        line: dict[str, Any] = {
            "time": timestamp(self._now()),
            "user": answered.user,
            "method": answered.method,
            "route": answered.route,
            **{name: value[:_MAX_VALUE] for name, value in answered.path.items()},
            "status": answered.status,
            "milliseconds": round(answered.seconds * 1000),
        }
        if self._dropped:
            line["dropped"] = self._dropped
        self._file.write(json.dumps(line).encode() + b"\n")

    def _lost(self, lines: int) -> None:
        with self._lock:
            self._dropped += lines
