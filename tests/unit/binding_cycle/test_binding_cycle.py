"""The binding cycle: patches, Events, and the results of refused writes."""

import asyncio
import copy
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.binding_cycle.served_components import ServedComponents
from karmada_pyscheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_pyscheduler.binding_cycle.writer import BindingWriter, OwnWrites
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.binding import Binding, TargetCluster
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import (
    DONE,
    Action,
    AttemptOutcome,
    AttemptStatus,
    NotLeadingError,
)
from karmada_scheduler.core.decision import Decision, Guarded, TermAttempt, TermFailure
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    HeldError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.result import Result
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import framework
from tests import manifests
from tests.unit.fakes import CONFLICT, FakeApiServer

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACEMENT = '{"clusterAffinity":{"clusterNames":["m1","m2"]}}'
NO_PLUGINS = framework()


class FakeRecorder:
    """Keeps the Events in a list."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def record(self, binding: Binding, event_type: str, reason: str, message: str) -> None:
        self.events.append((event_type, reason, message))


class CycleHarness:
    """A binding cycle on a fake API server with one binding."""

    def __init__(self, manifest: dict[str, Any], *, event_wait: float = 0, most: int = 32) -> None:
        self.server = FakeApiServer(manifest)
        self.recorder = FakeRecorder()
        self.cache = BindingCache()
        self.binding = Binding.from_manifest(manifest)
        self.cache.put(self.binding)
        self.read: list[dict[str, Any]] = []
        self.is_leading = True
        self.gone: set[str] = set()
        self.rollbacks = 0
        self.metrics = Metrics()
        self.delivered_before_read: dict[str, Any] | None = None
        self.now = NOW
        self.own_writes = OwnWrites(seconds=event_wait)
        self.limiter = WriteLimiter(most=most, clock=time.monotonic)
        writer = BindingWriter(
            self.server,  # type: ignore[arg-type]
            self.cache,
            limiter=self.limiter,
            is_leading=lambda: self.is_leading,
            is_gone=lambda name: name in self.gone,
            on_read=self._on_read,
            on_rollback=self._on_rollback,
            metrics=self.metrics,
        )
        self.components = ServedComponents()
        self.cycle = BindingCycle(
            writer,
            self.recorder,  # type: ignore[arg-type]
            own_writes=self.own_writes,
            components=self.components,
            now=lambda: self.now,
            needs_none=lambda binding: self.needs_none(binding),  # noqa: PLW0108 (a test sets it later)
        )
        self.needs_none: Callable[[Binding], bool] = lambda _: False

    def _on_read(self, kind: str, event: str, manifest: Mapping[str, Any]) -> None:
        if self.delivered_before_read is not None:
            self.cache.put(Binding.from_manifest(self.delivered_before_read))
        self.read.append(dict(manifest))

    def _on_rollback(self) -> None:
        self.rollbacks += 1

    async def bind(
        self,
        decision: Decision,
        *,
        binding: Binding | None = None,
        on_stored: Callable[[], object] = lambda: None,
    ) -> AttemptOutcome:
        """Write a decision and report it; call ``on_stored`` in between if a result was written."""
        transaction = self.cycle.begin(binding or self.binding, decision, NO_PLUGINS)
        assert transaction is not None
        assert transaction.reserve()
        self.cycle.record_failed_terms(transaction.binding, decision)
        result = await transaction.run(self.wait)
        if result.was_written:
            on_stored()
        return await self.cycle.report(transaction, result, NO_PLUGINS)

    def needs_transaction(self, decision: Decision) -> bool:
        return self.cycle.begin(self.binding, decision, NO_PLUGINS) is not None

    async def wait(self, waits: Mapping[str, Result]) -> Result:
        raise NotImplementedError("no plugin makes a binding wait")

    @property
    def wrote(self) -> list[str]:
        return [kind for kind, _, _ in self.server.requests]

    @property
    def requests(self) -> list[tuple[str, Any]]:
        """The kind and body of each patch."""
        return [(kind, body) for kind, _, body in self.server.requests]

    @property
    def newest(self) -> Binding:
        """The binding as the API server has it, parsed."""
        return Binding.from_manifest(self.stored)

    @property
    def stored(self) -> dict[str, Any]:
        """The binding as the API server has it."""
        return self.server.stored[self.binding.key.name]

    @stored.setter
    def stored(self, manifest: dict[str, Any]) -> None:
        self.server.stored[self.binding.key.name] = manifest

    def change(self, **spec: Any) -> None:
        """Change the binding as another client does."""
        self.server.change(self.binding.key.name, **spec)

    @property
    def condition(self) -> dict[str, Any]:
        [found] = [each for each in self.stored["status"]["conditions"] if each["type"] == "Scheduled"]
        return dict(found)

    def decision(self, *targets: tuple[str, int], **fields: Any) -> Decision:
        chosen = tuple(TargetCluster(*target) for target in targets)
        return Decision(self.binding.key, chosen, PLACEMENT, **fields)


@pytest.fixture
def harness() -> CycleHarness:
    return CycleHarness(manifests.binding())


def scheduled_manifest(**spec: Any) -> dict[str, Any]:
    """A binding that was scheduled to m1 and m2 and agrees with its status."""
    manifest = manifests.binding(
        version=7,
        generation=3,
        clusters=[{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}],
        **spec,
    )
    manifest["metadata"]["annotations"] = {APPLIED_PLACEMENT_ANNOTATION: PLACEMENT}
    manifest["status"] = {
        "schedulerObservedGeneration": 3,
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {
                "type": "FullyApplied",
                "status": "True",
                "reason": "FullyAppliedSuccess",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
            {
                "type": "Scheduled",
                "status": "True",
                "reason": "Success",
                "message": "Binding has been scheduled successfully.",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
        ],
    }
    return manifest


@pytest.mark.parametrize(
    ("targets", "placement", "is_written"),
    [
        ((("m1", 2), ("m2", 2)), PLACEMENT, True),
        ((("m2", 2), ("m1", 2)), PLACEMENT, True),
        ((("m1", 2),), PLACEMENT, False),
        ((("m1", 2), ("m2", 3)), PLACEMENT, False),
        ((("m1", 2), ("m2", 2)), "{}", False),
    ],
)
async def test_what_a_plugin_has_written_counts_if_it_has_the_clusters_and_the_placement_of_the_decision(
    targets: tuple[tuple[str, int], ...], placement: str, is_written: bool
) -> None:
    manifest = scheduled_manifest()
    manifest["metadata"]["annotations"] = {APPLIED_PLACEMENT_ANNOTATION: PLACEMENT}
    harness = CycleHarness(manifest)
    decision = replace(harness.decision(*targets), applied_placement=placement)
    found = await harness.cycle._specs.read_back(harness.binding, decision)
    assert (found is not None) == is_written


async def test_a_result_is_one_patch_of_the_spec_and_one_of_the_status(harness: CycleHarness) -> None:
    outcome = await harness.bind(harness.decision(("m1", 2), ("m2", 0)))
    assert outcome == DONE
    assert harness.requests == [
        (
            "spec",
            {
                "annotations": {APPLIED_PLACEMENT_ANNOTATION: PLACEMENT},
                "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2"}],
            },
        ),
        (
            "status",
            {
                "conditions": [
                    {
                        "type": "Scheduled",
                        "status": "True",
                        "reason": "Success",
                        "message": "Binding has been scheduled successfully.",
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                    }
                ],
                "schedulerObservedGeneration": 2,
                "lastScheduledTime": "2026-01-02T03:04:05Z",
            },
        ),
    ]
    assert harness.recorder.events == [
        (
            "Normal",
            "ScheduleBindingSucceed",
            "Binding has been scheduled successfully. Result: {m1:2, m2:0}",
        )
    ]


async def test_the_status_is_written_after_the_watch_has_delivered_the_result() -> None:
    harness = CycleHarness(manifests.binding(), event_wait=3600)
    writing = asyncio.create_task(harness.bind(harness.decision(("m1", 3))))
    for _ in range(10):
        await asyncio.sleep(0)
    assert harness.wrote == ["spec"]
    harness.own_writes.observe(harness.binding.key, int(harness.stored["metadata"]["resourceVersion"]))
    assert await asyncio.wait_for(writing, timeout=5) == DONE
    assert harness.wrote == ["spec", "status"]
    assert len(harness.own_writes) == 0


async def test_the_result_is_returned_before_the_status_is_written(harness: CycleHarness) -> None:
    wrote: list[list[str]] = []
    cached: list[Binding | None] = []

    def on_stored() -> None:
        wrote.append(harness.wrote)
        cached.append(harness.cache.get(harness.binding.key))

    await harness.bind(harness.decision(("m1", 3)), on_stored=on_stored)
    assert wrote == [["spec"]]
    assert [each.spec.clusters for each in cached if each] == [(TargetCluster("m1", 3),)]


async def test_a_result_goes_before_writes_of_low_priority() -> None:
    harness = CycleHarness(manifests.binding(), most=1)
    wrote: list[list[str]] = []

    async def write_with_low_priority() -> None:
        async with harness.limiter.slot(low_priority=True):
            wrote.append(harness.wrote)

    async with harness.limiter.slot():
        waiting = asyncio.create_task(write_with_low_priority())
        await asyncio.sleep(0)
        binding = asyncio.create_task(harness.bind(harness.decision(("m1", 3))))
        for _ in range(10):
            await asyncio.sleep(0)
    await asyncio.gather(waiting, binding)
    assert wrote[0][:1] == ["spec"]


async def test_a_result_is_not_sent_if_one_of_its_clusters_was_deleted_while_it_waited() -> None:
    harness = CycleHarness(manifests.binding(), most=1)
    async with harness.limiter.slot():
        binding = asyncio.create_task(harness.bind(harness.decision(("m1", 2), ("m2", 1))))
        for _ in range(10):
            await asyncio.sleep(0)
        harness.gone.add("m2")
    outcome = await binding
    assert outcome.action is Action.DECIDE_AGAIN
    assert harness.requests == []
    assert harness.recorder.events == []
    harness.gone = {"m3"}
    await harness.bind(harness.decision(("m1", 2), ("m2", 1)))
    assert harness.wrote == ["spec", "status"]


async def test_a_cluster_that_is_left_may_be_gone() -> None:
    harness = CycleHarness(scheduled_manifest())
    harness.gone.add("m2")
    await harness.bind(harness.decision(("m1", 4)))
    assert harness.wrote == ["spec", "status"]


async def test_an_answer_that_cannot_be_read_is_no_answer(harness: CycleHarness) -> None:
    async def answer(*_: object, **__: object) -> dict[str, Any]:
        return {"metadata": []}

    harness.server.patch_result = answer  # type: ignore[method-assign]
    outcome = await harness.bind(harness.decision(("m1", 3)))
    assert outcome.action is Action.RETRY
    assert "the answer cannot be read" in str(outcome.error)


@pytest.mark.parametrize(
    ("failure", "label"), [(ApiError("cannot reach it"), "no answer"), (ApiError("no", code=503), "503")]
)
async def test_each_write_is_counted_by_its_answer(
    harness: CycleHarness, failure: ApiError, label: str
) -> None:
    harness.server.failures["spec"] = [failure]
    await harness.bind(harness.decision(("m1", 3)))
    await harness.bind(harness.decision(("m1", 3)))
    writes = harness.metrics.api_server.writes
    assert [writes.labels("spec", each)._value.get() for each in (label, "200")] == [1, 1]


FAILED = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "x"}


@pytest.mark.parametrize(
    ("status", "fields", "first"),
    [
        ({}, {}, "the others"),
        (scheduled_manifest()["status"], {}, "the others"),
        ({"conditions": [FAILED]}, {}, "the others"),
        ({}, {"affinity_name": "backup"}, "the status"),
        ({"schedulerObservingAffinityName": "backup"}, {"affinity_name": "backup"}, "the others"),
    ],
)
async def test_a_status_has_low_priority_unless_a_new_leader_could_not_reconstruct_it(
    status: dict[str, Any], fields: dict[str, Any], first: str
) -> None:
    harness = CycleHarness(manifests.binding() | {"status": status}, most=1)
    wrote: list[list[str]] = []
    others: list[asyncio.Task[None]] = []

    async def write_results(count: int) -> None:
        async with harness.limiter.slot():
            for _ in range(10):
                await asyncio.sleep(0)  # until the status waits
            if count > 1:
                others.append(asyncio.create_task(write_results(count - 1)))
                await asyncio.sleep(0)
            wrote.append(harness.wrote)

    def begin_others() -> None:
        others.append(asyncio.create_task(write_results(3)))

    await harness.bind(harness.decision(("m1", 3), **fields), on_stored=begin_others)
    for other in others:  # each starts the next one
        await other
    late = ["spec"] if first == "the others" else ["spec", "status"]
    assert wrote == [["spec"], late, late]
    assert harness.wrote == ["spec", "status"]


async def test_a_decision_that_changes_only_the_status_writes_no_result() -> None:
    harness = CycleHarness(scheduled_manifest())
    unchanged = Decision(
        harness.binding.key, harness.binding.spec.clusters, PLACEMENT, error=SchedulingError("x")
    )
    wrote: list[list[str]] = []
    await harness.bind(unchanged, on_stored=lambda: wrote.append(harness.wrote))
    assert wrote == []
    assert harness.wrote == ["status"]


async def test_a_delayed_status_keeps_fields_that_others_wrote_meanwhile(harness: CycleHarness) -> None:
    applied = {"type": "FullyApplied", "status": "True", "reason": "x", "message": ""}

    def change_what_the_watch_brings() -> None:
        harness.change(replicas=9)
        harness.stored["status"] = {"conditions": [applied]}
        harness.cache.put(Binding.from_manifest(harness.stored))

    await harness.bind(harness.decision(("m1", 3)), on_stored=change_what_the_watch_brings)
    status = harness.stored["status"]
    assert [each["type"] for each in status["conditions"]] == ["FullyApplied", "Scheduled"]
    # The replicas changed after the decision, so the status must not report this generation as observed.
    assert status["schedulerObservedGeneration"] == 2
    assert harness.stored["metadata"]["generation"] == 3
    assert harness.read == []


async def test_a_reschedule_requested_while_a_status_waits_does_not_count_as_done(
    harness: CycleHarness,
) -> None:
    def trigger() -> None:
        harness.now += timedelta(seconds=3)
        harness.change(rescheduleTriggeredAt=format_time(harness.now - timedelta(seconds=1)))
        harness.cache.put(Binding.from_manifest(harness.stored))

    def later() -> None:
        asyncio.get_running_loop().call_soon(trigger)

    await harness.bind(harness.decision(("m1", 3)), on_stored=later)
    assert harness.wrote == ["spec", "status"]
    assert Binding.from_manifest(harness.stored).reschedule_triggered


async def test_a_status_is_not_written_to_another_binding_of_the_same_name(
    harness: CycleHarness,
) -> None:
    def replace_it() -> None:
        harness.change()
        harness.stored["metadata"]["uid"] = "another"

    outcome = await harness.bind(harness.decision(("m1", 3)), on_stored=replace_it)
    assert outcome == DONE
    assert harness.wrote == ["spec"]


async def test_a_status_without_a_result_waits_for_no_watch_event() -> None:
    manifest = scheduled_manifest()
    manifest["metadata"]["generation"] = 4
    harness = CycleHarness(manifest, event_wait=3600)
    assert await asyncio.wait_for(harness.cycle.observe(harness.binding), timeout=5) == DONE
    assert harness.wrote == ["status"]


async def test_answers_enter_the_cache_and_enqueue_nothing(harness: CycleHarness) -> None:
    await harness.bind(harness.decision(("m1", 2)))
    cached = harness.cache.get(harness.binding.key)
    assert cached == Binding.from_manifest(harness.stored)
    assert harness.read == []


async def test_the_affinity_term_in_use_is_written_with_the_status(harness: CycleHarness) -> None:
    await harness.bind(harness.decision(("m1", 2), affinity_name="backup"))
    assert harness.stored["status"]["schedulerObservingAffinityName"] == "backup"
    assert harness.wrote == ["spec", "status"]


async def test_a_decision_that_changes_nothing_needs_no_transaction() -> None:
    harness = CycleHarness(scheduled_manifest())
    assert not harness.needs_transaction(harness.decision(("m1", 2), ("m2", 2)))


@pytest.mark.parametrize(
    ("change", "decided"),
    [
        pytest.param({}, [("m1", 2)], id="other-clusters"),
        pytest.param({}, [("m2", 2), ("m1", 2)], id="another-order"),
        pytest.param(
            {"rescheduleTriggeredAt": "2026-01-01T00:00:01Z"},
            [("m1", 2), ("m2", 2)],
            id="reschedule-requested",
        ),
    ],
)
def test_a_decision_that_changes_something_needs_a_transaction(
    change: dict[str, Any], decided: list[tuple[str, int]]
) -> None:
    harness = CycleHarness(scheduled_manifest(**change))
    assert harness.needs_transaction(harness.decision(*decided))


def test_a_decision_that_only_updates_the_observed_generation_needs_a_transaction() -> None:
    manifest = scheduled_manifest()
    manifest["metadata"]["generation"] = 4
    harness = CycleHarness(manifest)
    assert harness.needs_transaction(harness.decision(("m1", 2), ("m2", 2)))


async def test_a_binding_that_needs_no_scheduling_gets_its_generation_recorded() -> None:
    manifest = scheduled_manifest()
    manifest["metadata"]["generation"] = 4
    harness = CycleHarness(manifest)
    assert not harness.cycle.is_observed(harness.binding)
    await harness.cycle.observe(harness.binding)
    assert harness.requests == [("status", {"schedulerObservedGeneration": 4})]
    assert harness.recorder.events == []


async def test_a_binding_that_no_cluster_fits_loses_its_clusters_and_is_not_retried() -> None:
    harness = CycleHarness(scheduled_manifest())
    error = FitError(3, Diagnosis())
    outcome = await harness.bind(harness.decision(error=error))
    assert harness.requests[0] == ("spec", {"annotations": {}, "clusters": []})
    assert harness.condition["reason"] == "NoClusterFit"
    assert harness.condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert harness.stored["status"]["schedulerObservedGeneration"] == 3
    assert outcome.action is Action.FORGET
    assert harness.recorder.events == [
        ("Warning", "ScheduleBindingFailed", "0/3 clusters are available: no cluster exists.")
    ]


@pytest.mark.parametrize("needs_none", [True, False])
async def test_a_binding_that_loses_its_clusters_has_its_generation_recorded_if_nothing_is_left_to_do(
    needs_none: bool,
) -> None:
    """As upstream, whose own write enqueues the binding."""
    harness = CycleHarness(scheduled_manifest())
    harness.needs_none = lambda cleared: needs_none and cleared.generation == 4
    outcome = await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
    assert outcome.action is Action.FORGET
    assert harness.wrote == ["spec", "status", "status"][: 2 + needs_none]
    assert harness.stored["status"]["schedulerObservedGeneration"] == 3 + needs_none


async def test_a_generation_that_could_not_be_recorded_is_tried_again(harness: CycleHarness) -> None:
    harness = CycleHarness(scheduled_manifest())

    def refuse_the_next_status(_: Binding) -> bool:
        harness.server.failures["status"] = [ApiError("invalid", code=422)]
        return True

    harness.needs_none = refuse_the_next_status
    outcome = await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
    assert (outcome.action, outcome.status) == (Action.RETRY, AttemptStatus.NO_FIT)


async def test_a_binding_that_is_tried_again_has_no_generation_recorded() -> None:
    harness = CycleHarness(scheduled_manifest())
    harness.needs_none = lambda _: True
    error = FitError(3, Diagnosis())
    attempts = (TermAttempt(error=error, may_work_next_time=True),)
    await harness.bind(harness.decision(error=error, attempts=attempts))
    assert harness.wrote == ["spec", "status"]


async def test_a_binding_whose_replicas_do_not_fit_keeps_its_clusters_and_is_retried() -> None:
    harness = CycleHarness(scheduled_manifest())
    error = UnschedulableError("failed to assign replicas: too many")
    outcome = await harness.bind(Decision(harness.binding.key, error=error))
    assert harness.wrote == ["status"]
    assert harness.condition["reason"] == "Unschedulable"
    assert outcome.action is Action.RETRY


async def test_clusters_of_an_earlier_pass_are_recorded_although_a_later_pass_failed() -> None:
    harness = CycleHarness(scheduled_manifest())
    found = TermAttempt("backup", targets=(TargetCluster("m1", 4),))
    failed = TermAttempt("backup", error=UnschedulableError("failed to assign replicas: too many"))
    decision = replace(
        harness.decision(("m1", 4), affinity_name="backup"), error=failed.error, attempts=(found, failed)
    )
    outcome = await harness.bind(decision)
    status = harness.stored["status"]
    assert harness.wrote == ["spec", "status"]
    assert harness.condition["reason"] == "Unschedulable"
    assert status["schedulerObservingAffinityName"] == "backup"
    assert status["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert status["schedulerObservedGeneration"] == 3
    assert outcome.action is Action.RETRY


async def test_a_failure_that_the_status_already_reports_is_not_written_again() -> None:
    harness = CycleHarness(scheduled_manifest())
    failed = Decision(harness.binding.key, error=SchedulingError("no"))
    await harness.bind(failed)
    again = Binding.from_manifest(harness.stored)
    await harness.bind(failed, binding=again)
    assert harness.wrote == ["status"]
    assert len(harness.recorder.events) == 2


async def test_the_time_of_the_condition_is_that_of_the_last_change_of_its_status() -> None:
    harness = CycleHarness(scheduled_manifest())
    await harness.bind(harness.decision(error=UnschedulableError("full")))
    harness.now += timedelta(hours=1)
    stored = Binding.from_manifest(harness.stored)
    await harness.bind(harness.decision(error=FitError(3, Diagnosis())), binding=stored)
    assert harness.condition["reason"] == "NoClusterFit"
    assert harness.condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"


async def test_a_condition_without_a_time_gets_one() -> None:
    harness = CycleHarness(manifests.binding() | {"status": {"conditions": [dict(FAILED)]}})
    await harness.bind(harness.decision(error=UnschedulableError("full")))
    assert harness.condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"


async def test_a_failure_counts_although_its_status_cannot_be_written() -> None:
    """The error decides in which set of the queue the binding waits."""
    harness = CycleHarness(scheduled_manifest())
    harness.server.failures["status"] = [ApiError("invalid", code=422)]
    failed = UnschedulableError("full")
    outcome = await harness.bind(harness.decision(error=failed))
    assert (outcome.action, outcome.error) == (Action.RETRY, failed)


async def test_a_binding_that_no_cluster_fits_is_retried_if_a_post_filter_plugin_has_helped() -> None:
    harness = CycleHarness(scheduled_manifest())
    error = FitError(3, Diagnosis())
    attempts = (TermAttempt(error=error, may_work_next_time=True),)
    outcome = await harness.bind(harness.decision(error=error, attempts=attempts))
    assert outcome.action is Action.RETRY


async def test_a_binding_that_no_cluster_fits_is_retried_when_a_plugin_asks_for_it() -> None:
    harness = CycleHarness(scheduled_manifest())
    later = Diagnosis({"m1": Result.unschedulable("closed", retry_after=0.5)})
    error = FitError(1, later)
    attempts = (TermAttempt(error=error, diagnosis=later),)
    outcome = await harness.bind(harness.decision(error=error, attempts=attempts))
    assert (outcome.action, outcome.delay) == (Action.RETRY, 0.5)


async def test_if_no_cluster_of_any_term_fits_an_event_says_so(harness: CycleHarness) -> None:
    error = FitError(3, Diagnosis())
    failed = harness.decision(error=error, failed_terms=(TermFailure(0, "first", error),))
    await harness.bind(failed)
    assert len(harness.recorder.events) == 2


async def test_the_report_on_a_result_is_kept_while_another_process_may_lead(harness: CycleHarness) -> None:
    def lose_the_lease() -> None:
        harness.is_leading = False

    outcome = await harness.bind(
        harness.decision(("m1", 2), affinity_name="backup"), on_stored=lose_the_lease
    )
    assert (outcome.action, harness.wrote) == (Action.RETRY, ["spec"])
    harness.is_leading = True
    stored = Binding.from_manifest(harness.stored)
    assert not harness.cycle.is_observed(stored)
    assert await harness.cycle.observe(stored) == DONE
    assert harness.stored["status"]["schedulerObservingAffinityName"] == "backup"
    assert harness.cycle.is_observed(Binding.from_manifest(harness.stored))


async def test_a_report_on_a_result_that_conflicted_is_not_kept(harness: CycleHarness) -> None:
    harness.server.failures |= {"spec": [CONFLICT], "get": [ApiError("cannot reach it")]}
    outcome = await harness.bind(harness.decision(("m1", 2), affinity_name="backup"))
    assert outcome.action is Action.RETRY
    harness.change(
        clusters=[{"name": "m1", "replicas": 2}], annotations={APPLIED_PLACEMENT_ANNOTATION: PLACEMENT}
    )
    await harness.cycle.observe(Binding.from_manifest(harness.stored))
    assert "schedulerObservingAffinityName" not in harness.stored["status"]


def test_a_status_with_a_time_of_scheduling_needs_no_condition() -> None:
    manifest = scheduled_manifest()
    del manifest["status"]["conditions"][-1]
    harness = CycleHarness(manifest)
    assert harness.cycle.is_observed(harness.binding)
    del manifest["status"]["lastScheduledTime"]
    assert not harness.cycle.is_observed(Binding.from_manifest(manifest))


def test_nothing_is_kept_of_a_binding_that_was_deleted(harness: CycleHarness) -> None:
    harness.own_writes.expect(harness.binding.key)
    harness.cycle.forget(harness.binding.key)
    assert len(harness.own_writes) == 0


async def test_each_failed_affinity_term_has_its_own_event(harness: CycleHarness) -> None:
    failures = (TermFailure(0, "first", UnschedulableError("full")),)
    await harness.bind(harness.decision(("m1", 2), affinity_name="second", failed_terms=failures))
    assert [message for _, _, message in harness.recorder.events] == [
        "failed to schedule ResourceBinding(demo/web-deployment) with clusterAffiliates index(0): full",
        "Binding has been scheduled successfully. Result: {m1:2}",
    ]


async def test_no_further_event_follows_if_all_terms_failed_with_an_error(
    harness: CycleHarness,
) -> None:
    error = UnschedulableError("full")
    failed = Decision(harness.binding.key, error=error, failed_terms=(TermFailure(0, "first", error),))
    await harness.bind(failed)
    assert len(harness.recorder.events) == 1


async def test_a_binding_that_changed_after_the_decision_is_read_and_decided_again(
    harness: CycleHarness,
) -> None:
    harness.change(replicas=9)
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome.action is Action.DECIDE_AGAIN
    assert harness.wrote == []
    assert [manifest["spec"]["replicas"] for manifest in harness.read] == [9]
    assert harness.recorder.events == []


async def test_after_a_status_conflict_the_binding_is_read_and_keeps_fields_of_others(
    harness: CycleHarness,
) -> None:
    applied = {"type": "FullyApplied", "status": "True", "reason": "x", "message": ""}
    patch = harness.server.patch_result

    async def patch_and_be_overtaken(*args: Any, **kwargs: Any) -> dict[str, Any]:
        answer = await patch(*args, **kwargs)
        harness.change()
        harness.stored["status"] = {"conditions": [applied]}
        return answer

    harness.server.patch_result = patch_and_be_overtaken  # type: ignore[method-assign]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome == DONE
    assert [each["type"] for each in harness.stored["status"]["conditions"]] == [
        "FullyApplied",
        "Scheduled",
    ]
    assert harness.stored["status"]["schedulerObservedGeneration"] == 2
    assert len(harness.read) == 1


@pytest.mark.parametrize(
    ("observed", "expected"),
    [(3, 3), (9, 2)],
    ids=["a later result is reported", "more than the generation is no report"],
)
async def test_after_a_status_conflict_the_report_of_another_leader_on_a_later_result_stays(
    harness: CycleHarness, observed: int, expected: int
) -> None:
    """No event follows a status, so that leader would not learn that it was overwritten."""
    patch = harness.server.patch_result

    async def patch_and_be_overtaken(*args: Any, **kwargs: Any) -> dict[str, Any]:
        answer = await patch(*args, **kwargs)
        harness.change()
        harness.stored["metadata"]["generation"] = 3
        harness.stored["status"] = {"schedulerObservedGeneration": observed}
        return answer

    harness.server.patch_result = patch_and_be_overtaken  # type: ignore[method-assign]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome == DONE
    assert harness.stored["status"]["schedulerObservedGeneration"] == expected


class TestUnknownFields:
    """Fields of a newer Karmada, such as spec.clusters[*].components."""

    @staticmethod
    def components(replicas: int) -> list[dict[str, Any]]:
        return [{"name": "jobmanager", "replicas": 1}, {"name": "taskmanager", "replicas": replicas}]

    @classmethod
    def manifest(cls) -> dict[str, Any]:
        """A binding on m1, m2 and, without replicas, m3."""
        manifest = scheduled_manifest()
        manifest["spec"]["clusters"] = [
            {"name": "m1", "replicas": 2, "components": cls.components(3), "zone": None},
            {"name": "m2", "replicas": 2, "components": cls.components(4)},
            {"name": "m3", "components": cls.components(5)},
        ]
        return manifest

    async def test_unknown_fields_stay_on_unchanged_targets(self) -> None:
        harness = CycleHarness(self.manifest())
        await harness.bind(harness.decision(("m3", 0), ("m1", 2), ("m4", 2)))
        assert harness.stored["spec"]["clusters"] == [
            {"name": "m3", "components": self.components(5)},
            {"name": "m1", "replicas": 2, "components": self.components(3), "zone": None},
            {"name": "m4", "replicas": 2},
        ]

    async def test_unknown_fields_are_dropped_from_targets_whose_replicas_change(self) -> None:
        harness = CycleHarness(self.manifest())
        await harness.bind(harness.decision(("m1", 1), ("m2", 2), ("m3", 1)))
        assert harness.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 1},
            {"name": "m2", "replicas": 2, "components": self.components(4)},
            {"name": "m3", "replicas": 1},
        ]

    async def test_components_of_a_decision_are_written_and_counted_as_a_result(self) -> None:
        harness = CycleHarness(self.manifest())
        decision = self.of_1_19(harness, ("m1", 2), ("m2", 2), ("m3", 0))
        await harness.bind(decision)
        assert harness.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 2, "components": self.components(3), "zone": None},
            {"name": "m2", "replicas": 2, "components": self.components(3)},
            {"name": "m3", "components": self.components(3)},
        ]
        assert harness.wrote.count("spec") == 1
        harness.binding = harness.newest
        assert not harness.needs_transaction(decision)

    async def test_a_control_plane_that_drops_components_gets_them_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It does not serve the field, and says so with a header that is not read."""
        manifest = self.manifest()
        for target in manifest["spec"]["clusters"]:
            target.pop("components")
        harness = CycleHarness(manifest)
        harness.server.unserved = frozenset({"components"})
        decision = self.of_1_19(harness, ("m1", 2), ("m2", 2), ("m4", 0))
        await harness.bind(decision)
        assert [each["name"] for each in harness.stored["spec"]["clusters"]] == ["m1", "m2", "m4"]
        harness.binding = harness.newest
        assert not harness.needs_transaction(decision)
        moved = self.of_1_19(harness, ("m1", 2), ("m2", 2), ("m5", 0))
        await harness.bind(moved)
        assert harness.wrote.count("spec") == 2
        written = [body for kind, body in harness.requests if kind == "spec"]
        assert ["components" in str(each) for each in written] == [True, False]
        assert caplog.text.count("does not serve spec.clusters[].components") == 1

    @pytest.mark.parametrize(
        ("schema", "is_written"),
        [(["1.18"], False), (["1.19"], True), (["1.18", "1.19"], True), (["1.18", "unknown"], False)],
    )
    async def test_components_are_written_where_the_schema_has_them(
        self, schema: list[str], is_written: bool
    ) -> None:
        harness = CycleHarness(self.manifest())
        for version in schema:
            harness.components.on_schema(version)
        await harness.bind(self.of_1_19(harness, ("m1", 2), ("m4", 2)))
        (first, second) = harness.stored["spec"]["clusters"]
        assert ("components" in second) is is_written
        assert first["components"] == self.components(3)

    @classmethod
    def of_1_19(cls, harness: CycleHarness, *targets: tuple[str, int]) -> Decision:
        """Return a decision by the rules of 1.19 about a workload with two components."""
        components = tuple((each["name"], each["replicas"]) for each in cls.components(3))
        return replace(harness.decision(*targets), components=components)

    async def test_unknown_fields_of_the_newest_version_are_written(self) -> None:
        harness = CycleHarness(self.manifest())
        harness.change(clusters=[{"name": "m1", "replicas": 2, "components": self.components(9)}])
        outcome = await harness.bind(harness.decision(("m1", 2), ("m4", 2)))
        assert outcome.action is Action.DECIDE_AGAIN, "the binding was overwritten"
        known = Binding.from_manifest(harness.read[-1])
        await harness.bind(harness.decision(("m1", 2), ("m4", 2)), binding=known)
        assert harness.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 2, "components": self.components(9)},
            {"name": "m4", "replicas": 2},
        ]

    async def test_the_next_decision_sees_the_fields_that_were_written(self) -> None:
        harness = CycleHarness(self.manifest())
        await harness.bind(harness.decision(("m1", 2), ("m4", 2)))
        known = harness.cache.get(harness.binding.key)
        assert known is not None
        await harness.bind(harness.decision(("m1", 2), ("m5", 2)), binding=known)
        assert harness.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 2, "components": self.components(3), "zone": None},
            {"name": "m5", "replicas": 2},
        ]

    def test_a_decision_about_unchanged_targets_needs_no_transaction(self) -> None:
        harness = CycleHarness(self.manifest())
        assert not harness.needs_transaction(harness.decision(("m1", 2), ("m2", 2), ("m3", 0)))

    async def test_unknown_conditions_and_fields_of_the_status_stay(self) -> None:
        manifest = self.manifest()
        applied = {
            **manifest["status"]["conditions"][0],
            "observedGeneration": 3,
            "details": {"clusters": ["m1", {"name": "m2"}]},
        }
        newer = {"type": "ComponentsScheduled", "status": "Unknown", "retries": 3, "nested": [[1.5, None]]}
        scheduled = {**manifest["status"]["conditions"][1], "observedGeneration": 3}
        manifest["status"]["conditions"] = [newer, scheduled, applied]
        manifest["status"]["schedulerNotes"] = {"by": "1.19"}
        harness = CycleHarness(copy.deepcopy(manifest))
        await harness.bind(harness.decision(error=UnschedulableError("full")))
        status = harness.stored["status"]
        assert [status["conditions"][0], status["conditions"][2]] == [newer, applied]
        assert status["schedulerNotes"] == {"by": "1.19"}
        assert harness.condition == {
            "type": "Scheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "full",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }


async def test_a_refusal_by_a_quota_is_reported_and_retried_and_keeps_the_clusters(
    harness: CycleHarness,
) -> None:
    text = 'admission webhook "resourcebinding.karmada.io" denied the request: quota'
    harness.server.failures["spec"] = [ApiError(text, code=403, reason="QuotaExceeded", retry_after=7.0)]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert (outcome.action, outcome.delay) == (Action.RETRY, 7.0)
    assert harness.wrote == ["status"]
    assert harness.condition["reason"] == "QuotaExceeded"
    assert harness.condition["message"] == text
    assert harness.recorder.events == [("Warning", "ScheduleBindingFailed", text)]


async def test_the_condition_reports_both_errors_if_no_cluster_fits_and_the_write_is_refused() -> None:
    harness = CycleHarness(scheduled_manifest())
    harness.server.failures["spec"] = [ApiError("not allowed", code=403, reason="Forbidden")]
    outcome = await harness.bind(harness.decision(error=FitError(0, Diagnosis())))
    assert harness.condition["reason"] == "NoClusterFit"
    assert harness.condition["message"] == "[0/0 clusters are available: no cluster exists., not allowed]"
    assert outcome.action is Action.RETRY


@pytest.mark.parametrize(
    ("failure", "pause"),
    [
        pytest.param(ApiError("cannot reach it"), 0.0, id="no-answer"),
        pytest.param(ApiError("later", code=429, retry_after=3.0), 3.0, id="too-many-requests"),
        pytest.param(ApiError("failed calling webhook", code=500), 0.0, id="webhook-down"),
    ],
)
async def test_a_temporary_write_error_is_retried_without_an_event(
    harness: CycleHarness, failure: ApiError, pause: float
) -> None:
    harness.server.failures["spec"] = [failure]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert (outcome.action, outcome.delay) == (Action.RETRY, pause)
    assert harness.wrote == []
    assert harness.recorder.events == []


@pytest.mark.parametrize("at", ["spec", "get", "status"])
@pytest.mark.parametrize(
    ("failure", "given_up"),
    [
        pytest.param(
            ApiError("not found", code=404, reason="NotFound", name="web-deployment"), True, id="gone"
        ),
        pytest.param(ApiError("not found", code=404, reason="NotFound", name="demo"), False, id="namespace"),
        pytest.param(ApiError("not found", code=404, reason="NotFound"), False, id="kind-not-served"),
        pytest.param(ApiError("404 page not found", code=404), False, id="proxy"),
    ],
)
async def test_only_an_error_that_names_the_binding_as_deleted_ends_its_retries(
    harness: CycleHarness, at: str, failure: ApiError, given_up: bool
) -> None:
    harness.server.failures[at] = [failure] * 8
    if at == "get":
        harness.server.failures["spec"] = [CONFLICT]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome == DONE if given_up else outcome.action is Action.RETRY
    if at == "spec":
        assert harness.recorder.events == []


async def test_a_write_into_a_terminating_namespace_is_retried(harness: CycleHarness) -> None:
    harness.server.failures["spec"] = [
        ApiError("terminating", code=403, reason="Forbidden", causes=("NamespaceTerminating",))
    ]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome.action is Action.RETRY
    assert harness.recorder.events == []


async def test_a_process_that_may_not_be_the_leader_writes_nothing_and_retries(
    harness: CycleHarness,
) -> None:
    harness.is_leading = False
    for outcome in (
        await harness.bind(harness.decision(("m1", 2))),
        await harness.cycle.observe(harness.binding),
    ):
        assert isinstance(outcome.error, NotLeadingError)
        assert outcome.action is Action.RETRY
    assert harness.wrote == []


async def test_a_write_that_waits_in_the_client_is_not_sent_when_the_lease_has_ended(
    harness: CycleHarness,
) -> None:
    def end_the_lease() -> None:
        harness.is_leading = False

    harness.server.before_request = end_the_lease
    for run in (
        partial(harness.bind, harness.decision(("m1", 2))),
        partial(harness.cycle.observe, harness.binding),
    ):
        harness.is_leading = True
        outcome = await run()
        assert isinstance(outcome.error, NotLeadingError)
        assert outcome.action is Action.RETRY
    assert harness.wrote == []


async def test_a_binding_that_is_read_with_a_lower_version_is_a_rollback() -> None:
    harness = CycleHarness(manifests.binding(version=990))
    harness.stored = manifests.binding(version=750)
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome.action is Action.DECIDE_AGAIN
    assert harness.rollbacks == 1


async def test_a_newer_version_from_the_watch_during_a_read_is_no_rollback() -> None:
    harness = CycleHarness(manifests.binding(version=7))
    harness.stored = manifests.binding(version=8, generation=2)
    harness.delivered_before_read = manifests.binding(version=9, generation=3)
    await harness.bind(harness.decision(("m1", 2)))
    assert harness.rollbacks == 0


async def test_a_requested_delay_is_limited_to_30_seconds(harness: CycleHarness) -> None:
    harness.server.failures["spec"] = [ApiError("later", code=503, retry_after=1e9)]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome.delay == 30.0


@pytest.mark.parametrize(
    "spec", [{}, {"replicas": 6}, {"clusters": []}], ids=["same", "other-replicas", "other-clusters"]
)
async def test_a_result_is_written_to_a_newer_version_only_if_it_has_the_same_spec(
    spec: dict[str, Any],
) -> None:
    """After a restore of etcd another spec may have the same generation."""
    harness = CycleHarness(scheduled_manifest())
    newest = copy.deepcopy(harness.stored)
    newest["metadata"]["resourceVersion"] = "8"
    newest["spec"] |= spec
    harness.stored = newest
    harness.cache.put(Binding.from_manifest(newest))
    result = await harness.bind(harness.decision(("m1", 2)))
    assert (result.action is Action.DECIDE_AGAIN) == bool(spec)
    assert harness.wrote == ([] if spec else ["spec", "status"])


async def test_a_status_that_changed_since_the_decision_does_not_count_as_a_written_result() -> None:
    """The newest version is another object in memory, although no result was written."""
    harness = CycleHarness(scheduled_manifest())
    newest = copy.deepcopy(harness.stored)
    newest["metadata"]["resourceVersion"] = "8"
    newest["status"]["aggregatedStatus"] = []
    harness.stored = newest
    harness.cache.put(Binding.from_manifest(newest))
    targets = harness.binding.spec.clusters
    decision = Decision(harness.binding.key, targets, PLACEMENT, error=SchedulingError("x"))
    stored: list[str] = []
    await harness.bind(decision, on_stored=lambda: stored.append("result"))
    assert stored == []
    assert harness.wrote == ["status"]


async def test_a_status_that_could_not_be_written_is_written_later(harness: CycleHarness) -> None:
    harness.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    outcome = await harness.bind(harness.decision(("m1", 2)))
    assert outcome.action is Action.RETRY
    assert harness.wrote == ["spec"]

    written = Binding.from_manifest(harness.stored)
    assert not harness.cycle.is_observed(written)
    await harness.cycle.observe(written)
    assert harness.condition["status"] == "True"
    assert harness.stored["status"]["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert harness.cycle.is_observed(Binding.from_manifest(harness.stored))


class TestReportsOnResultsOfUnknownFate:
    """The response to the first patch is unusable, and the next attempt may find nothing to decide."""

    TORN = ApiError("expected a JSON object")

    @staticmethod
    def without_replicas() -> CycleHarness:
        return CycleHarness(manifests.binding(replicas=0))

    async def test_a_failure_is_reported_if_the_result_is_stored(self) -> None:
        harness = self.without_replicas()
        harness.server.torn = [self.TORN]
        outcome = await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
        assert outcome.action is Action.RETRY
        assert harness.wrote == ["spec"]

        stored = Binding.from_manifest(harness.stored)
        assert stored.applied_placement_json == PLACEMENT
        assert not harness.cycle.is_observed(stored)
        await harness.cycle.observe(stored)
        assert harness.condition["reason"] == "NoClusterFit"
        assert harness.stored["status"]["schedulerObservedGeneration"] == stored.generation
        assert harness.cycle.is_observed(Binding.from_manifest(harness.stored))

    async def test_a_success_replaces_the_condition_of_an_earlier_failure(self) -> None:
        manifest = scheduled_manifest()
        manifest["status"]["conditions"] = [FAILED]
        harness = CycleHarness(manifest)
        harness.server.torn = [self.TORN]
        await harness.bind(harness.decision(("m1", 4)))
        await harness.cycle.observe(Binding.from_manifest(harness.stored))
        assert harness.condition["status"] == "True"

    async def test_a_later_failure_is_reported_although_the_binding_has_clusters(self) -> None:
        harness = CycleHarness(manifests.binding())
        harness.server.torn = [self.TORN]
        found = TermAttempt("backup", targets=(TargetCluster("m1", 2),))
        failed = TermAttempt("backup", error=UnschedulableError("too many"))
        decision = harness.decision(("m1", 2), affinity_name="backup")
        await harness.bind(replace(decision, error=failed.error, attempts=(found, failed)))
        await harness.cycle.observe(Binding.from_manifest(harness.stored))
        assert harness.condition["reason"] == "Unschedulable"
        assert harness.stored["status"]["schedulerObservingAffinityName"] == "backup"

    async def test_nothing_is_reported_if_the_result_is_not_stored(self) -> None:
        harness = CycleHarness(scheduled_manifest())
        harness.server.failures["spec"] = [self.TORN]
        await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
        assert harness.cycle.is_observed(harness.binding)

    async def test_the_failure_is_reported_although_the_next_patch_conflicts(self) -> None:
        """The watch is late, so the next attempt decides about the old version."""
        harness = self.without_replicas()
        harness.server.torn = [self.TORN]
        decision = harness.decision(error=FitError(3, Diagnosis()))
        await harness.bind(decision)
        outcome = await harness.bind(decision)
        assert outcome.action is Action.DECIDE_AGAIN
        await harness.cycle.observe(Binding.from_manifest(harness.stored))
        assert harness.condition["reason"] == "NoClusterFit"

    async def test_the_failure_is_forgotten_when_the_next_decision_changes_nothing(self) -> None:
        harness = CycleHarness(scheduled_manifest())
        harness.server.failures["spec"] = [self.TORN]
        await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
        assert len(harness.cycle._statuses._pending) == 1
        assert not harness.needs_transaction(harness.decision(("m1", 2), ("m2", 2)))
        assert harness.cycle._statuses._pending == {}


async def test_a_failure_whose_status_could_not_be_written_is_written_later() -> None:
    """A binding without replicas needs no further decision once it has no clusters."""
    harness = CycleHarness(scheduled_manifest())
    harness.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    outcome = await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
    assert outcome.action is Action.RETRY
    await harness.cycle.observe(Binding.from_manifest(harness.stored))
    assert harness.condition["reason"] == "NoClusterFit"


async def test_a_pending_report_is_not_written_to_another_binding_of_the_same_name(
    harness: CycleHarness,
) -> None:
    harness.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    await harness.bind(harness.decision(("m1", 2)))
    again = scheduled_manifest()
    again["metadata"]["uid"] = "another"
    again["metadata"]["resourceVersion"] = "99"
    harness.stored = again
    created = Binding.from_manifest(again)
    assert harness.cycle.is_observed(created)
    again["metadata"]["generation"] = 4
    await harness.cycle.observe(Binding.from_manifest(again))
    assert harness.requests[-1] == ("status", {"schedulerObservedGeneration": 4})


async def test_a_deleted_binding_has_no_pending_report(harness: CycleHarness) -> None:
    harness.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    await harness.bind(harness.decision(("m1", 2)))
    assert len(harness.cycle._statuses._pending) == 1
    harness.cycle.forget(harness.binding.key)
    assert harness.cycle._statuses._pending == {}


async def test_an_unreported_placement_is_reported_although_no_scheduling_is_needed() -> None:
    """Another scheduler wrote the result and died before it wrote the status."""
    manifest = scheduled_manifest()
    manifest["status"] = {}
    harness = CycleHarness(manifest)
    assert not harness.cycle.is_observed(harness.binding)
    await harness.cycle.observe(harness.binding)
    assert harness.wrote == ["status"]
    assert harness.condition["reason"] == "Success"
    assert harness.stored["status"]["schedulerObservedGeneration"] == 3
    assert harness.stored["status"]["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert harness.cycle.is_observed(Binding.from_manifest(harness.stored))


@pytest.mark.parametrize("observes", [True, False])
async def test_a_failure_that_is_over_and_the_affinity_term_are_reported(*, observes: bool) -> None:
    """Another scheduler wrote the result and died before it wrote the status."""
    manifest = scheduled_manifest()
    manifest["status"] |= {"conditions": [FAILED], "schedulerObservedGeneration": 2}
    harness = CycleHarness(manifest)
    assert not harness.cycle.is_observed(harness.binding, observes=False)
    await harness.cycle.observe(harness.binding, term="backup", observes=observes)
    assert harness.wrote == ["status"]
    assert harness.condition["reason"] == "Success"
    status = harness.stored["status"]
    assert status["schedulerObservingAffinityName"] == "backup"
    assert status["schedulerObservedGeneration"] == (3 if observes else 2)
    assert harness.cycle.is_observed(Binding.from_manifest(harness.stored), observes=observes)


async def test_the_conditions_are_known_as_own_ones_while_they_are_written(harness: CycleHarness) -> None:
    seen: list[bool] = []
    patch = harness.server.patch_status

    async def patch_and_deliver(*args: Any, **kwargs: Any) -> dict[str, Any]:
        answer = await patch(*args, **kwargs)
        seen.append(harness.own_writes.has_conditions_of(Binding.from_manifest(harness.stored)))
        return answer

    harness.server.patch_status = patch_and_deliver  # type: ignore[method-assign]
    await harness.bind(harness.decision(error=FitError(3, Diagnosis())))
    assert seen == [True]
    assert not harness.own_writes.has_conditions_of(Binding.from_manifest(harness.stored))


async def test_without_a_term_or_a_failure_only_the_generation_is_observed() -> None:
    manifest = scheduled_manifest()
    manifest["metadata"]["generation"] = 4
    harness = CycleHarness(manifest)
    assert harness.cycle.is_observed(harness.binding, observes=False)
    await harness.cycle.observe(harness.binding, observes=False)
    assert harness.requests == []
    await harness.cycle.observe(harness.binding)
    assert harness.requests == [("status", {"schedulerObservedGeneration": 4})]


async def test_the_event_of_a_cluster_scoped_binding_has_no_colon() -> None:
    manifest = manifests.binding()
    manifest["kind"] = "ClusterResourceBinding"
    del manifest["metadata"]["namespace"]
    harness = CycleHarness(manifest)
    await harness.bind(harness.decision(("m1", 0)))
    assert harness.recorder.events[0][2] == "Binding has been scheduled successfully. Result {m1:0}"


def test_a_binding_that_is_being_deleted_gets_an_event(harness: CycleHarness) -> None:
    harness.cycle.record_deleting(harness.binding)
    assert harness.recorder.events == [
        ("Warning", "ScheduleBindingFailed", "skip schedule deleting resourceBinding: demo/web-deployment")
    ]


async def test_the_refusal_of_a_guard_plugin_is_not_written_later(harness: CycleHarness) -> None:
    """The next attempt reports it again."""
    harness.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    refused = replace(harness.decision(("m1", 2)), guarded=Guarded(refused_by="Guard", reason="not now"))
    await harness.bind(replace(refused, error=HeldError("Guard", "not now")))
    status = {
        **scheduled_manifest()["status"],
        "schedulerObservedGeneration": harness.stored["metadata"]["generation"],
    }
    assert harness.cycle.is_observed(Binding.from_manifest({**harness.stored, "status": status}))


def reporting_manifest(**items: int) -> dict[str, Any]:
    """A scheduled binding of which clusters report these replicas."""
    manifest = scheduled_manifest()
    manifest["status"]["aggregatedStatus"] = [
        {"clusterName": name, "applied": True, "status": {"replicas": replicas}}
        for name, replicas in items.items()
    ]
    return manifest


async def test_a_resync_raises_the_generation_and_changes_nothing_else() -> None:
    harness = CycleHarness(reporting_manifest(m1=0))
    before = copy.deepcopy(harness.stored)
    assert await harness.cycle.resync(harness.binding, ("m1", "m2"), NO_PLUGINS) == DONE
    assert harness.requests == [
        ("spec", {"gracefulEvictionTasks": []}),
        ("status", {"schedulerObservedGeneration": 4}),
    ]
    stored = harness.stored
    assert stored["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert {**stored["spec"], "gracefulEvictionTasks": None} == {
        **before["spec"],
        "gracefulEvictionTasks": None,
    }
    assert harness.recorder.events == [
        (
            "Normal",
            "BindingResynced",
            "Karmada is to apply it once more, as m1 reports 0 of 2 replicas, m2 has no Work",
        )
    ]
    assert harness.cache.get(harness.binding.key) == harness.newest
    assert await harness.cycle.resync(harness.newest, ("m1",), NO_PLUGINS) == DONE
    assert harness.requests[2:] == [
        ("spec", {"gracefulEvictionTasks": None}),
        ("status", {"schedulerObservedGeneration": 5}),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"clusters": [{"name": "m1", "replicas": 2}]},
        {"gracefulEvictionTasks": [{"fromCluster": "m1", "producer": "x"}]},
    ],
)
async def test_a_binding_that_has_changed_is_not_resynced(change: dict[str, Any]) -> None:
    harness = CycleHarness(reporting_manifest(m1=0))
    harness.change(**change)
    assert await harness.cycle.resync(harness.binding, ("m1",), NO_PLUGINS) == DONE
    assert (harness.requests, harness.recorder.events) == ([], [])


async def test_a_process_that_may_not_lead_any_more_resyncs_nothing() -> None:
    harness = CycleHarness(reporting_manifest(m1=0))
    harness.is_leading = False
    outcome = await harness.cycle.resync(harness.binding, ("m1",), NO_PLUGINS)
    assert (outcome.action, harness.requests, harness.recorder.events) == (Action.RETRY, [], [])


@pytest.mark.parametrize("code", [0, 403, 404, 409, 500])
async def test_a_resync_that_is_refused_waits_for_its_next_turn(code: int) -> None:
    harness = CycleHarness(reporting_manifest(m1=0))
    harness.server.failures = {"spec": [ApiError("refused", code=code)]}
    assert await harness.cycle.resync(harness.binding, ("m1",), NO_PLUGINS) == DONE
    assert harness.recorder.events == []
