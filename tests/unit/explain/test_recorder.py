"""The recorder: when records are made, and what is lost."""

import asyncio
import json
from unittest.mock import patch

import pytest

from karmada_pyscheduler.records import recorder as module
from karmada_scheduler.api.binding import BindingKey, TargetCluster
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding
from tests.unit.explain.record_schema import problems
from tests.unit.explain.recorded import RecorderHarness


def test_a_record_is_made_when_its_attempt_has_ended() -> None:
    harness = RecorderHarness()
    entry = harness.decide("web", ending=None)
    harness.decide("api")
    harness.make()
    assert harness.names() == []
    harness.recorder.ended(entry, "written")
    harness.make()
    assert harness.names() == ["web", "api"]
    assert [line["ending"] for line in harness.lines] == ["written", "written"]


def test_an_attempt_that_does_not_end_is_recorded_without_its_end_and_keeps_no_clusters() -> None:
    harness = RecorderHarness()
    entry = harness.decide("web", ending=None)
    decision = entry.decision
    harness.now += 3
    harness.make()
    assert harness.lines[0]["ending"] is None
    assert entry.decision is not decision
    harness.now += 600
    harness.recorder.ended(entry, "conflict", "changed meanwhile")
    stored = harness.store.last(1)[0]
    assert b'"ending":"conflict"' in stored.body
    assert harness.lines[1] == {
        "v": 1,
        "endOf": 1,
        "ending": "conflict",
        "written": None,
        "problem": "changed meanwhile",
    }


def test_the_end_of_an_earlier_attempt_does_not_change_the_record_of_a_later_one() -> None:
    harness = RecorderHarness()
    earlier = harness.decide("web", ending=None)
    harness.now += 3
    harness.make()
    harness.decide("web", ending="written")
    harness.make()
    harness.recorder.ended(earlier, "conflict")
    assert b'"ending":"written"' in harness.store.last(1)[0].body


def test_a_decision_with_the_same_result_does_not_replace_the_record() -> None:
    harness = RecorderHarness()
    harness.decide("web")
    for _ in range(2):
        harness.decide("web", ending="unchanged")
    harness.make()
    found = json.loads(harness.store.last(1)[0].body)
    assert list(problems(found)) == []
    assert (found["seq"], found["ending"]) == (1, "written")
    assert found["repeated"] == {
        "count": 2,
        "at": "2026-11-18T11:08:20.000Z",
        "event": "BindingAdd",
        "fleet": None,
    }
    assert [line.get("repeats") for line in harness.lines] == [None, 1, 1]
    harness.decide("web", ending="conflict")
    harness.make()
    assert "repeated" not in json.loads(harness.store.last(1)[0].body)


def test_an_unchanged_decision_without_a_record_or_with_another_result_gets_one() -> None:
    harness = RecorderHarness()
    harness.decide("web", ending="unchanged")
    harness.make()
    assert harness.names() == ["web"]
    entry = harness.decide("web", ending="unchanged")
    entry.decision = replace(entry.decision, targets=(TargetCluster("m1", 1),))
    harness.make()
    assert harness.store.last(1)[0].seq == 2


def test_the_oldest_decisions_are_dropped_and_counted_if_too_many_wait() -> None:
    harness = RecorderHarness(max_records=5000)
    with patch.object(module, "MAX_WAITING", 3):
        for number in range(5):
            harness.decide(f"w{number}")
    harness.make()
    assert harness.names() == ["w2", "w3", "w4"]
    assert harness.lost("dropped") == 2


def test_evicted_records_are_counted() -> None:
    harness = RecorderHarness(max_records=2)
    for number in range(5):
        harness.decide(f"w{number}")
    harness.make()
    assert harness.names() == ["w3", "w4"]
    assert harness.lost("evicted") == 3
    assert harness.metrics.records._value.get() == 5


def test_an_error_is_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    harness = RecorderHarness()
    harness.process.config = lambda: 1 // 0  # type: ignore[assignment, return-value]
    harness.decide("web")
    harness.decide("api")
    harness.make()
    assert harness.names() == []
    assert harness.metrics.errors.labels("record")._value.get() == 2
    assert [each.getMessage() for each in caplog.records] == [
        "Cannot record the decision about ResourceBinding(default/web-deployment)"
    ]


def test_the_last_event_names_the_trigger_and_a_retry_only_without_one() -> None:
    recorder, key = RecorderHarness().recorder, BindingKey("ResourceBinding", "default", "web")
    recorder.enqueued(key, "BindingAdd")
    recorder.enqueued(key, "ClusterChanged")
    recorder.requeued(key, "ScheduleAttemptFailure")
    assert recorder.take_event(key) == "ClusterChanged"
    recorder.requeued(key, "ScheduleAttemptFailure")
    assert recorder.take_event(key) == "ScheduleAttemptFailure"
    assert recorder.take_event(key) == ""


def test_a_deleted_binding_is_forgotten_after_ten_minutes() -> None:
    harness = RecorderHarness()
    for name in ("gone", "back"):
        harness.decide(name)
        harness.make()
        harness.recorder.binding_changed(binding(name).build(), None)
    harness.now += 599
    harness.decide("back")
    harness.make()
    assert sorted(harness.names()) == ["back", "gone"]
    harness.now += 2
    harness.make()
    assert harness.names() == ["back"]


async def test_a_slice_ends_and_the_rest_follows() -> None:
    harness = RecorderHarness()
    for number in range(3):
        harness.decide(f"w{number}")
    ticks = iter(range(100))
    harness.recorder.clock = lambda: float(next(ticks))  # every record takes longer than a slice
    assert harness.recorder._make_some(at_most=0.5)
    assert len(harness.names()) == 1
    task = asyncio.create_task(harness.recorder.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(harness.names()) == 3
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_decisions_that_wait_are_recorded_at_the_stop() -> None:
    harness = RecorderHarness()
    task = asyncio.create_task(harness.recorder.run())
    await asyncio.sleep(0)
    harness.decide("web", ending=None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert harness.names() == ["web"]
