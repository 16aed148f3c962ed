"""PreEnqueue, QueueSort and Reserve to PostBind: the real loop and the real binding cycle on a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from karmada_pyscheduler.cache.store import Change
from karmada_pyscheduler.scheduler.state import GATED_SECONDS
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.queue_sort import sort_key_of
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.framework import SKIP, SUCCESS, BindContext, QueuedBinding, Result
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.runtime.waiting_bindings import (
    AbandonedError,
    PendingPermit,
    WaitingBindings,
)
from karmada_scheduler.testing import binding, gates
from tests import manifests
from tests.unit.fakes import CONFLICT
from tests.unit.framework.plugins import answering, coroutine, plugin, raising, with_in_tree
from tests.unit.framework.scheduler_harness import SchedulerHarness

NO = Result.unschedulable("not today")
BROKEN = Result.error("unknown state")


class ReserveRecorder:
    """Makes Reserve plugins, and records the order of their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def plugin(self, name: str, answer: Any = SUCCESS) -> Any:
        def reserve(_: BindContext) -> Any:
            self.calls.append(f"reserve {name}")
            return answer

        def unreserve(_: BindContext) -> None:
            self.calls.append(f"unreserve {name}")

        return plugin(name, reserve=reserve, unreserve=unreserve)


ON_M1: dict[str, Any] = {"clusters": [{"name": "m1", "replicas": 2}]}
REFUSALS = [
    (NO, "Unschedulable", "refused at {point} by P: not today"),
    (Result.unresolvable("never"), "Unschedulable", "refused at {point} by P: never"),
    (BROKEN, "SchedulerError", 'running {point} plugin "P": unknown state'),
    (None, "SchedulerError", 'plugin "P" returned None at {point}, expected a Result'),
]


# --- Reserve ---


@pytest.mark.parametrize(("answer", "reason", "text"), REFUSALS)
async def test_a_failed_reserve_runs_unreserve_in_reverse_order_and_keeps_the_placement(
    answer: Any, reason: str, text: str
) -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(recorder.plugin("A"), recorder.plugin("P", answer), recorder.plugin("C"))
    await harness.put_and_run(**ON_M1)
    assert recorder.calls == ["reserve A", "reserve P", "unreserve C", "unreserve P", "unreserve A"]
    assert harness.placed() == ["m1"]
    assert harness.condition() == (reason, text.format(point="Reserve"))
    assert harness.queue.delayed == 1


async def test_after_an_unreserve_that_raises_the_other_plugins_unreserve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = ReserveRecorder()
    broken = plugin("B", reserve=answering(NO), unreserve=raising())
    harness = SchedulerHarness(recorder.plugin("A"), broken)
    await harness.put_and_run()
    assert recorder.calls == ["reserve A", "unreserve A"]
    assert 'plugin "B" failed at Reserve: RuntimeError: boom' in caplog.text


async def test_without_a_change_or_a_fitting_cluster_no_plugin_from_reserve_to_post_bind_is_called() -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(
        recorder.plugin("A"), plugin("F", filter=answering(NO)), plugin("P", permit=coroutine(NO))
    )
    await harness.put_and_run(**ON_M1)
    assert recorder.calls == []
    assert harness.placed() == []
    assert harness.condition()[0] == "NoClusterFit"


# --- Permit ---


@pytest.mark.parametrize(("answer", "reason", "text"), REFUSALS)
async def test_a_refusal_at_permit_keeps_the_placement_and_runs_unreserve(
    answer: Any, reason: str, text: str
) -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(
        recorder.plugin("A"), recorder.plugin("B"), plugin("P", permit=coroutine(answer))
    )
    await harness.put_and_run(**ON_M1)
    assert recorder.calls == ["reserve A", "reserve B", "unreserve B", "unreserve A"]
    assert harness.placed() == ["m1"]
    assert ("spec", "web") not in harness.server.writes
    assert harness.condition() == (reason, text.format(point="Permit"))


