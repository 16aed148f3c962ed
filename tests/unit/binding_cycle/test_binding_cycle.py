"""The binding cycle: what is written, what is said, and what a refusal leads to."""

import asyncio
import copy
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.manifest import format_time
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import DONE, NotLeadingError
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.client.connection import ApiError
from karmada_scheduler.core.decision import Attempt, Decision, TermFailure
from karmada_scheduler.framework.diagnosis import Diagnosis, FitError, SchedulingError, UnschedulableError
from karmada_scheduler.metrics.metrics import Metrics
from tests import manifests

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACEMENT = '{"clusterAffinity":{"clusterNames":["m1","m2"]}}'
CONFLICT = ApiError("the object has been modified", code=409, reason="Conflict")


class Server:
    """One binding on an API server that honours resourceVersions, and everything asked of it."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.stored = manifest
        self.requests: list[tuple[str, Any]] = []
        self.failures: dict[str, list[ApiError]] = {}

    def _check(self, what: str, version: str | None = None) -> None:
        if self.failures.get(what):
            raise self.failures[what].pop(0)
        if version is not None and version != self.stored["metadata"]["resourceVersion"]:
            raise CONFLICT

    def change(self, **spec: Any) -> None:
        """Let somebody else change the binding."""
        self.stored = copy.deepcopy(self.stored)
        metadata = self.stored["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        if spec:
            self.stored["spec"].update(spec)
            metadata["generation"] += 1

    async def get_binding(self, key: BindingKey) -> dict[str, Any]:
        self._check("get")
        return self.stored

    async def patch_result(
        self, key: BindingKey, *, resource_version: str, annotations: dict[str, str], clusters: Any
    ) -> dict[str, Any]:
        self._check("spec", resource_version)
        self.requests.append(("spec", {"annotations": annotations, "clusters": clusters}))
        self.change(**({} if clusters is None else {"clusters": clusters}))
        self.stored["metadata"].setdefault("annotations", {}).update(annotations)
        return self.stored

    async def patch_status(self, key: BindingKey, *, resource_version: str, status: Any) -> dict[str, Any]:
        self._check("status", resource_version)
        self.requests.append(("status", status))
        self.change()
        self.stored.setdefault("status", {}).update(status)
        return self.stored


class Recorder:
    """Keeps what would be recorded."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def record(self, binding: Binding, event_type: str, reason: str, message: str) -> None:
        self.events.append((event_type, reason, message))


class World:
    """A cycle with everything around it."""

    def __init__(self, manifest: dict[str, Any], *, echo_seconds: float = 0, most: int = 32) -> None:
        self.server = Server(manifest)
        self.recorder = Recorder()
        self.cache = BindingCache()
        self.binding = Binding.from_manifest(manifest)
        self.cache.put(self.binding)
        self.seen: list[dict[str, Any]] = []
        self.leads = True
        self.went_back = 0
        self.seen_first: dict[str, Any] | None = None
        self.now = NOW
        self.metrics = Metrics()
        self.echoes = OwnWrites(seconds=echo_seconds)
        self.pace = WriteLimiter(most=most, clock=time.monotonic)
        self.cycle = BindingCycle(
            self.server,  # type: ignore[arg-type]
            self.recorder,  # type: ignore[arg-type]
            self.cache,
            echoes=self.echoes,
            seen=self._seen,
            went_back=self._note_went_back,
            may_write=lambda: self.leads,
            pace=self.pace,
            now=lambda: self.now,
            metrics=self.metrics,
        )

    def _seen(self, kind: str, event: str, manifest: Mapping[str, Any]) -> None:
        if self.seen_first is not None:
            self.cache.put(Binding.from_manifest(self.seen_first))
        self.seen.append(dict(manifest))

    def _note_went_back(self) -> None:
        self.went_back += 1

    @property
    def wrote(self) -> list[str]:
        return [what for what, _ in self.server.requests]

    @property
    def condition(self) -> dict[str, Any]:
        [found] = [each for each in self.server.stored["status"]["conditions"] if each["type"] == "Scheduled"]
        return dict(found)

    def decision(self, *targets: tuple[str, int], **fields: Any) -> Decision:
        chosen = tuple(TargetCluster(*target) for target in targets)
        return Decision(self.binding.key, chosen, PLACEMENT, **fields)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_PAUSES", (0.0,) * 8)


@pytest.fixture
def world() -> World:
    return World(manifests.binding())


def settled_manifest(**spec: Any) -> dict[str, Any]:
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


