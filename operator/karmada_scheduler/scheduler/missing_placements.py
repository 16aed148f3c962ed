"""Warnings about bindings without a placement, once for each binding."""

from __future__ import annotations

import logging

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.cache.bindings import BindingCache

log = logging.getLogger(__name__)


class MissingPlacements:
    """The bindings that were warned about, by key and uid."""

    def __init__(self, bindings: BindingCache) -> None:
        self._bindings = bindings
        self._warned: dict[BindingKey, str] = {}

    def __len__(self) -> int:
        return len(self._warned)

    def warn_once(self, binding: Binding) -> None:
        """Log that a claimed binding has no placement; an update enqueues it again."""
        key = binding.key
        if self._warned.get(key) == binding.uid:
            return
        if len(self._warned) > len(self._bindings):
            self._drop_deleted()
        self._warned[key] = binding.uid
        log.warning("failed to get placement from %s%s(%s)", key.kind[0].lower(), key.kind[1:], key)

    def forget(self, key: BindingKey) -> None:
        """Drop a binding that was deleted."""
        self._warned.pop(key, None)

    def _drop_deleted(self) -> None:
        cached = ((key, uid, self._bindings.get(key)) for key, uid in self._warned.items())
        self._warned = {key: uid for key, uid, binding in cached if binding and binding.uid == uid}
