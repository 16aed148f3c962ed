"""The newest known version of every object of one kind.

Three writers feed a store without knowing of each other: the watch, the list that repairs what the watch
missed, and the answers to our own writes. Versions decide: an object replaces what is stored only if it is
newer, and a deletion is remembered for a while, so that an older list cannot bring its object back.

Versions decide as long as they grow. After a restore of etcd they go back; then a complete list is the truth for
all that is not newer than it (``as_of``), and where even the list is older than what was seen before, the known
versions are forgotten (``forget_versions``). docs/decisions/0019-resource-version-rollback.md has the cases.

resourceVersions are compared as numbers, which the API server's storage guarantees to work within one
resource (KEP-5504, in force since Kubernetes 1.35 and true of etcd before).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

_TOMBSTONES: Final = 10_000
_UNKNOWN: Final = -1


class Versioned(Protocol):
    """What a store must know of an object."""

    @property
    def uid(self) -> str:
        """The identity of this incarnation of the object."""
        ...

    @property
    def resource_version(self) -> str:
        """The version, a decimal number."""
        ...


Key = TypeVar("Key", bound=Hashable)
Object = TypeVar("Object", bound=Versioned)


class Change(NamedTuple, Generic[Object]):
    """One object before and after; None where there was or is none."""

    old: Object | None
    new: Object | None

    @property
    def is_same_version(self) -> bool:
        """Whether the object was known in this version."""
        old, new = self
        return old is not None and new is not None and old.resource_version == new.resource_version

    @property
    def went_back(self) -> bool:
        """Whether the version after is older than the one before."""
        old, new = self
        return old is not None and new is not None and int(new.resource_version) < int(old.resource_version)


class Store(Generic[Key, Object]):
    """Objects of one kind by key."""

    def __init__(self, key_of: Callable[[Object], Key]) -> None:
        """``key_of`` names an object; equal names mean successive versions or incarnations."""
        self._key_of = key_of
        self._objects: dict[Key, Object] = {}
        self._versions: dict[Key, int] = {}
        self._tombstones: OrderedDict[Key, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def get(self, key: Key) -> Object | None:
        """Return the newest known version of an object."""
        return self._objects.get(key)

    def put(self, new: Object, *, as_of: int | None = None) -> Change[Object] | None:
        """Store an object if it is news; return what changed, None if it was known or is outdated.

        Args:
            new: The object.
            as_of: The version of the complete list that it comes from, if it does.
        """
        key = self._key_of(new)
        version = int(new.resource_version)
        if self.knows(key, version, as_of=as_of):
            return None
        old = self._objects.get(key)
        self._objects[key] = new
        self._versions[key] = version
        self._tombstones.pop(key, None)
        self._stored(old, new)
        return Change(old, new)

    def knows(self, key: Key, version: int, *, as_of: int | None = None) -> bool:
        """Tell whether a version of an object is no news: it, or a newer one, is stored or was deleted.

        A complete list ``as_of`` a version has the last word about what is not newer than the list itself.
        """
        newest = self._versions.get(key, self._tombstones.get(key, _UNKNOWN))
        if as_of is not None and newest <= as_of:
            return version == self._versions.get(key)
        return version <= newest

    def version_of(self, key: Key) -> int:
        """Return the version of an object that is stored, -1 if there is none."""
        return self._versions.get(key, _UNKNOWN)

    def newest_version(self, concerns: Callable[[Key], bool]) -> int:
        """Return the highest version that is known of some objects, deletions included; 0 for none."""
        known = (self._versions, self._tombstones)
        return max((version for each in known for key, version in each.items() if concerns(key)), default=0)

    def forget_versions(self, concerns: Callable[[Key], bool]) -> None:
        """Take every version of some objects for news from now on, since they went back; the objects stay."""
        for key in filter(concerns, self._versions):
            self._versions[key] = _UNKNOWN
        for key in [*filter(concerns, self._tombstones)]:
            del self._tombstones[key]

    def is_newest(self, found: Object) -> bool:
        """Tell whether this very version of an object is the one that is stored."""
        return self._versions.get(self._key_of(found)) == int(found.resource_version)

    def put_written(self, new: Object) -> None:
        """Store the answer to a write of ours, unless the object has been deleted or replaced meanwhile."""
        old = self._objects.get(self._key_of(new))
        if old is not None and old.uid == new.uid:
            self.put(new)

    def remove(self, key: Key, version: int) -> Change[Object] | None:
        """Forget an object that was deleted at a version; return what changed, None if a newer one is known."""
        if version < self._versions.get(key, _UNKNOWN):
            return None
        self._tombstones[key] = max(version, self._tombstones.pop(key, _UNKNOWN))
        if len(self._tombstones) > _TOMBSTONES:
            self._tombstones.popitem(last=False)
        return self.discard(key)

    def discard(self, key: Key) -> Change[Object] | None:
        """Forget an object without knowing that it was deleted; the next version of it counts as new."""
        self._versions.pop(key, None)
        old = self._objects.pop(key, None)
        if old is None:
            return None
        self._stored(old, None)
        return Change(old, None)

    def missing_from(self, keys: Container[object], version: int) -> list[Key]:
        """Return the stored keys that a list of a version does not have although they are not newer than it."""
        return [key for key, stored in self._versions.items() if key not in keys and stored <= version]

    def _stored(self, old: Object | None, new: Object | None) -> None:
        """Keep an index; called after every change."""