async def test_a_result_is_one_patch_of_the_spec_and_one_of_the_status(world: World) -> None:
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2), ("m2", 0)))
    assert outcome == DONE
    assert world.server.requests == [
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
    assert world.recorder.events == [
        (
            "Normal",
            "ScheduleBindingSucceed",
            "Binding has been scheduled successfully. Result: {m1:2, m2:0}",
        )
    ]


async def test_the_status_is_written_when_the_watch_has_brought_the_result() -> None:
    world = World(manifests.binding(), echo_seconds=3600)
    writing = asyncio.create_task(world.cycle.bind(world.binding, world.decision(("m1", 3))))
    for _ in range(10):
        await asyncio.sleep(0)
    assert world.wrote == ["spec"]
    world.echoes.saw(world.binding.key, int(world.server.stored["metadata"]["resourceVersion"]))
    assert await asyncio.wait_for(writing, timeout=5) == DONE
    assert world.wrote == ["spec", "status"]
    assert len(world.echoes) == 0


async def test_the_caller_hears_when_only_the_status_is_still_to_be_written(world: World) -> None:
    wrote: list[list[str]] = []
    decision = world.decision(("m1", 3))
    await world.cycle.bind(world.binding, decision, stored=lambda: wrote.append(world.wrote))
    assert wrote == [["spec"]]


FAILED = {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "x"}


@pytest.mark.parametrize(
    ("status", "fields", "first"),
    [
        ({}, {}, "the others"),
        (settled_manifest()["status"], {}, "the others"),
        ({"conditions": [FAILED]}, {}, "the status"),
        ({}, {"affinity_name": "backup"}, "the status"),
        ({"schedulerObservingAffinityName": "backup"}, {"affinity_name": "backup"}, "the others"),
    ],
)
async def test_results_go_before_a_status_unless_a_successor_could_not_make_up_for_it(
    status: dict[str, Any], fields: dict[str, Any], first: str
) -> None:
    world = World(manifests.binding() | {"status": status}, most=1)
    wrote: list[list[str]] = []
    others: list[asyncio.Task[None]] = []

    async def write_results(count: int) -> None:
        async with world.pace.turn():
            for _ in range(10):
                await asyncio.sleep(0)  # the status waits by then
            if count > 1:
                others.append(asyncio.create_task(write_results(count - 1)))
                await asyncio.sleep(0)
            wrote.append(world.wrote)

    def begin_others() -> None:
        others.append(asyncio.create_task(write_results(3)))

    await world.cycle.bind(world.binding, world.decision(("m1", 3), **fields), stored=begin_others)
    for other in others:  # each begins the next
        await other
    late = ["spec"] if first == "the others" else ["spec", "status"]
    assert wrote == [["spec"], late, late]
    assert world.wrote == ["spec", "status"]


async def test_of_a_decision_without_a_result_the_caller_hears_nothing_before_its_status() -> None:
    world = World(settled_manifest())
    unchanged = Decision(
        world.binding.key, world.binding.spec.clusters, PLACEMENT, error=SchedulingError("x")
    )
    wrote: list[list[str]] = []
    await world.cycle.bind(world.binding, unchanged, stored=lambda: wrote.append(world.wrote))
    assert wrote == []
    assert world.wrote == ["status"]


async def test_a_status_is_built_on_what_others_wrote_while_it_waited(world: World) -> None:
    applied = {"type": "FullyApplied", "status": "True", "reason": "x", "message": ""}

    def change_what_the_watch_brings() -> None:
        world.server.change(replicas=9)
        world.server.stored["status"] = {"conditions": [applied]}
        world.cache.put(Binding.from_manifest(world.server.stored))

    await world.cycle.bind(world.binding, world.decision(("m1", 3)), stored=change_what_the_watch_brings)
    status = world.server.stored["status"]
    assert [each["type"] for each in status["conditions"]] == ["FullyApplied", "Scheduled"]
    # Replicas that came later are still to be decided: the status must not say that this was observed.
    assert status["schedulerObservedGeneration"] == 2
    assert world.server.stored["metadata"]["generation"] == 3
    assert world.seen == []


async def test_a_reschedule_that_is_asked_for_while_a_status_waits_is_still_to_come(world: World) -> None:
    def trigger() -> None:
        world.now += timedelta(seconds=3)
        world.server.change(rescheduleTriggeredAt=format_time(world.now - timedelta(seconds=1)))
        world.cache.put(Binding.from_manifest(world.server.stored))

    def later() -> None:
        asyncio.get_running_loop().call_soon(trigger)

    await world.cycle.bind(world.binding, world.decision(("m1", 3)), stored=later)
    assert world.wrote == ["spec", "status"]
    assert Binding.from_manifest(world.server.stored).reschedule_triggered


async def test_the_status_of_a_binding_is_not_written_to_another_that_took_its_name(world: World) -> None:
    def replace_it() -> None:
        world.server.change()
        world.server.stored["metadata"]["uid"] = "another"

    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 3)), stored=replace_it)
    assert outcome == DONE
    assert world.wrote == ["spec"]


