"""The machine is suspended, or its time of day jumps, under the real process; a library gives it such clocks."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.bad_days.test_lease import QUICK, _held_by_another, leads
from tests.fake_apiserver import FakeApiServer, binding, cluster, start_scheduler, wait_for

_SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void offsets(long *day, long *boot) {
    char text[64] = {0};
    int file = open(getenv("CLOCK_OFFSETS"), O_RDONLY | O_CLOEXEC);
    *day = *boot = 0;
    if (file < 0) return;
    if (read(file, text, sizeof text - 1) > 0) sscanf(text, "%ld %ld", day, boot);
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    long day, boot;
    int result = syscall(SYS_clock_gettime, clock, found);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME)) {
        offsets(&day, &boot);
        found->tv_sec += clock == CLOCK_REALTIME ? day : boot;
    }
    return result;
}

int gettimeofday(struct timeval *found, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""
_YEARS = 10 * 365 * 86_400
_HOUR = 3600


class Clocks:
    """The clocks of a process: how far the time of day and the time since the boot are ahead of those of the machine."""

    def __init__(self, folder: Path) -> None:
        source, library, self._file = folder / "clocks.c", folder / "clocks.so", folder / "offsets"
        source.write_text(_SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.env = {"LD_PRELOAD": str(library), "CLOCK_OFFSETS": str(self._file)}
        self.set()

    def set(self, *, day: int = 0, boot: int = 0) -> None:
        """Set both, in seconds."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{day} {boot}")
        new.replace(self._file)


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    if shutil.which("cc") is None:
        pytest.skip("a C compiler is missing")
    return Clocks(tmp_path)


def test_a_leader_on_a_machine_that_was_suspended_writes_nothing_when_it_wakes_up(
    tmp_path: Path, clocks: Clocks
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *QUICK, env=clocks.env) as scheduler:
            wait_for(lambda: leads(scheduler), "a leader", scheduler)
            server.put(binding("before"))
            wait_for(lambda: server.targets("before"), "a binding to be placed", scheduler)
            scheduler.signal(signal.SIGSTOP)
            for number in range(20):
                server.put(binding(f"b{number}"))
            _held_by_another(server)
            # The monotonic clock of Linux does not count the time of suspension.
            clocks.set(day=_HOUR, boot=_HOUR)
            continued = time.monotonic()
            scheduler.signal(signal.SIGCONT)
            assert scheduler.wait(20.0) == 1, scheduler.log
            assert [each for each in server.requests if each.time > continued and each.verb == "PATCH"] == []


def _renewed(server: FakeApiServer, before: str) -> bool:
    return bool(server.lease()["renewTime"] != before)


def test_a_leader_whose_time_of_day_jumps_goes_on_leading_and_scheduling(
    tmp_path: Path, clocks: Clocks
) -> None:
    with FakeApiServer() as server:
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *QUICK, env=clocks.env) as scheduler:
            wait_for(lambda: leads(scheduler), "a leader", scheduler)
            holder = server.lease()["holderIdentity"]
            for number, day in enumerate((_HOUR, -_HOUR, _YEARS, -_YEARS, 0)):
                clocks.set(day=day)
                server.put(binding(f"b{number}"))
                wait_for(partial(server.targets, f"b{number}"), f"b{number} to be placed", scheduler)
                wait_for(partial(_renewed, server, server.lease()["renewTime"]), "a renewal", scheduler)
                assert scheduler.answers("/healthz") == scheduler.answers("/readyz") == 200
            assert server.lease()["holderIdentity"] == holder
            assert scheduler.exit_status is None
            assert "Traceback" not in scheduler.log