async def test_a_refusal_with_retry_after_delays_the_next_attempt() -> None:
    harness = SchedulerHarness(
        plugin("P", permit=coroutine(Result.unschedulable("closed", retry_after=3600.0)))
    )
    await harness.put_and_run()
    assert harness.queue.seconds_to_next() == 3600.0


async def test_a_binding_waits_until_both_plugins_have_allowed_it() -> None:
    gates = [plugin(name, permit=coroutine(Result.wait(60))) for name in ("A", "B")]
    harness = SchedulerHarness(*gates)
    harness.put()
    await harness.put_and_run("other", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    web = next(each for each in harness.handle.waiting() if each.binding.key.name == "web")
    assert web.pending == ("A", "B")
    web.allow("A")
    web.allow("A")
    await harness.run()
    assert harness.placed() == []
    web.allow("B")
    await harness.run()
    assert harness.placed() == ["m1", "m2"]
    assert harness.placed("other") == []


async def test_a_timeout_at_permit_names_the_plugin_and_keeps_the_placement() -> None:
    harness = SchedulerHarness(
        plugin("P", permit=coroutine(Result.wait(0))), plugin("Q", permit=coroutine(Result.wait(9)))
    )
    await harness.put_and_run(**ON_M1)
    reason = "refused at Permit by P: rejected due to timeout after waiting 0s at plugin P"
    assert harness.condition() == ("Unschedulable", reason)
    assert harness.placed() == ["m1"]


async def test_a_plugin_that_allows_a_binding_gives_the_others_no_more_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    permit = PendingPermit(binding("web").build(), frozenset(), {"P": 3.0, "Q": 10.0})
    waiting = asyncio.create_task(permit.wait())
    for now[0] in (0.0, 2.0, 4.0, 9.9, 10.1):
        assert not waiting.done()
        if now[0]:
            permit.allow("P")
        for _ in range(10):
            await asyncio.sleep(0)
    assert waiting.done()
    assert waiting.result().plugin == "Q"


async def test_a_timeout_at_permit_has_the_reason_of_the_plugin() -> None:
    harness = SchedulerHarness(plugin("P", permit=coroutine(Result.wait(0, "1 of 3 have a place"))))
    await harness.put_and_run(**ON_M1)
    reason = (
        "refused at Permit by P: rejected due to timeout after waiting 0s at plugin P: 1 of 3 have a place"
    )
    assert harness.condition() == ("Unschedulable", reason)


async def test_a_waiting_binding_has_the_workload_of_the_handle() -> None:
    found = Workload("apps/v1", "Deployment", "demo", "web", labels={"app": "shop"})
    requests = []

    def stored(profile: str, key: BindingKey) -> Workload | None:
        requests.append((profile, key))
        return found

    harness = SchedulerHarness(plugin("P", permit=coroutine(Result.wait(60))), stored_workload=stored)
    key = await harness.put_and_run()
    [waiting] = harness.handle.waiting()
    assert waiting.workload is harness.handle.workload(key) is found
    assert requests == [("ours", key), ("ours", key)]


async def test_a_plugin_that_has_allowed_a_binding_no_longer_times_out() -> None:
    waiting = WaitingBindings()
    binding = Binding.from_manifest(manifests.binding())
    task = asyncio.create_task(waiting.wait(binding, frozenset(), {"quick": 0.01, "slow": 60}))
    await asyncio.sleep(0)
    [each] = waiting.all()
    each.allow("quick")
    _, unfinished = await asyncio.wait({task}, timeout=0.05)
    assert unfinished
    each.allow("slow")
    assert await task is SUCCESS


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_decision_with_a_cluster_that_goes_while_permit_runs_is_given_up(
    is_gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def permit(_: object) -> Result:
        if is_gone:
            harness.clusters.discard("m1")
        else:
            harness.cluster("m1", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
        return Result.wait(60.0)

    harness = SchedulerHarness(plugin("P", permit=permit))
    harness.sleep(100.0)
    await harness.put_and_run(placement={"clusterAffinity": {"clusterNames": ["m1"]}})
    assert not harness.waiting.all()
    assert harness.placed() == []
    waits = {
        label: harness.metrics.registry.get_sample_value(
            "karmada_scheduler_permit_wait_duration_seconds_count", {"result": label}
        )
        for label in ("abandoned", "allowed")
    }
    assert waits["abandoned"]
    assert not waits["allowed"]
    assert not harness.metrics.registry.get_sample_value(
        "karmada_scheduler_permit_wait_duration_seconds_sum", {"result": "abandoned"}
    )
    waiting = harness.metrics.registry.get_sample_value(
        "karmada_scheduler_permit_waiting_bindings", {"plugin": "P"}
    )
    assert waiting == 0
    assert "Cannot write the decision" not in caplog.text


async def test_the_first_answer_about_a_waiting_binding_counts() -> None:
    waiting = WaitingBindings()
    binding = Binding.from_manifest(manifests.binding())
    for answer in ("rejects", "abandons"):
        task = asyncio.create_task(waiting.wait(binding, frozenset(), {"P": 60}))
        await asyncio.sleep(0)
        [each] = waiting.all()
        if answer == "rejects":
            each.reject("P", "no")
            each.reject("P", "never")
        else:
            each.abandon("gone", reschedule=False)
        each.allow("P")
        each.abandon("changed", reschedule=True)
        if answer == "rejects":
            assert (await task).message == "no"
        else:
            with pytest.raises(AbandonedError, match="gone"):
                await task


async def test_a_decision_begins_again_for_a_plugin_that_waits_only_at_the_first_time() -> None:
    calls: list[str] = []

    async def answer() -> Result:
        await asyncio.sleep(0)
        return SUCCESS

    def pre_score(context: Any) -> Any:
        calls.append(context.cycle.binding.key.name)
        return answer()

    harness = SchedulerHarness(plugin("Waits", pre_score=pre_score))
    await harness.put_and_run("first")
    await harness.put_and_run("second")
    assert harness.placed("second") == ["m1", "m2"]
    assert calls.count("first") == calls.count("second") + 1


async def test_a_binding_that_does_not_wait_cannot_be_abandoned() -> None:
    key = Binding.from_manifest(manifests.binding()).key
    WaitingBindings().abandon_outdated(key, None, is_assigned=True)


async def test_a_waiting_binding_can_be_rejected() -> None:
    harness = SchedulerHarness(plugin("P", permit=coroutine(Result.wait(60))))
    await harness.put_and_run(**ON_M1)
    [waiting] = harness.handle.waiting()
    waiting.reject("Quota", "over budget")
    await harness.run()
    assert harness.condition() == ("Unschedulable", "refused at Permit by Quota: over budget")
    assert harness.placed() == ["m1"]


def _suspended(harness: SchedulerHarness) -> None:
    harness.server.change("web", suspension={"scheduling": True})


def _deleted(harness: SchedulerHarness) -> None:
    harness.handlers.on_event("ResourceBinding", "DELETED", harness.server.stored["web"])


def _leaving(harness: SchedulerHarness) -> None:
    harness.cluster("m1", 2, deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize("change", [_suspended, _deleted, _leaving])
async def test_a_wait_is_abandoned_when_the_decision_is_outdated(
    change: Callable[[SchedulerHarness], None],
) -> None:
    recorder = ReserveRecorder()
    targets: list[str] = []

    async def waits(context: BindContext) -> Result:
        targets.append(",".join(each.name for each in context.targets))
        return Result.wait(60)

    harness = SchedulerHarness(recorder.plugin("A"), plugin("P", permit=waits))
    await harness.put_and_run()
    change(harness)
    await harness.run()
    assert recorder.calls[:2] == ["reserve A", "unreserve A"]
    assert harness.server.writes == []
    assert targets == (["m1,m2", "m2"] if change is _leaving else ["m1,m2"])
    await harness.scheduler.drain(timeout=1)


async def test_a_waiting_binding_does_not_delay_other_members_of_its_group() -> None:
    harness = SchedulerHarness(
        plugin("P", permit=coroutine(Result.wait(60))), feature_gates=gates(WorkloadAffinity=True)
    )
    for name in ("web", "db"):
        harness.put(name, workloadAffinityGroups={"affinityGroup": "g"})
    await harness.run()
    assert {each.binding.key.name for each in harness.handle.waiting()} == {"web", "db"}
    await harness.scheduler.drain(timeout=5)


async def test_a_change_during_the_wait_schedules_the_binding_again() -> None:
    harness = SchedulerHarness(plugin("P", permit=coroutine(Result.wait(60))))
    await harness.put_and_run()
    harness.server.change("web", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    await harness.run()
    [waiting] = harness.handle.waiting()
    waiting.allow("P")
    await harness.run()
    assert harness.placed() == ["m2"]
    assert harness.server.writes.count(("spec", "web")) == 1


async def test_a_change_before_the_wait_schedules_the_binding_again() -> None:
    calls: list[int] = []
    harness: SchedulerHarness

    async def waits(context: BindContext) -> Result:
        calls.append(1)
        if len(calls) == 1:
            harness.server.change("web", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
            return Result.wait(60)
        return SUCCESS

    harness = SchedulerHarness(plugin("P", permit=waits))
    await harness.put_and_run()
    assert harness.placed() == ["m2"]


async def test_a_change_of_the_status_does_not_end_a_wait() -> None:
    harness = SchedulerHarness(plugin("P", permit=coroutine(Result.wait(60))))
    await harness.put_and_run()
    harness.server.change("web", status=True, aggregatedStatus=[])
    [waiting] = harness.handle.waiting()
    waiting.allow("P")
    await harness.run()
    assert harness.placed() == ["m1", "m2"]


async def test_a_stop_abandons_waits_and_prevents_new_ones() -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(recorder.plugin("A"), plugin("P", permit=coroutine(Result.wait(60))))
    await harness.put_and_run()
    await harness.scheduler.drain(timeout=5)
    await harness.run()
    assert harness.server.writes == []
    assert recorder.calls[:2] == ["reserve A", "unreserve A"]
    assert not harness.handle.waiting()


# --- PreBind, Bind, PostBind ---


@pytest.mark.parametrize("answer", [NO, BROKEN])
async def test_a_failed_pre_bind_is_a_scheduler_error(answer: Result) -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(recorder.plugin("A"), plugin("P", pre_bind=coroutine(answer)))
    await harness.put_and_run(**ON_M1)
    assert harness.condition() == ("SchedulerError", f'running PreBind plugin "P": {answer.message}')
    assert harness.placed() == ["m1"]
    assert recorder.calls[-1] == "unreserve A"


async def test_after_skip_at_bind_the_default_binder_writes() -> None:
    post_bound: list[str] = []

    async def post_bind(context: BindContext) -> None:
        post_bound.append(context.binding.key.name)

    harness = SchedulerHarness(
        plugin("P", pre_bind=coroutine(SKIP), bind=coroutine(SKIP), post_bind=post_bind)
    )
    await harness.put_and_run()
    assert harness.placed() == ["m1", "m2"]
    assert harness.condition()[0] == "Success"
    assert post_bound == ["web"]
    assert harness.server.reads == 0


async def test_only_the_first_binder_that_does_not_skip_is_called() -> None:
    async def bind(context: BindContext) -> Result:
        await context.patch()
        stored = await context.patch()
        assert [each.name for each in stored.spec.clusters] == ["m1", "m2"]
        return SUCCESS

    harness = SchedulerHarness(
        plugin("A", bind=coroutine(SKIP)), plugin("B", bind=bind), plugin("C", bind=raising())
    )
    await harness.put_and_run()
    assert harness.server.writes.count(("spec", "web")) == 1
    assert harness.condition()[0] == "Success"


async def test_after_a_write_by_a_plugin_the_binding_is_read_again() -> None:
    harness: SchedulerHarness

    async def bind(context: BindContext) -> Result:
        manifest = harness.server.stored["web"]
        applied = context.cycle.placement.to_json()
        manifest["metadata"].setdefault("annotations", {})[APPLIED_PLACEMENT_ANNOTATION] = applied
        targets = [{"name": each.name, "replicas": each.replicas} for each in context.targets]
        harness.server.change("web", clusters=targets)
        return SUCCESS

    harness = SchedulerHarness(plugin("B", bind=bind))
    await harness.put_and_run()
    assert harness.server.reads == 1
    assert harness.placed() == ["m1", "m2"]
    assert harness.condition()[0] == "Success"


async def test_a_binder_that_returns_success_without_a_write_is_an_error() -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(recorder.plugin("A"), plugin("B", bind=coroutine(SUCCESS)))
    await harness.put_and_run(**ON_M1)
    text = 'plugin "B" returned SUCCESS without writing spec.clusters and the annotation'
    assert harness.condition() == ("SchedulerError", text)
    assert recorder.calls[-1] == "unreserve A"


async def test_a_binder_that_raises_after_its_write_has_bound(caplog: pytest.LogCaptureFixture) -> None:
    recorder = ReserveRecorder()

    async def bind(context: BindContext) -> Result:
        await context.patch()
        raise RuntimeError("too late")

    harness = SchedulerHarness(recorder.plugin("A"), plugin("B", bind=bind))
    await harness.put_and_run()
    assert harness.condition()[0] == "Success"
    assert recorder.calls == ["reserve A"]
    assert 'plugin "B" failed at Bind: RuntimeError: too late' in caplog.text


async def test_a_failed_write_runs_unreserve_and_schedules_the_binding_again() -> None:
    recorder = ReserveRecorder()
    harness = SchedulerHarness(recorder.plugin("A"))
    harness.server.failures["spec"] = [CONFLICT]
    await harness.put_and_run()
    assert recorder.calls == ["reserve A", "unreserve A", "reserve A"]
    assert harness.placed() == ["m1", "m2"]


async def test_a_post_bind_that_raises_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def raises(_: object) -> None:
        raise RuntimeError("boom")

    harness = SchedulerHarness(plugin("P", post_bind=raises))
    await harness.put_and_run()
    assert harness.condition()[0] == "Success"
    assert 'plugin "P" failed at PostBind: RuntimeError: boom' in caplog.text


# --- PostFilter and the queue, coroutines in decisions, others in flight ---


async def test_only_a_success_of_post_filter_schedules_the_binding_again() -> None:
    for answer, delayed in ((SUCCESS, 1), (NO, 0)):
        harness = SchedulerHarness(
            plugin("F", filter=answering(NO)), plugin("P", post_filter=answering(answer))
        )
        await harness.put_and_run()
        assert harness.condition()[0] == "NoClusterFit"
        assert harness.queue.delayed == delayed


async def test_a_plain_function_that_returns_a_coroutine_is_recognized() -> None:
    async def later() -> Result:
        await asyncio.sleep(0)
        return SUCCESS

    harness = SchedulerHarness(plugin("P", pre_filter=lambda _: later()))
    await harness.put_and_run()
    assert harness.placed() == ["m1", "m2"]


async def test_a_waiting_binding_counts_for_the_decisions_of_others() -> None:
    added: list[tuple[str, str]] = []

    def add(context: Any) -> Result:
        added.append((context.peer.key.name, context.cluster.name))
        return SUCCESS

    counts = plugin("C", pre_filter=answering(SUCCESS), add_binding=add, remove_binding=answering(SUCCESS))
    harness = SchedulerHarness(counts, plugin("P", permit=coroutine(Result.wait(60))))
    await harness.put_and_run("first")
    await harness.put_and_run("second")
    assert {("first", "m1"), ("first", "m2")} <= set(added)
    await harness.scheduler.drain(timeout=1)


# --- PreEnqueue ---


async def test_a_gated_binding_is_tried_again_later_or_at_an_event() -> None:
    answers = [NO, Result.unschedulable("later", retry_after=10.0), SUCCESS]

    def pre_enqueue(context: Any) -> Result:
        return answers.pop(0) if answers else SUCCESS

    harness = SchedulerHarness(plugin("P", pre_enqueue=pre_enqueue))
    key = await harness.put_and_run(**ON_M1)
    assert harness.server.writes == []
    assert harness.queue.seconds_to_next() == GATED_SECONDS
    harness.server.change("web", replicas=3)
    await harness.run()
    assert harness.queue.seconds_to_next() == 10.0
    assert harness.gate.gated == {key}
    harness.now += 10.0
    await harness.run()
    assert not answers
    assert harness.gate.gated == set()
    assert harness.placed() == ["m1", "m2"]
    assert not harness.queue.holds(key)


async def test_an_activated_binding_is_enqueued_once_without_pre_enqueue() -> None:
    harness = SchedulerHarness(plugin("P", pre_enqueue=answering(NO)))
    key = await harness.put_and_run()
    assert harness.placed() == []
    harness.handle.activate(key)
    await harness.run()
    assert harness.placed() == ["m1", "m2"]
    harness.server.change("web", replicas=3)
    await harness.run()
    assert harness.server.writes.count(("spec", "web")) == 1


async def test_an_enqueued_binding_is_tried_at_once_and_pre_enqueue_is_asked() -> None:
    answers = [NO, NO, SUCCESS]
    harness = SchedulerHarness(plugin("P", pre_enqueue=lambda _: answers.pop(0) if answers else SUCCESS))
    key = await harness.put_and_run()
    harness.handle.enqueue(key)
    await harness.run()
    assert (len(answers), harness.placed(), harness.gate.gated) == (1, [], {key})
    harness.handle.enqueue(key)
    await harness.run()
    assert harness.placed() == ["m1", "m2"]
    gone = BindingKey("ResourceBinding", "demo", "gone")
    harness.handle.enqueue(gone)
    assert not harness.queue.holds(gone)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (raising(), 'plugin "P" failed at PreEnqueue: RuntimeError: boom'),
        (answering(None), "returned None at PreEnqueue"),
    ],
)
async def test_a_pre_enqueue_that_raises_is_a_scheduler_error_and_is_tried_again(
    answer: Any, text: str
) -> None:
    harness = SchedulerHarness(plugin("P", pre_enqueue=answer))
    key = await harness.put_and_run()
    assert harness.placed() == []
    reason, message = harness.condition()
    assert reason == "SchedulerError"
    assert text in message
    assert [reason for reason, _ in harness.events] == ["ScheduleBindingFailed"]
    assert harness.queue._requeues.get(key, 0) == 1


# --- leading ---


class Binder:
    """An extender that binds with the write function of a test."""

    name = "http://binder"
    ignorable = False
    filters = prioritizes = False
    binds = True

    def __init__(self, *, write: Callable[[Any, Any], None] = lambda *_: None) -> None:
        self.calls = 0
        self._write = write

    def is_interested(self, binding: Binding) -> bool:
        return True

    async def filter(self, *_: Any) -> Any:
        raise NotImplementedError

    async def prioritize(self, *_: Any) -> Any:
        raise NotImplementedError

    async def bind(self, cycle: Any, targets: Any) -> None:
        self.calls += 1
        self._write(cycle, targets)


async def test_a_process_that_no_longer_leads_runs_neither_pre_bind_nor_bind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder, calls = ReserveRecorder(), list[str]()
    harness = SchedulerHarness()

    async def frozen(_: object) -> Result:
        harness.leads = False
        return SUCCESS

    def noting(name: str) -> Any:
        async def called(_: object) -> Result:
            calls.append(name)
            return SUCCESS

        return called

    last = plugin(
        "P", permit=frozen, pre_bind=noting("pre_bind"), bind=noting("bind"), post_bind=noting("post_bind")
    )
    plugins = with_in_tree(recorder.plugin("A"), last)
    binder = Binder()
    harness.profiles.replace({"ours": Framework(plugins.plugins, extenders=[binder])})
    await harness.put_and_run()
    assert calls == []
    assert binder.calls == 0
    assert recorder.calls == ["reserve A", "unreserve A"]
    assert harness.server.writes == []
    assert harness.events == []
    assert "Scheduled" not in caplog.text


async def test_leadership_is_checked_before_each_binder() -> None:
    harness, calls = SchedulerHarness(), list[str]()

    def noting(name: str, answer: Result) -> Any:
        async def called(_: object) -> Result:
            calls.append(name)
            harness.leads = False
            return answer

        return called

    harness.profiles.replace({"ours": with_in_tree(
        plugin("A", pre_bind=noting("pre_bind A", SUCCESS)), plugin("B", pre_bind=noting("pre_bind B", SUCCESS))
    )})  # fmt: skip
    await harness.put_and_run("one")
    assert calls == ["pre_bind A"]
    harness.leads = True
    calls.clear()
    harness.profiles.replace({"ours": with_in_tree(
        plugin("A", bind=noting("bind A", SKIP)), plugin("B", bind=noting("bind B", SUCCESS))
    )})  # fmt: skip
    await harness.put_and_run("two")
    assert calls == ["bind A"]


async def test_a_process_that_is_frozen_while_an_extender_binds_reports_no_success() -> None:
    harness = SchedulerHarness()

    def write(cycle: Any, targets: Any) -> None:
        annotations = harness.server.stored["web"]["metadata"].setdefault("annotations", {})
        annotations[APPLIED_PLACEMENT_ANNOTATION] = cycle.placement.to_json()
        found = [{"name": each.name, "replicas": each.replicas} for each in targets]
        harness.server.change("web", clusters=found)
        harness.leads = False

    binder = Binder(write=write)
    harness.profiles.replace({"ours": Framework(with_in_tree().plugins, extenders=[binder])})
    await harness.put_and_run()
    assert binder.calls == 1
    assert harness.placed() == ["m1", "m2"]
    assert harness.events == []
    assert harness.server.writes == []


# --- QueueSort ---


def _queue(sorter: Any, caller: PluginCaller | None = None) -> tuple[Any, Callable[[], list[str]]]:
    ticks = iter(range(1000))
    queue: PrioritySchedulingQueue[BindingKey] = PrioritySchedulingQueue(
        clock=lambda: float(next(ticks)) / 1000, sort_key=sort_key_of(sorter, lambda _: None, caller=caller)
    )

    def drain() -> list[str]:
        names = []
        while (item := queue.pop()) is not None:
            names.append(item[0].name)
            queue.done(item[0])
        return names

    return queue, drain


def _key(name: str) -> BindingKey:
    return BindingKey("ResourceBinding", "demo", name)


def test_a_queue_sort_plugin_orders_the_queue_stably() -> None:
    def less(a: QueuedBinding, b: QueuedBinding) -> bool:
        return len(a.key.name) < len(b.key.name)

    queue, drain = _queue(plugin("S", less=less))
    for name in ("ccc", "bb", "aaa", "a", "zz"):
        queue.add(_key(name))
    assert drain() == ["a", "bb", "zz", "ccc", "aaa"]


@pytest.mark.parametrize("broken", [raising(), raising(SystemExit(1)), answering(None)])
def test_a_queue_sort_that_raises_loses_no_key_and_is_logged_once(
    broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue, drain = _queue(plugin("S", less=broken))
    names = ["c", "b", "a", "d"]
    for name in names:
        queue.add(_key(name))
    assert drain() == names
    assert caplog.text.count("A plugin raised an exception") <= 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_a_queue_sort_cannot_end_the_process(error: BaseException) -> None:
    alarm = SigalrmTimeout(5)
    try:
        queue, drain = _queue(plugin("S", less=raising(error)), PluginCaller(timeout=alarm))
        for name in "cba":
            queue.add(_key(name))
        assert drain() == ["c", "b", "a"]
    finally:
        alarm.close()


def test_a_queue_sort_that_hangs_is_called_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[float] = []
    now = [0.0]

    def hangs(*_: object) -> bool:
        calls.append(now[0])
        while now[0] < 10:
            pass
        return False

    alarm = SigalrmTimeout(0.1)
    caller = PluginCaller(timeout=alarm, breakers=CircuitBreakers(clock=lambda: now[0]))
    queue, drain = _queue(plugin("S", less=hangs), caller)
    try:
        for number, name in enumerate("abcd"):
            queue.add(_key(name), number)
        assert sorted(drain()) == ["a", "b", "c", "d"]
        for number, name in enumerate("abcd"):
            queue.add(_key(name), number)
        assert drain() == ["d", "c", "b", "a"]
        assert calls == [0.0]
        now[0] = 10.0
        for number, name in enumerate("abcd"):
            queue.add(_key(name), number)
        assert drain() == ["a", "b", "c", "d"]
    finally:
        alarm.close()
    assert caplog.text.count("A plugin exceeded its timeout and is not called for a while") == 1


def test_a_sort_key_orders_the_queue_stably_and_is_computed_once_per_binding() -> None:
    asked: list[str] = []

    def sort_key(queued: QueuedBinding) -> tuple[float, ...]:
        asked.append(queued.key.name)
        return (len(queued.key.name),)

    queue, drain = _queue(plugin("S", less=raising(AssertionError()), sort_key=sort_key))
    names = [letter * count for count in range(30, 0, -1) for letter in "zab"]
    for name in names:
        queue.add(_key(name))
    assert drain() == sorted(names, key=len)
    assert asked == names


@pytest.mark.parametrize(
    "broken",
    [
        raising(),
        raising(SystemExit(1)),
        answering(None),
        answering([1]),
        answering(("a",)),
        answering((1.0, "a")),
        answering((1.0, float("nan"))),
    ],
)
def test_a_sort_key_that_fails_leaves_the_default_order_and_is_logged_once(
    broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue, drain = _queue(plugin("S", less=answering(False), sort_key=broken))
    for name, priority in (("c", 0), ("b", 2), ("a", 1), ("d", 2)):
        queue.add(_key(name), priority)
    assert drain() == ["b", "d", "a", "c"]
    assert caplog.text.count("A plugin raised an exception") == 1


def test_a_sort_key_that_fails_for_one_binding_keeps_the_order_of_the_others() -> None:
    def sort_key(queued: QueuedBinding) -> tuple[float, ...]:
        if queued.key.name == "broken":
            raise ValueError
        return -queued.priority, -queued.since

    queue, drain = _queue(plugin("S", less=answering(False), sort_key=sort_key))
    for name, priority in (("a", 1), ("broken", 2), ("b", 1), ("c", 3)):
        queue.add(_key(name), priority)
    assert drain() == ["c", "broken", "b", "a"]


def test_a_sort_key_that_hangs_is_called_again_after_a_pause() -> None:
    calls: list[str] = []
    now = [0.0]

    def hangs(queued: QueuedBinding) -> tuple[float, ...]:
        calls.append(queued.key.name)
        while now[0] < 10:
            pass
        return (ord(queued.key.name),)

    alarm = SigalrmTimeout(0.1)
    caller = PluginCaller(timeout=alarm, breakers=CircuitBreakers(clock=lambda: now[0]))
    queue, drain = _queue(plugin("S", less=answering(False), sort_key=hangs), caller)
    try:
        for name in "dcba":
            queue.add(_key(name))
        assert drain() == ["d", "c", "b", "a"]
        assert calls == ["d"]
        now[0] = 10.0
        for name in "dcba":
            queue.add(_key(name))
        assert drain() == ["a", "b", "c", "d"]
    finally:
        alarm.close()


def test_a_binding_with_another_uid_and_the_same_generation_has_changed() -> None:
    old = Binding.from_manifest(manifests.binding())
    manifest = manifests.binding(version=2)
    manifest["metadata"]["uid"] = "another"
    change = Change(old, Binding.from_manifest(manifest))
    abandoned: list[str] = []

    class Waiting:
        binding = old

        def abandon(self, reason: str, *, reschedule: bool) -> None:
            abandoned.append(reason)

    waiting = WaitingBindings()
    waiting._waiting[old.key] = Waiting()  # type: ignore[assignment]
    waiting.abandon_outdated(old.key, change.new, is_assigned=True)
    assert abandoned == ["the binding changed while it waited"]
