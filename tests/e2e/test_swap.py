"""Swapping schedulers under load: the holder of the Lease continues where the other one stopped.

``SWAP_BINDINGS=2000 pytest tests/e2e/test_swap.py`` swaps them with more bindings.
"""

from __future__ import annotations

import os

from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tools.controlplane import ControlPlane

COUNT = int(os.environ.get("SWAP_BINDINGS", "160"))
AFTER = COUNT // 4  # created while no scheduler runs, so that some are left for the second
LEASE = "swap"
QUICK = (
    f"--leader-elect-resource-name={LEASE}",
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=1s",
)


def test_bindings_half_done_by_one_scheduler_are_finished_by_the_other_and_back(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    backlog = Backlog(controlplane, namespace, "swapped")

    theirs = controlplane.start_karmada_scheduler(
        "swapped", *QUICK, "--kube-api-qps=1000", "--kube-api-burst=2000", leader_elect=True
    )
    with backlog.creating(range(COUNT - AFTER)):
        backlog.wait_placed(COUNT // 4, timeout=180)
        theirs.kill()
        controlplane.forget(theirs)
    backlog.create(range(COUNT - AFTER, COUNT))
    half = backlog.results()
    assert COUNT // 4 <= len(half) <= COUNT - AFTER

    ours = start_scheduler(*QUICK, name="swapped", lease=LEASE)
    whole = backlog.wait_placed(COUNT, timeout=240)
    assert {name: whole[name] for name in half} == half
    backlog.wait_settled(timeout=180)

    with backlog.creating(range(COUNT, 2 * COUNT - AFTER)):
        backlog.wait_placed(COUNT + COUNT // 4, timeout=180)
        ours.process.kill()
        controlplane.forget(ours.process)
    backlog.create(range(2 * COUNT - AFTER, 2 * COUNT))
    half = backlog.results()
    assert COUNT + COUNT // 4 <= len(half) <= 2 * COUNT - AFTER
    assert {name: half[name] for name in whole} == whole

    theirs = controlplane.start_karmada_scheduler(
        "swapped", *QUICK, "--kube-api-qps=1000", "--kube-api-burst=2000", leader_elect=True
    )
    try:
        final = backlog.wait_placed(2 * COUNT, timeout=300)
        assert {name: final[name] for name in half} == half
    finally:
        theirs.kill()
        controlplane.forget(theirs)
