"""Bugs that are seen where machines are suspended, others hold the Lease, names are odd or priorities change; see ``planted_bugs``."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from karmada_pyscheduler.app.application import Application
from karmada_pyscheduler.client import paths
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.informer import cluster_lists, cluster_reads
from karmada_pyscheduler.scheduler import resync
from karmada_pyscheduler.scheduling_queue.priority_queue import PrioritySchedulingQueue
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import replace
from tools.simulation.planted_bugs import Patches, PlantedBug, plants

MISHAP_BUGS: Final[list[PlantedBug]] = []
_bug = partial(plants, MISHAP_BUGS)


@_bug("the Lease is timed by a clock that stands still", "fenced", found_by=("1", "mishaps"))
def _clock_stands_still() -> Patches:
    original = Application._make_leadership

    async def make(self: Application) -> Any:
        self._environment = replace(self._environment, boot_clock=self._environment.clock)
        return await original(self)

    yield Application, "_make_leadership", make


@_bug("a deadline is timed by a clock that stands still", "fenced", found_by=("1", "mishaps"))
def _deadline_stands_still() -> Patches:
    """The renewals are timed by one clock, and the deadline of the writers by the other."""
    made = Application._make_leadership

    async def make(self: Application) -> Any:
        leadership, clock, boot = await made(self), self._environment.clock, self._environment.boot_clock
        elector, behind = self._host.elector, boot() - clock()
        if elector is not None:
            left = elector.seconds_left
            leadership.is_leader = lambda: left() + (boot() - clock()) - behind > 0  # type: ignore[method-assign]
        return leadership

    yield Application, "_make_leadership", make


@_bug("a stop releases the Lease of another", "fenced", found_by=("2", "mishaps"))
def _stop_releases_what_is_there() -> Patches:
    async def written(self: Elector, held: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._lock.update(held, spec, timeout=5.0)
        except ApiError as error:
            if not error.is_conflict:
                raise
            return await self._lock.update(await self._lock.get(timeout=5.0), spec, timeout=5.0)

    yield Elector, "_written", written


@_bug("a key keeps its priority while it is processed", "by priority", found_by=("1", "mishaps"))
def _priority_of_the_attempt_is_kept() -> Patches:
    original = PrioritySchedulingQueue.done

    def done(self: Any, key: Any) -> None:
        if key in self._requeue and key in self._processing:
            self._requeue[key] = self._processing[key].priority
        original(self, key)

    yield PrioritySchedulingQueue, "done", done


@_bug("the first event counts while a key is processed", "by priority", found_by=("4", "mishaps"))
def _first_event_counts() -> Patches:
    original = PrioritySchedulingQueue.add

    def add(self: Any, key: Any, priority: int = 0) -> None:
        original(self, key, self._requeue.get(key, priority) if key in self._processing else priority)

    yield PrioritySchedulingQueue, "add", add


@_bug("a due key keeps its priority", "by priority", found_by=("1", "mishaps"))
def _due_key_keeps_its_priority() -> Patches:
    original = PrioritySchedulingQueue.add

    def add(self: Any, key: Any, priority: int = 0) -> None:
        item = self._items.get(key)
        original(self, key, priority if item is None else item.priority)

    yield PrioritySchedulingQueue, "add", add


@_bug("a start waits for each cluster that a binding names", "alive", found_by=("4", "mishaps"))
def _start_waits_for_each_name() -> Patches:
    original = cluster_reads.ClusterReads.soon

    async def until_answered(self: Any, names: Any, sleep: Any) -> Any:
        absent = await original(self, names, sleep)
        while any(name in self._reads for name in names):
            await sleep(1.0)
        return absent

    yield cluster_reads.ClusterReads, "soon", until_answered
    yield cluster_reads, "is_subdomain", bool
    yield cluster_lists, "is_subdomain", bool
    yield paths, "_segment", str


@_bug("what another program took is given back at once", "applied", found_by=("3", "works"))
def _given_back_at_once() -> Patches:
    yield resync, "SETTLE_SECONDS", 0.0
    yield resync, "RESYNC_SECONDS", ()


@_bug("what did not reach a cluster is never applied again", "applied", found_by=("3", "works"))
def _never_resynced() -> Patches:
    yield resync, "RESYNC_SECONDS", ()


@_bug("a second delay of a key is lost", "applied", found_by=("3", "works"))
def _second_delay_is_lost() -> Patches:
    original = resync.Resyncs.due

    def due(self: Any, binding: Any) -> Any:
        found = self._resyncs.get(binding.key)
        if found is None or found.due is None or found.due > self.clock():
            return ()
        return original(self, binding)

    yield resync.Resyncs, "due", due
