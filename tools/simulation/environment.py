"""The environment of a simulated scheduler process: virtual time, seeded chance, and no threads, sockets or signals."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from karmada_pyscheduler.app.host import Environment
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.http import Transport
from karmada_pyscheduler.client.identity import Identity
from karmada_pyscheduler.client.login import Login
from karmada_pyscheduler.estimator.transport import DialEstimator
from karmada_pyscheduler.extenders.transport import NewExtenderTransport
from karmada_pyscheduler.process.supervisor import Supervisor
from karmada_scheduler.core.budget import Budget
from karmada_scheduler.framework.runtime.timeouts import SHORTEST_SECONDS, PluginTimeoutError
from karmada_scheduler.process.process_exit import TerminationSignals
from tools.simulation.event_source import SimulatedWatch
from tools.simulation.loop import EventLoop, MachineClock

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at virtual time 0."""


class ProcessEndedError(SystemExit):
    """Ends a simulated process at once, as ``os._exit`` ends a real one."""


class SimulatedSignals(TerminationSignals):
    """Termination signals that the simulation sends."""

    def install(self) -> None:
        return

    def restore(self) -> None:
        self._listener = None

    def send(self) -> bool:
        """Send SIGTERM; return whether the process handles it, otherwise it ends at once."""
        if self._listener is None:
            return False
        self._listener()
        return True


@dataclass(kw_only=True)
class Machine:
    """What one process runs on.

    Attributes:
        clock: The monotonic clock in seconds.
        boot_clock: Virtual time in seconds, which also passes while the machine is suspended.
        main, supervisor: The event loops of the process.
        transport: Makes a transport to the API server.
        random: Seeded.
        identity: The name of the process in the Lease.
        on_end: Called when the process ends itself, with its exit status.
        clock_offset: Seconds by which the time of day of this machine is wrong.
        stall: Blocks the main loop for some seconds.
        extender_transport, dial_estimator: Connections to extenders and estimators.
    """

    clock: MachineClock
    boot_clock: Callable[[], float]
    main: EventLoop
    supervisor: EventLoop
    transport: Callable[[Identity], Transport]
    random: Random
    identity: str
    on_end: Callable[[int], None]
    stall: Callable[[float], None]
    extender_transport: NewExtenderTransport
    dial_estimator: DialEstimator
    clock_offset: float = 0.0
    signals: SimulatedSignals = field(default_factory=SimulatedSignals)
    server: SimulatedServer | None = None

    def environment(self) -> Environment:
        """Return the environment of the process."""
        return Environment(
            clock=self.clock,
            boot_clock=self.boot_clock,
            now=self._now,
            random=self.random,
            identity=lambda: self.identity,
            connect=self._connect,
            watch=SimulatedWatch,
            supervisor=self._make_supervisor,
            server=self._make_server,
            signals=self.signals,
            end=self._end,
            in_thread=self._in_thread,
            call_timeout=lambda seconds: SimulatedTimeout(seconds, self.stall),
            decision_budget=lambda: Budget(lambda: 0.0, lambda: 0.0),
            initial_list=nullcontext,
            after_list=lambda: None,
            extender_transport=self.extender_transport,
            dial_estimator=self.dial_estimator,
        )

    def _now(self) -> datetime:
        return START + timedelta(seconds=self.boot_clock() + self.clock_offset)

    async def _connect(
        self, *, kubeconfig: str, master: str, on_response: Callable[[str, str, int], None]
    ) -> Connection:
        del kubeconfig, master
        return self.connection(on_response)

    def connection(self, on_response: Callable[[str, str, int], None]) -> Connection:
        """Return a connection over the simulated network."""
        identity = _identity()
        login = Login(
            lambda _: identity,
            identity,
            clock=self.clock,
            now=lambda: self._now().timestamp(),
            in_thread=self._in_thread,
        )
        return Connection(login, on_response, transport=self.transport, clock=self.clock)

    def _make_supervisor(self, **arguments: Any) -> Supervisor:
        return SimulatedSupervisor(loop=self.supervisor, **arguments)

    def _make_server(self, **arguments: Any) -> Any:
        self.server = SimulatedServer(**arguments)
        return self.server

    def _end(self, status: int, *, log_last: Callable[[], object] = lambda: None) -> None:
        log_last()
        self.on_end(status)
        raise ProcessEndedError(status)

    async def _in_thread(self, work: Callable[[], T], *, name: str) -> T:
        del name
        await asyncio.sleep(self.random.uniform(0.001, 0.05))
        return work()


@cache
def _identity() -> Identity:
    return Identity(
        server="https://simulated",
        authorization="Bearer simulated",
        tls=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        tls_name=None,
        proxy_url=None,
        material=b"",
        files=(),
        loaded_at=0.0,
    )


class SimulatedServer:
    """Probes that the simulation calls as a kubelet would."""

    def __init__(
        self, *, health: Callable[[], str | None], ready: Callable[[], str | None], **_: Any
    ) -> None:
        self.health = health
        self.ready = ready

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return


class SimulatedSupervisor(Supervisor, kw_only=True):
    """The supervisor, in a second event loop of the same thread.

    Attributes:
        loop: In which it runs.
    """

    loop: EventLoop
    _is_closed: bool = False

    def start(self) -> None:
        self._loop = self.loop
        self._supervising = self.loop.create_task(self._supervise())

    @property
    def is_running(self) -> bool:
        return self._loop is not None and not self._is_closed

    def close(self) -> None:
        self._is_closed = True
        if self._closed is not None:
            self.loop.call_soon_threadsafe(self._closed.set)

    def _arm_watchdog(self) -> None:
        return


class SimulatedTimeout:
    """The limit for calls of plugins, where a call takes as long as the plugin declares by ``spend``."""

    current: SimulatedTimeout | None = None
    """The innermost limit that applies now."""

    def __init__(self, seconds: float, stall: Callable[[float], None], *, adds_up: bool = False) -> None:
        """Limit each outermost block to ``seconds``, or all together; ``stall`` blocks the event loop meanwhile."""
        self._seconds = seconds
        self._stall = stall
        self._adds_up = adds_up
        self._outer: SimulatedTimeout | None = None
        self._depth = 0
        self._spent = 0.0

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            if not self._adds_up:
                self._spent = 0.0
            self._outer, SimulatedTimeout.current = SimulatedTimeout.current, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            SimulatedTimeout.current = self._outer
        if self._spent > self._seconds and kind in (None, StopIteration):
            raise PluginTimeoutError(self._seconds)  # the plugin has caught the first one

    def part(self, share: float, *, adds_up: bool = False) -> SimulatedTimeout:
        """Return a limit of a share of this one."""
        return SimulatedTimeout(max(SHORTEST_SECONDS, self._seconds * share), self._stall, adds_up=adds_up)

    def spend(self, seconds: float) -> None:
        """Let the plugin compute for some seconds.

        Raises:
            PluginTimeoutError: It would take longer than the limit.
        """
        left = max(0.0, self._seconds - self._spent)
        self._stall(min(seconds, left))
        self._spent += seconds
        if seconds > left:
            raise PluginTimeoutError(self._seconds)


def spend(seconds: float) -> None:
    """Compute for some seconds of virtual time; for plugins of a simulation."""
    if SimulatedTimeout.current is not None:
        SimulatedTimeout.current.spend(seconds)
