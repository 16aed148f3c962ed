"""The Lease is kept while the main loop is blocked, and lost for good when it cannot be renewed."""

import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_apiserver import (
    FakeApiServer,
    Gate,
    SchedulerProcess,
    binding,
    cluster,
    start_scheduler,
    wait_for,
)

QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=400ms",
)

STANDS = '''
import signal, time
from karmada_scheduler.framework import SUCCESS


class Stands:
    """Lets the event loop stand for 4 seconds, and keeps the time limit from cutting it off."""

    name = "Stands"

    def filter(self, context):
        if context.cycle.binding.key.name == "slow":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            end = time.monotonic() + 4
            while time.monotonic() < end:
                pass
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        return SUCCESS
'''


def leads(scheduler: SchedulerProcess) -> bool:
    """Return whether it knows that it leads; a candidate without the response to its request is none yet."""
    return "Successfully acquired lease" in scheduler.log


def test_a_leader_with_a_blocked_loop_keeps_its_lease_and_answers_probes(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "stands.py").write_text(STANDS)
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *QUICK, f"--plugin-dir={tmp_path / 'plugins'}") as scheduler:
            wait_for(lambda: leads(scheduler), "a leader", scheduler)
            server.put(binding("slow"))
            gaps = _renewal_gaps(server, scheduler, seconds=4.0)
            assert max(gaps) < 2.0, gaps
            assert scheduler.exit_status is None
            server.put(binding("quick"))
            wait_for(lambda: server.targets("quick"), "the next binding to be placed", scheduler)


def _renewal_gaps(server: FakeApiServer, scheduler: SchedulerProcess, *, seconds: float) -> list[float]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert scheduler.answers("/healthz", timeout=5) == 200
        assert scheduler.answers("/readyz", timeout=5) == 200
        assert "karmada_scheduler_" in scheduler.scrape()
        time.sleep(0.05)
    times = [each.time for each in server.requests if each.verb == "PUT" and "/leases/" in each.path]
    return [after - before for before, after in itertools.pairwise(times)]


def _silent(server: FakeApiServer) -> None:
    server.fault(path="/leases", gate=Gate())


def _held_by_another(server: FakeApiServer) -> None:
    def take(lease: dict[str, dict[str, object]]) -> None:
        lease["spec"]["holderIdentity"] = "another"

    server.change("Lease", "my-scheduler", take, "karmada-system")


@pytest.mark.parametrize("trouble", [_silent, _held_by_another])
def test_a_leader_that_loses_its_lease_ends_within_seconds_and_writes_nothing_more(
    tmp_path: Path, trouble: Callable[[FakeApiServer], None]
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *QUICK) as scheduler:
            wait_for(lambda: leads(scheduler), "a leader", scheduler)
            trouble(server)
            assert scheduler.wait(15.0) == 1, scheduler.log
            assert "leaderelection lost" in scheduler.log
            ended = time.monotonic()
            server.put(binding("late"))
            assert not [each for each in server.requests if each.time > ended and each.verb == "PATCH"]


def test_a_leader_that_was_frozen_past_its_lease_writes_nothing_when_it_continues(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *QUICK) as scheduler:
            wait_for(lambda: leads(scheduler), "a leader", scheduler)
            scheduler.signal(signal.SIGSTOP)
            for number in range(20):
                server.put(binding(f"b{number}"))
            _held_by_another(server)
            time.sleep(2.5)  # past the renew deadline
            continued = time.monotonic()
            scheduler.signal(signal.SIGCONT)
            assert scheduler.wait(20.0) == 1, scheduler.log
            written = [each for each in server.requests if each.time > continued and each.verb == "PATCH"]
            assert written == []
