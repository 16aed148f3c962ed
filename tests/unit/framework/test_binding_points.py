"""PreEnqueue, QueueSort and Reserve to PostBind: the real loop and the real binding cycle before a fake API server."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.binding_cycle import status_writer
from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.cache.store import Change
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.config.options import Options, RetryLimits
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.framework import SKIP, SUCCESS, BindContext, QueuedBinding, Result
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer.event_handlers import EventHandlers
from karmada_scheduler.informer.listeners import Listeners, PermitListener
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.plugin_loader.handle import HandleBackend, PluginHandle
from karmada_scheduler.scheduler.pre_enqueue import GATED_SECONDS, PreEnqueueGate
from karmada_scheduler.scheduler.scheduler import Scheduler
from karmada_scheduler.scheduling_queue.async_queue import AsyncQueue
from karmada_scheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_scheduler.scheduling_queue.queue_sort import sort_key_of
from karmada_scheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.testing import cluster, gates
from tests import manifests
from tests.unit.framework.plugins import answering, coroutine, plugin, raising, with_in_tree

NO = Result.unschedulable("not today")
BROKEN = Result.error("cannot say")
CONFLICT = ApiError("the object has been modified", code=409, reason="Conflict")


class Server:
    """Bindings on an API server that honours resourceVersions; a write comes back as an event."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes: list[tuple[str, str]] = []
        self.failures: list[ApiError] = []
        self.reads = 0
        self.event: Callable[[dict[str, Any]], None] = lambda _: None

    def change(self, name: str, *, status: bool = False, **fields: Any) -> dict[str, Any]:
        manifest = copy.deepcopy(self.stored[name])
        metadata = manifest["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        if status:
            manifest.setdefault("status", {}).update(fields)
        elif fields:
            manifest["spec"].update(fields)
            metadata["generation"] += 1
        self.stored[name] = manifest
        self.event(manifest)
        return manifest

    async def get_binding(self, key: BindingKey) -> dict[str, Any]:
        self.reads += 1
        return self.stored[key.name]

    async def patch_result(
        self, key: BindingKey, *, resource_version: str, annotations: dict[str, str], clusters: Any
    ) -> dict[str, Any]:
        if self.failures:
            raise self.failures.pop(0)
        if resource_version != self.stored[key.name]["metadata"]["resourceVersion"]:
            raise CONFLICT
        self.writes.append(("spec", key.name))
        self.stored[key.name]["metadata"].setdefault("annotations", {}).update(annotations)
        return self.change(key.name, **({} if clusters is None else {"clusters": clusters}))

    async def patch_status(self, key: BindingKey, *, resource_version: str, status: Any) -> dict[str, Any]:
        if resource_version != self.stored[key.name]["metadata"]["resourceVersion"]:
            raise CONFLICT
        self.writes.append(("status", key.name))
        return self.change(key.name, status=True, **status)


class World:
    def __init__(
        self, *plugins: Any, priorities: bool = False, caller: PluginCaller | None = None, **options: Any
    ) -> None:
        self.now = 0.0
        self.leads = True
        self.server = Server()
        self.events: list[tuple[str, str]] = []
        self.bindings, self.clusters = BindingCache(), ClusterCache()
        self.waiting = WaitingBindings()
        self.queue: Any = WorkQueue(limits=RetryLimits(), clock=lambda: self.now)
        if priorities:
            self.queue = PrioritySchedulingQueue(clock=lambda: self.now)
        self.metrics = Metrics()
        queue: AsyncQueue[BindingKey] = AsyncQueue(self.queue)
        permit = PermitListener(self.waiting, ["ours"])
        self.handlers = EventHandlers(
            bindings=self.bindings,
            clusters=self.clusters,
            queue=queue,
            scheduler_names=["ours"],
            metrics=self.metrics,
            clock=lambda: self.now,
            listeners=Listeners(bindings=[permit.binding_changed], clusters=[permit.cluster_changed]),
        )
        self.server.event = lambda manifest: self.handlers.on_event("ResourceBinding", "MODIFIED", manifest)
        for name in ("m1", "m2"):
            self.cluster(name)
        writer = BindingWriter(
            self.server,  # type: ignore[arg-type]
            self.bindings,
            limiter=WriteLimiter(most=32, clock=time.monotonic),
            is_leading=lambda: self.leads,
            on_read=self.handlers.on_event,
            metrics=self.metrics,
        )
        cycle = BindingCycle(
            writer,
            self,  # type: ignore[arg-type]
            own_writes=OwnWrites(seconds=0),
            now=lambda: datetime(2026, 1, 2, tzinfo=UTC),
        )
        self.gate = PreEnqueueGate(queue, self.bindings)
        self.profiles = Profiles({"ours": with_in_tree(*plugins, caller=caller)})
        chosen = Options(scheduler_name="ours", **options)
        self.scheduler = Scheduler(
            options=chosen,
            queue=queue,
            bindings=self.bindings,
            clusters=self.clusters,
            find_workload=lambda _: WorkloadAnswer(problem="not needed"),
            gate=self.gate,
            cycle=cycle,
            profiles=self.profiles,
            waiting=self.waiting,
            algorithm=SchedulingAlgorithm(
                chosen.feature_gates,
                [],
                peers=self.bindings if chosen.feature_gates.enabled("WorkloadAffinity") else None,
                stored=self.bindings.get,
            ),
            metrics=self.metrics,
            clock=lambda: self.now,
        )
        backend = HandleBackend(
            bindings=self.bindings, clusters=self.clusters, waiting=self.waiting, now=lambda: 0.0
        )
        backend.activate = self.gate.activate
        self.handle = PluginHandle("ours", backend)

    def record(self, binding: Binding, kind: str, reason: str, text: str) -> None:
        self.events.append((reason, text))

    def cluster(self, name: str, version: int = 1, **metadata: Any) -> None:
        manifest = cluster(name).manifest()
        manifest["metadata"] |= {"resourceVersion": str(version), **metadata}
        self.handlers.on_event("Cluster", "MODIFIED", manifest)

    def put(self, name: str = "web", **spec: Any) -> BindingKey:
        manifest = manifests.binding(name, **spec)
        self.server.stored[name] = manifest
        self.handlers.on_event("ResourceBinding", "ADDED", manifest)
        return BindingKey("ResourceBinding", "demo", name)

    async def run(self) -> None:
        """Let the loop run until it waits."""
        task = asyncio.create_task(self.scheduler.run())
        for _ in range(80):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def placed(self, name: str = "web") -> list[str]:
        return [each["name"] for each in self.server.stored[name]["spec"].get("clusters", ())]

    def condition(self, name: str = "web") -> tuple[str, str]:
        for each in self.server.stored[name].get("status", {}).get("conditions", ()):
            if each["type"] == "Scheduled":
                return each["reason"], each["message"]
        return "", ""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_RETRY_DELAYS", (0.0,) * 8)


class Books:
    """Reserve plugins that tell in which order they are called."""

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
    (NO, "Unschedulable", "not today"),
    (Result.unresolvable("never"), "Unschedulable", "never"),
    (BROKEN, "SchedulerError", 'running {point} plugin "P": cannot say'),
    (None, "SchedulerError", 'plugin "P" returned None at {point}, expected a Result'),
]


