"""The queue of a standby, from which nobody takes keys, holds no more than the bindings that exist."""

from __future__ import annotations

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.informer.requeue import Requeuer
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.config.options import RetryLimits
from tests import manifests

KEPT = 16


def test_deleted_bindings_leave_the_queue_of_a_standby_now_and_then() -> None:
    bindings = BindingCache()
    queue: WorkQueue[BindingKey] = WorkQueue(limits=RetryLimits(), clock=lambda: 0.0)
    retained: list[int] = []
    retain = queue.retain
    queue.retain = lambda keep: (retained.append(1), retain(keep))  # type: ignore[assignment, func-returns-value]
    requeuer = Requeuer(bindings=bindings, queue=queue, scheduler_names=["ours"], metrics=Metrics())
    kept = Binding.from_manifest(manifests.binding("kept"))
    bindings.put(kept)
    gone = [Binding.from_manifest(manifests.binding(f"b{number}")) for number in range(2 * (KEPT + 2))]
    for each in (kept, *gone):
        requeuer.enqueue(each, "BindingAdd")
    for number in range(len(gone)):
        requeuer.on_deleted()
        assert len(retained) == (number + 1) // (KEPT + 2)
    assert queue.holds(kept.key)
    assert not any(queue.holds(each.key) for each in gone)
