"""Tells plugins with ``observe`` about every change of a binding or cluster."""

from __future__ import annotations

import logging
from typing import Final

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.plugin import ObservePlugin

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 60.0
"""After a failure, the plugin gets all objects again at the first change after this time."""

_Observed = Binding | Cluster | None


class Observing:
    """The changes for one plugin; it gets them as long as this object exists."""

    def __init__(self, plugin: ObservePlugin, handle: Handle) -> None:
        """Follow the changes, and tell the plugin nothing before ``start``."""
        self._plugin, self._handle = plugin, handle
        self._started = self._is_complete = False
        self._failed = -AGAIN_SECONDS
        handle.follow_bindings(self.changed)
        handle.follow_clusters(self.changed)

    def start(self) -> None:
        """Tell the plugin about all objects, unless it knows them. Called by the thread that changes the caches."""
        self._started = True
        if not self._is_complete:
            self._tell_all()

    def changed(self, old: _Observed, new: _Observed) -> None:
        """Tell the plugin about a change; about everything, if all objects were replaced, or some time after a failure."""
        if not self._started:
            return
        if self._is_complete and (old is not None or new is not None):
            self._tell(old, new)
        elif self._is_complete or self._handle.now() - self._failed >= AGAIN_SECONDS:
            self._tell_all()

    def _tell_all(self) -> None:
        self._is_complete = True
        self._tell(None, None)
        for found in (*self._handle.snapshot(), *self._handle.bindings()):
            if self._is_complete:
                self._tell(None, found)

    def _tell(self, old: _Observed, new: _Observed) -> None:
        try:
            self._plugin.observe(old, new)
        except (Exception, SystemExit):
            self._is_complete, self._failed = False, self._handle.now()
            log.exception('plugin "%s" failed at observe, and gets all objects again', self._plugin.name)
