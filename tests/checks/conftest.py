"""What the checks share. A module ``check_*.py`` is collected only if it is named, as the Makefile does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.checks.workloads import SCHEDULER
from tools.controlplane import ControlPlane
from tools.controlplane.ours import start_scheduler as start_ours

StartAny = Callable[..., object]

_LEASE = (
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
    "--leader-elect-retry-period=5s",
)
"""A busy machine may not renew a Lease in time, and the checks are about something else."""


@pytest.fixture(scope="session")
def start_scheduler(request: pytest.FixtureRequest) -> StartAny:
    """Start the scheduler of the workloads with start_scheduler(plane, "--flag=...", ...)."""

    def start(plane: ControlPlane, *flags: str) -> None:
        if request.config.getoption("--karmada-scheduler"):
            plane.start_karmada_scheduler(SCHEDULER, *flags)
        else:
            start_ours(plane, *_LEASE, *flags, name=SCHEDULER)

    return start
