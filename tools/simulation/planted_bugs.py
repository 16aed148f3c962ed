"""Bugs that are planted in the scheduler, to prove that the simulation finds them.

Each bug replaces functions of the product while it is planted. ``make simulate-faults ARGS=--planted`` runs every bug
until a seed finds it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from karmada_pyscheduler.binding_cycle.cycle import BindingCycle
from karmada_pyscheduler.binding_cycle.write_limiter import WriteLimiter
from karmada_pyscheduler.binding_cycle.writer import BindingWriter, OwnWrites
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.cache.store import Store
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import KarmadaClient
from karmada_pyscheduler.client.leader import Elector
from karmada_pyscheduler.informer import reflector
from karmada_pyscheduler.informer.cluster_lists import ClusterLists
from karmada_pyscheduler.informer.event_handlers import EventHandlers
from karmada_pyscheduler.informer.relist import Relister
from karmada_pyscheduler.informer.requeue import Requeuer
from karmada_pyscheduler.scheduler.failure_handler import FailureHandler
from karmada_pyscheduler.scheduling_queue.work_queue import WorkQueue
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.binding_cycle.result import DONE, Action, AttemptOutcome
from karmada_scheduler.core import schedule
from tools.simulation.generate import PROFILES
from tools.simulation.profiles import ROUNDS

Patches = Iterator[tuple[Any, str, Any]]


@dataclass(frozen=True)
class PlantedBug:
    """A bug.

    Attributes:
        name: Its name.
        invariants: The invariants that it is expected to break.
        found_by: A seed and a profile that found it; a change of the scheduler's timing may leave it to another seed.
        profiles: Those whose seeds are tried.
        patches: Yields what is replaced: an object, the name of an attribute, and the new value.
    """

    name: str
    invariants: frozenset[str]
    found_by: tuple[str, str]
    profiles: tuple[str, ...]
    patches: Callable[[], Patches]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug for the block."""
        with ExitStack() as stack:
            for owner, name, new in [*self.patches()]:
                stack.enter_context(patch.object(owner, name, new))
            yield


def plants(
    bugs: list[PlantedBug],
    name: str,
    *invariants: str,
    found_by: tuple[str, str],
    profiles: tuple[str, ...] | None = None,
) -> Callable[[Callable[[], Patches]], Callable[[], Patches]]:
    """Return a decorator that adds a bug to ``bugs``; its ``profiles`` are that of ``found_by`` unless they are given."""

    def add(patches: Callable[[], Patches]) -> Callable[[], Patches]:
        tried = (found_by[1],) if profiles is None else profiles
        bugs.append(PlantedBug(name, frozenset(invariants), found_by, tried, patches))
        return patches

    return add


BUGS: Final[list[PlantedBug]] = []
"""Bugs that the profiles of ``generate`` find."""

LEAKS: Final[list[PlantedBug]] = []
"""Bugs that the profile ``rounds`` finds."""

_bug = partial(plants, BUGS, profiles=PROFILES)


@_bug("a failed write is not retried", "converged", "no lost key", "quiet", found_by=("2", "calm"))
def _lost_retry() -> Patches:
    yield BindingCycle, "report", _report_without(Action.RETRY)


@_bug("a conflict ends the attempt", "converged", "no lost key", "quiet", found_by=("2", "calm"))
def _conflict_is_final() -> Patches:
    yield BindingCycle, "report", _report_without(Action.DECIDE_AGAIN)


def _report_without(action: Action) -> Any:
    original = BindingCycle.report

    async def report(self: BindingCycle, *args: Any) -> AttemptOutcome:
        outcome = await original(self, *args)
        return DONE if outcome.action is action else outcome

    return report


@_bug("any 404 means that the object is gone", "converged", "no harm", "quiet", found_by=("1", "calm"))
def _any_404_is_gone() -> Patches:
    yield ApiError, "is_object_not_found", lambda self, _: self.code == 404


@_bug("writes name no resourceVersion", "guarded", found_by=("1", "calm"))
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


@_bug("the Lease has no deadline", "fenced", found_by=("1", "storm"))
def _no_deadline_of_the_lease() -> Patches:
    def seconds_left(self: Elector) -> float:
        return 0.0 if self._lost or self._renewed_at is None else 10.0

    yield Elector, "seconds_left", seconds_left


