"""One run: churn until enough events were sent, faults in between, and a sample whenever enough came together."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.fake_apiserver import SchedulerProcess, status, wait_for
from tests.fake_apiserver.process import write_kubeconfig
from tools.controlplane.processes import free_port
from tools.soak.samples import Sample, inspect, scrape, take
from tools.soak.server import SoakServer
from tools.soak.workload import Workload

_CHUNK: Final = 1000
"""Changes between two looks at the queue, at most."""

_BACKLOG: Final = 100
"""Bindings that may be due when the next chunk begins."""

_BUSY: Final = frozenset({"Cluster", "ResourceBinding"})
"""Kinds that change all the time. A change of another kind may be a deletion that a new leader has never seen."""

_REST_SECONDS: Final = 0.4
"""A process without anything due is at rest when nobody has written for so long."""

_QUEUE_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run does.

    Attributes:
        events: The number of watch events.
        every: Events between two samples.
        clusters: The number of clusters.
        bindings: The number of bindings.
        policies: The number of policies.
        seed: Of all random choices but those of the scheduler.
        takeovers: The shares of the run at which the leader is killed and a standby takes over.
        cut_every: Events between two ends of watches.
        expire_every: Events between two ends of watches that cannot be continued (410).
        refuse_every: Events between two faults of writes.
        flags: Further flags of the scheduler.
        leaks: The names of leaks to plant.
        outside: Whether samples come without a walk through all objects of the process, which takes memory that counts
            as the process's.
    """

    events: int = 1_000_000
    every: int = 10_000
    clusters: int = 100
    bindings: int = 2000
    policies: int = 100
    seed: int = 1
    takeovers: tuple[float, ...] = (0.1, 0.2)
    cut_every: int = 15_000
    expire_every: int = 70_000
    refuse_every: int = 4000
    flags: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    outside: bool = False


@dataclass(slots=True)
class Faults:
    """How often each fault occurred."""

    watches_cut: int = 0
    watches_expired: int = 0
    writes_failed: int = 0
    writes_dropped: int = 0
    takeovers: int = 0


@dataclass(slots=True)
class Replica:
    """A scheduler process with the socket of its inspection."""

    process: SchedulerProcess
    inside: Path
    number: int


