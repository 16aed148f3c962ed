"""Watches a control plane for the page: a list in pages of each kind, then a watch, by the scheduler's reflector.

Where the objects may not be watched, all of them are listed every ``--refresh`` while somebody looks.

All of it runs on the event loop of the server. Leases, and what schedulers without one have left, are read every ``--refresh``
while somebody looks; then those who decide get the objects as they are at that moment, too.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.cli.output import print_error
from karmada_advisor.cli.questions import control_plane_of
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.unclaimed import TEMPLATES, list_templates
from karmada_advisor.fleet import live
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Coverage
from karmada_advisor.fleet.plane_access import KindsFound, count_objects
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.web.fleet import clusters_of
from karmada_advisor.web.reading import Visits
from karmada_advisor.web.state import NOT_READ, PageState
from karmada_advisor.web.watched import BINDINGS, POLICIES, ObjectId, Surroundings, WatchedFleet, id_of
from karmada_advisor.whatif.survive.question import taint_policies_of
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.karmada import CLUSTERS, KarmadaClient, Resource
from karmada_pyscheduler.client.watch_requests import WatchRequests
from karmada_pyscheduler.informer.lister import Lister
from karmada_pyscheduler.informer.reflector import Reflector
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.process.memory import freeze_objects
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)


_NEVER: Final = frozenset({403, 404})
"""Codes of the API server after which another attempt has the same result."""
_ASK_AGAIN_SECONDS: Final = 60.0
_SILENT_SECONDS: Final = 150.0
"""How long a watch may deliver nothing; after 70 seconds it is connected again."""
_LEAST_REFRESH_SECONDS: Final = 1.0
"""Between two publications of the objects, each of which takes 0.1 s at 100,000 bindings and makes answers be computed again."""
_SHARE: Final = 10
"""After a reading of templates, this many times its duration pass before the next one."""
_AT_ONCE: Final = 200
"""Bindings that are indexed before others on the event loop get a turn."""


def kinds_of(arguments: argparse.Namespace) -> KindsFound:
    """Find out whether the objects can be listed and watched, and how many they are.

    Raises:
        NoAnswerError: They cannot be listed.
    """
    return count_objects(control_plane_of(arguments), (CLUSTERS, *BINDINGS))


class Watcher(Lister):
    """The objects of a control plane, kept up to date by watches."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        found: KindsFound,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
        *,
        rules: Rules,
    ) -> None:
        """Take the flags, what ``kinds_of`` has found, and a connection, which its owner closes; ``keep_reading`` reads.

        ``clock`` is in seconds.
        """
        super().__init__((*POLICIES, CLUSTERS, *BINDINGS), sleep=asyncio.sleep, clock=clock)
        self._taint_policies: Sequence[str] = arguments.taint_policies
        self._plane, self._rules = control_plane_of(arguments), rules
        self.fleet: Final = WatchedFleet(found.server)
        self._client = KarmadaClient(connection)
        self._connection = connection
        self._is_watching = not found.unwatched
        self._totals = found.totals
        self.state = PageState(0, found.server, datetime.now(UTC), self.fleet.contents())
        self._visits = Visits(arguments.refresh, clock)
        self._failures: dict[str, str] = {}
        self._reflectors: dict[Resource, Reflector] = {}
        self._miscounted: set[Resource] = set()
        self._changes = 0
        self._templates: tuple[Sequence[Workload], str] = (), NOT_READ
        self._next_templates = 0.0
        self._publishing = asyncio.Lock()
        self._published = -_LEAST_REFRESH_SECONDS
        self.progress = "nothing is read yet"
        """How far the first lists are, for people; "" once the objects are complete."""

    @property
    def watch_ages(self) -> Mapping[str, float]:
        """The seconds since each watch has said something, by kind; those that have not begun are missing."""
        return {resource.kind: reflector.age for resource, reflector in tuple(self._reflectors.items())}

    def note_request(self) -> None:
        """Note a request, from the thread of the server."""
        self._visits.note_request()

    async def refresh(self) -> PageState:
        """Publish the objects as the watches have them, once a second at most, and return them."""
        async with self._publishing:
            await asyncio.sleep(self._published + _LEAST_REFRESH_SECONDS - self._clock())
            await self._publish_now()
        return self.state

    async def keep_reading(self) -> None:
        """List everything, then watch it, until cancelled."""
        await self._list_all()
        self.progress = ""
        self.on_synced()
        async with asyncio.TaskGroup() as tasks:
            requests = WatchRequests(self._connection.watch, clock=self._clock)
            for resource in self._resources.values() if self._is_watching else ():
                tasks.create_task(self._watch(resource, requests), name=f"watch {resource.plural}")
            tasks.create_task(self._look_around(), name="look around")

    def on_synced(self) -> None:
        """Print what was listed, and leave it out of garbage collections."""
        freeze_objects()
        print_read(self.state)

    async def _list_all(self) -> None:
        """Fill the fleet with all that can be listed."""
        await self._list_each()
        await self._look()
        if "look" in self._failures:
            self._start_versions.clear()
        rows = []
        bindings = self.fleet.bindings
        for first in range(0, len(bindings), _AT_ONCE):
            rows += self.fleet.rows(bindings[first : first + _AT_ONCE])
            await asyncio.sleep(0)
        self.fleet.begin(rows)
        await self._publish()

    async def _list_each(self) -> None:
        for resource in self._resources.values():
            if resource not in POLICIES or await self._may_list(resource):
                await self.list_first(resource)

    async def _may_list(self, policies: Resource) -> bool:
        """Return whether policies of a kind can be listed at all; answers without them are right, and say so."""
        try:
            await self._client.newest_version(policies)
        except ApiError as error:
            if error.code in _NEVER:
                unknown = "what the policies say beyond the binding is not known"
                self.fleet.unread_policies[policies.plural] = f"{policies.plural}: {error}; {unknown}"
                return False
        self.fleet.unread_policies.pop(policies.plural, None)
        return True

    async def _list(self, resource: Resource) -> str:
        listed, version = set[ObjectId](), ""
        async for page, version in self._client.list(resource):  # noqa: B007 (the last one counts)
            for item in page:
                if self._is_watching or not self.fleet.is_same(resource, item):
                    self.fleet.put(resource, item, is_listed=True)
                listed.add(id_of(resource, item))
            if self.progress:
                self._say(resource, len(listed))
        self.fleet.keep_only(resource, listed)
        return version

    def _say(self, resource: Resource, count: int) -> None:
        name = "clusters" if resource.kind == CLUSTERS.kind else "bindings"
        if resource not in (CLUSTERS, *BINDINGS):
            return
        if resource in BINDINGS:
            count = sum(map(self.fleet.count, BINDINGS))
            total = sum(self._totals.get(kind.kind, 0) for kind in BINDINGS)
        else:
            total = self._totals.get(resource.kind, 0)
        self.progress = f"{count:,} of {max(count, total):,} {name} read"

    def _note(self, what: str, resource: Resource, error: Exception | None, *, tries: int) -> None:  # noqa: ARG002
        """Let the page say what is wrong."""
        if error is not None:
            self._failures[resource.kind] = f"{resource.plural}: {error}"
            if self.progress:
                self.progress = f"{self._failures[resource.kind]}; trying again"
        elif not self._failures.pop(resource.kind, ""):
            return
        self._show_failure()

    def observe(self, _kind: str, _manifest: Mapping[str, Any], /) -> None:
        """The order of events counts, and no own writes are waited for."""

    def is_known(self, kind: str, manifest: Mapping[str, Any], /) -> bool:
        """Return whether an object is not newer than the known one."""
        return self.fleet.is_known(self._resources[kind], manifest)

    async def _watch(self, resource: Resource, requests: WatchRequests) -> None:
        # Its CustomResourceDefinition, or the right to list it, may come later.
        while resource.plural in self.fleet.unread_policies:
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
            await self._may_list(resource)
        reflector = Reflector(resource, self, self, requests, clock=self._clock)
        self._reflectors[resource] = reflector
        async for event in reflector.events():
            if event["type"] == "DELETED":
                self.fleet.remove(resource, event["object"])
            else:
                self.fleet.put(resource, event["object"])
            await self._index_again()

    async def _look_around(self) -> None:
        """Read what is not watched, every ``--refresh`` while somebody looks."""
        while True:
            if await self._visits.next() or self.state.failure:
                self._visits.reading()
                if not self._is_watching:
                    await self._list_each()
                await self._look()
                await self._publish()

    async def _look(self) -> None:
        """Read what is not watched; if that fails, what was known stays, and the page says why."""
        try:
            await self._compare_counts()
            await self.surround()
            await self._index_again()
        except (ApiError, NoAnswerError) as error:
            self._failures["look"] = str(error)
        except Exception as error:
            log.exception("Cannot read what is not watched")
            self._failures["look"] = f"{type(error).__name__}: {error}"
        else:
            self._failures.pop("look", None)

    async def _index_again(self) -> None:
        """Read states again in steps, because lists are answered in between."""
        for _ in self.fleet.index_again():
            await asyncio.sleep(0)

    async def _compare_counts(self) -> None:
        """List a kind again that has had another number of objects at two looks: a list can lack objects, or all of them."""
        wrong = set()
        for resource in dict.fromkeys((CLUSTERS, *self._reflectors)):
            count, _ = await self._client.count(resource)
            if resource in self._reflectors and count != self.fleet.count(resource):
                wrong.add(resource)
        for resource in wrong & self._miscounted:
            log.warning("Listing again: the number of objects differs", extra={"kind": resource.kind})
            self._reflectors[resource].restart()
        self._miscounted = wrong

    async def surround(self) -> None:
        """Read the Leases, and what else is not watched."""
        found = await asyncio.to_thread(live.read_schedulers, self._plane, self.fleet.bindings)
        policies, _ = await asyncio.to_thread(taint_policies_of, self._taint_policies, self._plane, found)
        if not self.progress and self._clock() >= self._next_templates:  # no start waits for them
            await self._read_templates()
        self.fleet.surround(Surroundings(found, self._rules.running, policies, *self._templates))

    async def _read_templates(self) -> None:
        """Read which templates have no binding; the share of time that this takes is bounded."""
        began = self._clock()
        known = replace(self.fleet.objects(self.fleet.bindings), coverage=Coverage(), warnings=[])
        found = await asyncio.to_thread(list_templates, self._plane, known, only_unbound=True)
        self._templates = found, known.coverage.refused.get(TEMPLATES, "")
        self._next_templates = self._clock() + _SHARE * (self._clock() - began)

    async def _publish(self) -> None:
        """Give those who decide the objects as they are now, if they have changed."""
        async with self._publishing:
            await self._publish_now()

    async def _publish_now(self) -> None:
        before, now = self.state, datetime.now(UTC)
        if self.fleet.changes != self._changes or not before.number:
            self._changes = self.fleet.changes
            contents = self.fleet.contents()
            await asyncio.to_thread(clusters_of, contents)  # so that no request waits for it
            self.state = PageState(before.number + 1, before.source, now, contents)
        self._published = self._clock()
        self.state = replace(self.state, read_at=now, problems=self.fleet.problems)
        self._show_failure()

    def _show_failure(self) -> None:
        silent = sorted(kind.plural for kind, each in self._reflectors.items() if each.age > _SILENT_SECONDS)
        found = [*self._failures.values()]
        if silent:
            found.append(f"no event of {', '.join(silent)} for {_SILENT_SECONDS:g} s; is watch allowed?")
        text = f"The objects could not be read again: {'; '.join(found)}" if found else ""
        if text != self.state.failure:
            self.state = replace(self.state, failure=text)


def print_read(state: PageState) -> None:
    """Print how much was read."""
    clusters, bindings = len(state.contents.objects.clusters), len(state.contents.objects.bindings)
    print_error(f"{counted(clusters, 'cluster')} and {counted(bindings, 'binding')} from {state.source}")
