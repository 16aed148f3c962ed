"""The workloads that bindings name: their metadata, and which bindings are enqueued when it changes.

Nothing is watched or stored while no plugin needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from karmada_pyscheduler.client.metadata import KindName, MetadataClient
from karmada_pyscheduler.informer.workloads.metadata_reflector import Dependencies, MetadataReflector
from karmada_pyscheduler.informer.workloads.metadata_store import MetadataStore, Missing, Name, State
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.structs import Struct, field

PATIENCE_SECONDS: Final = 5.0
"""How long a binding waits for the metadata of its workload."""

_READS: Final = 8
"""Number of single objects that are read at the same time."""
_MARGIN_SECONDS: Final = 0.01


class NotSynced(Struct, frozen=True):
    """The metadata was not read yet; ``on_synced`` is called with the binding when it is.

    Attributes:
        retry_after: Seconds after which to look it up again without that call.
    """

    retry_after: float


class _Reference(Struct, frozen=True):
    """The workload that a binding names."""

    kind: KindName
    name: Name
    uid: str


def _reference(binding: Binding) -> _Reference:
    resource = binding.spec.resource
    kind = KindName(resource.api_version, resource.kind)
    return _Reference(kind, (resource.namespace, resource.name), resource.uid)


class _Kind(Struct):
    """A kind of workload that bindings name.

    Attributes:
        reflector: Lists and watches its metadata.
        bindings: The bindings that name an object, by the object's name.
    """

    reflector: MetadataReflector
    bindings: dict[Name, dict[BindingKey, None]] = field(default_factory=dict)


class WorkloadInformer(Struct):
    """The metadata of the workloads that bindings name; for use from one event loop.

    Attributes:
        client: Reads metadata.
        is_needed: Returns whether a plugin of a binding's profile needs its workload.
        on_change: Called with the key of a binding whose workload has other metadata than before.
        on_synced: Called with the key of a binding for which ``look_up`` returned ``NotSynced``, when it has
            another answer.
        clock: In seconds, never running backwards.
        sleep: Waits for a number of seconds.
        patience: Maximum wait of a binding for the list of its kind, or for the read of its workload, in seconds.
    """

    client: MetadataClient
    is_needed: Callable[[Binding], bool]
    on_change: Callable[[BindingKey], None]
    on_synced: Callable[[BindingKey], None]
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    patience: float = PATIENCE_SECONDS
    _reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READS))
    _followed: dict[BindingKey, _Reference] = field(default_factory=dict)
    _kinds: dict[KindName, _Kind] = field(default_factory=dict)
    _waiting: dict[BindingKey, None] = field(default_factory=dict)
    _without_metadata: set[BindingKey] = field(default_factory=set)
    _first: dict[KindName, float] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of objects whose metadata is stored; may be called from any thread."""
        return sum(len(informer.reflector.store) for informer in list(self._kinds.values()))

    @property
    def kinds(self) -> list[KindName]:
        """The kinds that are watched."""
        return sorted(self._kinds)

    def unavailable(self) -> list[KindName]:
        """Return the kinds that are not listed yet, or cannot be watched; may be called from any thread."""
        return [
            name
            for name, informer in list(self._kinds.items())
            if informer.reflector.problem or not informer.reflector.is_synced
        ]

    def follow_all(self, bindings: Iterable[Binding]) -> None:
        """Watch the workloads of these bindings and of no others, as far as plugins need them."""
        wanted = {binding.key: binding for binding in bindings if self.is_needed(binding)}
        # A list only has the objects that are wanted when it starts, so the kinds of new bindings are listed again.
        listed_again = {
            _reference(binding).kind for key, binding in wanted.items() if key not in self._followed
        }
        for key, reference in list(self._followed.items()):
            if key not in wanted or reference.kind in listed_again:
                self._unfollow(key)
        for key, binding in wanted.items():
            self._follow(key, binding)
        for name, informer in self._kinds.items():
            informer.reflector.start()
            if not informer.reflector.is_synced:
                self._first[name] = informer.reflector.started

    def on_binding_change(self, old: Binding | None, new: Binding | None) -> None:
        """Watch the workload that a changed binding names now; None for a deleted binding."""
        if new is not None and self.is_needed(new):
            self._follow(new.key, new)
            reference = self._followed[new.key]
            reflector = self._kinds[reference.kind].reflector
            reflector.start()
            if reflector.is_synced and reflector.store.find(reference.name, reference.uid) is None:
                reflector.get_object(reference.name)  # the watch has not delivered it
        elif (present := new or old) is not None:
            self._unfollow(present.key)

    def stored(self, key: BindingKey) -> Workload | None:
        """Return the metadata of the workload of a binding that is followed; None if it is not known."""
        reference = self._followed.get(key)
        if reference is None:
            return None
        found = self._kinds[reference.kind].reflector.store.find(reference.name, reference.uid)
        return found if isinstance(found, Workload) else None

    def look_up(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        """Return the metadata of the workload of a binding, or why there is none; never waits.

        No binding gets an answer before the kinds of ``follow_all`` are synced, or their time is up: plugins read the
        workloads of other bindings, too.
        """
        key = binding.key
        self._follow(key, binding)
        reference = self._followed[key]
        reflector = self._kinds[reference.kind].reflector
        reflector.start()
        if (left := self._first_lists_left()) > 0:
            self._waiting[key] = None
            return NotSynced(left + _MARGIN_SECONDS)
        found = reflector.store.find(reference.name, reference.uid)
        if isinstance(found, Workload):
            self._waiting.pop(key, None)
            self._without_metadata.discard(key)
            return WorkloadAnswer(found)
        problem = found.reason if isinstance(found, Missing) else reflector.problem
        if problem:
            return self._no_metadata(key, problem)
        started, last_error = reflector.started, reflector.last_error
        if reflector.is_synced:
            pending = reflector.get_object(reference.name)
            if pending.problem:
                return self._no_metadata(key, pending.problem)
            started, last_error = pending.started, pending.last_error
        left = started + self.patience - self.clock()
        if left > 0:
            self._waiting[key] = None
            return NotSynced(left + _MARGIN_SECONDS)
        text = f"the metadata of {reference.kind} was not read within {self.patience:g}s"
        return self._no_metadata(key, f"{text}: {last_error}" if last_error else text)

    def close(self) -> None:
        """Stop all watches and delete all metadata."""
        for key in list(self._followed):
            self._unfollow(key)

    def _first_lists_left(self) -> float:
        """Return for how many seconds the first lists may still be waited for; 0 if none is missing."""
        if not self._first:
            return 0.0
        self._first = {
            name: started
            for name, started in self._first.items()
            if (kind := self._kinds.get(name)) and not kind.reflector.is_synced and not kind.reflector.problem
        }
        latest = max(self._first.values(), default=-self.patience)
        return max(latest + self.patience - self.clock(), 0.0) if self._first else 0.0

    def _no_metadata(self, key: BindingKey, problem: str) -> WorkloadAnswer:
        self._waiting.pop(key, None)
        self._without_metadata.add(key)
        return WorkloadAnswer(None, problem)

    def _follow(self, key: BindingKey, binding: Binding) -> None:
        reference = _reference(binding)
        known = self._followed.get(key)
        if known == reference:
            return
        if known is not None and (known.kind, known.name) != (reference.kind, reference.name):
            self._unfollow(key)
        self._followed[key] = reference
        kind = self._kinds.get(reference.kind)
        if kind is None:
            kind = self._kinds[reference.kind] = self._new_kind(reference.kind)
        kind.bindings.setdefault(reference.name, {})[key] = None
        kind.reflector.store.want(reference.name)

    def _unfollow(self, key: BindingKey) -> None:
        reference = self._followed.pop(key, None)
        if reference is None:
            return
        self._waiting.pop(key, None)
        self._without_metadata.discard(key)
        kind = self._kinds[reference.kind]
        keys = kind.bindings[reference.name]
        keys.pop(key, None)
        if not keys:
            del kind.bindings[reference.name]
            kind.reflector.drop(reference.name)
        if not kind.bindings:
            del self._kinds[reference.kind]
            kind.reflector.stop()

    def _new_kind(self, name: KindName) -> _Kind:
        def on_state_change() -> None:
            self._requeue([key for keys in kind.bindings.values() for key in keys])
            if self._first and not self._first_lists_left():
                self._requeue(tuple(self._waiting))

        def on_metadata_change(about: Name, before: State, now: State) -> None:
            keys = kind.bindings.get(about, ())
            self._requeue(keys)
            if isinstance(before, Workload) and isinstance(now, Workload):
                for key in keys:
                    self.on_change(key)

        def on_get(about: Name) -> None:
            self._requeue(kind.bindings.get(about, ()))

        store = MetadataStore(name.kind, on_metadata_change)
        dependencies = Dependencies(client=self.client, clock=self.clock, sleep=self.sleep, reads=self._reads)
        kind = _Kind(
            MetadataReflector(name, store, dependencies, on_state_change=on_state_change, on_get=on_get)
        )
        return kind

    def _requeue(self, keys: Iterable[BindingKey]) -> None:
        """Enqueue the bindings that wait, and those that were scheduled without metadata."""
        for key in keys:
            if key in self._waiting:
                self._waiting.pop(key, None)
                self.on_synced(key)
            elif key in self._without_metadata:
                self._without_metadata.discard(key)
                self.on_change(key)
