"""Puts a QueueSort plugin in charge of the queue."""

from __future__ import annotations

import logging
from collections.abc import Callable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.binding import QueuedBinding, QueueSortPlugin

log = logging.getLogger(__name__)


class _Ranked:
    """A place in the queue that a plugin compares."""

    __slots__ = ("_plugin", "_queued")

    def __init__(self, plugin: QueueSortPlugin, queued: QueuedBinding) -> None:
        self._plugin = plugin
        self._queued = queued

    def __lt__(self, other: _Ranked) -> bool:
        try:
            return bool(self._plugin.less(self._queued, other._queued))
        except Exception:
            log.exception("QueueSort plugin %s failed; what came first goes first", self._plugin.name)
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranked) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]  # compared only


def ranked_by(
    plugin: QueueSortPlugin, binding_of: Callable[[BindingKey], Binding | None]
) -> Callable[[BindingKey, int, float], object]:
    """Return what ranks keys as a plugin says."""

    def rank(key: BindingKey, priority: int, since: float) -> object:
        return _Ranked(plugin, QueuedBinding(key, priority, since, binding_of(key)))

    return rank
