"""The real scheduler as a process, connected to a ``FakeApiServer``."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import orjson
import requests

from tests import fork_server
from tools.controlplane.processes import free_port
from tools.controlplane.waiting import PATIENCE

from .server import FakeApiServer

Found = TypeVar("Found")

_numbers = itertools.count(1)


class SchedulerProcess:
    """A running scheduler.

    Attributes:
        log_path: Everything that it wrote to standard output and error.
        health: URL of its health server.
        metrics: URL of its metrics server.
    """

    def __init__(
        self,
        flags: list[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None,
        ports: tuple[int, int],
        module: str = fork_server.MODULE,
    ) -> None:
        """Start it; a new interpreter if ``env`` has variables, or none, in addition to those of the tests.

        Another ``module`` needs a new interpreter.
        """
        assert env is not None or module == fork_server.MODULE
        self.log_path = log_path
        self.health = f"http://127.0.0.1:{ports[0]}"
        self.metrics = f"http://127.0.0.1:{ports[1]}"
        with log_path.open("ab") as output:
            start = fork_server.start if env is None else subprocess.Popen
            self._popen = start(
                [sys.executable, "-m", module, *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """How it ended, None while it runs."""
        return self._popen.poll()

    def answers(self, path: str, *, timeout: float = 10.0) -> int | None:
        """Return the HTTP status of a path of its health server, None if there was no answer in time (seconds)."""
        try:
            return self._get(self.health + path, timeout).status_code
        except requests.RequestException:
            return None

    def text(self, path: str) -> str:
        """Return the response body of a path of its health server."""
        return self._get(self.health + path, 5).text

    def scrape(self) -> str:
        """Return its metrics in the text format."""
        return self._get(self.metrics + "/metrics", 5).text

    def metric(self, sample: str) -> float:
        """Return the value of a sample, such as ``karmada_scheduler_x_total{a="b"}``; 0 if there is none."""
        for line in self.scrape().splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return 0.0

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._popen.send_signal(number)

    def wait(self, timeout: float) -> int | None:
        """Return its exit status, None if it still runs after some seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, timeout: float = 30.0) -> int | None:
        """Send SIGTERM and return its exit status, None if it did not end in time (seconds)."""
        if self._popen.poll() is None:
            self._popen.terminate()
        return self.wait(timeout)

    def kill(self) -> None:
        """End it at once."""
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()

    def _get(self, url: str, timeout: float) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(url, timeout=timeout)


@contextlib.contextmanager
def start_scheduler(
    server: FakeApiServer,
    folder: Path,
    *flags: str,
    name: str = "my-scheduler",
    wait_ready: bool = True,
    kubeconfig: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[SchedulerProcess]:
    """Start the scheduler on a server, and kill it at the end.

    Args:
        server: The API server it connects to.
        folder: Gets the kubeconfig and the log.
        flags: Further flags; they win.
        name: Its ``--scheduler-name`` and the name of its Lease, which is in karmada-system.
        wait_ready: Whether to wait for ``/readyz``.
        kubeconfig: Another one than that without credentials.
        env: Environment variables in addition to those of the tests, for which a new interpreter is started. Without
            them, the process is forked from one that has imported the scheduler.
    """
    ports = free_port(), free_port()
    config = kubeconfig or write_kubeconfig(server, folder / "kubeconfig")
    all_flags = [
        f"--kubeconfig={config}",
        f"--metrics-bind-address=127.0.0.1:{ports[1]}",
        f"--health-probe-bind-address=127.0.0.1:{ports[0]}",
        f"--scheduler-name={name}",
        f"--leader-elect-resource-name={name}",
        *flags,
    ]  # fmt: skip
    log_path = folder / f"scheduler-{next(_numbers)}.log"
    process = SchedulerProcess(all_flags, log_path=log_path, env=env, ports=ports)
    try:
        if wait_ready:
            wait_for(
                lambda: process.answers("/readyz") == 200, "the scheduler to be ready", process, timeout=30
            )
        yield process
    finally:
        process.kill()


def write_kubeconfig(server: FakeApiServer, path: Path, **user: object) -> Path:
    """Write a kubeconfig for a server; ``user`` has the fields of the user's entry."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server.url}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_bytes(orjson.dumps(document))
    return path


def wait_for(
    look: Callable[[], Found],
    what: str,
    process: SchedulerProcess | None = None,
    *,
    timeout: float = 15.0,
    every: float = 0.02,
) -> Found:
    """Call `look` until its result is true, and return the result.

    Args:
        look: Returns the state; true if it is the expected one.
        what: What is waited for, for the error.
        process: Whose log is shown in the error.
        timeout: In seconds, on an idle machine: it waits ``PATIENCE`` times as long.
        every: Seconds between two calls.

    Raises:
        AssertionError: It was not seen in time.
    """
    deadline = time.monotonic() + PATIENCE * timeout
    while True:
        if found := look():
            return found
        if time.monotonic() > deadline:
            tail = "\n".join(process.log.splitlines()[-40:]) if process is not None else ""
            raise AssertionError(f"waited {PATIENCE * timeout:g}s for {what}\n{tail}")
        time.sleep(every)
