"""The objects of a control plane as their watches deliver them, with the index of the bindings."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from karmada_advisor.fleet.fleet import Coverage, Fleet, reference_of
from karmada_advisor.fleet.packed import PackedManifests
from karmada_advisor.state.propagation import cluster_problem
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.stored import mapping
from karmada_advisor.web.index import BindingIndex
from karmada_advisor.web.indexed_binding import IndexedBinding, indexed
from karmada_advisor.web.state import NOT_READ, PageContents
from karmada_pyscheduler.client import karmada
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import KINDS, Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import Struct, field, replace

Manifest = Mapping[str, Any]

BINDINGS: Final = (karmada.RESOURCE_BINDINGS, karmada.CLUSTER_RESOURCE_BINDINGS)
POLICIES: Final = (karmada.PROPAGATION_POLICIES, karmada.CLUSTER_PROPAGATION_POLICIES)
_AGAIN_AT_ONCE: Final = 20
"""Bindings that are indexed again before ``index_again`` yields."""


class ObjectId(NamedTuple):
    """Kind, namespace ("" without one) and name of an object."""

    kind: str
    namespace: str
    name: str


class Surroundings(Struct):
    """What is read besides the watched objects, again and again.

    Attributes:
        objects: Leases, and the schedulers without one that have left something.
        process: Which schedulers run, as ``Fleet.schedulers`` takes it.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        templates: As ``PageContents`` has them, with ``unread_templates``.
    """

    objects: Fleet = field(default_factory=lambda: Fleet(""))
    process: Mapping[str, str] = field(default_factory=dict)
    taint_policies: Sequence[Manifest] | None = None
    templates: Sequence[Workload] = ()
    unread_templates: str = NOT_READ


class WatchedFleet:
    """Clusters, bindings and policies; for use from one thread, but for what ``contents`` returns.

    Attributes:
        changes: Grows with every change.
        unread_policies: Why policies of a kind cannot be read, by plural.
    """

    def __init__(self, source: str) -> None:
        """Start empty; ``source`` is the URL of the API server."""
        self._source = source
        # Policies as manifests. A BindingKey is equal to the ObjectId of its binding.
        self._known: dict[str, dict[ObjectId | BindingKey, Cluster | Binding | Manifest]]
        self._known = {kind.kind: {} for kind in (karmada.CLUSTERS, *BINDINGS, *POLICIES)}
        self._manifests = PackedManifests()
        self._problems: dict[ObjectId, str] = {}
        self._surroundings = Surroundings()
        self._facts = Facts()
        self._index: BindingIndex | None = None
        self._rendered_rows: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._has_old_rows = False
        self._outdated: dict[BindingKey, None] = {}
        self.unread_policies: dict[str, str] = {}
        self.changes = 0

    @property
    def bindings(self) -> list[Binding]:
        """All bindings."""
        known = (self._known[kind.kind].values() for kind in BINDINGS)
        return [binding for found in known for binding in found if isinstance(binding, Binding)]

    def put(self, resource: karmada.Resource, item: Manifest, *, is_listed: bool = False) -> None:
        """Take an object.

        Args:
            resource: Its kind.
            item: The object; apiVersion and kind may be missing, as in lists.
            is_listed: Whether it is from a list, which counts whatever was known. From a watch, an object that is not
                newer than the known one of the same uid changes nothing.
        """
        found = id_of(resource, item)
        if not is_listed and not self._is_newer(found, item):
            return
        self.changes += 1
        self._problems.pop(found, None)
        problem = json_body.unreadable(item)
        try:
            if not problem:
                self._store(found, resource.typed(item))
        except ManifestError as error:
            problem = str(error)
        if problem:
            self._forget(found)
            self._problems[found] = f"{found.kind} {found.name}: {problem}"

    def remove(self, resource: karmada.Resource, item: Manifest) -> None:
        """Forget an object that was deleted, unless another one of its name is known."""
        found = id_of(resource, item)
        uid, version = self._version_of(found)
        deleted = mapping(item.get("metadata"))
        if uid and deleted.get("uid", uid) != uid and _number(deleted) <= version:
            return
        self._forget(found)
        self._problems.pop(found, None)

    def keep_only(self, resource: karmada.Resource, listed: Collection[ObjectId]) -> None:
        """Forget the objects of a kind that a complete list lacks."""
        known = map(ObjectId._make, self._known[resource.kind])
        unread = (problem for problem in self._problems if problem.kind == resource.kind)
        for key in [found for found in (*known, *unread) if found not in listed]:
            self._forget(key)
            self._problems.pop(key, None)

    def count(self, resource: karmada.Resource) -> int:
        """Return the number of known objects of a kind, those included that cannot be read."""
        unread = sum(problem.kind == resource.kind for problem in self._problems)
        return len(self._known[resource.kind]) + unread

    def _version_of(self, found: ObjectId) -> tuple[str, int]:
        """Return uid and version of a known object; "" and -1 for none."""
        known = self._known[found.kind].get(found)
        if known is None:
            return "", -1
        if isinstance(known, Mapping):
            metadata = mapping(known.get("metadata"))
            return str(metadata.get("uid") or ""), _number(metadata)
        return known.uid, _version(known.resource_version)

    def _is_newer(self, found: ObjectId, item: Manifest) -> bool:
        _, version = self._version_of(found)
        return _number(mapping(item.get("metadata"))) > version

    def is_known(self, resource: karmada.Resource, item: Manifest) -> bool:
        """Return whether an object is not newer than the known one."""
        return not self._is_newer(id_of(resource, item), item)

    def is_same(self, resource: karmada.Resource, item: Manifest) -> bool:
        """Return whether this version of an object is the known one."""
        metadata = mapping(item.get("metadata"))
        version = str(metadata.get("uid") or ""), _number(metadata)
        return self._version_of(id_of(resource, item)) == version

    def _store(self, found: ObjectId, manifest: Manifest) -> None:
        if found.kind == karmada.CLUSTERS.kind:
            cluster = Cluster.from_manifest(manifest)
            before = _concern(found.name, self._manifests.get(found.name))
            self._known[found.kind][found] = cluster
            self._manifests[found.name] = manifest
            if _concern(found.name, manifest) != before:
                self._index_again_on(found.name)
        elif found.kind in KINDS:
            binding = Binding.from_manifest(manifest)
            self._known[found.kind][binding.key] = binding
            self._manifests[binding.key] = manifest
            if self._index is not None:
                self._put_row(binding)
        else:
            self._known[found.kind][found] = manifest

    def _put_row(self, binding: Binding) -> None:
        """Index a binding as it is now."""
        assert self._index is not None
        self._outdated.pop(binding.key, None)
        self._index.put(indexed(binding, self._manifests.get(binding.key), self._facts))

    def _forget(self, found: ObjectId) -> None:
        self.changes += 1
        known = self._known[found.kind].pop(found, None)
        if isinstance(known, Cluster):
            del self._manifests[found.name]
            self._index_again_on(found.name)
        elif isinstance(known, Binding):
            del self._manifests[known.key]
            self._outdated.pop(known.key, None)
            if self._index is not None:
                self._index.remove(known.key)

    def _index_again_on(self, cluster: str) -> None:
        """Let the states of the bindings on a cluster be read again."""
        self._outdate(self._index.on(cluster) if self._index is not None else ())

    def _outdate(self, rows: Iterable[IndexedBinding]) -> None:
        self._has_old_rows = True
        self._outdated.update((row.key, None) for row in rows)

    def index_again(self) -> Iterator[None]:
        """Read the states again that have changed with something else than the binding; yields after some 5 ms of work."""
        while self._outdated:
            for key in list(itertools.islice(self._outdated, _AGAIN_AT_ONCE)):
                known = self._known[key.kind][key]
                assert isinstance(known, Binding)
                self._put_row(known)
            yield

    def surround(self, found: Surroundings) -> None:
        """Take what is read besides; ``index_again`` reads the states that depend on it."""
        if _templates_of(found) != _templates_of(self._surroundings):
            self.changes += 1
        before, self._surroundings = self._facts, found
        self._facts = self.objects([]).facts(found.process)
        if self._index is None:
            return
        names = {binding.spec.responsible_scheduler for binding in self.bindings}
        changed = {
            name
            for name in names
            if before.schedulers.of(name).status != self._facts.schedulers.of(name).status
        }
        is_other = (before.policies is None) != (self._facts.policies is None)
        if changed or is_other:
            self.changes += 1
            self._outdate(
                row
                for row in self._index.rows
                if is_other or row.binding.spec.responsible_scheduler in changed
            )

    def rows(self, bindings: Iterable[Binding]) -> list[IndexedBinding]:
        """Return what an index holds of bindings; the index is made of those of all."""
        return [indexed(binding, self._manifests.get(binding.key), self._facts) for binding in bindings]

    def begin(self, rows: Iterable[IndexedBinding]) -> None:
        """Make the index; from now on each change updates it."""
        self._index = BindingIndex(rows)

    def objects(self, bindings: list[Binding]) -> Fleet:
        """Return the objects as they are now, with some of the bindings."""
        policies = [manifest for resource in POLICIES for manifest in self._known[resource.kind].values()]
        return replace(
            self._surroundings.objects,
            source=self._source,
            is_live=True,
            clusters=list(self._known[karmada.CLUSTERS.kind].values()),
            bindings=bindings,
            manifests=self._manifests.copy() if bindings else self._manifests,
            policies=None if self.unread_policies else policies,
            coverage=Coverage({kind.kind for kind in (karmada.CLUSTERS, *BINDINGS)}),
            problems=list(self._problems.values()),
            unreadable={BindingKey(*key): text for key, text in self._problems.items() if key.kind in KINDS},
            warnings=[*self._surroundings.objects.warnings, *self.unread_policies.values()],
        )

    def contents(self) -> PageContents:
        """Return the objects as they are now for those who decide, with the index, which goes on changing."""
        if self._has_old_rows:  # what rows say besides the binding has changed
            self._rendered_rows = OrderedDict()
            self._has_old_rows = False
        objects = self.objects(self.bindings)
        around = self._surroundings
        facts = objects.facts(around.process)
        known = (around.taint_policies, around.templates, around.unread_templates)
        return PageContents(objects, facts, *known, self._index, self._rendered_rows)

    @property
    def problems(self) -> Sequence[str]:
        """What could not be read, one line each."""
        found = self.objects([])
        return [*found.problems, *found.warnings]


def _templates_of(found: Surroundings) -> tuple[object, ...]:
    return found.unread_templates, [(reference_of(template), template.labels) for template in found.templates]


def id_of(resource: karmada.Resource, item: Manifest) -> ObjectId:
    """Return the identity of an object of a kind."""
    metadata = mapping(item.get("metadata"))
    return ObjectId(resource.kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _number(metadata: Manifest) -> int:
    return _version(str(metadata.get("resourceVersion") or ""))


def _version(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _concern(name: str, manifest: Manifest | None) -> object:
    """Return what the states of bindings depend on in a cluster."""
    if manifest is None:
        return None
    return cluster_problem(name, manifest), bool(mapping(manifest.get("metadata")).get("deletionTimestamp"))