# --- Reserve ---


@pytest.mark.parametrize(("answer", "reason", "text"), REFUSALS)
async def test_a_failed_reserve_runs_unreserve_in_reverse_order_and_keeps_the_placement(
    answer: Any, reason: str, text: str
) -> None:
    books = Books()
    world = World(books.plugin("A"), books.plugin("P", answer), books.plugin("C"))
    world.put(**ON_M1)
    await world.run()
    assert books.calls == ["reserve A", "reserve P", "unreserve C", "unreserve P", "unreserve A"]
    assert world.placed() == ["m1"]
    assert world.condition() == (reason, text.format(point="Reserve"))
    assert world.queue.delayed == 1


async def test_after_an_unreserve_that_raises_the_other_plugins_unreserve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    books = Books()
    broken = plugin("B", reserve=answering(NO), unreserve=raising())
    world = World(books.plugin("A"), broken)
    world.put()
    await world.run()
    assert books.calls == ["reserve A", "unreserve A"]
    assert 'plugin "B" failed at Reserve: RuntimeError: boom' in caplog.text


async def test_without_a_change_or_a_fitting_cluster_no_plugin_from_reserve_to_post_bind_is_called() -> None:
    books = Books()
    world = World(books.plugin("A"), plugin("F", filter=answering(NO)), plugin("P", permit=coroutine(NO)))
    world.put(**ON_M1)
    await world.run()
    assert books.calls == []
    assert world.placed() == []
    assert world.condition()[0] == "NoClusterFit"


