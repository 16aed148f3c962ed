"""A binding that would be placed now, and that nothing enqueues, needs a new WorkloadRebalancer."""

from __future__ import annotations

from datetime import UTC, datetime

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.explain.model import Target
from karmada_scheduler.testing import binding
from karmada_scheduler.whynot.retrying import rescheduled
from tools.why_not_check.json_patch import applied


def test_the_patch_is_what_a_rebalancer_writes_and_the_result_is_that_of_the_decision() -> None:
    made = binding("web").replicas(2)
    now = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)

    found = rescheduled(made.build(), made.manifest(), (Target("m1", 2),), now)

    assert found is not None
    assert (found.edits[0].op, found.result) == ("reschedule", (Target("m1", 2),))
    after = Binding.from_manifest(applied(made.manifest(), [dict(each) for each in found.apply[0].patch]))
    assert after.spec.reschedule_triggered_at == now
