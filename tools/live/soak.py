"""A day of changes for the scheduler process in half an hour, on a fake API server, with samples of what it holds at rest."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from tests.fake_apiserver import FakeApiServer, SchedulerProcess, wait_for
from tests.fake_apiserver.process import write_kubeconfig
from tools.apiserver_model import Write
from tools.controlplane.processes import free_port
from tools.live.churn import SCHEDULER, Churn
from tools.live.program import COUNTED_SECONDS
from tools.live.sampler import Sample, sample

_CHUNK: Final = 1000
"""Changes between two looks at the queue, at most."""
_BACKLOG: Final = 100
"""Bindings that may be due when the next chunk begins."""
_TIMEOUT_SECONDS: Final = 900.0
_KEPT_WRITES: Final = 5000
_NOT_WATCHED: Final = frozenset({"Event", "Lease"})
_LONG_LEASE: Final = ("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s")
"""A busy machine is no reason to lose the Lease here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """What a run does.

    Attributes:
        events: The number of watch events.
        every: Events between two samples.
        clusters: The number of clusters.
        bindings: The number of bindings.
        policies: The number of policies.
        seed: Of all random choices but those of the scheduler.
        leaks: What the scheduler runs with (``program``).
        takeovers: The shares of the run at which the leader is killed, and a standby takes over.
    """

    events: int = 1_000_000
    every: int = 10_000
    clusters: int = 100
    bindings: int = 2000
    policies: int = 100
    seed: int = 1
    leaks: Sequence[str] = ()
    takeovers: Sequence[float] = (0.1, 0.2)


class Soak:
    """A run.

    Attributes:
        unsettled: The bindings without a current decision at rest.
        faults: How often each fault occurred.
    """

    def __init__(self, plan: SoakPlan, folder: Path) -> None:
        """Prepare a run with files in a folder."""
        self.unsettled: set[str] = set()
        self.faults: dict[str, int] = {}
        self._plan, self._folder = plan, folder
        self._processes: list[SchedulerProcess] = []
        self._events = 0

    def samples(self, say: Callable[[str], None]) -> Iterator[Sample]:
        """Run, and yield each sample when it is taken."""
        plan = self._plan
        with ExitStack() as stack, FakeApiServer(kept_writes=_KEPT_WRITES) as server:
            stack.callback(self._end)
            server.model.observers.append(self._count)
            churn = Churn(
                server, clusters=plan.clusters, bindings=plan.bindings, policies=plan.policies, seed=plan.seed
            )
            write_kubeconfig(server, self._folder / "kubeconfig")
            self._start()
            self._rest()
            self._events, due = 0, plan.every
            takeovers = [share * plan.events for share in plan.takeovers]
            while self._events < plan.events:
                churn.inject(self._events)
                if takeovers and self._events >= takeovers[0]:
                    takeovers.pop(0)
                    self._take_over(server)
                    say("a standby leads")
                for _ in range(min(_CHUNK, plan.every // 2)):
                    churn.change()
                self._wait(_BACKLOG)
                _forget_past(server)
                if self._events >= due:
                    due = self._events + plan.every
                    server.heal()
                    found = self._rest()
                    self.unsettled |= set(churn.unsettled())
                    yield found
            self.faults = churn.faults

    def _end(self) -> None:
        for process in self._processes:
            process.kill()

    def _count(self, write: Write) -> None:
        self._events += write.kind not in _NOT_WATCHED

    def _start(self) -> SchedulerProcess:
        """Start a replica, and wait until it is ready: its caches are filled, and it leads or stands by."""
        number, ports = len(self._processes) + 1, (free_port(), free_port())
        flags = [
            f"--kubeconfig={self._folder / 'kubeconfig'}",
            f"--health-probe-bind-address=127.0.0.1:{ports[0]}",
            f"--metrics-bind-address=127.0.0.1:{ports[1]}",
            f"--scheduler-name={SCHEDULER}",
            f"--leader-elect-resource-name={SCHEDULER}",
            *_LONG_LEASE,
        ]
        process = SchedulerProcess(
            [",".join(self._plan.leaks) or "-", *flags],
            log_path=self._folder / f"scheduler-{number}.log",
            env={},
            ports=ports,
            module="tools.live.program",
        )
        self._processes.append(process)
        wait_for(lambda: process.answers("/readyz") == 200, "a replica to be ready", process, timeout=600)
        return process

    def _take_over(self, server: FakeApiServer) -> None:
        """Start a standby, kill the leader, and wait until the standby leads."""
        leader, held = self._processes[-1], server.lease()["holderIdentity"]
        standby = self._start()
        leader.signal(signal.SIGKILL)
        leader.wait(10)
        wait_for(
            lambda: server.lease().get("holderIdentity") not in ("", None, held),
            "a standby to lead",
            standby,
            timeout=600,
        )

    def _wait(self, backlog: float) -> Sample:
        """Return the figures once the scheduler has read what was written, and at most so many bindings are due."""
        process, before = self._processes[-1], -1.0

        def look() -> Sample | None:
            nonlocal before
            try:
                found, earlier = sample(process.pid, process.scrape()), before
            except requests.Timeout:  # on a busy machine
                return None
            before = found.events
            return found if found.events == earlier and found.due <= backlog else None

        found = wait_for(look, "the scheduler to come to rest", process, timeout=_TIMEOUT_SECONDS, every=0.2)
        assert found is not None
        return found

    def _rest(self) -> Sample:
        """Return the figures once nothing is due, and nobody writes."""
        found, events = self._wait(0), -1
        while self._events != events:
            events = self._events
            time.sleep(COUNTED_SECONDS)  # then the objects are counted again
            found = self._wait(0)
        return found


def _forget_past(server: FakeApiServer) -> None:
    """Forget requests and Events; the latter live for an hour in a real API server."""
    with server.lock:
        server.requests.clear()
        for namespace, name in list(server.model.state("Event")):
            server.model.delete("Event", namespace, name, force=True)
