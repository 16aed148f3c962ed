"""The newest known version of every object of one kind.

Three independent sources feed a store: the watch, periodic lists that add missed changes, and the responses to own
writes. Versions decide: an object replaces the stored one only if it is newer, and a deletion leaves a tombstone, so
that an older list cannot bring its object back.

Versions decide as long as they grow. After a restore of etcd they are lower than before. Then a complete list replaces
every object that is not newer than the list (``as_of``). Where even the list is older than a version seen before, the
versions are forgotten (``forget_versions``). docs/decisions/0019-resource-version-rollback.md has the cases.

resourceVersions are compared as numbers, which the API server's storage guarantees to work within one
resource (KEP-5504, in force since Kubernetes 1.35 and true of etcd before).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

_TOMBSTONES: Final = 10_000
_UNKNOWN: Final = -1


class Versioned(Protocol):
    """The attributes of an object that a store needs."""

    @property
    def uid(self) -> str:
        """The identity of this incarnation of the object."""

    @property
    def resource_version(self) -> str:
        """The version, a decimal number."""


Key = TypeVar("Key", bound=Hashable)
Object = TypeVar("Object", bound=Versioned)


class Change(NamedTuple, Generic[Object]):
    """One object before and after a change; None where it does not exist."""

    old: Object | None
    new: Object | None

    @property
    def is_same_version(self) -> bool:
        """Whether the store had the object in this version before."""
        old, new = self
        return old is not None and new is not None and old.resource_version == new.resource_version

    @property
    def is_rollback(self) -> bool:
        """Whether the version after is older than the one before."""
        old, new = self
        return old is not None and new is not None and int(new.resource_version) < int(old.resource_version)


class Store(Generic[Key, Object]):
    """Objects of one kind by key."""

    def __init__(self, key_of: Callable[[Object], Key]) -> None:
        """``key_of`` returns the key of an object; successive versions and incarnations have equal keys."""
        self._key_of = key_of
        self._objects: dict[Key, Object] = {}
        self._versions: dict[Key, int] = {}
        self._tombstones: OrderedDict[Key, int] = OrderedDict()
        self._listeners: list[Callable[[Object | None, Object | None], None]] = []

    def add_listener(self, listener: Callable[[Object | None, Object | None], None]) -> None:
        """Call a function with every object before and after a change, None where it does not exist; must not raise.

        Unlike the listeners of event handlers, these also receive the responses to own writes, and None for an object that
        has become unreadable.
        """
        self._listeners.append(listener)

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def values(self) -> Iterable[Object]:
        """Return all objects."""
        return self._objects.values()

    def get(self, key: Key) -> Object | None:
        """Return an object in its newest version, None if it is not stored."""
        return self._objects.get(key)

    def put(
        self, new: Object, *, as_of: int | None = None, by_content: bool = False
    ) -> Change[Object] | None:
        """Store an object if it is new; return what changed, None if this or a newer version is known.

        Args:
            new: The object.
            as_of: The resourceVersion of the complete list that has the object; None for another source.
            by_content: Whether an object also replaces another one of the same version: after a restore, a version may
                name two contents.
        """
        key = self._key_of(new)
        version = int(new.resource_version)
        old = self._objects.get(key)
        if self.is_known(key, version, as_of=as_of):
            has_other_content = by_content and self._versions.get(key) == version and old != new
            if not has_other_content:
                return None
        self._objects[key] = new
        self._versions[key] = version
        self._tombstones.pop(key, None)
        self._stored(old, new)
        return Change(old, new)

    def is_known(self, key: Key, version: int, *, as_of: int | None = None) -> bool:
        """Return whether this version of an object, or a newer one, is stored or was deleted.

        A complete list ``as_of`` a version overrides all versions that are not newer than the list.
        """
        newest = self._versions.get(key, self._tombstones.get(key, _UNKNOWN))
        if as_of is not None and newest <= as_of:
            return version == self._versions.get(key)
        return version <= newest

    def version_of(self, key: Key) -> int:
        """Return the version of a stored object, -1 if it is not stored."""
        return self._versions.get(key, _UNKNOWN)

    def newest_version(self, concerns: Callable[[Key], bool]) -> int:
        """Return the highest version of the objects for which ``concerns`` is true, deleted ones included; 0 for none."""
        known = (self._versions, self._tombstones)
        return max((version for each in known for key, version in each.items() if concerns(key)), default=0)

    def forget_versions(self, concerns: Callable[[Key], bool]) -> None:
        """Let any version of the objects for which ``concerns`` is true count as new; the objects stay."""
        for key in filter(concerns, self._versions):
            self._versions[key] = _UNKNOWN
        for key in [*filter(concerns, self._tombstones)]:
            del self._tombstones[key]

    def is_newest(self, found: Object) -> bool:
        """Return whether the stored object has this version."""
        return self._versions.get(self._key_of(found)) == int(found.resource_version)

    def put_written(self, new: Object) -> None:
        """Store the answer to an own write, unless the object was deleted or created again in the meantime."""
        old = self._objects.get(self._key_of(new))
        if old is not None and old.uid == new.uid:
            self.put(new)

    def remove(self, key: Key, version: int) -> Change[Object] | None:
        """Remove an object that was deleted at a version; return what changed, None if a newer version is stored."""
        if version < self._versions.get(key, _UNKNOWN):
            return None
        self._tombstones[key] = max(version, self._tombstones.pop(key, _UNKNOWN))
        if len(self._tombstones) > _TOMBSTONES:
            self._tombstones.popitem(last=False)
        return self.discard(key)

    def discard(self, key: Key) -> Change[Object] | None:
        """Remove an object without a tombstone, so that its next version counts as new; return what changed."""
        self._versions.pop(key, None)
        old = self._objects.pop(key, None)
        if old is None:
            return None
        self._stored(old, None)
        return Change(old, None)

    def missing_from(self, keys: Container[object], version: int) -> list[Key]:
        """Return the keys of the objects that a list of this version lacks and that are not newer than the list."""
        return [key for key, stored in self._versions.items() if key not in keys and stored <= version]

    def _stored(self, old: Object | None, new: Object | None) -> None:
        """Update an index, and call the listeners; called after every change."""
        for listener in self._listeners:
            listener(old, new)
