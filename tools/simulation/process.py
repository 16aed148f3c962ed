"""One scheduler: the real application on a simulated machine. It can be frozen, stalled, stopped, killed and started again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from karmada_pyscheduler.app.application import Application
from karmada_pyscheduler.app.host import Host
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError
from tools.simulation import plugin_kit
from tools.simulation.environment import Machine, ProcessEndedError
from tools.simulation.estimators import EstimatorCalls, dial_for
from tools.simulation.extenders import transport_for
from tools.simulation.loop import EventLoop, MachineClock
from tools.simulation.network import Network
from tools.simulation.plugin_kit import Scene
from tools.simulation.simulation import Simulation

RESTART_SECONDS: Final = 2.0
"""How long the kubelet takes to start a process again that has ended."""


class SchedulerProcess:
    """One start of one replica.

    Attributes:
        index: The number of the replica.
        identity: The name in the Lease; another one at each start.
        is_dead: Whether the process has ended; nothing of it runs any more, and nothing that it sends is received.
        exit_status: How it ended, -9 if it was killed, None while it runs.
        application: The scheduler, None before it is built.
        errors: What reached the exception handlers of its event loops.
        scene: Its plugins, extenders and estimators.
        estimator_calls: What it has asked estimators.
    """

    def __init__(
        self,
        simulation: Simulation,
        network: Network,
        *,
        index: int,
        start: int,
        options: Options,
        seed: str,
        scene: Scene,
        on_built: Callable[[SchedulerProcess], None],
        on_end: Callable[[SchedulerProcess], None],
    ) -> None:
        """Start the process; ``on_built`` is called when it has its application, and ``on_end`` when it has ended."""
        self.index = index
        self.scene = scene
        self.identity = self.name = f"scheduler-{index}_{start}"
        self.is_dead = False
        self.exit_status: int | None = None
        self.application: Application | None = None
        self.errors: list[str] = []
        self.estimator_calls = EstimatorCalls()
        self._simulation = simulation
        self._on_built = on_built
        self._on_end = on_end
        self._main_not_before = 0.0
        self._all_not_before = 0.0
        self.clock = MachineClock(simulation.clock)
        self.main = EventLoop(self.clock)
        self.supervisor = EventLoop(self.clock)
        for loop in (self.main, self.supervisor):
            loop.set_exception_handler(self._on_error)
        self.machine = Machine(
            clock=self.clock,
            boot_clock=simulation.clock,
            main=self.main,
            supervisor=self.supervisor,
            transport=network.transport(self),
            random=Random(f"{seed}:product:{self.name}"),
            identity=self.identity,
            on_end=self._ended,
            stall=self.stall,
            extender_transport=transport_for(index, scene.faults, simulation.clock),
            dial_estimator=dial_for(index, scene.faults, simulation.clock, self.estimator_calls),
        )
        self._task = self.main.create_task(self._run(options))

    async def _run(self, options: Options) -> None:
        host = Host(options, self.machine.environment())
        try:
            await host.serve()
            try:
                self.application = Application(options, (), host)
            except ConfigError as error:  # as the command line does
                logging.getLogger(__name__).warning("a simulated process does not start: %s", error)
                self.machine.environment().end(1)
            assert self.application is not None
            self._on_built(self)
            await self.application.run()
        finally:
            await host.close()

    def loops(self) -> Iterator[tuple[EventLoop, float]]:
        if not self.is_dead:
            yield self.main, max(self._main_not_before, self._all_not_before)
            yield self.supervisor, self._all_not_before

    def step(self, loop: EventLoop) -> None:
        plugin_kit.enter(self.scene)
        try:
            loop.step()
        except ProcessEndedError:
            return
        finally:
            plugin_kit.enter(None)
        if self._task.done() and not self.is_dead:
            error = None if self._task.cancelled() else self._task.exception()
            if error is not None:
                self.errors.append(f"the process failed: {error!r}")
                logging.getLogger(__name__).error("a simulated process failed", exc_info=error)
            self._ended(0 if error is None else 1)

    def freeze(self, seconds: float) -> None:
        """Let nothing of the process run for some seconds, as SIGSTOP and SIGCONT do."""
        self._all_not_before = max(self._all_not_before, self._simulation.now + seconds)

    def suspend(self, seconds: float) -> bool:
        """Suspend the machine for some seconds, unless it is; its monotonic clock stands still meanwhile."""
        now = self._simulation.now
        if self.clock.wakes_at > now:
            return False
        self.clock.suspend(seconds)
        # What a computation or SIGSTOP has left goes on afterwards.
        self._main_not_before = max(self._main_not_before, now) + seconds
        self._all_not_before = max(self._all_not_before, now) + seconds
        return True

    def stall(self, seconds: float) -> None:
        """Block the main loop for some seconds, as a long computation does."""
        self._main_not_before = max(self._main_not_before, self._simulation.now) + seconds

    def terminate(self) -> None:
        """Send SIGTERM."""
        if not self.is_dead and not self.machine.signals.send():
            self._ended(143)

    def kill(self) -> None:
        """Send SIGKILL."""
        if not self.is_dead:
            self._ended(-9)

    def _ended(self, status: int) -> None:
        if self.is_dead:
            return
        self.is_dead, self.exit_status = True, status
        self._on_end(self)

    def dispose(self) -> None:
        """Free everything of the process, at the end of a run."""
        self.is_dead, self._on_end = True, lambda _: None
        self.main.set_exception_handler(lambda *_: None)
        self.supervisor.set_exception_handler(lambda *_: None)
        self.main.dispose()
        self.supervisor.dispose()

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")
