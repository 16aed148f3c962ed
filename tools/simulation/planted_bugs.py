"""Bugs that are planted in the scheduler, to prove that the simulation finds them.

Each bug replaces functions of the product while it is planted. ``make simulate-faults ARGS=--planted`` runs every bug
until a seed finds it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from karmada_scheduler.binding_cycle.cycle import BindingCycle
from karmada_scheduler.binding_cycle.own_writes import OwnWrites
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome
from karmada_scheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_scheduler.binding_cycle.writer import BindingWriter
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.cache.store import Store
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.client.connection import Connection
from karmada_scheduler.client.leader import Elector
from karmada_scheduler.core import schedule
from karmada_scheduler.informer import reflector
from karmada_scheduler.informer.cluster_lists import ClusterLists
from karmada_scheduler.informer.event_handlers import EventHandlers
from karmada_scheduler.informer.relist import Relister
from karmada_scheduler.informer.requeue import Requeuer
from karmada_scheduler.scheduler.tasks import AttemptTasks
from karmada_scheduler.scheduling_queue.work_queue import WorkQueue
from tools.simulation.generate import PROFILES
from tools.simulation.profiles import ROUNDS

Patches = Iterator[tuple[Any, str, Any]]


@dataclass(frozen=True)
class PlantedBug:
    """A bug.

    Attributes:
        name: Its name.
        invariants: The invariants that it is expected to break.
        patches: Yields what is replaced: an object, the name of an attribute, and the new value.
        profiles: Those whose seeds are tried.
    """

    name: str
    invariants: frozenset[str]
    patches: Callable[[], Patches]
    profiles: tuple[str, ...] = PROFILES

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug for the block."""
        active = [patch.object(owner, name, new) for owner, name, new in self.patches()]
        for each in active:
            each.start()
        try:
            yield
        finally:
            for each in reversed(active):
                each.stop()


def _lost_retry() -> Patches:
    yield BindingCycle, "report", _report_without(Action.RETRY)


def _conflict_is_final() -> Patches:
    yield BindingCycle, "report", _report_without(Action.DECIDE_AGAIN)


def _report_without(action: Action) -> Any:
    original = BindingCycle.report

    async def report(self: BindingCycle, *args: Any) -> AttemptOutcome:
        outcome = await original(self, *args)
        return DONE if outcome.action is action else outcome

    return report


def _any_404_is_gone() -> Patches:
    yield ApiError, "is_object_not_found", lambda self, _: self.code == 404


def _unguarded_write() -> Patches:
    original = Connection.request

    async def request(self: Connection, method: str, path: str, *, body: Any = None, **rest: Any) -> Any:
        if method == "PATCH" and isinstance(body, dict):
            metadata = {
                key: value for key, value in body.get("metadata", {}).items() if key != "resourceVersion"
            }
            body = {**body, "metadata": metadata}
        return await original(self, method, path, body=body, **rest)

    yield Connection, "request", request


def _no_deadline_of_the_lease() -> Patches:
    def seconds_left(self: Elector) -> float:
        return 0.0 if self._lost or self._renewed_at is None else 10.0

    yield Elector, "seconds_left", seconds_left


def _renewal_counts_from_the_response() -> Patches:
    original = Elector._try_acquire_or_renew

    async def attempt(self: Elector, *, timeout: float) -> bool:
        held = await original(self, timeout=timeout)
        if held:
            self._renewed_at = self._clock()
        return held

    yield Elector, "_try_acquire_or_renew", attempt


def _lease_is_checked_before_the_wait() -> Patches:
    @asynccontextmanager
    async def slot(self: BindingWriter, *, low_priority: bool) -> AsyncIterator[None]:
        self.ensure_leading()
        async with self._limiter.slot(low_priority=low_priority):
            yield

    yield BindingWriter, "_slot", slot


def _watch_goes_on_without_a_list() -> Patches:
    original = Relister.list_and_start_version

    async def start(self: Relister, kind: str) -> str:
        if kind in self._list_versions:
            return await original(self, kind)
        return await self._client.newest_version(self._resources[kind])

    yield Relister, "list_and_start_version", start


def _older_lists_change_nothing() -> Patches:
    original = Store.is_known

    def is_known(self: Any, key: Any, version: int, *, as_of: int | None = None) -> bool:
        del as_of
        return original(self, key, version)

    yield Store, "is_known", is_known
    yield EventHandlers, "forget_versions", lambda *_: None