async def test_a_status_alone_waits_for_no_echo() -> None:
    manifest = settled_manifest()
    manifest["metadata"]["generation"] = 4
    world = World(manifest, echo_seconds=3600)
    assert await asyncio.wait_for(world.cycle.observe(world.binding), timeout=5) == DONE
    assert world.wrote == ["status"]


async def test_the_answers_enter_the_cache_and_wake_nothing(world: World) -> None:
    await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    cached = world.cache.get(world.binding.key)
    assert cached == Binding.from_manifest(world.server.stored)
    assert world.seen == []


async def test_the_affinity_term_in_force_is_written_with_the_status(world: World) -> None:
    await world.cycle.bind(world.binding, world.decision(("m1", 2), affinity_name="backup"))
    assert world.server.stored["status"]["schedulerObservingAffinityName"] == "backup"
    assert world.wrote == ["spec", "status"]


async def test_a_decision_that_changes_nothing_has_no_work() -> None:
    world = World(settled_manifest())
    assert not world.cycle.has_work(world.binding, world.decision(("m1", 2), ("m2", 2)))


@pytest.mark.parametrize(
    ("change", "decided"),
    [
        pytest.param({}, [("m1", 2)], id="other-clusters"),
        pytest.param({}, [("m2", 2), ("m1", 2)], id="another-order"),
        pytest.param(
            {"rescheduleTriggeredAt": "2026-01-01T00:00:01Z"},
            [("m1", 2), ("m2", 2)],
            id="a-reschedule-was-asked-for",
        ),
    ],
)
def test_a_decision_that_changes_something_has_work(
    change: dict[str, Any], decided: list[tuple[str, int]]
) -> None:
    world = World(settled_manifest(**change))
    assert world.cycle.has_work(world.binding, world.decision(*decided))


def test_a_generation_that_moved_without_consequence_still_has_to_be_noted() -> None:
    manifest = settled_manifest()
    manifest["metadata"]["generation"] = 4
    world = World(manifest)
    assert world.cycle.has_work(world.binding, world.decision(("m1", 2), ("m2", 2)))


async def test_what_nothing_is_to_be_done_about_gets_its_generation_noted() -> None:
    manifest = settled_manifest()
    manifest["metadata"]["generation"] = 4
    world = World(manifest)
    assert not world.cycle.is_observed(world.binding)
    await world.cycle.observe(world.binding)
    assert world.server.requests == [("status", {"schedulerObservedGeneration": 4})]
    assert world.recorder.events == []


async def test_no_cluster_that_fits_clears_the_targets_and_is_not_retried() -> None:
    world = World(settled_manifest())
    error = FitError(3, Diagnosis())
    outcome = await world.cycle.bind(world.binding, world.decision(error=error))
    assert world.server.requests[0] == ("spec", {"annotations": {}, "clusters": []})
    assert world.condition["reason"] == "NoClusterFit"
    assert world.condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert world.server.stored["status"]["schedulerObservedGeneration"] == 3
    assert not outcome.retry
    assert world.recorder.events == [
        ("Warning", "ScheduleBindingFailed", "0/3 clusters are available: no cluster exists.")
    ]


async def test_replicas_that_do_not_fit_keep_the_targets_and_are_retried() -> None:
    world = World(settled_manifest())
    error = UnschedulableError("failed to assign replicas: too many")
    outcome = await world.cycle.bind(world.binding, Decision(world.binding.key, error=error))
    assert world.wrote == ["status"]
    assert world.condition["reason"] == "Unschedulable"
    assert outcome.retry


