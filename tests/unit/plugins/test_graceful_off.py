"""Graceful moves are off while nobody stamps eviction tasks: who can cause that, how it ends, and who hears of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karmada_advisor.explain.causes import causes_of_binding
from karmada_advisor.explain.situation import Situation
from karmada_pyscheduler.scheduler.unplaced import GuardedBindings
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import FakeHandle, binding, cluster, make
from karmada_scheduler_plugins._task_stamps import PROBE_SECONDS, UNSTAMPED_SECONDS
from karmada_scheduler_plugins.placement_guard import PlacementGuard
from tests.unit.explain.asking import inputs_of
from tests.unit.plugins.test_placement_guard import LAST_MOVE, Guarded, to

OLD = json.dumps({"moves": [{"at": "2026-01-01T00:00:00.000Z", "replicas": 2}], "from": ["m1"], "cause": "x"})
OFF = "graceful moves are off: Karmada's controller gracefulEviction has not stamped the eviction tasks of 2 bindings for 60s"


class Plane(Guarded):
    """A scheduler whose moves are graceful, on a control plane whose controller does not stamp tasks."""

    def __init__(self, **more: Any) -> None:
        super().__init__(graceful={"enabled": True}, **{"lastHealthyCopy": {"enabled": False}, **more})

    async def moves(self, name: str) -> int:
        """Let a binding move, and return the number of its new eviction tasks."""
        self.on_m1(name)
        await self.edit(name, placement=to("m2"))
        assert self.placed(name) == ["m2"]
        return len(self.tasks(name))

    async def stamp(self, *names: str) -> None:
        for name in names:
            at = self.time_of_day.strftime("%Y-%m-%dT%H:%M:%SZ")
            await self.edit(
                name, gracefulEvictionTasks=[{**each, "creationTimestamp": at} for each in self.tasks(name)]
            )


async def off(**more: Any) -> Plane:
    """Return a control plane on which two bindings have moved, and nobody has stamped their tasks."""
    plane = Plane(**more)
    assert [await plane.moves(name) for name in ("first", "second")] == [1, 1]
    plane.sleep(UNSTAMPED_SECONDS + 1)
    return plane


@pytest.mark.parametrize("days", [0, 1, 2])
async def test_bindings_in_deletion_do_not_count(days: int) -> None:
    plane = await off()
    for name in ("first", "second"):
        plane.manifest(name)["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z"
        plane.server.change(name, annotations={"x": "y"})
    plane.sleep(86_400 * days)
    assert await plane.moves("web") == 1


async def test_a_task_and_an_old_record_that_somebody_writes_do_not_count_for_a_minute() -> None:
    plane = Plane()
    assert await plane.moves("before") == 1
    await plane.stamp("before")
    plane.sleep(600)
    task = {"fromCluster": "m9", "producer": "ours", "reason": "x"}
    for name in ("x1", "x2"):
        plane.on_m1(name)
        plane.server.change(name, annotations={LAST_MOVE: OLD})
        await plane.edit(name, gracefulEvictionTasks=[task])
    assert await plane.moves("web") == 1
    await plane.stamp("x1", "x2", "web")  # as Karmada's controller does, within seconds
    plane.sleep(600)
    assert await plane.moves("other") == 1


async def test_a_new_leader_need_not_wait_to_know_it() -> None:
    plane = await off()
    later = Guarded(plane.server, graceful={"enabled": True}, lastHealthyCopy={"enabled": False})
    later.sleep(UNSTAMPED_SECONDS + 1)
    for manifest in list(plane.server.stored.values()):
        later.handlers.on_event("ResourceBinding", "ADDED", manifest)
    await later.run()
    later.on_m1()
    await later.edit(placement=to("m2"))
    assert (later.placed(), later.tasks()) == (["m2"], [])


async def test_the_time_for_a_stamp_does_not_begin_again_when_a_binding_changes() -> None:
    plane = await off()
    for name in ("first", "second"):
        await plane.edit(name, replicas=3)
    assert await plane.moves("web") == 0


async def test_a_task_is_written_from_time_to_time_to_see_whether_it_is_stamped() -> None:
    plane = await off()
    assert await plane.moves("w0") == 0
    seen = []
    for number in range(12):
        plane.sleep(PROBE_SECONDS / 2)
        seen.append(await plane.moves(f"p{number}"))
    # After 10 minutes, and then after 20 and 40.
    assert seen == [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


async def test_moves_are_graceful_again_when_a_probe_is_stamped() -> None:
    plane = await off()
    plane.sleep(PROBE_SECONDS)
    assert [await plane.moves(name) for name in ("probe", "w0")] == [1, 0]
    plane.sleep(UNSTAMPED_SECONDS + 1)
    await plane.stamp("probe")
    assert [await plane.moves(name) for name in ("w1", "w2")] == [1, 1]


async def test_a_stamp_from_the_future_says_nothing() -> None:
    plane = await off()
    task = {
        "fromCluster": "m9",
        "producer": "ours",
        "reason": "x",
        "creationTimestamp": "2036-01-01T00:00:00Z",
    }
    plane.on_m1("skewed")
    await plane.edit("skewed", gracefulEvictionTasks=[task])
    assert await plane.moves("web") == 0


async def test_a_clock_that_is_set_back_does_not_switch_graceful_moves_off_or_on_for_longer() -> None:
    plane = await off()
    await plane.stamp("first", "second")
    plane.time_of_day -= timedelta(days=2)
    assert await plane.moves("w0") == 1
    assert await plane.moves("w1") == 1
    plane.sleep(UNSTAMPED_SECONDS + 1)
    assert await plane.moves("w2") == 0


async def test_the_log_says_once_that_it_is_off_and_once_that_it_is_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plane = await off()
    caplog.set_level("INFO")
    for number in range(3):
        await plane.moves(f"w{number}")
    await plane.stamp("first", "second")
    for number in range(3, 6):
        await plane.moves(f"w{number}")
    said = [each.getMessage() for each in caplog.records if each.name.startswith("karmada_scheduler_plugins")]
    assert said == [
        f"{OFF}; moves of the profile ours are not graceful",
        "Eviction tasks are stamped again; moves of the profile ours are graceful",
    ]


async def test_a_move_that_is_not_graceful_is_an_event_and_counted() -> None:
    plane = await off()
    await plane.moves("web")
    assert ("GuardWarning", OFF) in plane.events
    assert plane.metrics.plugins.guard_answers.labels("warned")._value.get() == 1


async def test_a_move_without_anything_to_leave_warns_of_nothing() -> None:
    plane = await off()
    plane.on_m1()
    await plane.edit(replicas=4)
    assert not any(reason == "GuardWarning" for reason, _ in plane.events)


async def test_a_move_that_waits_says_that_graceful_moves_are_off() -> None:
    plane = await off(lastHealthyCopy={"enabled": True})
    plane.on_m1()
    await plane.edit(placement=to("m2"))
    assert plane.placed() == ["m1"]
    assert f"m1 has the last healthy copy, and {OFF}; held" in plane.condition()[1]


def test_the_bindings_whose_tasks_nobody_stamps_are_counted_after_a_minute() -> None:
    now = 0.0
    guarded = GuardedBindings({"ours"}, clock=lambda: now)

    def stored(*, stamp: str = "", deleting: bool = False, producer: str = "ours") -> Binding:
        manifest = binding("web").scheduler("ours").manifest()
        task = {"fromCluster": "m1", "producer": producer, **({"creationTimestamp": stamp} if stamp else {})}
        manifest["spec"]["gracefulEvictionTasks"] = [task]
        if deleting:
            manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return Binding.from_manifest(manifest)

    def count() -> int:
        return guarded.counts()["unstamped"]

    guarded.changed(None, stored())
    now = 60.0
    guarded.changed(stored(), stored())
    assert count() == 0
    now = 61.0
    assert count() == 1
    for other in (
        stored(stamp="2026-01-01T00:00:00Z"),
        stored(deleting=True),
        stored(producer="theirs"),
        None,
    ):
        guarded.changed(None, stored())
        now += 61
        assert count() == 1
        guarded.changed(stored(), other)
        assert count() == 0


def test_explain_names_a_move_that_would_not_be_graceful() -> None:
    handle = FakeHandle().at(datetime(2026, 1, 2, tzinfo=UTC))
    for name in ("first", "second"):
        stuck = binding(name).annotation(LAST_MOVE, OLD).on(m2=1).manifest()
        stuck["spec"]["gracefulEvictionTasks"] = [{"fromCluster": "m1", "producer": "default-scheduler"}]
        handle.put(Binding.from_manifest(stuck))
    asked = binding("web").replicas(2).aggregated().names("m2").on(m1=2).health(m1="Healthy")
    args = {"lastHealthyCopy": {"enabled": False}, "graceful": {"enabled": True}}
    plugin = make(PlacementGuard, args, handle=handle)
    inputs = inputs_of(asked, cluster("m1"), cluster("m2"), plugins=[plugin])
    (found,) = [each for each in causes_of_binding(Situation(inputs)) if each.code == "WarnedAtGuard"]
    assert found.text == OFF


def test_explain_says_that_a_task_has_no_stamp_yet() -> None:
    manifest = binding("web").replicas(2).aggregated().names("m2").on(m2=2).applied().manifest()
    for stamp, text in (("", "has not stamped the eviction task yet"), ("2026-01-01T00:00:00Z", "")):
        task = {"fromCluster": "m1", "producer": "default-scheduler", "creationTimestamp": stamp}
        manifest["spec"]["gracefulEvictionTasks"] = [task]
        inputs = inputs_of(binding("web").names("m2"), cluster("m1"), cluster("m2"))
        inputs = replace(inputs, binding=Binding.from_manifest(manifest))
        (found,) = [each for each in causes_of_binding(Situation(inputs)) if each.code == "LeavingGracefully"]
        assert ("stamped" in found.text) is bool(text)
        assert text in found.text