async def _read_nothing(*_: Any) -> None:
    return


def _incomplete_list_is_believed() -> Patches:
    yield Relister, "_read_unlisted", _read_nothing
    yield ClusterLists, "added", lambda *_: None


def _empty_list_is_believed() -> Patches:
    yield Relister, "_read_unlisted", _read_nothing
    yield ClusterLists, "removes_others", lambda *_: True
    yield ClusterCache, "set_incomplete", lambda *_: None
    yield schedule, "_unknown_cluster", lambda *_: None


def _slot_is_lost_with_an_error() -> Patches:
    original = WriteLimiter.slot

    @asynccontextmanager
    async def slot(self: WriteLimiter, *, low_priority: bool = False) -> AsyncIterator[None]:
        try:
            async with original(self, low_priority=low_priority):
                yield
        except ApiError:
            self._under_way += 1
            raise

    yield WriteLimiter, "slot", slot


def _conflicts_without_a_pause() -> Patches:
    def again(self: AttemptTasks, key: Any, conflicts: int) -> None:
        del conflicts
        self._queue.add(key, 0)

    yield AttemptTasks, "_decide_again", again


def _change_is_taken_for_known() -> Patches:
    original = Store.is_known

    def is_known(self: Any, key: Any, version: int, *, as_of: int | None = None) -> bool:
        newest = self._versions.get(key, -1)
        return original(self, key, version, as_of=as_of) or 0 < version - newest <= 3 <= newest

    yield Store, "is_known", is_known


def _key_is_dropped_while_in_process() -> Patches:
    original = WorkQueue.add

    def add(self: Any, key: Any, priority: int = 0) -> None:
        if key not in self._processing:
            original(self, key, priority)

    yield WorkQueue, "add", add


def _silent_watch_is_kept() -> Patches:
    yield reflector, "IDLE_SECONDS", 1e9


def _lost_lease_is_ignored() -> Patches:
    yield Elector, "is_leader", lambda self: self._renewed_at is not None


def _own_writes_are_kept() -> Patches:
    yield OwnWrites, "forget", lambda *_: None


def _deleted_bindings_stay_in_the_queue() -> Patches:
    yield Requeuer, "on_deleted", lambda _: None


LEAKS: Final = tuple(
    PlantedBug(name, frozenset(("flat",)), patches, (ROUNDS,))
    for name, patches in (
        ("own writes are kept", _own_writes_are_kept),
        ("deleted bindings stay in the queue of a standby", _deleted_bindings_stay_in_the_queue),
    )
)
"""Bugs that the profile ``rounds`` finds."""

BUGS: Final = tuple(
    PlantedBug(name, frozenset(invariants), patches)
    for name, invariants, patches in (
        ("a failed write is not retried", ("no lost key", "converged", "quiet"), _lost_retry),
        ("a conflict ends the attempt", ("no lost key", "converged", "quiet"), _conflict_is_final),
        ("any 404 means that the object is gone", ("converged", "quiet", "no harm"), _any_404_is_gone),
        ("writes name no resourceVersion", ("guarded",), _unguarded_write),
        ("the Lease has no deadline", ("fenced",), _no_deadline_of_the_lease),
        ("a renewal counts from its response", ("fenced",), _renewal_counts_from_the_response),
        ("the Lease is checked before the wait", ("fenced",), _lease_is_checked_before_the_wait),
        ("a lost Lease is ignored", ("fenced",), _lost_lease_is_ignored),
        ("a watch starts again without a list", ("converged", "quiet"), _watch_goes_on_without_a_list),
        ("older lists change nothing", ("converged", "quiet"), _older_lists_change_nothing),
        ("an incomplete list is believed", ("no harm", "converged"), _incomplete_list_is_believed),
        ("an empty list is believed", ("no harm",), _empty_list_is_believed),
        ("an error loses a slot", ("converged", "balanced", "alive"), _slot_is_lost_with_an_error),
        ("conflicts repeat without a pause", ("polite",), _conflicts_without_a_pause),
        ("a change is taken for known", ("converged",), _change_is_taken_for_known),
        (
            "a key is dropped while it is in process",
            (
                "no lost key",
                "converged",
            ),
            _key_is_dropped_while_in_process,
        ),
        ("a silent watch is kept", ("converged", "alive"), _silent_watch_is_kept),
    )
)
"""All bugs."""