async def test_a_place_that_was_found_before_a_later_pass_failed_is_recorded_as_one() -> None:
    world = World(settled_manifest())
    found = Attempt("backup", targets=(TargetCluster("m1", 4),))
    failed = Attempt("backup", error=UnschedulableError("failed to assign replicas: too many"))
    decision = replace(
        world.decision(("m1", 4), affinity_name="backup"), error=failed.error, attempts=(found, failed)
    )
    outcome = await world.cycle.bind(world.binding, decision)
    status = world.server.stored["status"]
    assert world.wrote == ["spec", "status"]
    assert world.condition["reason"] == "Unschedulable"
    assert status["schedulerObservingAffinityName"] == "backup"
    assert status["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert status["schedulerObservedGeneration"] == 3
    assert outcome.retry


async def test_a_failure_that_was_told_before_is_not_written_again() -> None:
    world = World(settled_manifest())
    failed = Decision(world.binding.key, error=SchedulingError("no"))
    await world.cycle.bind(world.binding, failed)
    again = Binding.from_manifest(world.server.stored)
    await world.cycle.bind(again, failed)
    assert world.wrote == ["status"]
    assert len(world.recorder.events) == 2


async def test_every_affinity_term_that_failed_has_an_event_of_its_own(world: World) -> None:
    failures = (TermFailure(0, "first", UnschedulableError("full")),)
    await world.cycle.bind(
        world.binding, world.decision(("m1", 2), affinity_name="second", failed_terms=failures)
    )
    assert [message for _, _, message in world.recorder.events] == [
        "failed to schedule ResourceBinding(demo/web-deployment) with clusterAffiliates index(0): full",
        "Binding has been scheduled successfully. Result: {m1:2}",
    ]


async def test_if_all_terms_failed_for_other_reasons_than_fit_there_is_no_further_event(world: World) -> None:
    error = UnschedulableError("full")
    failed = Decision(world.binding.key, error=error, failed_terms=(TermFailure(0, "first", error),))
    await world.cycle.bind(world.binding, failed)
    assert len(world.recorder.events) == 1


async def test_a_binding_that_changed_under_the_decision_is_read_and_decided_again(world: World) -> None:
    world.server.change(replicas=9)
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.again
    assert world.wrote == []
    assert [manifest["spec"]["replicas"] for manifest in world.seen] == [9]
    assert world.recorder.events == []


async def test_a_status_that_changed_meanwhile_is_read_again_and_keeps_what_others_wrote(
    world: World,
) -> None:
    applied = {"type": "FullyApplied", "status": "True", "reason": "x", "message": ""}
    patch = world.server.patch_result

    async def patch_and_be_overtaken(*args: Any, **kwargs: Any) -> dict[str, Any]:
        answer = await patch(*args, **kwargs)
        world.server.change()
        world.server.stored["status"] = {"conditions": [applied]}
        return answer

    world.server.patch_result = patch_and_be_overtaken  # type: ignore[method-assign]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome == DONE
    assert [each["type"] for each in world.server.stored["status"]["conditions"]] == [
        "FullyApplied",
        "Scheduled",
    ]
    assert world.server.stored["status"]["schedulerObservedGeneration"] == 2
    assert len(world.seen) == 1


class TestUnknownFields:
    """Fields of a newer Karmada, such as spec.clusters[*].components."""

    @staticmethod
    def components(replicas: int) -> list[dict[str, Any]]:
        return [{"name": "jobmanager", "replicas": 1}, {"name": "taskmanager", "replicas": replicas}]

    @classmethod
    def manifest(cls) -> dict[str, Any]:
        """A binding on m1, m2 and, without replicas, m3."""
        manifest = settled_manifest()
        manifest["spec"]["clusters"] = [
            {"name": "m1", "replicas": 2, "components": cls.components(3), "zone": None},
            {"name": "m2", "replicas": 2, "components": cls.components(4)},
            {"name": "m3", "components": cls.components(5)},
        ]
        return manifest

    async def test_they_stay_on_targets_that_stay_as_they_are(self) -> None:
        world = World(self.manifest())
        await world.cycle.bind(world.binding, world.decision(("m3", 0), ("m1", 2), ("m4", 2)))
        assert world.server.stored["spec"]["clusters"] == [
            {"name": "m3", "components": self.components(5)},
            {"name": "m1", "replicas": 2, "components": self.components(3), "zone": None},
            {"name": "m4", "replicas": 2},
        ]

    async def test_they_go_from_targets_whose_replicas_change(self) -> None:
        world = World(self.manifest())
        await world.cycle.bind(world.binding, world.decision(("m1", 1), ("m2", 2), ("m3", 1)))
        assert world.server.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 1},
            {"name": "m2", "replicas": 2, "components": self.components(4)},
            {"name": "m3", "replicas": 1},
        ]

    async def test_those_of_the_newest_version_are_written(self) -> None:
        world = World(self.manifest())
        world.server.change(clusters=[{"name": "m1", "replicas": 2, "components": self.components(9)}])
        outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2), ("m4", 2)))
        assert outcome.again, "the binding was overwritten"
        known = Binding.from_manifest(world.seen[-1])
        await world.cycle.bind(known, world.decision(("m1", 2), ("m4", 2)))
        assert world.server.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 2, "components": self.components(9)},
            {"name": "m4", "replicas": 2},
        ]

    async def test_what_was_written_is_known_to_the_next_decision(self) -> None:
        world = World(self.manifest())
        await world.cycle.bind(world.binding, world.decision(("m1", 2), ("m4", 2)))
        known = world.cache.get(world.binding.key)
        assert known is not None
        await world.cycle.bind(known, world.decision(("m1", 2), ("m5", 2)))
        assert world.server.stored["spec"]["clusters"] == [
            {"name": "m1", "replicas": 2, "components": self.components(3), "zone": None},
            {"name": "m5", "replicas": 2},
        ]

    def test_a_decision_that_changes_nothing_else_has_no_work(self) -> None:
        world = World(self.manifest())
        assert not world.cycle.has_work(world.binding, world.decision(("m1", 2), ("m2", 2), ("m3", 0)))

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
        world = World(copy.deepcopy(manifest))
        await world.cycle.bind(world.binding, world.decision(error=UnschedulableError("full")))
        status = world.server.stored["status"]
        assert [status["conditions"][0], status["conditions"][2]] == [newer, applied]
        assert status["schedulerNotes"] == {"by": "1.19"}
        assert world.condition == {
            "type": "Scheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "full",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }


async def test_a_quota_that_refuses_is_told_and_retried_and_moves_nothing(world: World) -> None:
    text = 'admission webhook "resourcebinding.karmada.io" denied the request: quota'
    world.server.failures["spec"] = [ApiError(text, code=403, reason="QuotaExceeded")]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.retry
    assert world.wrote == ["status"]
    assert world.condition["reason"] == "QuotaExceeded"
    assert world.condition["message"] == text
    assert world.recorder.events == [("Warning", "ScheduleBindingFailed", text)]


async def test_no_fit_that_cannot_be_written_says_both_and_is_retried() -> None:
    world = World(settled_manifest())
    world.server.failures["spec"] = [ApiError("not allowed", code=403, reason="Forbidden")]
    outcome = await world.cycle.bind(world.binding, world.decision(error=FitError(0, Diagnosis())))
    assert world.condition["reason"] == "NoClusterFit"
    assert world.condition["message"] == "[0/0 clusters are available: no cluster exists., not allowed]"
    assert outcome.retry


@pytest.mark.parametrize(
    ("failure", "pause"),
    [
        pytest.param(ApiError("cannot reach it"), 0.0, id="no-answer"),
        pytest.param(ApiError("later", code=429, retry_after=3.0), 3.0, id="too-many-requests"),
        pytest.param(ApiError("failed calling webhook", code=500), 0.0, id="webhook-down"),
    ],
)
async def test_a_write_that_may_work_later_is_retried_and_nothing_is_said(
    world: World, failure: ApiError, pause: float
) -> None:
    world.server.failures["spec"] = [failure]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert (outcome.retry, outcome.pause) == (True, pause)
    assert world.wrote == []
    assert world.recorder.events == []


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
async def test_a_binding_is_given_up_only_when_it_is_known_to_be_gone(
    world: World, at: str, failure: ApiError, given_up: bool
) -> None:
    world.server.failures[at] = [failure] * 8
    if at == "get":
        world.server.failures["spec"] = [CONFLICT]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome == DONE if given_up else outcome.retry


async def test_a_namespace_that_is_said_to_go_gives_up_no_binding(world: World) -> None:
    world.server.failures["spec"] = [
        ApiError("terminating", code=403, reason="Forbidden", causes=("NamespaceTerminating",))
    ]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.retry
    assert world.recorder.events == []


async def test_nothing_is_written_by_a_process_that_may_not_lead_any_more_and_nothing_is_given_up(
    world: World,
) -> None:
    world.leads = False
    for outcome in (
        await world.cycle.bind(world.binding, world.decision(("m1", 2))),
        await world.cycle.observe(world.binding),
    ):
        assert isinstance(outcome.error, NotLeadingError)
        assert outcome.retry
    assert world.wrote == []


async def test_a_binding_that_is_read_again_and_is_older_than_it_was_known_is_told_of() -> None:
    world = World(manifests.binding(version=990))
    world.server.stored = manifests.binding(version=750)
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.again
    assert world.went_back == 1


async def test_a_binding_that_the_watch_brings_while_it_is_read_is_not_older_than_it_was_known() -> None:
    world = World(manifests.binding(version=7))
    world.server.stored = manifests.binding(version=8, generation=2)
    world.seen_first = manifests.binding(version=9, generation=3)
    await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert world.went_back == 0


async def test_the_server_is_asked_again_after_half_a_minute_at_most(world: World) -> None:
    world.server.failures["spec"] = [ApiError("later", code=503, retry_after=1e9)]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.pause == 30.0


async def test_a_result_that_others_have_written_already_is_not_told_of_as_stored(world: World) -> None:
    """Only what this cycle wrote lets others go on before the status."""
    settled = settled_manifest()
    settled["status"] = {}
    before = settled["metadata"]
    decided = copy.deepcopy(settled)
    decided["spec"]["clusters"] = []
    world = World(decided)
    newest = copy.deepcopy(settled)
    newest["metadata"] = {**before, "resourceVersion": "8"}
    world.server.stored = newest
    world.cache.put(Binding.from_manifest(newest))
    wrote: list[list[str]] = []
    decision = world.decision(("m1", 2), ("m2", 2))
    await world.cycle.bind(world.binding, decision, stored=lambda: wrote.append(world.wrote))
    assert world.wrote == ["status"]
    assert wrote == []


async def test_a_status_that_could_not_be_written_is_owed_and_written_later(world: World) -> None:
    world.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    outcome = await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert outcome.retry
    assert world.wrote == ["spec"]

    written = Binding.from_manifest(world.server.stored)
    assert not world.cycle.is_observed(written)
    await world.cycle.observe(written)
    assert world.condition["status"] == "True"
    assert world.server.stored["status"]["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert world.cycle.is_observed(Binding.from_manifest(world.server.stored))


async def test_a_success_that_is_owed_to_a_binding_is_not_told_of_another_one_by_its_name(
    world: World,
) -> None:
    world.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    again = settled_manifest()
    again["metadata"]["uid"] = "another"
    again["metadata"]["resourceVersion"] = "99"
    again["status"]["conditions"] = [FAILED]
    world.server.stored = again
    created = Binding.from_manifest(again)
    assert world.cycle.is_observed(created)
    again["metadata"]["generation"] = 4
    await world.cycle.observe(Binding.from_manifest(again))
    assert world.server.requests[-1] == ("status", {"schedulerObservedGeneration": 4})


async def test_nothing_is_owed_to_a_binding_that_is_gone(world: World) -> None:
    world.server.failures["status"] = [ApiError("cannot reach it") for _ in range(8)]
    await world.cycle.bind(world.binding, world.decision(("m1", 2)))
    assert len(world.cycle._statuses._owed) == 1
    world.cycle.forget(world.binding.key)
    assert world.cycle._statuses._owed == {}


async def test_a_place_of_which_the_status_was_never_told_is_told_although_nothing_is_to_be_done() -> None:
    """Another scheduler wrote the result and died before it wrote the status."""
    manifest = settled_manifest()
    manifest["status"] = {}
    world = World(manifest)
    assert not world.cycle.is_observed(world.binding)
    await world.cycle.observe(world.binding)
    assert world.wrote == ["status"]
    assert world.condition["reason"] == "Success"
    assert world.server.stored["status"]["schedulerObservedGeneration"] == 3
    assert world.server.stored["status"]["lastScheduledTime"] == "2026-01-02T03:04:05Z"
    assert world.cycle.is_observed(Binding.from_manifest(world.server.stored))


async def test_the_result_of_a_cluster_scoped_binding_is_told_without_a_colon() -> None:
    manifest = manifests.binding()
    manifest["kind"] = "ClusterResourceBinding"
    del manifest["metadata"]["namespace"]
    world = World(manifest)
    await world.cycle.bind(world.binding, world.decision(("m1", 0)))
    assert world.recorder.events[0][2] == "Binding has been scheduled successfully. Result {m1:0}"


def test_a_binding_that_is_being_deleted_is_told_of(world: World) -> None:
    world.cycle.warn_deleting(world.binding)
    assert world.recorder.events == [
        ("Warning", "ScheduleBindingFailed", "skip schedule deleting resourceBinding: demo/web-deployment")
    ]
