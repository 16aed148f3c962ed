"""What must hold at rest of leaders, caches, placements, records, pages and books: see ``invariants``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from tools.apiserver_model import BY_NAME, Write
from tools.manifests import targets_of
from tools.simulation.bindings import BINDING_KINDS
from tools.simulation.decisions import Targets, read_binding
from tools.simulation.setup import WORKLOAD_READER

if TYPE_CHECKING:
    from tools.simulation.run import Run

Problem = tuple[str, str]
"""The name of an invariant, and how it is broken."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The last write of clusters by a scheduler; controllers may have changed them since.

    Attributes:
        identity: Of the process.
        uid: Of the binding.
        targets: What it wrote.
    """

    identity: str
    uid: str
    targets: Targets

    @classmethod
    def of(cls, identity: str, write: Write) -> Placed:
        """Return what a write has placed."""
        assert write.after is not None  # schedulers patch
        after = orjson.loads(write.after)
        return cls(identity, after["metadata"]["uid"], targets_of(after))


def problems(run: Run, placed: Mapping[BindingKey, Placed]) -> Iterator[Problem]:
    """Yield what is wrong.

    Args:
        run: At rest.
        placed: The last writes of clusters.
    """
    yield from _alive(run)
    yield from _cached(run)
    yield from _workloads(run)
    yield from _recorded(run, placed)
    for page in run.pages[-1:]:
        for problem in page.problems(run.model):
            yield ("shown", f"{page.name}: {problem}")
    yield from _balanced(run)
    for problem in run.works.wrong() if run.works is not None else ():
        yield ("applied", problem)
    if run.started is not None:
        yield from run.started.problems()


def _alive(run: Run) -> Iterator[Problem]:
    leader = run.leader()
    if leader is None:
        yield ("alive", "no process leads")
        return
    server = leader.machine.server
    if server is not None and (problem := server.ready() or server.health()):
        yield ("alive", f"the leader is not ready: {problem}")


def _cached(run: Run) -> Iterator[Problem]:
    stored_clusters = _versions(run, "Cluster")
    stored_bindings = {key: each for kind in BINDING_KINDS for key, each in _versions(run, kind).items()}
    for process in run.running():
        if process.application is None:
            continue
        state = process.application.state
        clusters = {("Cluster", "", each.name): each.resource_version for each in state.clusters}
        bindings = {
            (each.key.kind, each.key.namespace, each.key.name): each.resource_version
            for each in state.bindings
        }
        for what, cached, stored in (
            ("clusters", clusters, stored_clusters),
            ("bindings", bindings, stored_bindings),
        ):
            readable = {key: version for key, version in stored.items() if version is not None}
            known = {key: version for key, version in cached.items() if stored.get(key, "") is not None}
            different = sorted(dict(known.items() ^ readable.items()))
            if different:
                yield ("cached", f"{process.name}: {what} differ from the stored ones: {different[:5]}")


def _workloads(run: Run) -> Iterator[Problem]:
    """Yield where the metadata that plugins would read differs from the stored one.

    A list that lacked a workload counts until the next one, and a watch that delivers nothing until its end: minutes.
    """
    if WORKLOAD_READER not in run.setup.plugins:
        return
    if run.faults.had_wrong_list("deployments") or run.faults.hits["watch_stalled", "WATCH deployments"]:
        run.judge.accepted["a list or a watch of workloads was wrong"] += 1
        return
    deployments = run.model.state("Deployment")
    for raw in (raw for kind in BINDING_KINDS for raw in run.model.state(kind).values()):
        binding = read_binding(raw)
        if binding is None or binding.spec.responsible_scheduler not in run.setup.names:
            continue
        resource = binding.spec.resource
        found = deployments.get((resource.namespace, resource.name))
        metadata = {} if found is None else orjson.loads(found)["metadata"]
        stored = metadata["resourceVersion"] if metadata.get("uid") == resource.uid else ""
        for process in run.running():
            if process.application is None:
                continue
            known = process.application.workloads.stored(binding.key)
            cached = "" if known is None else known.resource_version
            if cached != stored:
                text = f"{process.name}: the workload of {binding.key.display} has version {stored!r}, the cached one {cached!r}"
                yield ("cached", text)


def _versions(run: Run, kind: str) -> dict[tuple[str, str, str], str | None]:
    """Return the resourceVersions of stored objects, None for unreadable ones, which caches keep as they were."""
    read = Cluster.from_manifest if kind == "Cluster" else Binding.from_manifest
    found: dict[tuple[str, str, str], str | None] = {}
    for key, raw in run.model.state(kind).items():
        manifest = orjson.loads(raw)
        try:
            read(manifest)
        except ManifestError:
            found[kind, *key] = None
        else:
            found[kind, *key] = manifest["metadata"]["resourceVersion"]
    return found


def _recorded(run: Run, placed: Mapping[BindingKey, Placed]) -> Iterator[Problem]:
    leader = run.leader()
    if leader is None or leader.application is None or leader.application.records is None:
        return
    records = leader.application.records
    if waiting := records.recorder.waiting():
        yield ("recorded", f"{leader.name}: {waiting} decisions wait for their records")
    for key, last in placed.items():
        raw = run.model.state(key.kind).get(BY_NAME[key.kind].key(key.namespace, key.name))
        is_there = raw is not None and orjson.loads(raw)["metadata"]["uid"] == last.uid
        if last.identity != leader.identity or not is_there:
            continue
        record = records.store.get(key)
        if record is None:
            yield ("recorded", f"{leader.name} has placed {key.display}, and has no record of it")
            continue
        recorded = orjson.loads(record.body)
        if recorded["error"] is None and recorded["targets"] != last.targets:
            yield ("recorded", f"{key.display} got {last.targets}, and its record has {recorded['targets']}")


def _balanced(run: Run) -> Iterator[Problem]:
    leader = run.leader()
    if leader is not None and leader.application is not None:
        for what, number in leader.application.pending().items():
            if number:
                yield ("balanced", f"{leader.name}: {what}: {number}")
    for process in run.running():
        for book in process.scene.books:
            if book.total():
                yield ("balanced", f"{process.name}: reserved and not ended: {dict(book)}")
    for starts in run.starts:
        for process in starts:
            if process.scene.problems:
                yield ("balanced", f"{process.name}: {process.scene.problems[:3]}")
            if process.errors:
                yield ("no exception", f"{process.name}: {process.errors[:3]}")
