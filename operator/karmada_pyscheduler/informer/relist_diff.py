"""The comparison of a complete list with a cache."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from karmada_pyscheduler.cache.store import Change
from karmada_pyscheduler.informer.object_kinds import namespace_and_name, object_key
from karmada_scheduler import json_body
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.structs import Struct, field


class RelistDiff(Struct):
    """Puts a complete list of one kind into the cache page by page, and counts the differences.

    Watch events may arrive between two pages, for objects on any page: resourceVersions decide.

    Attributes:
        older: How many objects have an older version in this list than in the cache, or another content of the same one.
        kind: The kind of the objects.
        put: Puts an object of a list of some version into the cache; returns what changed.
        count_missed: Gets the number of objects of a page that the watch had not delivered.
        remove_all_but: Removes all objects but those with these keys, for a list of this version; returns their
            number.
    """

    kind: str
    put: Callable[[Manifest, int | None], Change[Any] | None]
    count_missed: Callable[[int], None]
    remove_all_but: Callable[[Collection[object], int], int]
    _keys: set[object] = field(default_factory=set)
    _is_complete: bool = True
    _missed: int = 0
    older: int = 0

    def add_page(self, manifests: Iterable[Manifest], *, as_of: int | None = None) -> None:
        """Put a page into the cache; ``as_of`` is the resourceVersion of the list."""
        before = self._missed
        for manifest in manifests:
            self._keys.add(object_key(self.kind, manifest))
            if json_body.unreadable(manifest) is not None and not namespace_and_name(manifest)[1]:
                self._is_complete = False  # it may be any object that the list seems to lack
            change = self.put(manifest, as_of)
            if change is None or (change.is_same_version and change.old == change.new):
                continue
            if change.is_rollback or change.is_same_version:
                self.older += 1
            else:
                self._missed += 1
        self.count_missed(self._missed - before)

    def lists(self, key: object) -> bool:
        """Return whether the list has an object with this key, or ``keep`` was called with it."""
        return key in self._keys

    def keep(self, key: object) -> None:
        """Do not remove an object that the list lacks."""
        self._keys.add(key)

    def finish(self, resource_version: str) -> int:
        """Remove the objects that the complete list lacks; return the number of differences.

        Only objects that are not newer than the list are removed, and none if the list has an object without a name.
        """
        if not self._is_complete:
            return self._missed + self.older
        return self._missed + self.older + self.remove_all_but(self._keys, int(resource_version))
