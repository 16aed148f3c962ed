"""Runs a scheduler against the fast fake API server: karmada-scheduler without limits, or ours."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.bench.plane_meters import cpu_seconds, peak_mib, resident_mib
from tools.bench.plane_run import NO_LIMIT
from tools.bench.scenarios import FRESH_FIRST, LIFTED, RECORDS, fresh_first
from tools.controlplane import binaries, karmada
from tools.controlplane.api import local_session
from tools.controlplane.processes import free_port
from tools.fast_apiserver.server import FastApiServer

UPSTREAM: Final = LIFTED
NAME: Final = "bench"


@dataclass(frozen=True, slots=True)
class Running:
    """A scheduler that runs.

    Attributes:
        pid: Its process.
        metrics: The URL of its metrics.
        log: Everything that it has written.
    """

    pid: int
    metrics: str
    log: Path

    @property
    def cpu(self) -> float:
        """CPU time so far, in seconds."""
        return cpu_seconds(self.pid)

    @property
    def peak(self) -> float:
        """Peak resident memory in MiB."""
        return peak_mib(self.pid)

    @property
    def resident(self) -> float:
        """Resident memory in MiB."""
        return resident_mib(self.pid)

    def samples(self, prefix: str) -> dict[str, float]:
        """Return the samples of metrics whose names begin so, by the text in front of the value."""
        with local_session() as session:
            lines = session.get(self.metrics, timeout=60).text.splitlines()
        pairs = (line.rpartition(" ") for line in lines if line.startswith(prefix))
        return {name: float(value) for name, _, value in pairs}


def command(
    scheduler: str, kubeconfig: Path, metrics: int, health: int, configuration: str = ""
) -> Sequence[str]:
    """Return the command line of a scheduler, with its defaults but for the limits of karmada-scheduler.

    ``configuration`` is the text of a configuration file for ours.
    """
    flags = karmada.scheduler_flags(
        kubeconfig=kubeconfig, name=NAME, metrics_port=metrics, health_port=health
    )
    if scheduler == UPSTREAM:
        return [str(binaries.ensure(quiet=True).path("scheduler")), *flags, *NO_LIMIT]
    ours = [sys.executable, "-m", "karmada_scheduler", *flags, f"--leader-elect-resource-name={NAME}"]
    if scheduler == RECORDS:
        ours.append(f"--explain-bind-address=127.0.0.1:{free_port()}")
    if scheduler == FRESH_FIRST:
        configuration = fresh_first(NAME)
    if configuration:
        config = kubeconfig.with_name("config.yaml")
        config.write_text(configuration)
        ours.append(f"--config={config}")
    return ours


@contextmanager
def running(server: FastApiServer, scheduler: str, configuration: str = "") -> Iterator[Running]:
    """Start a scheduler and stop it at the end of the block; it may not be ready yet.

    ``configuration`` is the text of a configuration file for ours.

    Raises:
        RuntimeError: It ended by itself; with the end of its log.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        metrics, health = free_port(), free_port()
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(scheduler, server.kubeconfig(folder), metrics, health, configuration),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Running(process.pid, f"http://127.0.0.1:{metrics}/metrics", log)
            if (status := process.poll()) is not None:
                raise RuntimeError(f"{scheduler} ended with {status}:\n{log.read_text()[-3000:]}")
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def wait_until(
    condition: Callable[[], bool],
    seconds: float,
    *,
    every: float = 0.2,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Return whether a condition came true in time."""
    end = clock() + seconds
    while not condition():
        if clock() > end:
            return False
        time.sleep(every)
    return True
