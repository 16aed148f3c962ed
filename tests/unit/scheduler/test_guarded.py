"""The bindings that Guard plugins keep or move, as the metrics count them."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_pyscheduler.scheduler.unplaced import GuardedBindings
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework import EvictionTask, GuardAnswer, Result
from tests import manifests
from tests.unit.framework.plugins import answering, plugin
from tests.unit.framework.scheduler_harness import SchedulerHarness

ON_M1: dict[str, Any] = {"clusters": [{"name": "m1", "replicas": 2}]}
NO = Result.unschedulable("not now")
STATES = ("kept", "held", "stays", "leaving", "unreadable", "unstamped")
GRACEFULLY = GuardAnswer(tasks=[EvictionTask("m1")])


@pytest.mark.parametrize(
    ("answer", "cluster", "state", "counted"),
    [
        (NO, "m9", "kept", "kept"),
        (NO, "m2", "held", "held"),
        (GuardAnswer(NO, stays=True), "m2", "stays", "stays"),
        (GuardAnswer(NO, stays=True), "m9", "kept", "kept"),
        (GRACEFULLY, "m2", "leaving", "graceful"),
    ],
)
async def test_answers_and_bindings_are_counted_by_state(
    answer: Any, cluster: str, state: str, counted: str
) -> None:
    harness = SchedulerHarness(plugin("G", guard=answering(answer)))
    guarded = GuardedBindings({"ours"})
    harness.bindings.add_listener(guarded.changed)
    await harness.put_and_run(placement={"clusterAffinity": {"clusterNames": [cluster]}}, **ON_M1)
    assert guarded.counts() == {**dict.fromkeys(STATES, 0), state: 1}
    assert harness.metrics.plugins.guard_answers.labels(counted)._value.get() == 1
    stored = Binding.from_manifest(harness.server.stored["web"])
    guarded.changed(stored, None)
    assert sum(guarded.counts().values()) == 0


async def test_a_binding_that_is_moved_without_guards_is_not_counted() -> None:
    harness = SchedulerHarness()
    guarded = GuardedBindings({"ours"})
    harness.bindings.add_listener(guarded.changed)
    await harness.put_and_run(placement={"clusterAffinity": {"clusterNames": ["m9"]}}, **ON_M1)
    assert sum(guarded.counts().values()) == 0


@pytest.mark.parametrize(("scheduler", "count"), [("ours", 1), ("theirs", 0)])
def test_a_binding_may_be_in_several_states_and_counts_for_its_own_scheduler_only(
    scheduler: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = manifests.binding(
        schedulerName=scheduler, gracefulEvictionTasks=[{"fromCluster": "m1", "producer": scheduler}]
    )
    held = {
        "type": "Scheduled",
        "status": "False",
        "reason": "SchedulerError",
        "message": "held at Guard by G",
    }
    manifest["status"] = {"conditions": [held]}
    guarded = GuardedBindings({"ours"})
    guarded.changed(None, Binding.from_manifest(manifest))
    assert guarded.counts() == dict.fromkeys(STATES, 0) | {"leaving": count, "held": count}
    assert not caplog.records
    manifest["metadata"]["annotations"] = {"pyscheduler.karmada.io/last-move": "["}
    guarded.changed(None, Binding.from_manifest(manifest))
    assert guarded.counts() == dict.fromkeys(STATES, 0) | dict.fromkeys(
        ("leaving", "held", "unreadable"), count
    )


TEXT = (
    "The annotation pyscheduler.karmada.io/last-move of ResourceBinding(demo/web) cannot be read: Expecting value: "
    "line 1 column 101 (char 100). Remove it, or correct it"
)


async def test_a_binding_with_an_annotation_of_ours_that_cannot_be_read_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = SchedulerHarness()
    guarded = GuardedBindings({"ours"})
    harness.bindings.add_listener(guarded.changed)
    harness.put(placement={"clusterAffinity": {"clusterNames": ["m1"]}}, **ON_M1)
    for text in ("[" * 100, "[" * 101, "{}"):
        harness.server.change("web", annotations={"pyscheduler.karmada.io/last-move": text})
    assert guarded.counts()["unreadable"] == 1
    texts = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
    assert texts == [TEXT]
    harness.server.change("web", annotations={"pyscheduler.karmada.io/last-move": None})
    assert guarded.counts()["unreadable"] == 0
