"""What the scheduling loop passes to the recorder: decisions, their triggers, and their ends."""

import json
from typing import Any

import pytest

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.framework import Result
from karmada_scheduler.framework.runtime.framework import Framework
from tests.unit.explain.recorded import RecorderHarness
from tests.unit.framework.scheduler_harness import SchedulerHarness


class Refusing:
    """Refuses every binding at one extension point."""

    name = "Refusing"

    def permit(self, context: Any) -> Result:
        return Result.unschedulable("no licence")


class Harness(SchedulerHarness):
    """A scheduler with a recorder."""

    def __init__(self, *plugins: Any) -> None:
        self.records = RecorderHarness()
        super().__init__(*plugins, recorder=self.records.recorder)

    async def recorded(self, name: str = "web") -> list[dict[str, Any]]:
        """Run, and return the records that were made since the last call."""
        await self.run()
        self.records.now += 3
        self.records.make()
        lines, self.records.lines = self.records.lines, []
        return [line for line in lines if line.get("key") == f"demo/{name}"]


async def test_a_written_decision() -> None:
    harness = Harness()
    harness.sleep(100.0)
    harness.put()
    [found] = await harness.recorded()
    assert found["tookMicros"] == 0
    assert found["trigger"] == {"event": "BindingAdd", "class": "First"}
    assert (found["ending"], found["problem"]) == ("written", None)
    assert sorted(found["targets"]) == sorted(harness.placed())


async def test_a_decision_that_changes_nothing() -> None:
    harness = Harness()
    harness.put()
    await harness.recorded()
    harness.handlers.requeuer.on_version_rollback("ResourceBinding")
    assert await harness.recorded() == []
    found = json.loads(harness.records.store.last(1)[0].body)
    assert (found["ending"], found["trigger"]["event"]) == ("written", "BindingAdd")
    assert found["repeated"]["event"] == "VersionsWentBack"


async def test_a_decision_that_a_plugin_refuses() -> None:
    harness = Harness(Refusing())
    harness.put()
    [found] = await harness.recorded()
    assert found["ending"] == "refused"
    assert "no licence" in found["problem"]
    assert found["targets"]


async def test_a_decision_about_a_binding_that_has_changed_meanwhile() -> None:
    harness = Harness()
    harness.put()
    patch, conflicts = harness.server.patch_result, [ApiError("changed", code=409, reason="Conflict")]

    async def conflicting(*arguments: Any, **named: Any) -> Any:
        if conflicts:
            raise conflicts.pop()
        return await patch(*arguments, **named)

    harness.server.patch_result = conflicting  # type: ignore[method-assign]
    first, second = await harness.recorded()
    assert (first["ending"], first["problem"]) == ("conflict", "changed")
    assert (second["ending"], second["trigger"]["event"]) == ("written", "ScheduleConflict")


async def test_a_process_that_does_not_lead_any_more() -> None:
    harness = Harness()
    harness.put()
    harness.leads = False
    [found] = await harness.recorded()
    assert (found["ending"], found["written"]) == ("not leading", None)


async def test_a_retry_is_a_trigger() -> None:
    harness = Harness(Refusing())
    harness.put()
    await harness.recorded()
    harness.now += 1.0
    [found] = await harness.recorded()
    assert found["trigger"]["event"] == "ScheduleAttemptFailure"


async def test_bindings_that_need_no_decision_have_no_record() -> None:
    harness = Harness()
    harness.put(suspension={"scheduling": True})
    assert await harness.recorded() == []
    assert harness.records.recorder._seq == 0


@pytest.mark.parametrize("is_recorded", [False, True])
async def test_a_decision_that_waits_for_its_write_holds_its_clusters_for_records_only(
    monkeypatch: pytest.MonkeyPatch, *, is_recorded: bool
) -> None:
    harness = Harness() if is_recorded else SchedulerHarness()
    held, begin = [], BindingCycle.begin

    def record(cycle: BindingCycle, binding: Binding, decision: Decision, framework: Framework) -> Any:
        held.append(decision)
        return begin(cycle, binding, decision, framework)

    monkeypatch.setattr(BindingCycle, "begin", record)
    harness.put()
    await harness.run()
    assert harness.placed()
    assert bool(held[0].attempts[-1].candidates) is is_recorded
