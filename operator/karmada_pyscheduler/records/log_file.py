"""Lines of a file, written by a thread of its own: the decision log, and the audit log of the page.

The caller appends a line to a bounded queue and never waits. A disk that is full or slow, a folder that is missing,
or a pipe without a reader costs lines, which are counted; it does not concern scheduling. The file is opened again when
its path leads to another file, as after a rotation by renaming; a rotation by copying and truncating works as well.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from karmada_scheduler.structs import IdentityStruct, field

log = logging.getLogger(__name__)

MAX_BYTES: Final = 4 * 2**20
"""The size of the lines that wait to be written, at most."""

_CHECK_SECONDS: Final = 1.0
"""The interval of checks whether the path leads to another file."""
_RETRY_SECONDS: Final = 5.0
"""The pause after an error."""
_STOP_SECONDS: Final = 2.0


class LogFile(IdentityStruct):
    """Appends lines to a file.

    Attributes:
        path: The file; it is made with permissions for its owner only.
        name: What it is, for the log of the process.
        descriptor: An open file to write to, which is not closed; ``path`` only names it. None to open ``path``.
        on_lost: Gets the number of lines that were not written; called in any thread.
        on_error: Called for each error, in the thread of the log.
    """

    path: Path
    name: str
    on_lost: Callable[[int], None]
    on_error: Callable[[], None]
    descriptor: int | None = None
    _lines: deque[bytes] = field(default_factory=deque)
    _size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _wake: threading.Event = field(default_factory=threading.Event)
    _stopping: bool = False
    _file: int | None = None
    _identity: tuple[int, int] | None = None
    _next_check: float = 0.0
    _is_line_unfinished: bool = False
    _is_failing: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Append a line, which ends with a line break, or count it as lost; never waits for the file."""
        with self._lock:
            has_place = self._size + len(line) <= MAX_BYTES
            if has_place:
                self._lines.append(line)
                self._size += len(line)
        if not has_place:
            self.on_lost(1)
        self._wake.set()

    def close(self) -> None:
        """Write the lines that are waiting, for 2 seconds at most. Blocks."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            is_last = self._stopping
            with self._lock:
                lines = list(self._lines)
                self._lines.clear()
                self._size = 0
            if lines and (lost := self._write_all(lines)):
                self.on_lost(lost)
                if not is_last:
                    self._pause()
            if is_last:
                self._close_file()
                return

    def _pause(self) -> None:
        """Wait after an error; the lines that come meanwhile wait as well, as far as there is place."""
        end = time.monotonic() + _RETRY_SECONDS
        while not self._stopping and (left := end - time.monotonic()) > 0:
            self._wake.wait(left)
            self._wake.clear()
        self._wake.set()

    def _write_all(self, lines: list[bytes]) -> int:
        """Write lines; return how many were not written."""
        text = b"".join(lines)
        try:
            file = self._open()
            if self._is_line_unfinished:
                text = b"\n" + text
            while text:
                written = os.write(file, text)
                self._is_line_unfinished = not text[:written].endswith(b"\n")
                text = text[written:]
        except OSError as error:
            self._failed(error)
            return text.count(b"\n") - text.startswith(b"\n")
        if self._is_failing:
            self._is_failing = False
            log.info("The %s %s is written again", self.name, self.path)
        return 0

    def _failed(self, error: OSError) -> None:
        self.on_error()
        self._close_file()
        if not self._is_failing:
            self._is_failing = True
            log.error("Cannot write the %s %s: %s", self.name, self.path, error.strerror or error)

    def _open(self) -> int:
        """Return the open file; another one if the path leads to another file."""
        if self.descriptor is not None:
            return self.descriptor
        if self._file is not None and time.monotonic() >= self._next_check and not self._is_at_path():
            self._close_file()
        if self._file is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
            self._file = os.open(self.path, flags, 0o600)
            found = os.fstat(self._file)
            identity = found.st_dev, found.st_ino
            if identity != self._identity:
                self._is_line_unfinished = False
            self._identity = identity
        return self._file

    def _is_at_path(self) -> bool:
        self._next_check = time.monotonic() + _CHECK_SECONDS
        try:
            found = self.path.stat()
        except OSError:
            return False
        return self._identity == (found.st_dev, found.st_ino)

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
