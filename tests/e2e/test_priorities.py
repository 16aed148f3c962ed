"""Priorities: with the gate, bindings of higher priority are scheduled first."""

from __future__ import annotations

from tests.e2e.audit_log import order_of_results
from tests.e2e.backlog import Backlog
from tests.e2e.conftest import StartScheduler
from tools.controlplane import ControlPlane


def test_waiting_bindings_are_scheduled_in_order_of_priority(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler
) -> None:
    backlog = Backlog(controlplane, namespace, "by-priority")
    backlog.create(range(40))
    backlog.create(range(40, 45), priority=1000)
    backlog.create(range(45, 50), priority=-1)
    user = "by-priority"
    scheduler = start_scheduler(
        "--feature-gates=PriorityBasedScheduling=true", "--max-in-flight=1", name=user
    )
    backlog.wait_placed(50, timeout=60)

    order = order_of_results(controlplane, user, namespace)
    assert set(order[:5]) == set(range(40, 45))
    assert set(order[-5:]) == set(range(45, 50))
    assert 'scheduler_pending_bindings{queue="active"} 0.0' in scheduler.scrape()
