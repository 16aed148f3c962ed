"""The common part of all plugins, at whatever extension point, and their background task."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Plugin(Protocol):
    """The common part of all plugins.

    A plugin may have ``timeout``, the timeout of its coroutines in seconds; None for no limit. A plugin with
    ``needs_workload = True`` has the metadata of the workload in ``context.workload`` at every extension point: labels,
    annotations and owners. The metadata is watched only if an enabled plugin declares this; then all plugins of that
    profile have it.

    Attributes:
        name: The registered name, which metrics and error texts have as well.
    """

    name: str


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
