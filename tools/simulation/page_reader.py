"""The page that watches a control plane, as a process of its own next to the schedulers. It reads and writes nothing.

What is looked at besides the watches (Leases, which the page reads with another client) is left out.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

import orjson

from karmada_advisor.fleet.plane_access import KindsFound
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.watched import POLICIES, Surroundings
from karmada_advisor.web.watching import Watcher
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from tools.apiserver_model import ApiServerModel
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.environment import Machine
from tools.simulation.loop import EventLoop, MachineClock
from tools.simulation.network import Network
from tools.simulation.simulation import Simulation

_REFRESH_SECONDS: Final = 10.0
_FLAGS: Final = argparse.Namespace(
    kubeconfig="",
    context="",
    kubeconfig_cluster="",
    user="",
    refresh=_REFRESH_SECONDS,
    request_timeout=5.0,
    taint_policies=(),
)


class _Watcher(Watcher):
    """The page's watches over the simulated network."""

    def __init__(self, machine: Machine, clock: Callable[[], float]) -> None:
        connection = machine.connection(lambda *_: None)
        super().__init__(_FLAGS, KindsFound("https://simulated", {}, ""), connection, clock, rules=Rules())

    def on_synced(self) -> None:
        """Print nothing, and freeze nothing: the objects of a run are garbage after it."""

    async def surround(self) -> None:
        self.fleet.surround(Surroundings())


class PageReader:
    """One start of the page.

    Attributes:
        index: Its number for the network, behind those of the schedulers.
        is_dead: Whether it has ended.
        errors: What reached the exception handler of its event loop.
        watcher: Its objects.
    """

    def __init__(
        self, simulation: Simulation, network: Network, *, index: int, start: int, seed: str
    ) -> None:
        """Start it."""
        self.index = index
        self.identity = self.name = f"page_{start}"
        self.is_dead = False
        self.errors: list[str] = []
        clock = MachineClock(simulation.clock)
        self._loop = EventLoop(clock)
        self._loop.set_exception_handler(self._on_error)
        machine = Machine(
            clock=clock,
            boot_clock=simulation.clock,
            main=self._loop,
            supervisor=self._loop,
            transport=network.transport(self),
            random=Random(f"{seed}:product:{self.name}"),
            identity=self.identity,
            on_end=lambda _: None,
            stall=lambda _: None,
            extender_transport=_nothing,
            dial_estimator=_nothing,
        )
        self.watcher = _Watcher(machine, simulation.clock)
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watcher.keep_reading())
            while True:
                self.watcher.note_request()
                await asyncio.sleep(2 * _REFRESH_SECONDS)

    def loops(self) -> Iterator[tuple[EventLoop, float]]:
        if not self.is_dead:
            yield self._loop, 0.0

    def step(self, loop: EventLoop) -> None:
        loop.step()
        if self._task.done() and not self.is_dead:
            self.is_dead = True
            self.errors.append(f"the page has ended: {self._task.exception()!r}")

    def kill(self) -> None:
        """End it at once."""
        self.is_dead = True

    def dispose(self) -> None:
        """Free everything of it, at the end of a run."""
        self.is_dead = True
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.dispose()

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def problems(self, model: ApiServerModel) -> Iterator[str]:
        """Yield how what the page shows differs from what is stored."""
        yield from self.errors
        if self.watcher.progress:
            yield f"it has not read everything: {self.watcher.progress}"
            return
        if self.watcher.state.failure:
            yield self.watcher.state.failure
        fleet = self.watcher.fleet
        contents = fleet.contents()
        shown = {("Cluster", "", each.name): each.resource_version for each in contents.objects.clusters}
        shown |= {(*each.key,): each.resource_version for each in contents.objects.bindings}
        stored = {
            (kind, *key): version
            for kind in ("Cluster", *BINDING_KINDS)
            for key, raw in model.state(kind).items()
            if (version := _version(kind, orjson.loads(raw)))
        }
        if different := sorted(dict(shown.items() ^ stored.items())):
            yield f"objects differ from the stored ones: {different[:5]}"
        policies = {
            (each.kind, *key): orjson.loads(raw)["metadata"]["resourceVersion"]
            for each in POLICIES
            for key, raw in model.state(each.kind).items()
        }
        known = {_id(each): each["metadata"]["resourceVersion"] for each in contents.objects.policies or ()}
        if different := sorted(dict(known.items() ^ policies.items())):
            yield f"policies differ from the stored ones: {different[:5]}"
        index = contents.watched
        made = BindingIndex(fleet.rows(contents.objects.bindings))
        if index is None or list(index.rows) != list(made.rows):
            yield "its lists differ from those made of the same objects"


def _nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("the page calls neither extenders nor estimators")


def _version(kind: str, manifest: Mapping[str, Any]) -> str:
    """Return the version of a stored object; "" for one that cannot be read, which the page names as a problem."""
    try:
        Cluster.from_manifest(manifest) if kind == "Cluster" else Binding.from_manifest(manifest)
    except ManifestError:
        return ""
    return str(manifest["metadata"]["resourceVersion"])


def _id(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]
