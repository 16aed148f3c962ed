"""The background task of a plugin."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from karmada_scheduler.framework.plugin import Plugin


@runtime_checkable
class RunPlugin(Plugin, Protocol):
    """Has a background task, for example one that reads prices every n seconds.

    A plugin with ``run`` also needs an extension point, because profiles enable plugins at extension points.
    """

    async def run(self) -> None:
        """Run until cancelled. It is not started again after it has returned.

        It is started when the plugin comes into use and the caches are filled, on standbys as well, so that a new
        leader has the data. It is cancelled when a new version of the plugin's file replaces the plugin, and when the
        scheduler stops; it has one second for the cleanup. A plugin that stays the same object keeps its task.

        If it raises, it is started again after delays that grow from a second to a minute. Each failure is logged, its
        traceback once. It shares the event loop with all decisions: each step between two waits may take
        ``pluginTimeoutSeconds``, and fails otherwise. ``simulate`` and ``karmada_scheduler.testing`` do not start it.
        """
        ...
