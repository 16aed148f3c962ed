"""Leadership: what holding the Lease means for the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from karmada_pyscheduler.app.leader import Leadership
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.process.supervisor import Supervisor


class FakeElector:
    """A Lease that is acquired at once, and lost when a test says so."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.lost = asyncio.Event()
        self.holds = False

    def is_leader(self) -> bool:
        return self.holds

    async def acquire(self) -> None:
        self.calls.append("acquire")
        self.holds = True

    async def renew(self) -> str:
        self.calls.append("renew")
        try:
            await self.lost.wait()
        finally:
            await asyncio.sleep(0)
            self.calls.append("renewed for the last time")
        return "the Lease belongs to b"

    async def release(self) -> None:
        self.calls.append("release")
        self.holds = False


class FakeSupervisor:
    """Runs coroutines in the loop of the test."""

    leading = False

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await work


class LeadershipHarness:
    """Leadership with a fake Lease."""

    def __init__(self) -> None:
        self.elector, self.supervisor, self.metrics = FakeElector(), FakeSupervisor(), Metrics()
        self.ends: list[int] = []
        self.leadership = self.with_elector(self.elector)

    def with_elector(self, elector: FakeElector | None) -> Leadership:
        return Leadership(
            cast("Elector | None", elector),
            supervisor=cast("Supervisor", self.supervisor),
            metrics=self.metrics,
            end=self._end,
        )

    def _end(self, status: int, *, log_last: Callable[[], None]) -> None:
        log_last()
        self.ends.append(status)

    def state(self) -> tuple[bool, bool, float]:
        """Whether it is the leader, whether the supervisor knows it, and the value of the metric."""
        gauge = self.metrics.api_server.leader.labels("")
        return self.leadership.is_leader(), self.supervisor.leading, gauge._value.get()


@pytest.fixture
async def harness() -> LeadershipHarness:
    return LeadershipHarness()


async def test_the_lease_is_held_during_the_block_and_released_after_the_last_renewal(
    harness: LeadershipHarness,
) -> None:
    assert harness.state() == (False, False, 0)
    async with harness.leadership.hold():
        assert harness.state() == (True, True, 1)
        await asyncio.sleep(0)
        assert harness.elector.calls == ["acquire", "renew"]
    assert harness.elector.calls == ["acquire", "renew", "renewed for the last time", "release"]
    assert harness.state() == (False, False, 0)
    harness.elector.lost.set()
    await asyncio.sleep(0)
    assert harness.ends == []  # the renewal has ended with the block


async def test_the_lease_is_released_when_the_block_fails(harness: LeadershipHarness) -> None:
    async def fail() -> None:
        async with harness.leadership.hold():
            await asyncio.sleep(0)
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        await fail()
    assert harness.elector.calls[-1] == "release"
    assert harness.state() == (False, False, 0)


async def test_a_process_that_waits_for_the_lease_is_shown_as_no_leader(harness: LeadershipHarness) -> None:
    harness.metrics.api_server.leader.labels("").set(1)
    acquired = asyncio.Event()

    async def acquire() -> None:
        await acquired.wait()

    harness.elector.acquire = acquire  # type: ignore[method-assign]
    holding = harness.leadership.hold()
    entering = asyncio.create_task(holding.__aenter__())
    await asyncio.sleep(0)
    assert harness.state() == (False, False, 0)
    acquired.set()
    await entering
    await holding.__aexit__(None, None, None)


async def test_the_process_ends_when_the_lease_is_lost(
    harness: LeadershipHarness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.leadership.hold():
        harness.elector.lost.set()
        while not harness.ends:
            await asyncio.sleep(0)
    assert harness.ends == [1]
    assert "leaderelection lost: the Lease belongs to b" in caplog.text


async def test_a_process_without_leader_election_always_leads(harness: LeadershipHarness) -> None:
    leadership = harness.with_elector(None)
    assert leadership.is_leader()
    async with leadership.hold():
        assert leadership.is_leader()
    assert harness.elector.calls == []
