"""From manifests to work: what is seen is parsed, cached, and wakes the bindings it concerns.

Everything that is seen comes in here, by watch or by list, and nothing is decided here. All of it runs on
standbys too, so that a new leader starts with warm caches and a filled queue.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karmada_scheduler import logs
from karmada_scheduler.api.binding import KINDS as BINDING_KINDS
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.policy import ID_LABELS as POLICY_KINDS
from karmada_scheduler.api.policy import PROPAGATION_POLICY, Policy, PolicyKey
from karmada_scheduler.cache.bindings import BindingCache
from karmada_scheduler.cache.clusters import ClusterCache
from karmada_scheduler.cache.manifests import ManifestCache
from karmada_scheduler.cache.store import Change, Store
from karmada_scheduler.client import json_body
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.informer import requeue_rules
from karmada_scheduler.informer.cluster_lists import ClusterLists
from karmada_scheduler.informer.cluster_reconcile import ClusterReconciler
from karmada_scheduler.metrics.metrics import Metrics
from karmada_scheduler.scheduling_queue.work_queue import WaitingQueue

log = logging.getLogger(__name__)

Manifest = Mapping[str, Any]
Key = TypeVar("Key")
Object = TypeVar("Object")

CLUSTER: Final = "Cluster"


class PolicyCache(Store[PolicyKey, Policy]):
    """Policies of both kinds by key."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__(lambda policy: policy.key)


