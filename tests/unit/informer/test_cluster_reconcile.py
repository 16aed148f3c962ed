"""The scan for the bindings that changed clusters concern: slices, a full queue, many changes at once."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest

from karmada_pyscheduler.cache.bindings import BindingCache, RefusedBindings
from karmada_pyscheduler.informer.cluster_reconcile import ENOUGH_DUE, ClusterReconciler
from karmada_pyscheduler.informer.requeue import Requeuer
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler import logs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import RetryLimits
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework import Diagnosis, EventKind, RequeueEvent, Result
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import ClusterBuilder, cluster
from tests import manifests


class ReconcilerHarness:
    """A reconciler whose clock moves by ``tick`` seconds whenever it is read."""

    def __init__(self, bindings: int, *, tick: float = 0.0) -> None:
        self.now = 0.0
        self.tick = tick
        self.bindings = BindingCache()
        for number in range(bindings):
            self.put(number, version=number + 1)
        self.queue: WorkQueue[BindingKey] = WorkQueue(limits=RetryLimits(), clock=lambda: self.now)
        self.metrics = Metrics()
        self.enqueued: list[str] = []
        self.events: set[str] = set()
        self.refused = RefusedBindings()
        requeuer = Requeuer(
            bindings=self.bindings,
            queue=self.queue,
            scheduler_names=["ours"],
            metrics=self.metrics,
            listeners=[self._enqueued],
        )
        self.reconciler = ClusterReconciler(
            requeuer,
            bindings=self.bindings,
            queue=self.queue,
            metrics=self.metrics.workqueues.of("ClusterReconcileWorker"),
            clock=self._clock,
            refused=self.refused,
        )

    def _clock(self) -> float:
        self.now += self.tick
        return self.now

    def _enqueued(self, key: BindingKey, event: str) -> None:
        self.events.add(event)
        self.enqueued.append(key.name)

    def wait_for(self, number: int, *events: RequeueEvent) -> None:
        """Let a binding wait for events of a plugin that has refused it."""
        refusal = replace(Result.unschedulable("no"), plugin="Own")
        key = self.bindings.keys()[number]
        self.refused.decided(key, [Diagnosis({"m1": refusal})], {"Own": frozenset(events)})

    def scan(self) -> list[str]:
        """Scan to the end; return the bindings that were enqueued by events of plugins."""
        while self.reconciler.step():
            pass
        assert self.events <= {requeue_rules.PLUGIN_EVENT}
        found, self.enqueued = self.enqueued, []
        return found

    def put(self, number: int, *, version: int, **spec: Any) -> None:
        self.bindings.put(Binding.from_manifest(manifests.binding(f"b{number}", version=version, **spec)))

    def sample(self, name: str) -> float:
        labels = {"name": "ClusterReconcileWorker", "controller": "ClusterReconcileWorker"}
        if name == "depth":
            labels["priority"] = ""
        return self.metrics.registry.get_sample_value(f"workqueue_{name}", labels) or 0.0


def versions(name: str, *generations: int, **fields: Any) -> list[Cluster]:
    built = cluster(name).build()
    return [replace(built, generation=generation, **fields) for generation in generations]


def test_a_scan_yields_to_the_event_loop_every_few_milliseconds() -> None:
    harness = ReconcilerHarness(20, tick=0.001)
    harness.reconciler.on_change(*versions("m1", 1, 2))
    counts = []
    while harness.reconciler.step():
        counts.append(len(harness.enqueued))
    assert counts[-1] == 20
    assert counts == sorted(counts)
    slices = [after - before for before, after in itertools.pairwise([0, *counts])]
    assert max(slices) <= 6
    assert min(slices[:-1]) >= 3


def test_a_scan_waits_while_many_keys_are_due() -> None:
    async def check() -> None:
        harness = ReconcilerHarness(3 * ENOUGH_DUE)
        harness.queue.add(BindingKey("ResourceBinding", "demo", "first"))
        await harness.queue.get()
        scanning = asyncio.create_task(harness.reconciler.run())
        harness.reconciler.on_change(*versions("m1", 1, 2))
        most, taken = 0, 0
        async with asyncio.timeout(10):
            while taken < 3 * ENOUGH_DUE:
                key, _ = await harness.queue.get()
                most = max(most, len(harness.queue))
                harness.queue.done(key)
                taken += 1
                await asyncio.sleep(0)
        scanning.cancel()
        assert len(harness.enqueued) == 3 * ENOUGH_DUE
        assert most < ENOUGH_DUE

    asyncio.run(check())


@pytest.mark.parametrize("cause", ["unreadable gone", "recheck"])
async def test_a_scan_begins_when_there_is_a_reason(cause: str) -> None:
    harness = ReconcilerHarness(0)
    status = {"conditions": [{"type": "Scheduled", "status": "False", "reason": "NoClusterFit"}]}
    manifest = manifests.binding("b1", clusters=[{"name": "m1", "replicas": 1}] if "gone" in cause else [])
    harness.bindings.put(Binding.from_manifest({**manifest, "status": status}))
    scanning = asyncio.create_task(harness.reconciler.run())
    await asyncio.sleep(0)
    if cause == "recheck":
        harness.reconciler.recheck_unplaced()
    else:
        harness.reconciler.on_unreadable_gone("m1")
    for _ in range(10):
        await asyncio.sleep(0)
    assert harness.enqueued == ["b1"]
    scanning.cancel()


def test_a_standby_collects_all_keys() -> None:
    async def check() -> None:
        harness = ReconcilerHarness(3 * ENOUGH_DUE)
        scanning = asyncio.create_task(harness.reconciler.run())
        harness.reconciler.on_change(*versions("m1", 1, 2))
        async with asyncio.timeout(10):
            while len(harness.queue) < 3 * ENOUGH_DUE:
                await asyncio.sleep(0)
        scanning.cancel()

    asyncio.run(check())


def test_many_changes_are_one_scan_that_tests_each_placement_once(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ReconcilerHarness(50)
    tested = []
    monkeypatch.setattr(requeue_rules, "is_affected", lambda binding, version: tested.append(version.name))
    for name in ("m3", "m4"):
        for generation in range(1, 10):
            harness.reconciler.on_change(*versions(name, generation, generation + 1))
    while harness.reconciler.step():
        pass
    assert tested == ["m3", "m4"]
    assert harness.sample("adds_total") == 36
    assert harness.sample("work_duration_seconds_count") == 36


def test_every_version_that_an_affinity_can_distinguish_counts() -> None:
    harness = ReconcilerHarness(0)
    selects = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}
    harness.put(1, version=1, placement=selects)
    (plain,), (gold,) = versions("m1", 1), versions("m1", 1, labels={"tier": "gold"})
    harness.reconciler.on_change(plain, gold)
    harness.reconciler.on_change(gold, plain)
    while harness.reconciler.step():
        pass
    assert harness.enqueued == ["b1"]


@pytest.mark.parametrize("deleting", [True, False])
def test_a_cluster_that_is_gone_requeues_bindings_unless_its_deletion_was_seen(deleting: bool) -> None:
    harness = ReconcilerHarness(2)
    built = cluster("m1").deleting() if deleting else cluster("m1")
    harness.reconciler.on_change(built.build(), None)
    while harness.reconciler.step():
        pass
    assert harness.enqueued == ([] if deleting else ["b0", "b1"])


def test_a_cluster_that_begins_to_go_requeues_the_bindings_on_it_whatever_their_affinity_selects() -> None:
    harness = ReconcilerHarness(0)
    elsewhere = {"clusterAffinity": {"clusterNames": ["m9"]}}
    harness.put(1, version=1, placement=elsewhere, clusters=[{"name": "m1", "replicas": 1}])
    harness.put(2, version=1, placement=elsewhere, clusters=[{"name": "m2", "replicas": 1}])
    harness.reconciler.on_change(cluster("m1").build(), cluster("m1").deleting().build())
    while harness.reconciler.step():
        pass
    assert harness.enqueued == ["b1"]


def test_changes_during_a_scan_are_for_the_next_one_and_bindings_are_tested_in_their_newest_version() -> None:
    harness = ReconcilerHarness(20, tick=0.001)
    harness.reconciler.on_change(*versions("m1", 1, 2))
    harness.reconciler.step()
    before = len(harness.enqueued)
    assert 0 < before < 19
    harness.put(19, version=100, placement={"clusterAffinity": {"clusterNames": ["m9"]}})
    harness.bindings.discard(BindingKey("ResourceBinding", "demo", "b18"))
    harness.reconciler.on_change(*versions("m9", 1, 2))
    while harness.reconciler.step():
        pass
    assert harness.enqueued == [f"b{number}" for number in (*range(18), 19)]
    assert not harness.queue.holds(BindingKey("ResourceBinding", "demo", "b18"))


def test_a_scan_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    harness = ReconcilerHarness(30)
    harness.put(30, version=31, placement={"clusterAffinity": {"clusterNames": ["another"]}})
    for number in range(8):
        harness.reconciler.on_change(*versions(f"m{number}", 1, 2))
    with caplog.at_level(logs.V4, logger="karmada_pyscheduler"):
        while harness.reconciler.step():
            pass
    lines = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert lines.count((logging.INFO, "Requeued bindings due to event(ClusterChanged).")) == 1
    assert sum(level == logs.V4 for level, _ in lines) == 30
    summary = caplog.records[-1].__dict__
    assert (summary["count"], summary["clusters"]) == (30, "m0, m1, m2, m3, m4 and 3 more")


def test_the_number_of_pending_changes_is_the_depth_of_upstreams_queue() -> None:
    harness = ReconcilerHarness(20, tick=0.001)
    harness.reconciler.on_change(*versions("m1", 1, 2))
    assert harness.sample("depth") == 2
    harness.reconciler.step()
    assert harness.sample("depth") == 0
    assert harness.sample("unfinished_work_seconds") > 0
    while harness.reconciler.step():
        pass
    assert harness.sample("unfinished_work_seconds") == 0


def test_a_binding_that_cannot_be_tested_is_enqueued_with_its_priority(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError("unexpected")

    harness = ReconcilerHarness(1)
    harness.put(1, version=2, schedulePriority={"priority": 9})
    added: list[tuple[str, int]] = []
    monkeypatch.setattr(harness.queue, "add", lambda key, priority=0: added.append((key.name, priority)))
    monkeypatch.setattr(requeue_rules, "is_affected", broken)
    harness.reconciler.on_change(*versions("m1", 1, 2))
    while harness.reconciler.step():
        pass
    assert added == [("b0", 0), ("b1", 9)]
    assert "Cannot determine whether changed clusters concern" in caplog.text


DNS = RequeueEvent(EventKind.CLUSTER_CONDITIONS, "DNS")
ANY_CONDITION = RequeueEvent(EventKind.CLUSTER_CONDITIONS)
GPUS = RequeueEvent(EventKind.CLUSTER_SUMMARY, "gpu")
ANY_RESOURCE = RequeueEvent(EventKind.CLUSTER_SUMMARY)
OTHERS = RequeueEvent(EventKind.BINDING)
M1 = cluster("m1").allocatable({"gpu": 1, "cpu": 1}).condition("DNS", "False").build()


@pytest.mark.parametrize(
    ("changed", "events"),
    [
        (cluster("m1").condition("DNS", "True"), {DNS, ANY_CONDITION}),
        (cluster("m1").condition("DNS", "False").condition("Disk", "True"), {ANY_CONDITION}),
        (cluster("m1").condition("DNS", "False").allocatable({"gpu": 2, "cpu": 1}), {GPUS, ANY_RESOURCE}),
        (cluster("m1").condition("DNS", "False").allocatable({"gpu": 1, "cpu": 2}), {ANY_RESOURCE}),
    ],
)
def test_a_status_enqueues_the_bindings_that_a_plugin_refused_which_declares_it(
    changed: ClusterBuilder, events: set[RequeueEvent]
) -> None:
    harness = ReconcilerHarness(6)
    declared = [DNS, ANY_CONDITION, GPUS, ANY_RESOURCE, OTHERS]
    for number, event in enumerate(declared):
        harness.wait_for(number, event)
    after = changed.build()
    if after.resource_summary == cluster("m1").build().resource_summary:
        after = replace(after, resource_summary=M1.resource_summary)
    harness.reconciler.on_change(M1, after)
    assert harness.scan() == [f"b{number}" for number, event in enumerate(declared) if event in events]
    harness.reconciler.on_change(after, after)
    assert harness.scan() == [], "nothing has changed"


def test_a_cluster_that_no_affinity_matches_ends_no_refusal() -> None:
    harness = ReconcilerHarness(1)
    elsewhere = {"placement": {"clusterAffinity": {"clusterNames": ["m2"]}}}
    harness.put(0, version=9, **elsewhere)
    harness.wait_for(0, DNS)
    for name, expected in (("m1", []), ("m2", ["b0"])):
        before = cluster(name).condition("DNS", "False").build()
        harness.reconciler.on_change(before, cluster(name).condition("DNS", "True").build())
        assert harness.scan() == expected


def test_another_binding_ends_a_refusal_and_the_binding_itself_does_not() -> None:
    harness = ReconcilerHarness(3)
    harness.wait_for(1, OTHERS)
    one, waiting, _ = harness.bindings
    harness.reconciler.on_declared_change(waiting, replace(waiting, generation=waiting.generation + 1))
    assert harness.scan() == []
    harness.reconciler.on_declared_change(one, replace(one, resource_version="77"))
    assert harness.scan() == [], "a status is no event"
    for new in (replace(one, generation=one.generation + 1), replace(one, labels={"a": "b"}), None):
        harness.reconciler.on_declared_change(one, new)
        assert harness.scan() == ["b1"]


def test_a_binding_waits_until_its_next_decision_or_its_deletion() -> None:
    harness = ReconcilerHarness(2)
    harness.wait_for(0, DNS)
    harness.wait_for(1, DNS, GPUS)
    first, second = harness.bindings.keys()
    harness.refused.decided(first, (), {"Own": frozenset([DNS])})
    harness.reconciler.on_change(M1, replace(M1, conditions=()))
    assert harness.scan() == ["b1"]
    harness.refused.on_binding_change(harness.bindings.get(second), None)
    assert not harness.refused.events
    harness.refused.begin(first, {"Own": frozenset([DNS]), "Other": frozenset([GPUS])})
    assert harness.refused.waiting == {first: {DNS, GPUS}}, (
        "while it is decided, for every event of its plugins"
    )
