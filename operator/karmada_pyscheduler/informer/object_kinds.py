"""The watched kinds: caches, parsers and change handlers, the keys of objects, and the comparison of a list with a cache."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Container, Iterable
from typing import Any, Final

from karmada_pyscheduler.cache.store import Change, Store
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import KINDS as BINDING_KINDS
from karmada_scheduler.api.binding import RESOURCE_BINDING, BindingKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)


CLUSTER: Final = "Cluster"
LEFT_ALONE: Final = "Cannot read an object, it is left alone"


class ObjectKind(Struct):
    """One watched kind.

    Attributes:
        store: The cache of its objects; both kinds of bindings share one, as both kinds of policies do.
        parse: Makes an object of a manifest; ValueError if the manifest is not valid.
        on_change: Called after each change of the store by a watch or a list.
        on_unreadable: Called with the key, the manifest and the error of an object that cannot be read; returns what the
            log says about it.
    """

    store: Store[Any, Any]
    parse: Callable[[Manifest], Any]
    on_change: Callable[[Change[Any]], None]
    on_unreadable: Callable[[Any, Manifest, Exception], str] = lambda *_: LEFT_ALONE


def object_key(kind: str, manifest: Manifest) -> Any:
    """Return the key of an object, also of one that cannot be parsed: the name of a Cluster, else a key with its kind."""
    namespace, name = namespace_and_name(manifest)
    if kind in BINDING_KINDS:
        return BindingKey(kind, namespace if kind == RESOURCE_BINDING else "", name)
    if kind == CLUSTER:
        return name
    return PolicyKey(kind, namespace if kind == PROPAGATION_POLICY else "", name)


def key_kind(key: str | BindingKey | PolicyKey) -> str:
    """Return the kind of the object that a key names."""
    return CLUSTER if isinstance(key, str) else key.kind


def namespace_and_name(manifest: Manifest) -> tuple[str, str]:
    """Return the namespace and the name of an object, "" for one that is missing."""
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def version_of(manifest: Manifest) -> int:
    """Return the resourceVersion, or ``sys.maxsize`` when it is missing, so that the object always counts as new."""
    text = (manifest.get("metadata") or {}).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isdecimal() else sys.maxsize


class MalformedObjects:
    """The objects whose newest version cannot be read, with the problem of each."""

    def __init__(self, count: Callable[[str], None]) -> None:
        """Start with none; ``count`` gets the kind each time that an object cannot be read."""
        self._count = count
        self._problems: dict[tuple[str, object], str] = {}

    def __len__(self) -> int:
        return len(self._problems)

    def add(
        self, kind: str, key: object, problem: str, message: str, *, defect: Exception | None = None
    ) -> None:
        """Count an object, and log a problem that differs from its last one.

        Args:
            kind: The kind of the object.
            key: The key of the object.
            problem: The reason why it is unreadable.
            message: The log message, which names the consequence.
            defect: An error of our own code, which is logged with its traceback.
        """
        self._count(kind)
        if self._problems.get((kind, key)) != problem:
            self._problems[kind, key] = problem
            extra = {"kind": kind, "object": key, "error": problem}
            log.warning("%s", message, extra=extra, exc_info=defect)

    def discard(self, kind: str, key: object) -> None:
        """Forget an object that was deleted or has become readable."""
        if self._problems:
            self._problems.pop((kind, key), None)

    def retain(self, kind: str, keys: Container[object]) -> None:
        """Forget all objects of a kind but those with these keys."""
        for each in [problem for problem in self._problems if problem[0] == kind and problem[1] not in keys]:
            del self._problems[each]


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