class EventHandlers:
    """The one place where what was seen enters the process.

    Attributes:
        follow: Told every change of a binding by its key, None for one that is gone or cannot be read; None while nobody
            follows them.
    """

    def __init__(
        self,
        *,
        bindings: BindingCache,
        clusters: ClusterCache,
        queue: WaitingQueue[BindingKey],
        scheduler_names: Collection[str],
        metrics: Metrics,
        clock: Callable[[], float],
        waiting: WaitingBindings | None = None,
        keep: ManifestCache | None = None,
        on_cluster: Callable[[Cluster | None, Cluster | None], None] | None = None,
        on_binding: Callable[[Binding | None, Binding | None], None] | None = None,
        on_echo: Callable[[BindingKey, int], None] = lambda *_: None,
    ) -> None:
        """Feed the caches and the queue that are given; policies are only kept here.

        Connections to estimators follow clusters (``on_cluster``), assumptions follow bindings (``on_binding``):
        both are told what was there before and is now, None where there is nothing or, of bindings, nothing of ours.

        What waits at Permit (``waiting``) is given up when it, or a cluster that it is to go to, changes.
        Extenders are sent manifests as they came (``keep``); None where there are no extenders.
        Whoever wrote a binding waits for the watch to bring it (``on_echo``).
        """
        self._waiting = waiting
        self._keep = keep
        self._on_cluster = on_cluster
        self._on_binding = on_binding
        self._on_echo = on_echo
        self.follow: Callable[[BindingKey, Binding | None], None] | None = None
        self._bindings = bindings
        self._clusters = clusters
        self._queue = queue
        self._scheduler_names = frozenset(scheduler_names)
        self._metrics = metrics
        self._reconciler = ClusterReconciler(
            bindings=bindings,
            queue=queue,
            is_ours=self._is_ours,
            wake=self._wake,
            metrics=metrics,
            clock=clock,
        )
        self._cluster_lists = ClusterLists(clusters, clock=clock)
        self._kinds: dict[str, _Kind[Any, Any]] = {
            CLUSTER: _Kind(clusters, Cluster.from_manifest, _cluster_key, self._cluster_changed),
        }
        for kind in BINDING_KINDS:
            self._kinds[kind] = _Kind(bindings, Binding.from_manifest, _binding_key, self._binding_changed)
        policies = PolicyCache()
        for kind in POLICY_KINDS:
            self._kinds[kind] = _Kind(policies, Policy.from_manifest, _policy_key, self._policy_changed)
        for kind in self._kinds:
            metrics.watch_cache(kind, partial(self._cached, kind))
            # An alert on their increase misses counters that begin with something else than 0.
            metrics.malformed.labels(kind)
            metrics.repaired.labels(kind, "older")
        self._malformed: dict[tuple[str, object], str] = {}
        self._placed_later: list[BindingKey] | None = None

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Take in what is there at the start; bindings that have no place yet are woken before those that have.

        A scheduler that starts, or whose caches are replaced, looks at every binding again. Most need nothing, and those that wait for their
        first place need not wait for these.
        """
        later = self._placed_later = []
        try:
            yield
        finally:
            self._placed_later = None
            for key in later:
                binding = self._bindings.get(key)
                if binding is not None:
                    self._queue.add(key, binding.spec.priority)

    async def run(self) -> None:
        """Wake the bindings that changed clusters concern, until cancelled."""
        await self._reconciler.run()

    def saw(self, kind: str, event: str, manifest: Manifest) -> None:
        """Take in one event of a watch.

        Args:
            kind: The object's kind.
            event: ``ADDED``, ``MODIFIED`` or ``DELETED``.
            manifest: The object.
        """
        self._metrics.watch_events.labels(kind, event).inc()
        if event == "DELETED" and json_body.unreadable(manifest) is None:
            self._deleted(kind, manifest)
        else:
            self._put(kind, manifest)

    def is_known(self, kind: str, manifest: Manifest) -> bool:
        """Tell whether a change that the watch brings is no news; it may be the echo that somebody waits for."""
        entry = self._kinds[kind]
        key, version = entry.key_of(kind, manifest), _version(manifest)
        if kind in BINDING_KINDS:
            self._on_echo(key, version)
        return self._keep is None and entry.store.knows(key, version)

    def listing(self, kind: str) -> RelistDiff:
        """Begin to take in a complete list of one kind, page by page."""
        return RelistDiff(
            partial(self._kinds[kind].key_of, kind),
            partial(self._put, kind),
            self._metrics.repaired.labels(kind, "missed").inc,
            partial(self._remove_all_but, kind),
        )

    def newest_version(self, kind: str) -> int:
        """Return the highest version of objects of a kind that was seen, 0 if none was."""
        return self._kinds[kind].store.newest_version(lambda key: key_kind(key) == kind)

    def forget_versions(self, kind: str) -> None:
        """Take whatever the next list of a kind has for news: the API server went back to older versions."""
        self._kinds[kind].store.forget_versions(lambda key: key_kind(key) == kind)

    def versions_went_back(self, kind: str, count: int) -> None:
        """Look again at every binding that may be concerned: the same generation may mean something else now.

        Args:
            kind: The kind that a list has shown to be older than it was known.
            count: How many of its objects were.
        """
        log.warning(
            "Objects went back to older versions, as after a restore of etcd",
            extra={"kind": kind, "count": count},
        )
        self._metrics.repaired.labels(kind, "older").inc(count)
        with self.filling():
            for binding in self._bindings:
                concerned = kind in (CLUSTER, binding.key.kind)
                if concerned and requeue_rules.is_responsible(binding, self._scheduler_names):
                    self._wake(binding, requeue_rules.WENT_BACK)

    def _remove_all_but(self, kind: str, keys: Collection[object], version: int) -> int:
        entry, removed = self._kinds[kind], 0
        if kind == CLUSTER and not self._cluster_lists.removes_others(keys):
            return removed
        for known in [each for each in self._malformed if each[0] == kind and each[1] not in keys]:
            del self._malformed[known]
        for key in entry.store.missing_from(keys, version):
            if key_kind(key) != kind:
                continue
            change = self._remove(kind, key, version)
            if change is not None:
                self._metrics.repaired.labels(kind, "gone").inc()
                removed += 1
                self._tell(entry, change)
        if kind == CLUSTER and self._cluster_lists.ended(keys):
            self._reconciler.recheck_unplaced()
        return removed

    def _remove(self, kind: str, key: Any, version: int) -> Change[Any] | None:
        """Take an object out of its cache; return what changed, None if nothing did."""
        was_unreadable = kind == CLUSTER and key in self._clusters.unreadable
        change = self._kinds[kind].store.remove(key, version)
        if was_unreadable:
            self._reconciler.stops_waiting_for(key)
        if change is not None:
            self._forget(key)
        return change

    def _cached(self, kind: str) -> int:
        if kind in BINDING_KINDS:
            return self._bindings.count(kind)
        store = self._kinds[kind].store
        return len(store) if kind == CLUSTER else sum(found.key.kind == kind for found in list(store))

    def _put(self, kind: str, manifest: Manifest, as_of: int | None = None) -> Change[Any] | None:
        entry = self._kinds[kind]
        if (undecoded := json_body.unreadable(manifest)) is not None:
            self._refused(kind, manifest, ValueError(undecoded))
            return None
        key = entry.key_of(kind, manifest)
        if self._keep is None and entry.store.knows(key, _version(manifest), as_of=as_of):
            return None
        if "kind" not in manifest:
            manifest = {**manifest, "kind": kind}
        try:
            parsed = entry.parse(manifest)
            change = entry.store.put(parsed, as_of=as_of)
        except Exception as problem:  # noqa: BLE001 (one object must not keep the others out)
            self._refused(kind, manifest, problem)
            return None
        unreadable = parsed.unreadable_fields if isinstance(parsed, Cluster) else ()
        if unreadable:
            self._note_malformed(
                kind, key, "; ".join(unreadable), "Cannot read fields of an object, they count as absent"
            )
        elif self._malformed:
            self._malformed.pop((kind, key), None)
        if self._keep is not None and entry.store.is_newest(parsed):
            # Also what is no change: the answer to a write of ours is in the cache before its event comes.
            self._keep.stored(parsed, manifest)
        if change is not None:
            self._tell(entry, change)
        return change

    def _tell(self, entry: _Kind[Any, Any], change: Change[Any]) -> None:
        """Let a change have its consequences; what fails of them must end neither a list nor a watch."""
        try:
            entry.on_change(change)
        except Exception:
            log.exception("Cannot follow a change", extra={"object": _key_of(change)})
            if isinstance(change.new, Binding):
                self._queue.add(change.new.key, change.new.spec.priority)

    def _deleted(self, kind: str, manifest: Manifest) -> None:
        entry = self._kinds[kind]
        metadata = manifest.get("metadata") or {}
        key = entry.key_of(kind, manifest)
        self._malformed.pop((kind, key), None)
        change = self._remove(kind, key, int(metadata.get("resourceVersion") or 0))
        if change is not None:
            self._tell(entry, change)

    def _forget(self, key: object) -> None:
        if self._keep is not None:
            self._keep.forgotten(key)

    def _refused(self, kind: str, manifest: Manifest, problem: Exception) -> None:
        """Say once what is wrong with an object, and leave it and what it concerns alone.

        A binding that cannot be read is not scheduled. A cluster that cannot be read stays as it was last
        understood, so that a mistake in one of its fields moves nothing. Where it never was, the bindings that are
        on it keep their places, and no other goes there. That it is being deleted is understood all the same:
        Karmada deletes a cluster when its bindings have left it.
        """
        key, version = self._kinds[kind].key_of(kind, manifest), _version(manifest)
        is_leaving = (manifest.get("metadata") or {}).get("deletionTimestamp") is not None
        message = "Cannot read an object, it is left alone"
        if kind in BINDING_KINDS:
            self._bindings.discard(key)
            self._forget(key)
            if self.follow is not None:
                self.follow(key, None)
        elif kind == CLUSTER and not key:
            self._clusters.set_incomplete(True)  # until a list has none without a name
        elif kind == CLUSTER and is_leaving and version < sys.maxsize:
            change = self._clusters.put_leaving(key, version)
            if change is not None:
                self._cluster_changed(change)
        elif kind == CLUSTER and self._clusters.refuse(key, version, str(problem)):
            message = "Cannot read a Cluster, the bindings on it stay as they are"
        if isinstance(problem, ValueError):
            self._note_malformed(kind, key, str(problem), message)
        else:
            text = f"{type(problem).__name__}: {problem}"
            self._note_malformed(kind, key, text, message, defect=problem)

    def _note_malformed(
        self, kind: str, key: object, problem: str, message: str, defect: Exception | None = None
    ) -> None:
        self._metrics.malformed.labels(kind).inc()
        if self._malformed.get((kind, key)) != problem:
            self._malformed[kind, key] = problem
            extra = {"kind": kind, "object": key, "error": problem}
            log.warning("%s", message, extra=extra, exc_info=defect)

    def _binding_changed(self, change: Change[Binding]) -> None:
        if self._waiting:
            present = change.new or change.old
            assert present is not None  # a change has at least one side
            self._waiting.binding_changed(present.key, change.new, still_ours=self._is_ours)
        if self.follow is not None:
            self.follow((change.new or change.old).key, change.new)  # type: ignore[union-attr]
        if self._on_binding is not None:
            new = change.new
            ours = new is not None and requeue_rules.is_responsible(new, self._scheduler_names)
            self._on_binding(change.old, new if ours else None)
        event = requeue_rules.on_binding(change.old, change.new, self._scheduler_names)
        if event is not None and change.new is not None:
            self._wake(change.new, event)
        elif (
            change.new is not None
            and change.old is not None
            and log.isEnabledFor(logs.V4)
            and requeue_rules.is_responsible(change.new, self._scheduler_names)
        ):
            kind = change.new.key.kind
            log.log(
                logs.V4,
                "Ignore update event of %s %s as specification no change",
                kind[0].lower() + kind[1:],
                change.new.key,
            )

    def _cluster_changed(self, change: Change[Cluster]) -> None:
        old, new = change
        name = (new or old).name  # type: ignore[union-attr]
        verb = "Add" if old is None else "Delete" if new is None else "Update"
        log.log(logs.V3, "%s event for cluster %s", verb, name)
        if self._waiting and (new is None or new.deleting):
            self._waiting.cluster_leaves(name)
        if self._on_cluster is not None:
            self._on_cluster(old, new)
        if old is None:
            self._cluster_lists.added()
            if self._placed_later is not None:
                return  # bindings are listed after clusters, and each is woken
        self._reconciler.changed(old, new)

    def _policy_changed(self, change: Change[Policy]) -> None:
        policy_id = requeue_rules.on_policy(change.old, change.new)
        if policy_id is None:
            return
        for key in self._bindings.claimed_by(policy_id):
            binding = self._bindings.get(key)
            if binding is not None and requeue_rules.is_responsible(binding, self._scheduler_names):
                self._wake(binding, requeue_rules.POLICY_CHANGED)

    def plugins_changed(self) -> None:
        """Wake what has no place: other plugins may find it one."""
        for binding in self._bindings:
            if requeue_rules.is_unplaced(binding) and requeue_rules.is_responsible(
                binding, self._scheduler_names
            ):
                self._wake(binding, requeue_rules.PLUGINS_CHANGED)

    def workload_changed(self, key: BindingKey) -> None:
        """Wake a binding whose workload says something else; whether there is a reason to act is classified as ever."""
        binding = self._bindings.get(key)
        if binding is not None and requeue_rules.is_responsible(binding, self._scheduler_names):
            self._wake(binding, requeue_rules.WORKLOAD_CHANGED)

    def workload_known(self, key: BindingKey) -> None:
        """Let a binding go on that waited for its workload."""
        binding = self._bindings.get(key)
        if binding is not None:
            self._queue.add(key, binding.spec.priority)

    def _is_ours(self, binding: Binding) -> bool:
        return requeue_rules.is_ours(binding, self._scheduler_names)

    def _wake(self, binding: Binding, event: str) -> None:
        self._metrics.queue_incoming.labels(event).inc()
        if self._placed_later is not None and binding.spec.clusters:
            self._placed_later.append(binding.key)
        else:
            self._queue.add(binding.key, binding.spec.priority)


class RelistDiff:
    """A complete list of one kind on its way into the cache, page by page.

    Events may come in between two pages, of objects on any of them: versions decide.
    """

    def __init__(
        self,
        key_of: Callable[[Manifest], object],
        put: Callable[[Manifest, int | None], Change[Any] | None],
        count_missed: Callable[[int], None],
        remove_all_but: Callable[[Collection[object], int], int],
    ) -> None:
        """Begin with no page; made by ``EventHandlers.listing``."""
        self._key_of = key_of
        self._put = put
        self._count_missed = count_missed
        self._remove_all_but = remove_all_but
        self._keys: set[object] = set()
        self._is_complete = True
        self._missed = 0
        self._older = 0

    @property
    def older(self) -> int:
        """How many objects are older in this list than they were known."""
        return self._older

    def take(self, manifests: Iterable[Manifest], *, as_of: int | None = None) -> None:
        """Take in a page of a list ``as_of`` a version."""
        before = self._missed
        for manifest in manifests:
            self._keys.add(self._key_of(manifest))
            if json_body.unreadable(manifest) is not None and not _names(manifest)[1]:
                self._is_complete = False  # it may be any of those that the list seems not to have
            change = self._put(manifest, as_of)
            if change is None or change.is_same_version:
                continue
            if change.went_back:
                self._older += 1
            else:
                self._missed += 1
        self._count_missed(self._missed - before)

    def end(self, resource_version: str) -> int:
        """Take the list for complete; return how many objects the watch had missed or kept.

        Objects that are in the cache and not in the list, and not newer than the list, are gone.
        """
        if not self._is_complete:
            return self._missed + self._older
        return self._missed + self._older + self._remove_all_but(self._keys, int(resource_version))


class _Kind(Generic[Key, Object]):
    """How one kind is parsed, named and kept, and who is told of a change."""

    def __init__(
        self,
        store: Store[Any, Any],
        parse: Callable[[Manifest], Object],
        key_of: Callable[[str, Manifest], Key],
        on_change: Callable[[Change[Any]], None],
    ) -> None:
        self.store = store
        self.parse = parse
        self.key_of = key_of
        self.on_change = on_change


def _key_of(change: Change[Any]) -> object:
    found = change.new or change.old
    return getattr(found, "key", None) or getattr(found, "name", None)


def key_kind(key: str | BindingKey | PolicyKey) -> str:
    """Return the kind of what a key names."""
    return CLUSTER if isinstance(key, str) else key.kind


def _version(manifest: Manifest) -> int:
    """Return the version of an object, one that is news to everybody if it has none."""
    text = (manifest.get("metadata") or {}).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isdecimal() else sys.maxsize


def _names(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _cluster_key(_: str, manifest: Manifest) -> str:
    return _names(manifest)[1]


def _binding_key(kind: str, manifest: Manifest) -> BindingKey:
    namespace, name = _names(manifest)
    return BindingKey(kind, namespace if kind == RESOURCE_BINDING else "", name)


def _policy_key(kind: str, manifest: Manifest) -> PolicyKey:
    namespace, name = _names(manifest)
    return PolicyKey(kind, namespace if kind == PROPAGATION_POLICY else "", name)