class Soak:
    """A run.

    Attributes:
        samples: What was sampled so far.
        faults: The faults so far.
        unsettled: The number of bindings without a current decision at rest, the most of all samples.
        garbage: How many unreachable objects of each type only a full collection freed at the end.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        """Prepare a run with files in a folder."""
        self.plan = plan
        self.samples: list[Sample] = []
        self.faults = Faults()
        self.unsettled = 0
        self.garbage: dict[str, int] = {}
        self._folder = folder
        self._replicas: list[Replica] = []
        self._started = 0
        self._dice = Random(plan.seed)
        self._begin = time.monotonic()

    def samples_of_run(self) -> Iterator[Sample]:
        """Run, and yield each sample when it is taken."""
        plan = self.plan
        with contextlib.ExitStack() as stack, SoakServer() as server:
            stack.callback(self._kill_all)
            workload = Workload(
                server, clusters=plan.clusters, bindings=plan.bindings, policies=plan.policies, seed=plan.seed
            )
            write_kubeconfig(server, self._folder / "kubeconfig")
            self._start()
            self._rest(server)
            server.events = 0
            due, written = _Due(plan), server.newest()
            while server.events < plan.events:
                self._inject(server, due.faults(server.events))
                for _ in range(min(_CHUNK, plan.every // 2)):
                    workload.change()
                # The scheduler may be one chunk behind, so that both sides always have something to do.
                before, written = written, server.newest()
                self._wait(server, {kind: before[kind] for kind in _BUSY}, _BACKLOG)
                server.forget_past()
                if due.sample(server.events):
                    yield self._sample(server, workload)
            self.garbage = inspect(self._replicas[-1].inside, b"g")

    def _start(self) -> Replica:
        """Start a replica, and wait until it is ready: its caches are filled, and it leads or stands by."""
        self._started += 1
        number, ports = self._started, (free_port(), free_port())
        inside = self._folder / f"inside-{number}"
        flags = [
            f"--kubeconfig={self._folder / 'kubeconfig'}",
            f"--metrics-bind-address=127.0.0.1:{ports[1]}",
            f"--health-probe-bind-address=127.0.0.1:{ports[0]}",
            "--scheduler-name=my-scheduler",
            "--leader-elect-resource-name=my-scheduler",
            # A busy machine is no reason to lose the Lease here.
            "--leader-elect-lease-duration=60s",
            "--leader-elect-renew-deadline=40s",
            *self.plan.flags,
        ]
        env = {"SOAK_SOCKET": str(inside), "SOAK_LEAKS": ",".join(self.plan.leaks)}
        process = SchedulerProcess(
            flags,
            log_path=self._folder / f"scheduler-{number}.log",
            env=env,
            ports=ports,
            module="tools.soak.program",
        )
        self._replicas.append(Replica(process, inside, number))
        wait_for(lambda: process.answers("/readyz") == 200, "a replica to be ready", process, timeout=600)
        return self._replicas[-1]

    def _kill_all(self) -> None:
        for each in self._replicas:
            each.process.kill()

    def _inject(self, server: SoakServer, due: Sequence[str]) -> None:
        """Let what is due happen."""
        faults = self.faults
        if "cut" in due:
            kind = self._dice.choice(("Cluster", "ResourceBinding", "PropagationPolicy", None))
            server.end_watches(kind)
            faults.watches_cut += 1
        if "expire" in due:
            server.expire_watches()
            faults.watches_expired += 1
        if "refuse" in due:
            server.heal()
            server.fault(method="PATCH", path="bindings", times=3, answer=status(503, "ServiceUnavailable"))
            server.fault(method="PATCH", path="bindings", times=1, drop=True, carried_out=True)
            faults.writes_failed += 3
            faults.writes_dropped += 1
        if "takeover" in due:
            self._take_over(server)

    def _take_over(self, server: SoakServer) -> None:
        """Start a standby, kill the leader, and wait until the standby leads."""
        leader = self._replicas[-1]
        standby = self._start()
        held = server.lease()["holderIdentity"]
        leader.process.signal(signal.SIGKILL)
        leader.process.wait(10)
        wait_for(
            lambda: server.lease().get("holderIdentity") not in ("", None, held),
            "a standby to lead",
            standby.process,
            timeout=600,
        )
        self.faults.takeovers += 1

    def _wait(self, server: SoakServer, written: Mapping[str, tuple[int, int]], backlog: float) -> None:
        """Wait until the scheduler has seen these versions, and at most so many bindings are due."""
        replica, deadline = self._replicas[-1], time.monotonic() + _QUEUE_SECONDS
        process = replica.process
        while not self._has_seen(replica, written) or scrape(process).pending > backlog:
            if process.exit_status is not None or time.monotonic() > deadline:
                tail = "\n".join(process.log.splitlines()[-30:])
                raise AssertionError(f"the scheduler does not come to rest at {server.events} events\n{tail}")
            time.sleep(0.25)  # each look costs the scheduler some milliseconds

    def _has_seen(self, replica: Replica, written: Mapping[str, tuple[int, int]]) -> bool:
        """Return whether a replica has these newest versions, and, if all kinds are given, as many objects."""
        seen = inspect(replica.inside, b"v")
        return all(
            seen[kind][0] >= version and (written.keys() == _BUSY or seen[kind][1] == count)
            for kind, (version, count) in written.items()
        )

    def _rest(self, server: SoakServer) -> None:
        """Wait until nothing is due and nobody writes but to Leases and Events."""
        quiet_since, events = time.monotonic(), -1
        while time.monotonic() < quiet_since + _REST_SECONDS:
            self._wait(server, server.newest(), 0)
            if server.events != events:
                quiet_since, events = time.monotonic(), server.events
            time.sleep(0.1)

    def _sample(self, server: SoakServer, workload: Workload) -> Sample:
        server.heal()
        self._rest(server)
        replica = self._replicas[-1]
        self.unsettled = max(self.unsettled, len(workload.unsettled()))
        found = take(
            replica.process,
            replica.inside,
            walk=not self.plan.outside,
            events=server.events,
            seconds=time.monotonic() - self._begin,
            process=replica.number,
        )
        found.other["cpu_of_api_server_and_churn"] = round(time.process_time(), 1)
        found.other["requests"] = server.requests_total
        found.other["made"] = workload.made
        found.other["changes"] = dict(workload.changes)
        self.samples.append(found)
        return found


@dataclass(slots=True)
class _Due:
    """What is due by the number of events."""

    plan: Plan
    _done: dict[str, int] = field(default_factory=dict)

    def sample(self, events: int) -> bool:
        """Return whether a sample is due."""
        return self._passed("sample", events, self.plan.every)

    def faults(self, events: int) -> list[str]:
        """Return the names of the faults that are due."""
        plan = self.plan
        names = {"cut": plan.cut_every, "expire": plan.expire_every, "refuse": plan.refuse_every}
        due = [name for name, every in names.items() if self._passed(name, events, every)]
        reached = sum(events >= share * plan.events for share in plan.takeovers)
        if reached > self._done.get("takeover", 0):
            self._done["takeover"] = reached
            due.append("takeover")
        return due

    def _passed(self, name: str, events: int, every: int) -> bool:
        count = events // every
        if count <= self._done.get(name, 0):
            return False
        self._done[name] = count
        return True
