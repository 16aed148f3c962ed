"""The watched kinds: caches, parsers and change handlers of their objects, and the keys of objects."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Container
from typing import Any, Final

from karmada_pyscheduler.cache.store import Change, Store
from karmada_scheduler.api.binding import KINDS as BINDING_KINDS
from karmada_scheduler.api.binding import RESOURCE_BINDING, BindingKey
from karmada_scheduler.api.manifest import Manifest
from karmada_scheduler.api.policy import PROPAGATION_POLICY, PolicyKey
from karmada_scheduler.structs import Struct

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
        for each in [each for each in self._problems if each[0] == kind and each[1] not in keys]:
            del self._problems[each]
