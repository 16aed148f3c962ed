"""The decision log: lines, permissions, rotations, and disks that cannot be written."""

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from karmada_pyscheduler.records import log_file as module
from karmada_pyscheduler.records.log_file import LogFile
from tools.controlplane import wait_for


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.01)


class Harness:
    """A decision log, and what it has counted."""

    def __init__(self, path: Path) -> None:
        self.lost = 0
        self.errors = 0
        self.changed = threading.Condition()
        self.log = LogFile(
            path,
            name="decision log",
            on_lost=self._count,
            on_error=self._count_error,
        )

    def _count(self, lines: int) -> None:
        with self.changed:
            self.lost += lines
            self.changed.notify_all()

    def _count_error(self) -> None:
        with self.changed:
            self.errors += 1
            self.changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout=10)


@contextmanager
def _running(path: Path) -> Iterator[Harness]:
    harness = Harness(path)
    harness.log.start()
    try:
        yield harness
    finally:
        harness.log.close()
        assert not harness.log._thread.is_alive()


def test_lines_are_appended_to_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for lines in ((b"1\n", b"2\n"), (b"3\n",)):
        with _running(path) as harness:
            for line in lines:
                harness.log.write(line)
        assert harness.lost == 0
    assert path.read_bytes() == b"1\n2\n3\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_renamed_file_is_replaced(tmp_path: Path) -> None:
    path, old = tmp_path / "log", tmp_path / "log.1"
    with _running(path) as harness:
        harness.log.write(b"1\n")
        wait_for(lambda: path.exists() and path.read_bytes() == b"1\n", "the line", interval=0.01)
        path.rename(old)
        harness.log.write(b"2\n")
    assert (old.read_bytes(), path.read_bytes()) == (b"1\n", b"2\n")


def test_a_truncated_file_is_continued_at_its_begin(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with _running(path) as harness:
        harness.log.write(b"1\n")
        wait_for(lambda: path.exists() and path.read_bytes() == b"1\n", "the line", interval=0.01)
        path.write_bytes(b"")
        harness.log.write(b"2\n")
    assert path.read_bytes() == b"2\n"


def test_a_full_disk_costs_lines_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with _running(Path("/dev/full")) as harness:
        for number in range(1, 4):
            harness.log.write(b"x\n")
            harness.wait(lambda number=number: harness.lost == number)  # type: ignore[misc]
        assert harness.errors == 3
    assert [each.getMessage() for each in caplog.records] == [
        "Cannot write the decision log /dev/full: No space left on device"
    ]


def test_a_missing_folder_is_used_as_soon_as_it_exists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "folder" / "log"
    with _running(path) as harness:
        harness.log.write(b"1\n")
        harness.wait(lambda: harness.lost == 1)
        path.parent.mkdir()
        harness.log.write(b"2\n")
    assert path.read_bytes() == b"2\n"
    assert [each.getMessage() for each in caplog.records] == [
        f"Cannot write the decision log {path}: No such file or directory",
        f"The decision log {path} is written again",
    ]


def test_a_line_that_was_cut_is_ended_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    write, calls = os.write, []

    def cut(file: int, text: bytes) -> int:
        calls.append(text)
        if len(calls) == 1:
            return write(file, text[:5])
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return write(file, text)

    monkeypatch.setattr(os, "write", cut)
    with _running(path) as harness:
        with harness.log._lock:  # so that both are written at once
            harness.log._lines.extend([b"one\n", b"two\n"])
        harness.log._wake.set()
        harness.wait(lambda: harness.lost == 1)
        harness.log.write(b"three\n")
    assert path.read_bytes() == b"one\nt\nthree\n"


def test_lines_above_the_limit_are_lost_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    harness = Harness(tmp_path / "log")  # not started: nobody takes lines, as with a disk that hangs
    for _ in range(5):
        harness.log.write(b"1234\n")
    assert harness.lost == 3
    harness.log.start()
    harness.log.close()
    assert (tmp_path / "log").read_bytes() == b"1234\n1234\n"
