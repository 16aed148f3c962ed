"""A machine that is suspended: its monotonic clock stands still, while Leases expire by the time that passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from karmada_pyscheduler.app.application import Application
from karmada_pyscheduler.app.host import REAL, Environment, Host
from karmada_scheduler.config.options import Options
from tests.unit.client.test_leader import ElectionHarness


class SuspendedMachine:
    """A process on a machine with two clocks; its API server has one Lease."""

    def __init__(self) -> None:
        self.running = self.passed = 1000.0
        self.supervisors: list[Callable[[], float]] = []
        self.lease = ElectionHarness()

    def suspend(self, seconds: float) -> None:
        self.passed += seconds

    def run(self, seconds: float) -> None:
        self.running += seconds
        self.passed += seconds

    def application(self) -> Application:
        async def connect(**_: Any) -> Any:
            return self.lease

        environment = Environment(
            clock=lambda: self.running,
            boot_clock=lambda: self.passed,
            identity=lambda: "us",
            connect=connect,
            supervisor=self._supervisor,
            server=_no_server,
        )
        return Application(Options(), (), Host(Options(), environment))

    def _supervisor(self, *, clock: Callable[[], float], **_: Any) -> Any:
        self.supervisors.append(clock)
        return _Supervisor()


def _no_server(**_: Any) -> Any:
    return None


class _Supervisor:
    """Runs coroutines in the loop of the test."""

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await work


@pytest.mark.parametrize("passes", [SuspendedMachine.suspend, SuspendedMachine.run])
async def test_a_leader_may_not_write_after_its_deadline_whether_its_machine_ran_or_was_suspended(
    passes: Callable[[SuspendedMachine, float], None],
) -> None:
    machine = SuspendedMachine()
    application = machine.application()
    leadership = await application._make_leadership()
    elector = application._host.elector
    assert elector is not None
    await elector.acquire()
    passes(machine, 9.9)
    assert leadership.is_leader()
    passes(machine, 0.2)
    assert not leadership.is_leader()


async def test_a_process_whose_machine_was_suspended_is_not_taken_for_one_that_stands_still() -> None:
    machine = SuspendedMachine()
    machine.application()
    [clock] = machine.supervisors
    before = clock()
    machine.suspend(3600)
    assert clock() == before


def test_the_clock_of_the_lease_is_the_one_that_runs_while_the_machine_is_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 7.0}.__getitem__)
    assert REAL.boot_clock() == 7.0
    assert REAL.clock is time.monotonic