# --- Permit ---


@pytest.mark.parametrize(("answer", "reason", "text"), REFUSALS)
async def test_a_refusal_at_permit_keeps_the_placement_and_runs_unreserve(
    answer: Any, reason: str, text: str
) -> None:  # 117
    books = Books()
    world = World(books.plugin("A"), books.plugin("B"), plugin("P", permit=coroutine(answer)))
    world.put(**ON_M1)
    await world.run()
    assert books.calls == ["reserve A", "reserve B", "unreserve B", "unreserve A"]
    assert world.placed() == ["m1"]
    assert ("spec", "web") not in world.server.writes
    assert world.condition() == (reason, text.format(point="Permit"))


async def test_a_refusal_with_retry_after_delays_the_next_attempt() -> None:
    world = World(plugin("P", permit=coroutine(Result.unschedulable("closed", retry_after=3600.0))))
    world.put()
    await world.run()
    assert world.queue.seconds_to_next() == 3600.0


async def test_a_binding_waits_until_both_plugins_have_allowed_it() -> None:  # 119
    gates = [plugin(name, permit=coroutine(Result.wait(60))) for name in ("A", "B")]
    world = World(*gates)
    world.put()
    world.put("other", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    await world.run()
    web = next(each for each in world.handle.waiting() if each.binding.key.name == "web")
    assert web.pending == ("A", "B")
    web.allow("A")
    web.allow("A")
    await world.run()
    assert world.placed() == []
    web.allow("B")
    await world.run()
    assert world.placed() == ["m1", "m2"]
    assert world.placed("other") == []


async def test_a_timeout_at_permit_names_the_plugin_and_keeps_the_placement() -> None:  # 118
    world = World(
        plugin("P", permit=coroutine(Result.wait(0))), plugin("Q", permit=coroutine(Result.wait(9)))
    )
    world.put(**ON_M1)
    await world.run()
    reason = "rejected due to timeout after waiting 0s at plugin P"
    assert world.condition() == ("Unschedulable", reason)
    assert world.placed() == ["m1"]


async def test_a_timeout_at_permit_has_the_reason_of_the_plugin() -> None:
    world = World(plugin("P", permit=coroutine(Result.wait(0, "1 of 3 have a place"))))
    world.put(**ON_M1)
    await world.run()
    reason = "rejected due to timeout after waiting 0s at plugin P: 1 of 3 have a place"
    assert world.condition() == ("Unschedulable", reason)


async def test_a_waiting_binding_has_the_workload_of_the_handle() -> None:
    world = World(plugin("P", permit=coroutine(Result.wait(60))))
    key = world.put()
    await world.run()
    found = Workload("apps/v1", "Deployment", "demo", "web", labels={"app": "shop"})
    asked = []

    def stored(profile: str, key: BindingKey) -> Workload | None:
        asked.append((profile, key))
        return found

    world.handle._backend.stored_workload = stored
    [waiting] = world.handle.waiting()
    assert waiting.workload is world.handle.workload(key) is found
    assert asked == [("ours", key), ("ours", key)]


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


async def test_a_waiting_binding_can_be_rejected() -> None:
    world = World(plugin("P", permit=coroutine(Result.wait(60))))
    world.put(**ON_M1)
    await world.run()
    [waiting] = world.handle.waiting()
    waiting.reject("Quota", "over budget")
    await world.run()
    assert world.condition() == ("Unschedulable", "over budget")
    assert world.placed() == ["m1"]


def _suspended(world: World) -> None:
    world.server.change("web", suspension={"scheduling": True})


def _deleted(world: World) -> None:
    world.handlers.on_event("ResourceBinding", "DELETED", world.server.stored["web"])


def _leaving(world: World) -> None:
    world.cluster("m1", 2, deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize("change", [_suspended, _deleted, _leaving])
async def test_a_wait_is_abandoned_when_the_decision_is_outdated(change: Callable[[World], None]) -> None:
    books = Books()
    asked: list[str] = []

    async def waits(context: BindContext) -> Result:
        asked.append(",".join(each.name for each in context.targets))
        return Result.wait(60)

    world = World(books.plugin("A"), plugin("P", permit=waits))
    world.put()
    await world.run()
    change(world)
    await world.run()
    assert books.calls[:2] == ["reserve A", "unreserve A"]
    assert world.server.writes == []
    assert asked == (["m1,m2", "m2"] if change is _leaving else ["m1,m2"])
    await world.scheduler.drain(timeout=1)


async def test_a_waiting_binding_does_not_delay_other_members_of_its_group() -> None:
    world = World(plugin("P", permit=coroutine(Result.wait(60))), feature_gates=gates(WorkloadAffinity=True))
    for name in ("web", "db"):
        world.put(name, workloadAffinityGroups={"affinityGroup": "g"})
    await world.run()
    assert {each.binding.key.name for each in world.handle.waiting()} == {"web", "db"}
    await world.scheduler.drain(timeout=5)


async def test_a_change_during_the_wait_schedules_the_binding_again() -> None:  # 120
    world = World(plugin("P", permit=coroutine(Result.wait(60))))
    world.put()
    await world.run()
    world.server.change("web", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
    await world.run()
    [waiting] = world.handle.waiting()
    waiting.allow("P")
    await world.run()
    assert world.placed() == ["m2"]
    assert world.server.writes.count(("spec", "web")) == 1


async def test_a_change_before_the_wait_schedules_the_binding_again() -> None:
    calls: list[int] = []
    world: World

    async def waits(context: BindContext) -> Result:
        calls.append(1)
        if len(calls) == 1:
            world.server.change("web", placement={"clusterAffinity": {"clusterNames": ["m2"]}})
            return Result.wait(60)
        return SUCCESS

    world = World(plugin("P", permit=waits))
    world.put()
    await world.run()
    assert world.placed() == ["m2"]


async def test_a_change_of_the_status_does_not_end_a_wait() -> None:
    world = World(plugin("P", permit=coroutine(Result.wait(60))))
    world.put()
    await world.run()
    world.server.change("web", status=True, aggregatedStatus=[])
    [waiting] = world.handle.waiting()
    waiting.allow("P")
    await world.run()
    assert world.placed() == ["m1", "m2"]


async def test_a_stop_abandons_waits_and_prevents_new_ones() -> None:
    books = Books()
    world = World(books.plugin("A"), plugin("P", permit=coroutine(Result.wait(60))))
    world.put()
    await world.run()
    await world.scheduler.drain(timeout=5)
    await world.run()
    assert world.server.writes == []
    assert books.calls[:2] == ["reserve A", "unreserve A"]
    assert not world.handle.waiting()


# --- PreBind, Bind, PostBind ---


@pytest.mark.parametrize("answer", [NO, BROKEN])
async def test_a_failed_pre_bind_is_a_scheduler_error(answer: Result) -> None:
    books = Books()
    world = World(books.plugin("A"), plugin("P", pre_bind=coroutine(answer)))
    world.put(**ON_M1)
    await world.run()
    assert world.condition() == ("SchedulerError", f'running PreBind plugin "P": {answer.message}')
    assert world.placed() == ["m1"]
    assert books.calls[-1] == "unreserve A"


async def test_after_skip_at_bind_the_default_binder_writes() -> None:
    told: list[str] = []

    async def post_bind(context: BindContext) -> None:
        told.append(context.binding.key.name)

    world = World(plugin("P", pre_bind=coroutine(SKIP), bind=coroutine(SKIP), post_bind=post_bind))
    world.put()
    await world.run()
    assert world.placed() == ["m1", "m2"]
    assert world.condition()[0] == "Success"
    assert told == ["web"]
    assert world.server.reads == 0


async def test_only_the_first_binder_that_does_not_skip_is_called() -> None:  # 121
    async def bind(context: BindContext) -> Result:
        await context.patch()
        stored = await context.patch()
        assert [each.name for each in stored.spec.clusters] == ["m1", "m2"]
        return SUCCESS

    world = World(plugin("A", bind=coroutine(SKIP)), plugin("B", bind=bind), plugin("C", bind=raising()))
    world.put()
    await world.run()
    assert world.server.writes.count(("spec", "web")) == 1
    assert world.condition()[0] == "Success"


async def test_after_a_write_by_a_plugin_the_binding_is_read_again() -> None:
    world: World

    async def bind(context: BindContext) -> Result:
        manifest = world.server.stored["web"]
        applied = context.cycle.placement.to_json()
        manifest["metadata"].setdefault("annotations", {})[APPLIED_PLACEMENT_ANNOTATION] = applied
        targets = [{"name": each.name, "replicas": each.replicas} for each in context.targets]
        world.server.change("web", clusters=targets)
        return SUCCESS

    world = World(plugin("B", bind=bind))
    world.put()
    await world.run()
    assert world.server.reads == 1
    assert world.placed() == ["m1", "m2"]
    assert world.condition()[0] == "Success"


async def test_a_binder_that_returns_success_without_a_write_is_an_error() -> None:
    books = Books()
    world = World(books.plugin("A"), plugin("B", bind=coroutine(SUCCESS)))
    world.put(**ON_M1)
    await world.run()
    text = 'plugin "B" returned SUCCESS without writing spec.clusters and the annotation'
    assert world.condition() == ("SchedulerError", text)
    assert books.calls[-1] == "unreserve A"


async def test_a_binder_that_raises_after_its_write_has_bound(caplog: pytest.LogCaptureFixture) -> None:
    books = Books()

    async def bind(context: BindContext) -> Result:
        await context.patch()
        raise RuntimeError("too late")

    world = World(books.plugin("A"), plugin("B", bind=bind))
    world.put()
    await world.run()
    assert world.condition()[0] == "Success"
    assert books.calls == ["reserve A"]
    assert 'plugin "B" failed at Bind: RuntimeError: too late' in caplog.text


async def test_a_failed_write_runs_unreserve_and_schedules_the_binding_again() -> None:
    books = Books()
    world = World(books.plugin("A"))
    world.server.failures = [CONFLICT]
    world.put()
    await world.run()
    assert books.calls == ["reserve A", "unreserve A", "reserve A"]
    assert world.placed() == ["m1", "m2"]


async def test_a_post_bind_that_raises_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def raises(_: object) -> None:
        raise RuntimeError("boom")

    world = World(plugin("P", post_bind=raises))
    world.put()
    await world.run()
    assert world.condition()[0] == "Success"
    assert 'plugin "P" failed at PostBind: RuntimeError: boom' in caplog.text


# --- PostFilter and the queue, coroutines in decisions, others in flight ---


async def test_only_a_success_of_post_filter_schedules_the_binding_again() -> None:
    for answer, delayed in ((SUCCESS, 1), (NO, 0)):
        world = World(plugin("F", filter=answering(NO)), plugin("P", post_filter=answering(answer)))
        world.put()
        await world.run()
        assert world.condition()[0] == "NoClusterFit"
        assert world.queue.delayed == delayed


async def test_a_plain_function_that_returns_a_coroutine_is_recognized() -> None:
    async def later() -> Result:
        await asyncio.sleep(0)
        return SUCCESS

    world = World(plugin("P", pre_filter=lambda _: later()))
    world.put()
    await world.run()
    assert world.placed() == ["m1", "m2"]


async def test_a_waiting_binding_counts_for_the_decisions_of_others() -> None:
    added: list[tuple[str, str]] = []

    def add(context: Any) -> Result:
        added.append((context.peer.key.name, context.cluster.name))
        return SUCCESS

    counts = plugin("C", pre_filter=answering(SUCCESS), add_binding=add, remove_binding=answering(SUCCESS))
    world = World(counts, plugin("P", permit=coroutine(Result.wait(60))))
    world.put("first")
    await world.run()
    world.put("second")
    await world.run()
    assert {("first", "m1"), ("first", "m2")} <= set(added)
    await world.scheduler.drain(timeout=1)


# --- PreEnqueue ---


async def test_a_gated_binding_is_tried_again_later_or_at_an_event() -> None:
    answers = [NO, Result.unschedulable("later", retry_after=10.0), SUCCESS]

    def pre_enqueue(context: Any) -> Result:
        return answers.pop(0) if answers else SUCCESS

    world = World(plugin("P", pre_enqueue=pre_enqueue))
    key = world.put(**ON_M1)
    await world.run()
    assert world.server.writes == []
    assert world.queue.seconds_to_next() == GATED_SECONDS
    world.server.change("web", replicas=3)
    await world.run()
    assert world.queue.seconds_to_next() == 10.0
    assert world.gate.gated == {key}
    world.now += 10.0
    await world.run()
    assert not answers
    assert world.gate.gated == set()
    assert world.placed() == ["m1", "m2"]
    assert key not in world.queue


async def test_an_activated_binding_is_enqueued_once_without_pre_enqueue() -> None:
    world = World(plugin("P", pre_enqueue=answering(NO)))
    key = world.put()
    await world.run()
    assert world.placed() == []
    world.handle.activate(key)
    await world.run()
    assert world.placed() == ["m1", "m2"]
    world.server.change("web", replicas=3)
    await world.run()
    assert world.server.writes.count(("spec", "web")) == 1


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
    world = World(plugin("P", pre_enqueue=answer))
    key = world.put()
    await world.run()
    assert world.placed() == []
    reason, message = world.condition()
    assert reason == "SchedulerError"
    assert text in message
    assert [reason for reason, _ in world.events] == ["ScheduleBindingFailed"]
    assert world.queue.num_requeues(key) == 1


# --- leading ---


class Binder:
    """An extender that binds by writing to the server, if it writes."""

    name = "http://binder"
    ignorable = False
    filters = prioritizes = False
    binds = True

    def __init__(self, *, write: Callable[[Any, Any], None] = lambda *_: None) -> None:
        self.asked = 0
        self._write = write

    def is_interested(self, binding: Binding) -> bool:
        return True

    async def filter(self, *_: Any) -> Any:
        raise NotImplementedError

    async def prioritize(self, *_: Any) -> Any:
        raise NotImplementedError

    async def bind(self, cycle: Any, targets: Any) -> None:
        self.asked += 1
        self._write(cycle, targets)


async def test_a_process_that_no_longer_leads_runs_neither_pre_bind_nor_bind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    books, calls = Books(), list[str]()
    world = World()

    async def frozen(_: object) -> Result:
        world.leads = False
        return SUCCESS

    def noting(name: str) -> Any:
        async def called(_: object) -> Result:
            calls.append(name)
            return SUCCESS

        return called

    last = plugin(
        "P", permit=frozen, pre_bind=noting("pre_bind"), bind=noting("bind"), post_bind=noting("post_bind")
    )
    plugins = with_in_tree(books.plugin("A"), last)
    binder = Binder()
    world.profiles.replace({"ours": Framework(plugins.plugins, extenders=[binder])})
    world.put()
    await world.run()
    assert calls == []
    assert binder.asked == 0
    assert books.calls == ["reserve A", "unreserve A"]
    assert world.server.writes == []
    assert world.events == []
    assert "Scheduled" not in caplog.text


async def test_leadership_is_checked_before_each_binder() -> None:
    world, calls = World(), list[str]()

    def noting(name: str, answer: Result) -> Any:
        async def called(_: object) -> Result:
            calls.append(name)
            world.leads = False
            return answer

        return called

    world.profiles.replace({"ours": with_in_tree(
        plugin("A", pre_bind=noting("pre_bind A", SUCCESS)), plugin("B", pre_bind=noting("pre_bind B", SUCCESS))
    )})  # fmt: skip
    world.put("one")
    await world.run()
    assert calls == ["pre_bind A"]
    world.leads = True
    calls.clear()
    world.profiles.replace({"ours": with_in_tree(
        plugin("A", bind=noting("bind A", SKIP)), plugin("B", bind=noting("bind B", SUCCESS))
    )})  # fmt: skip
    world.put("two")
    await world.run()
    assert calls == ["bind A"]


async def test_a_process_that_is_frozen_while_an_extender_binds_reports_no_success() -> None:
    world = World()

    def write(cycle: Any, targets: Any) -> None:
        annotations = world.server.stored["web"]["metadata"].setdefault("annotations", {})
        annotations[APPLIED_PLACEMENT_ANNOTATION] = cycle.placement.to_json()
        found = [{"name": each.name, "replicas": each.replicas} for each in targets]
        world.server.change("web", clusters=found)
        world.leads = False

    binder = Binder(write=write)
    world.profiles.replace({"ours": Framework(with_in_tree().plugins, extenders=[binder])})
    world.put()
    await world.run()
    assert binder.asked == 1
    assert world.placed() == ["m1", "m2"]
    assert world.events == []
    assert world.server.writes == []


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
    waiting.abandon_outdated(old.key, change.new, is_still_assigned=lambda _: True)
    assert abandoned == ["the binding changed while it waited"]
