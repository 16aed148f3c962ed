"""A scheduler with a real queue, loop and binding cycle on a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from karmada_pyscheduler.app.application import new_event_handlers
from karmada_pyscheduler.app.leader import new_scheduler
from karmada_pyscheduler.binding_cycle.writer import OwnWrites
from karmada_pyscheduler.cache.assumed import AssumedPlacements
from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_pyscheduler.records.recorder import Recorder
from karmada_pyscheduler.scheduler.state import SchedulerState
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.config.options import Options, RetryLimits
from karmada_scheduler.core.available_replicas import LocalEstimator
from karmada_scheduler.framework import Handle
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.testing import cluster
from tests import manifests
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.plugins import with_in_tree


class SchedulerHarness:
    """A scheduler with a real binding cycle and plugins of a test, on a fake API server."""

    def __init__(
        self,
        *plugins: Any,
        priorities: bool = False,
        caller: PluginCaller | None = None,
        server: FakeApiServer | None = None,
        estimators: Sequence[LocalEstimator] = (),
        recorder: Recorder | None = None,
        made: Callable[[Handle], Sequence[Any]] = lambda _: (),
        stored_workload: Callable[[str, BindingKey], Workload | None] = lambda _profile, _key: None,
        **options: Any,
    ) -> None:
        """Take plugins, and ``made``, which makes further ones with the handle of the profile."""
        self.now = 0.0
        self.time_of_day = datetime(2026, 1, 2, tzinfo=UTC)
        self.leads = True
        self.server = server or FakeApiServer()
        self.events: list[tuple[str, str]] = []
        self.bindings, self.clusters = BindingCache(), ClusterCache()
        self.queue: Any = WorkQueue(limits=RetryLimits(), clock=lambda: self.now)
        if priorities:
            self.queue = PrioritySchedulingQueue(clock=lambda: self.now)
        self.metrics = Metrics()
        self.profiles = Profiles({"ours": with_in_tree()})
        chosen = Options(scheduler_name="ours", **options)
        assumed = AssumedPlacements(clock=lambda: self.now, ttl=chosen.assumption_ttl)
        state = SchedulerState(
            self.queue,
            bindings=self.bindings,
            clusters=self.clusters,
            waiting=WaitingBindings(),
            profiles=self.profiles,
            metrics=self.metrics,
            clock=lambda: self.now,
            own_writes=OwnWrites(seconds=0),
            assumed=assumed if chosen.feature_gates.enabled("SchedulingOvercommitProtection") else None,
        )
        self.waiting, self.gate = state.waiting, state.gate
        self.reconsiderations = state.reconsiderations
        self.handlers = new_event_handlers(
            state, on_enqueued=[recorder.enqueued] if recorder is not None else []
        )
        self.server.event = lambda manifest: self.handlers.on_event("ResourceBinding", "MODIFIED", manifest)
        for name in ("m1", "m2"):
            self.cluster(name)
        backend = HandleBackend(
            bindings=self.bindings,
            clusters=self.clusters,
            waiting=self.waiting,
            now=lambda: self.time_of_day.timestamp(),  # noqa: PLW0108 (the tests advance it)
            stored_workload=stored_workload,
        )
        backend.lead(
            self.gate.activate,
            lambda _binding, _warning, reason, text: self.events.append((reason, text)),
            self.gate.enqueue,
        )
        self.handle = backend.handle_for("ours")
        self.profiles.replace({"ours": with_in_tree(*plugins, *made(self.handle), caller=caller)})
        self.scheduler = new_scheduler(
            chosen,
            state,
            self.server,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.handlers,
            is_leading=lambda: self.leads,
            now=lambda: self.time_of_day,
            find_workload=lambda _: WorkloadAnswer(problem="not needed"),
            estimators=estimators,
            recorder=recorder,
        )

    def sleep(self, seconds: float) -> None:
        """Advance the clock of the queue and the time of day."""
        self.now += seconds
        self.time_of_day += timedelta(seconds=seconds)

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

    async def put_and_run(self, name: str = "web", **spec: Any) -> BindingKey:
        """Store a binding, let the loop run until it waits, and return the binding's key."""
        key = self.put(name, **spec)
        await self.run()
        return key

    async def run(self, *, after: float = 0.0) -> None:
        """Let the loop run until it waits, so many seconds later."""
        self.sleep(after)
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
