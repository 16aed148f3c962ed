"""Puts objects from watches and lists into the caches, and adds the bindings that they concern to the queue.

Every object that a watch or a list delivers is handled here, and nothing is decided here. A standby runs the same
handlers, so a new leader starts with complete caches and a filled queue.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from karmada_pyscheduler.cache.bindings import BindingCache, RefusedBindings
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.cache.store import Change, Store
from karmada_pyscheduler.informer.cluster_lists import ClusterLists
from karmada_pyscheduler.informer.cluster_reads import ClusterReads
from karmada_pyscheduler.informer.cluster_reconcile import ChangeHandlers, ClusterReconciler, key_of
from karmada_pyscheduler.informer.object_kinds import (
    CLUSTER,
    LEFT_ALONE,
    MalformedObjects,
    ObjectKind,
    RelistDiff,
    key_kind,
    object_key,
    version_of,
)
from karmada_pyscheduler.informer.requeue import Listeners, Requeuer
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.scheduling_queue.queue import SchedulingQueue
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import KINDS as BINDING_KINDS
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import ID_LABELS as POLICY_KINDS
from karmada_scheduler.api.policy import Policy, PolicyKey
from karmada_scheduler.structs import IdentityStruct

log = logging.getLogger(__name__)

_NO_LISTENERS = Listeners()


class EventHandlers(IdentityStruct, kw_only=True):
    """The handlers of all watched kinds.

    Attributes:
        bindings: The cache of bindings.
        clusters: The cache of clusters.
        queue: The scheduling queue.
        scheduler_names: The schedulers of this process, by the names that bindings have for them.
        metrics: The metrics of the process.
        clock: In seconds.
        refused: The bindings that wait for changes which plugins declare.
        manifests: Stores objects as they were sent, for extenders; None without extenders.
        listeners: Called after a cache has changed.
        on_empty_list: Called when a list without clusters has to be confirmed, with the seconds after which another
            one is needed.
        requeuer: Adds bindings to the scheduling queue. The first list of all kinds is ``deferring_placed``.
        cluster_lists: Confirms complete lists of clusters.
        cluster_reads: Reads the clusters that these lack.
    """

    bindings: BindingCache
    clusters: ClusterCache
    queue: SchedulingQueue[BindingKey]
    scheduler_names: Collection[str]
    metrics: Metrics
    clock: Callable[[], float]
    refused: RefusedBindings
    manifests: ManifestCache | None = None
    listeners: Listeners = _NO_LISTENERS
    on_empty_list: Callable[[float], None] = lambda _: None

    def __post_init__(self) -> None:
        names = frozenset(self.scheduler_names)
        self.requeuer = Requeuer(
            bindings=self.bindings,
            queue=self.queue,
            scheduler_names=names,
            metrics=self.metrics,
            listeners=self.listeners.enqueued,
        )
        self._reconciler = ClusterReconciler(
            self.requeuer,
            bindings=self.bindings,
            queue=self.queue,
            metrics=self.metrics.workqueues.of("ClusterReconcileWorker"),
            clock=self.clock,
            refused=self.refused,
        )
        self.cluster_reads = ClusterReads(
            on_found=partial(self._put, CLUSTER), on_absent=self.clusters_absent, clock=self.clock
        )
        self.cluster_lists = ClusterLists(
            self.clusters,
            self.bindings,
            is_assigned=self.requeuer.is_assigned,
            clock=self.clock,
            request_list=self.on_empty_list,
            reads=self.cluster_reads,
        )
        handlers = ChangeHandlers(
            requeuer=self.requeuer,
            reconciler=self._reconciler,
            cluster_lists=self.cluster_lists,
            scheduler_names=names,
            listeners=self.listeners,
        )
        self._malformed = MalformedObjects(lambda kind: self.metrics.api_server.malformed.labels(kind).inc())
        of_binding = ObjectKind(
            self.bindings, Binding.from_manifest, handlers.binding_changed, self._unreadable_binding
        )
        policies = Store[PolicyKey, Policy](lambda policy: policy.key)
        self._kinds = {
            CLUSTER: ObjectKind(
                self.clusters, Cluster.from_manifest, handlers.cluster_changed, self._unreadable_cluster
            ),
            **dict.fromkeys(BINDING_KINDS, of_binding),
            **dict.fromkeys(
                POLICY_KINDS, ObjectKind(policies, Policy.from_manifest, handlers.policy_changed)
            ),
        }
        for kind in self._kinds:
            self.metrics.api_server.cached.labels(kind).set_function(partial(self._cached, kind))
            # An alert on their increase misses counters whose first value is not 0.
            self.metrics.api_server.malformed.labels(kind)
            self.metrics.api_server.repairs.labels(kind, "older")

    async def run(self) -> None:
        """Add the bindings that changed clusters concern to the queue, until cancelled."""
        await self._reconciler.run()

    def on_event(self, kind: str, event: str, manifest: Manifest) -> None:
        """Handle one event of a watch.

        Args:
            kind: The object's kind.
            event: ``ADDED``, ``MODIFIED`` or ``DELETED``.
            manifest: The object.
        """
        self.metrics.api_server.watch_events.labels(kind, event).inc()
        if event == "DELETED" and json_body.unreadable(manifest) is None:
            self._deleted(kind, manifest)
        else:
            self._put(kind, manifest)

    def observe(self, kind: str, manifest: Manifest) -> None:
        """Report the version of a changed object to the listeners of versions; the caches stay as they are."""
        if kind in BINDING_KINDS:
            key, version = object_key(kind, manifest), version_of(manifest)
            for listener in self.listeners.versions:
                listener(key, version)

    def is_known(self, kind: str, manifest: Manifest) -> bool:
        """Return whether the cache has this version of an object, or a newer one, so that an event changes nothing."""
        if self.manifests is not None:  # it may lack the manifest of a version that the cache has
            return False
        return self._kinds[kind].store.is_known(object_key(kind, manifest), version_of(manifest))

    def relist_diff(self, kind: str, *, by_content: bool = False) -> RelistDiff:
        """Return the object that compares a complete list of one kind with the cache, page by page.

        Args:
            kind: The kind.
            by_content: Whether objects of the same version are compared, too. All objects are parsed for that.
        """
        return RelistDiff(
            kind,
            partial(self._put, kind, by_content=by_content),
            self.metrics.api_server.repairs.labels(kind, "missed").inc,
            partial(self._remove_all_but, kind),
        )

    def newest_version(self, kind: str) -> int:
        """Return the highest resourceVersion of the objects of a kind, deleted ones included; 0 if there was none."""
        return self._kinds[kind].store.newest_version(lambda key: key_kind(key) == kind)

    def forget_versions(self, kind: str) -> None:
        """Let any version of the objects of a kind count as new, after a rollback of the API server."""
        self._kinds[kind].store.forget_versions(lambda key: key_kind(key) == kind)
        if kind == CLUSTER:
            self.cluster_reads.as_of = 0

    def clusters_absent(self, names: Iterable[str], as_of: int) -> None:
        """Remove clusters that do not exist and that a list of a version lacked, unless it has to be confirmed."""
        if not self.cluster_lists.is_confirming:
            for name in sorted(names):
                self._remove_missed(CLUSTER, name, as_of)

    def on_version_rollback(self, kind: str, count: int) -> None:
        """Add every binding that a rollback may concern to the queue.

        Args:
            kind: The kind whose list was older than the cache.
            count: The number of its objects that were older.
        """
        log.warning(
            "Objects went back to older versions, as after a restore of etcd",
            extra={"kind": kind, "count": count},
        )
        self.metrics.api_server.repairs.labels(kind, "older").inc(count)
        self.requeuer.on_version_rollback(kind)

    def _remove_all_but(self, kind: str, keys: Collection[object], version: int) -> int:
        entry, removed = self._kinds[kind], 0
        if kind == CLUSTER and not self.cluster_lists.removes_others(keys):
            return removed
        self._malformed.retain(kind, keys)
        for key in entry.store.missing_from(keys, version):
            if key_kind(key) != kind:
                continue
            removed += self._remove_missed(kind, key, version)
        if kind == CLUSTER and self.cluster_lists.finished(keys):
            self._reconciler.recheck_unplaced()
        return removed

    def _remove_missed(self, kind: str, key: Any, version: int) -> bool:
        """Remove an object whose deletion no watch has delivered; return whether it was stored."""
        change = self._remove(kind, key, version)
        if change is None:
            return False
        self.metrics.api_server.repairs.labels(kind, "gone").inc()
        self._handle(self._kinds[kind], change)
        return True

    def _remove(self, kind: str, key: Any, version: int) -> Change[Any] | None:
        """Remove an object from its cache; return what changed, None if nothing did."""
        was_unreadable = kind == CLUSTER and key in self.clusters.unreadable
        change = self._kinds[kind].store.remove(key, version)
        if was_unreadable:
            self._reconciler.on_unreadable_gone(key)
        if change is not None:
            self._forget_manifest(key)
        return change

    def _cached(self, kind: str) -> int:
        if kind in BINDING_KINDS:
            return self.bindings.count(kind)
        store = self._kinds[kind].store
        return len(store) if kind == CLUSTER else sum(found.key.kind == kind for found in list(store))

    def _put(
        self, kind: str, manifest: Manifest, as_of: int | None = None, *, by_content: bool = False
    ) -> Change[Any] | None:
        entry, key = self._kinds[kind], object_key(kind, manifest)
        if kind == CLUSTER:
            self.cluster_reads.forget(key)
        if (undecoded := json_body.unreadable(manifest)) is not None:
            self._on_unreadable(kind, manifest, ValueError(undecoded))
            return None
        must_parse = by_content or self.manifests is not None
        if not must_parse and entry.store.is_known(key, version_of(manifest), as_of=as_of):
            return None
        if "kind" not in manifest:
            manifest = {**manifest, "kind": kind}
        try:
            parsed = entry.parse(manifest)
            change = entry.store.put(parsed, as_of=as_of, by_content=by_content)
        except Exception as problem:  # noqa: BLE001 (one object must not keep the others out)
            self._on_unreadable(kind, manifest, problem)
            return None
        unreadable = parsed.unreadable_fields if isinstance(parsed, Cluster) else ()
        if unreadable:
            message = "Cannot read fields of an object, they count as absent"
            self._malformed.add(kind, key, "; ".join(unreadable), message)
        else:
            self._malformed.discard(kind, key)
        if self.manifests is not None and entry.store.is_newest(parsed):
            # Also without a change: the cache has the answer to an own write before the event arrives.
            self.manifests.stored(parsed, manifest)
        if change is not None:
            self._handle(entry, change)
        return change

    def _handle(self, entry: ObjectKind, change: Change[Any]) -> None:
        """Call the handler of a change; its errors end neither a list nor a watch."""
        try:
            entry.on_change(change)
        except Exception:
            log.exception("Cannot follow a change", extra={"object": key_of(change)})
            if isinstance(change.new, Binding):
                self.queue.add(change.new.key, change.new.spec.priority)

    def _deleted(self, kind: str, manifest: Manifest) -> None:
        entry = self._kinds[kind]
        metadata = manifest.get("metadata") or {}
        key = object_key(kind, manifest)
        self._malformed.discard(kind, key)
        if kind == CLUSTER:
            self.cluster_reads.forget(key)
        change = self._remove(kind, key, int(metadata.get("resourceVersion") or 0))
        if change is not None:
            self._handle(entry, change)

    def _forget_manifest(self, key: object) -> None:
        if self.manifests is not None:
            self.manifests.forgotten(key)

    def _on_unreadable(self, kind: str, manifest: Manifest, problem: Exception) -> None:
        """Log an unreadable object once, and leave the object and affected bindings unchanged."""
        key = object_key(kind, manifest)
        message = self._kinds[kind].on_unreadable(key, manifest, problem)
        if isinstance(problem, ValueError):
            self._malformed.add(kind, key, str(problem), message)
        else:
            text = f"{type(problem).__name__}: {problem}"
            self._malformed.add(kind, key, text, message, defect=problem)

    def _unreadable_binding(self, key: BindingKey, _manifest: Manifest, _problem: Exception) -> str:
        """Forget a binding: it is not scheduled until it can be read."""
        self.bindings.discard(key)
        self._forget_manifest(key)
        return LEFT_ALONE

    def _unreadable_cluster(self, name: str, manifest: Manifest, problem: Exception) -> str:
        """Keep the last readable version of a cluster, so that an invalid field moves no binding.

        Without a readable version, the bindings on the cluster stay there, and no other binding is placed on it. Its
        deletion is handled all the same: Karmada deletes a cluster when its bindings have left it.
        """
        version = version_of(manifest)
        is_deleting = (manifest.get("metadata") or {}).get("deletionTimestamp") is not None
        if not name:
            self.clusters.set_incomplete(True)  # until no object of a list lacks a name
        elif is_deleting and version < sys.maxsize:
            change = self.clusters.put_deleting(name, version)
            if change is not None:
                self._kinds[CLUSTER].on_change(change)
        elif self.clusters.refuse(name, version, str(problem)):
            return "Cannot read a Cluster, the bindings on it stay as they are"
        return LEFT_ALONE
