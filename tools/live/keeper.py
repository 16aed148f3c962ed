"""Restarts processes that ended, as a kubelet does, and records every end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import requests

from tools.controlplane import ControlPlane, Process
from tools.controlplane.api import local_session
from tools.live.recorder import Journal

RESTART_SECONDS: Final = 2.0
_PROBE_SECONDS: Final = 10.0
_FAILED_PROBES: Final = 3


class Keeper:
    """Keeps all processes of a control plane running, but for those that a fault keeps down or stopped."""

    def __init__(self, plane: ControlPlane, journal: Journal, *, health: Mapping[str, str]) -> None:
        """Args:
        plane: Its processes are kept.
        journal: Gets every start and end.
        health: URLs of liveness probes by process name.
        """
        self._plane = plane
        self._journal = journal
        self._health = health
        self._held: set[str] = set()
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._processes: dict[str, Process] = {process.name: process for process in plane.processes}
        self._threads = [
            threading.Thread(target=self._run, args=(work, seconds), name=f"keeper {name}", daemon=True)
            for name, work, seconds in (
                ("ends", self._check_ends, 0.2),
                ("probes", self._probe, _PROBE_SECONDS),
            )
        ]

    def start(self) -> None:
        """Start the threads."""
        for process in self._processes.values():
            self._journal.add(event="started", name=process.name, pid=process.pid)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Leave the processes alone from now on."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=_PROBE_SECONDS)

    def kill(self, name: str, seconds: float, wait: Callable[[float], object]) -> None:
        """End a process by SIGKILL and start it again after some seconds."""
        with self._held_by_fault(name):
            with self._lock:
                process = self._processes[name]
                was_running = process.exit_status is None
                process.kill()
                if was_running:
                    self._journal.add(event="killed", name=name, pid=process.pid)
                self._due.pop(name, None)
            wait(seconds)
            with self._lock:
                self._start(name)

    def freeze(self, name: str, seconds: float, wait: Callable[[float], object]) -> bool:
        """Stop a process for some seconds by SIGSTOP; return whether it was running."""
        with self._held_by_fault(name):
            with self._lock:
                process = self._processes[name]
                if process.exit_status is not None:
                    return False
                os.kill(process.pid, signal.SIGSTOP)
                self._journal.add(event="frozen", name=name, pid=process.pid)
            wait(seconds)
            with self._lock:
                self._journal.add(event="thawed", name=name, pid=process.pid)
                os.kill(process.pid, signal.SIGCONT)
        return True

    @contextmanager
    def _held_by_fault(self, name: str) -> Iterator[None]:
        """Do not restart a process during the block."""
        with self._lock:
            self._held.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(name)

    def _run(self, work: Callable[[], None], seconds: float) -> None:
        while not self._stop.wait(seconds):
            work()

    def _start(self, name: str) -> None:
        old = self._processes[name]
        self._plane.forget(old)
        new = self._plane.spawn(name, old.argv)
        self._processes[name] = new
        self._failures.pop(name, None)
        self._journal.add(event="started", name=name, pid=new.pid)

    def _check_ends(self) -> None:
        with self._lock:
            for name, process in list(self._processes.items()):
                if name in self._held or process.exit_status is None:
                    continue
                if name not in self._due:
                    self._due[name] = time.monotonic() + RESTART_SECONDS
                    self._journal.add(
                        event="ended",
                        name=name,
                        pid=process.pid,
                        status=process.exit_status,
                        log=process.log_tail(4),
                    )
                elif time.monotonic() >= self._due[name]:
                    del self._due[name]
                    self._start(name)

    def _probe(self) -> None:
        for name, url in self._health.items():
            with self._lock:
                process = self._processes[name]
                if name in self._held or process.exit_status is not None:
                    self._failures.pop(name, None)
                    continue
            if _is_healthy(url):
                self._failures.pop(name, None)
                continue
            self._failures[name] = self._failures.get(name, 0) + 1
            if self._failures[name] >= _FAILED_PROBES:
                self._journal.add(event="liveness", name=name, pid=process.pid)
                self._failures.pop(name, None)
                os.kill(process.pid, signal.SIGTERM)


def _is_healthy(url: str) -> bool:
    try:
        with local_session() as session:
            return session.get(url, timeout=5).status_code == 200
    except requests.RequestException:
        return False
