"""The processes of a control plane: started together, watched, and never left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

GUARD = Path(__file__).parent / "guard.py"
# Below the ports the kernel hands to outgoing connections (32768 and up on Linux): one of those
# could be taken between choosing it here and the program binding it.
PORTS = range(20000, 32000)
_PORTS_AT_ONCE: Final = 100
"""Ports that a process claims at a time."""
LOG_LINES = 25


class ProcessDiedError(RuntimeError):
    """A process ended unexpectedly."""


class Running(Protocol):
    """What a process is started as: the part of ``subprocess.Popen`` that is used."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Return its exit status, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status; subprocess.TimeoutExpired after the timeout (seconds)."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


Start = Callable[..., Running]
"""Starts a program, with the arguments of ``subprocess.Popen``."""


class Process:
    """One running program, with its log.

    Attributes:
        name: Shown in messages; also the stem of its log file.
        log: Everything it wrote to standard output and error.
    """

    def __init__(
        self, name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str], group: int, start: Start
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.env = dict(env)
        self.log = log
        self.stop_requested = False
        with log.open("ab") as output:
            self._popen = start(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.env,
                process_group=group,
            )

    @property
    def pid(self) -> int:
        """Its process id, valid while it runs."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """How it ended (negative: by that signal), or None while it runs."""
        return self._popen.poll()

    def log_tail(self, lines: int = LOG_LINES) -> str:
        """Return the last lines of its log."""
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"    {line[:2000]}" for line in text[-lines:]) or "    (nothing)"

    def check(self) -> None:
        """Raise ProcessDiedError, with the end of the log, if it ended before a stop was requested."""
        status = self.exit_status
        if status is not None and not self.stop_requested:
            raise ProcessDiedError(
                f"{self.name} (pid {self.pid}) ended with status {status}. The end of {self.log}:\n{self.log_tail()}"
            )

    def stop(self, timeout: float = 10.0) -> int:
        """Send SIGTERM, and SIGKILL after the timeout (seconds); return its exit status."""
        self.stop_requested = True
        if self._popen.poll() is None:
            self._popen.terminate()
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End it at once (SIGKILL) and return its exit status."""
        self.stop_requested = True
        if self._popen.poll() is None:
            self._popen.kill()
        return self._popen.wait()


class Supervisor:
    """Starts processes, detects that one died, and ends all of them however it ends itself."""

    def __init__(self, logs: Path, *, start: Start = subprocess.Popen) -> None:
        """Prepare to start programs, by `start`, that log into a folder."""
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._start = start
        self._processes: list[Process] = []
        self._lock = threading.Lock()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._guard.stdout is not None
        if self._guard.stdout.readline() != b"ready\n":
            raise ProcessDiedError(f"{GUARD} did not start")

    def spawn(self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a program; its log is logs/<name>.log, appended to if the name ran before.

        Args:
            name: Unique among the running ones.
            argv: The command.
            env: Variables in addition to those of the harness.
        """
        process = Process(
            name,
            argv,
            log=self._logs / f"{name}.log",
            env={**os.environ, **(env or {})},
            group=self._guard.pid,
            start=self._start,
        )
        with self._lock:
            self._processes.append(process)
        return process

    def forget(self, process: Process) -> None:
        """Stop watching a process that has ended."""
        with self._lock:
            if process in self._processes:
                self._processes.remove(process)

    @property
    def processes(self) -> tuple[Process, ...]:
        """Every process started so far and not forgotten, oldest first."""
        with self._lock:
            return tuple(self._processes)

    def check(self) -> None:
        """Raise ProcessDiedError if any process ended before a stop was requested."""
        for process in self.processes:
            process.check()

    def close(self) -> None:
        """End everything that still runs, at once."""
        for process in self.processes:
            process.stop_requested = True
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        if self._guard.stdout is not None:
            self._guard.stdout.close()
        for process in self.processes:
            process.kill()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self.close()


_free: list[int] = []
_handing_out = threading.Lock()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on and that no process has got from here before."""
    with _handing_out:
        while True:
            if not _free:
                _free.extend(random.sample(_claimed(), k=_PORTS_AT_ONCE))
            port = _free.pop()
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with contextlib.suppress(OSError):
                    probe.bind(("127.0.0.1", port))
                    return port


def _claimed() -> range:
    """Return ports that no other process on this machine hands out: their lock file is held until this one ends."""
    folder = Path(tempfile.gettempdir()) / f"karmada-pyscheduler-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for start in random.sample(PORTS[::_PORTS_AT_ONCE], k=len(PORTS) // _PORTS_AT_ONCE):
        lock = os.open(folder / str(start), os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return range(start, start + _PORTS_AT_ONCE)
    raise RuntimeError(f"all ports between {PORTS.start} and {PORTS.stop} are claimed by other processes")
