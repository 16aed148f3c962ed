"""The metadata of the objects of one kind that bindings name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from karmada_scheduler.api.workload import Workload
from karmada_scheduler.structs import IdentityStruct, field

Name = tuple[str, str]
"""Namespace and name."""

RECENT: Final = 1000
"""Number of objects without a binding that are stored, the newest ones: a binding is created after its workload."""


class Missing(NamedTuple):
    """An object that does not exist.

    Attributes:
        uid: The uid of the last object of this name; "" if there is no record of one.
        reason: Shown to users.
    """

    uid: str
    reason: str


State = Workload | Missing | None
"""An object, or that it does not exist; None as long as neither is certain."""


class MetadataStore(IdentityStruct):
    """Metadata by namespace and name; a watch fills it, and reads of single objects do.

    Attributes:
        kind: Used in messages.
        on_change: Called with the name and the state before and after a change that plugins can see.
        recent: Number of objects without a binding that are stored.
    """

    kind: str
    on_change: Callable[[Name, State, State], None]
    recent: int = RECENT
    _states: dict[Name, State] = field(default_factory=dict)
    _recent: OrderedDict[Name, Workload] = field(default_factory=OrderedDict)
    _confirmed: set[Name] = field(default_factory=set)
    _listed: set[Name] | None = None
    _wanted_meanwhile: set[Name] = field(default_factory=set)

    def __len__(self) -> int:
        """Return the number of objects whose metadata is stored."""
        return sum(isinstance(state, Workload) for state in list(self._states.values())) + len(self._recent)

    def want(self, name: Name) -> None:
        """Store an object from now on. If it was missing, it may exist by now, so its state is uncertain again."""
        if not isinstance(self._states.get(name), Workload):
            self._states[name] = self._recent.pop(name, None)
            self._confirmed.discard(name)
            if self._listed is not None:
                self._wanted_meanwhile.add(name)

    def drop(self, name: Name) -> None:
        """Delete an object."""
        self._states.pop(name, None)
        self._confirmed.discard(name)
        self._wanted_meanwhile.discard(name)

    def find(self, name: Name, uid: str) -> State:
        """Return the state of an object with a uid ("" for any), None if it has to be read from the API server.

        An object with another uid, or one that is gone, may have been created again, and the watch may not have
        delivered it yet. Such a state is returned only after ``confirm``.
        """
        state = self._states.get(name)
        if state is None or not uid or state.uid == uid:
            return state
        if isinstance(state, Missing):
            return state if not state.uid or name in self._confirmed else None
        if name not in self._confirmed:
            return None
        return Missing(
            state.uid,
            f"{self._shown(name)} has the uid {state.uid}, the binding names {uid}: it was created again",
        )

    def confirm(self, name: Name, found: Workload | None) -> None:
        """Store the API server's answer about one object, None if it does not exist."""
        if name not in self._states:
            return
        if found is not None:
            self.put(found)
        else:
            self._set(name, Missing("", f"{self._shown(name)} does not exist"))
        self._confirmed.add(name)

    def put(self, found: Workload) -> None:
        """Store a version of an object, unless a newer one is stored."""
        name = found.namespace, found.name
        if name not in self._states:
            self._note_recent(name, found)
            return
        known = self._states[name]
        if isinstance(known, Workload) and known.uid == found.uid and _version(found) < _version(known):
            return
        self._set(name, found)

    def deleted(self, name: Name, uid: str) -> None:
        """Note that the object with a uid was deleted."""
        self._recent.pop(name, None)
        known = self._states.get(name)
        if isinstance(known, Workload) and known.uid == uid:
            self._set(name, Missing(uid, f"{self._shown(name)} was deleted"))

    def begin_list(self) -> None:
        """Start to store a complete list."""
        self._listed = set()
        self._recent.clear()
        self._wanted_meanwhile.clear()

    def take(self, page: Iterable[Workload]) -> None:
        """Store a page of the list. It replaces newer versions as well: lists are authoritative."""
        assert self._listed is not None  # started
        for found in page:
            name = found.namespace, found.name
            if name in self._states:
                self._listed.add(name)
                self._set(name, found)
            else:
                self._note_recent(name, found)

    def leave(self, names: Iterable[Name]) -> None:
        """Leave the state of objects of the list as it is: they exist, whether they can be read or not."""
        assert self._listed is not None  # started
        self._listed.update(name for name in names if name in self._states)

    def end_list(self) -> None:
        """Mark the objects that the list lacks as missing; those wanted in the meantime may be newer than the list."""
        assert self._listed is not None  # started
        for name in [identity for identity in self._states if identity not in self._listed]:
            known = self._states[name]
            if name in self._confirmed:
                self._states[name] = None  # it may be newer than the list, and is read again
                self._confirmed.discard(name)
            elif isinstance(known, Workload):
                self._set(name, Missing(known.uid, f"{self._shown(name)} was deleted"))
            elif known is None and name not in self._wanted_meanwhile:
                self._set(name, Missing("", f"{self._shown(name)} does not exist"))
        self._listed = None

    def _set(self, name: Name, state: State) -> None:
        known = self._states[name]
        self._states[name] = state
        self._confirmed.discard(name)
        if known is state or (
            isinstance(known, Workload) and isinstance(state, Workload) and known.has_same_metadata(state)
        ):
            return
        self.on_change(name, known, state)

    def _note_recent(self, name: Name, found: Workload) -> None:
        self._recent[name] = found
        self._recent.move_to_end(name)
        if len(self._recent) > self.recent:
            self._recent.popitem(last=False)

    def _shown(self, name: Name) -> str:
        namespace, own = name
        return f"{self.kind} {namespace}/{own}" if namespace else f"{self.kind} {own}"


def _version(found: Workload) -> int:
    return int(found.resource_version) if found.resource_version.isdecimal() else 0