@_bug("a renewal counts from its response", "fenced", found_by=("3", "calm"))
def _renewal_counts_from_the_response() -> Patches:
    original = Elector._try_acquire_or_renew

    async def attempt(self: Elector, *, timeout: float) -> bool:
        held = await original(self, timeout=timeout)
        if held:
            self._renewed_at = self.clock()
        return held

    yield Elector, "_try_acquire_or_renew", attempt


@_bug("the Lease is checked before the wait", "fenced", found_by=("14", "storm"))
def _lease_is_checked_before_the_wait() -> Patches:
    ensure_leading = BindingWriter.ensure_leading

    @asynccontextmanager
    async def slot(self: BindingWriter, *, low_priority: bool) -> AsyncIterator[None]:
        ensure_leading(self)
        async with self.limiter.slot(low_priority=low_priority):
            yield

    yield BindingWriter, "_slot", slot
    yield BindingWriter, "ensure_leading", lambda _: None  # nor just before it is sent


@_bug("a watch starts again without a list", "converged", "quiet", found_by=("16", "churn"))
def _watch_goes_on_without_a_list() -> Patches:
    original = Relister.list_and_start_version

    async def start(self: Relister, kind: str) -> str:
        if kind in self._start_versions:
            return await original(self, kind)
        return await self._client.newest_version(self._resources[kind])

    yield Relister, "list_and_start_version", start


@_bug("older lists change nothing", "converged", "quiet", found_by=("21", "churn"))
def _older_lists_change_nothing() -> Patches:
    original = Store.is_known

    def is_known(self: Any, key: Any, version: int, *, as_of: int | None = None) -> bool:
        del as_of
        return original(self, key, version)

    yield Store, "is_known", is_known
    yield EventHandlers, "forget_versions", lambda *_: None


async def _read_nothing(*_: Any) -> None:
    return


@_bug("an incomplete list is believed", "converged", "no harm", found_by=("11", "storm"))
def _incomplete_list_is_believed() -> Patches:
    yield KarmadaClient, "get_cluster", _read_nothing
    yield ClusterLists, "added", lambda *_: None


@_bug("an empty list is believed", "no harm", found_by=("11", "storm"))
def _empty_list_is_believed() -> Patches:
    yield KarmadaClient, "get_cluster", _read_nothing
    yield ClusterLists, "removes_others", lambda *_: True
    yield ClusterCache, "set_incomplete", lambda *_: None
    yield schedule, "_unknown_cluster", lambda *_: None


@_bug("an error loses a slot", "alive", "balanced", "converged", found_by=("7", "storm"))
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


@_bug("conflicts repeat without a pause", "polite", found_by=("1", "calm"))
def _conflicts_without_a_pause() -> Patches:
    def again(self: FailureHandler, key: Any, conflicts: int) -> None:
        del conflicts
        self.state.queue.add(key, 0)

    yield FailureHandler, "_decide_again", again


@_bug("a change is taken for known", "converged", found_by=("12", "storm"))
def _change_is_taken_for_known() -> Patches:
    original = Store.is_known

    def is_known(self: Any, key: Any, version: int, *, as_of: int | None = None) -> bool:
        newest = self._versions.get(key, -1)
        return original(self, key, version, as_of=as_of) or 0 < version - newest <= 3 <= newest

    yield Store, "is_known", is_known


@_bug("a key is dropped while it is in process", "converged", "no lost key", found_by=("2", "calm"))
def _key_is_dropped_while_in_process() -> Patches:
    original = WorkQueue.add

    def add(self: Any, key: Any, priority: int = 0) -> None:
        if key not in self._processing:
            original(self, key, priority)

    yield WorkQueue, "add", add


@_bug("a silent watch is kept", "alive", "converged", found_by=("7", "storm"))
def _silent_watch_is_kept() -> Patches:
    yield reflector, "IDLE_SECONDS", 1e9


@_bug("a lost Lease is ignored", "fenced", found_by=("20", "calm"))
def _lost_lease_is_ignored() -> Patches:
    yield Elector, "is_leader", lambda self: self._renewed_at is not None


@plants(LEAKS, "own writes are kept", "flat", found_by=("1", ROUNDS))
def _own_writes_are_kept() -> Patches:
    yield OwnWrites, "forget", lambda *_: None


@plants(LEAKS, "deleted bindings stay in the queue of a standby", "flat", found_by=("1", ROUNDS))
def _deleted_bindings_stay_in_the_queue() -> Patches:
    yield Requeuer, "on_deleted", lambda _: None
