"""Which workloads bindings name, what is known of them, and which bindings are woken by what changes.

Nothing is watched, and nothing is kept, while no plugin needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.workload import Workload, WorkloadAnswer
from karmada_scheduler.client.metadata import KindName
from karmada_scheduler.informer.workloads.metadata_store import MetadataStore, Missing, Name, State
from karmada_scheduler.informer.workloads.reflector import Client, Dependencies, Reflector

PATIENCE_SECONDS: Final = 5.0
"""How long a binding waits for the metadata of its workload."""

_READS: Final = 8
"""How many single objects are read at a time."""
_MARGIN_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class NotSynced:
    """The metadata is not known yet; whoever asked for it is told when it is.

    Attributes:
        retry_after: Seconds after which to ask again if nobody was told before.
    """

    retry_after: float


@dataclass(frozen=True, slots=True)
class _Reference:
    """The workload that a binding names."""

    kind: KindName
    name: Name
    uid: str


class _Kind:
    """A kind that occurs.

    Attributes:
        reflector: Keeps its metadata.
        bindings: Those that name an object, by its name.
    """

    def __init__(self, reflector: Reflector) -> None:
        self.reflector = reflector
        self.bindings: dict[Name, set[BindingKey]] = {}


class WorkloadInformer:
    """The metadata of the workloads that some bindings name; to be used from one event loop."""

    def __init__(
        self,
        client: Client,
        *,
        wants: Callable[[Binding], bool],
        wake: Callable[[BindingKey], None],
        resume: Callable[[BindingKey], None],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """Watch nothing yet.

        Args:
            client: Reads metadata.
            wants: Tells whether a plugin that decides about a binding needs its workload.
            wake: Told the key of a binding whose workload says something else than before.
            resume: Told the key of a binding that ``look_up`` let wait, when it need not wait any longer.
            clock: In seconds, never running backwards.
            sleep: Waits for so many seconds.
            patience: Seconds that a binding waits at most: for the list of its kind, or for the read of its workload.
        """
        self._wants = wants
        self._wake = wake
        self._resume = resume
        self._clock = clock
        self._patience = patience
        self._deps = Dependencies(client=client, clock=clock, sleep=sleep, reads=asyncio.Semaphore(_READS))
        self._followed: dict[BindingKey, _Reference] = {}
        self._kinds: dict[KindName, _Kind] = {}
        self._waiting: set[BindingKey] = set()
        self._answered_none: set[BindingKey] = set()

    def __len__(self) -> int:
        """Count the objects whose metadata is kept; may be asked from any thread."""
        return sum(len(each.reflector.store) for each in list(self._kinds.values()))

    @property
    def kinds(self) -> list[KindName]:
        """The kinds that are watched."""
        return sorted(self._kinds)

    def unavailable(self) -> list[KindName]:
        """Return the kinds that are not listed yet, or cannot be watched; may be asked from any thread."""
        return [
            name
            for name, each in list(self._kinds.items())
            if each.reflector.problem or not each.reflector.is_synced
        ]

    def follow_all(self, bindings: Iterable[Binding]) -> None:
        """Follow these bindings and no others, as far as plugins need their workloads."""
        wanted = {each.key: each for each in bindings if self._wants(each)}
        for key in self._followed.keys() - wanted.keys():
            self._unfollow(key)
        for key, binding in wanted.items():
            self._follow(key, binding)
        # A list is only of use for the objects that are wanted when it begins.
        for each in self._kinds.values():
            each.reflector.start()

    def saw(self, key: BindingKey, binding: Binding | None) -> None:
        """Follow a binding as it is now, None if there is none any more."""
        if binding is None or not self._wants(binding):
            self._unfollow(key)
        else:
            self._follow(key, binding)
            self._kinds[self._followed[key].kind].reflector.start()

    def look_up(self, binding: Binding) -> WorkloadAnswer | NotSynced:
        """Return what is known of the workload of a binding; never waits."""
        key = binding.key
        self._follow(key, binding)
        reference = self._followed[key]
        reflector = self._kinds[reference.kind].reflector
        reflector.start()
        found = reflector.store.find(reference.name, reference.uid)
        if isinstance(found, Workload):
            self._waiting.discard(key)
            self._answered_none.discard(key)
            return WorkloadAnswer(found)
        problem = found.reason if isinstance(found, Missing) else reflector.problem
        if problem:
            return self._nothing(key, problem)
        began, last_error = reflector.began, reflector.last_error
        if reflector.is_synced:
            pending = reflector.get_object(reference.name)
            if pending.problem:
                return self._nothing(key, pending.problem)
            began, last_error = pending.began, pending.last_error
        left = began + self._patience - self._clock()
        if left > 0:
            self._waiting.add(key)
            return NotSynced(left + _MARGIN_SECONDS)
        text = f"the metadata of {reference.kind} was not read within {self._patience:g}s"
        return self._nothing(key, f"{text}: {last_error}" if last_error else text)

    def close(self) -> None:
        """Stop all watches and forget everything."""
        for key in list(self._followed):
            self._unfollow(key)

    def _nothing(self, key: BindingKey, problem: str) -> WorkloadAnswer:
        self._waiting.discard(key)
        self._answered_none.add(key)
        return WorkloadAnswer(None, problem)

    def _follow(self, key: BindingKey, binding: Binding) -> None:
        resource = binding.spec.resource
        reference = _Reference(
            KindName(resource.api_version, resource.kind), (resource.namespace, resource.name), resource.uid
        )
        known = self._followed.get(key)
        if known == reference:
            return
        if known is not None and (known.kind, known.name) != (reference.kind, reference.name):
            self._unfollow(key)
        self._followed[key] = reference
        kind = self._kinds.get(reference.kind)
        if kind is None:
            kind = self._kinds[reference.kind] = self._new_kind(reference.kind)
        kind.bindings.setdefault(reference.name, set()).add(key)
        kind.reflector.store.want(reference.name)

    def _unfollow(self, key: BindingKey) -> None:
        reference = self._followed.pop(key, None)
        if reference is None:
            return
        self._waiting.discard(key)
        self._answered_none.discard(key)
        kind = self._kinds[reference.kind]
        keys = kind.bindings[reference.name]
        keys.discard(key)
        if not keys:
            del kind.bindings[reference.name]
            kind.reflector.drop(reference.name)
        if not kind.bindings:
            del self._kinds[reference.kind]
            kind.reflector.stop()

    def _new_kind(self, name: KindName) -> _Kind:
        def changed(about: Name, before: State, now: State) -> None:
            self._changed(kind, about, before, now)

        def state_changed() -> None:
            self._requeue({key for keys in kind.bindings.values() for key in keys})

        def was_got(about: Name) -> None:
            self._requeue(kind.bindings.get(about, ()))

        store = MetadataStore(name.kind, changed)
        kind = _Kind(Reflector(name, store, self._deps, on_state_change=state_changed, on_get=was_got))
        return kind

    def _changed(self, kind: _Kind, name: Name, before: State, now: State) -> None:
        keys = kind.bindings.get(name, ())
        self._requeue(keys)
        if isinstance(before, Workload) and isinstance(now, Workload):
            for key in keys:
                self._wake(key)

    def _requeue(self, keys: Iterable[BindingKey]) -> None:
        """Let go on what waits, and wake what was decided without its workload."""
        for key in keys:
            if key in self._waiting:
                self._waiting.discard(key)
                self._resume(key)
            elif key in self._answered_none:
                self._answered_none.discard(key)
                self._wake(key)
