"""The common part of all plugins, at whatever extension point, and their background task."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster


@runtime_checkable
class Plugin(Protocol):
    """The common part of all plugins.

    A plugin may have ``timeout``, the timeout of its coroutines in seconds; None for no limit. A plugin with
    ``needs_workload = True`` has the metadata of the workload in ``context.workload`` at every extension point: labels,
    annotations and owners. The metadata is watched only if an enabled plugin declares this; then all plugins of that
    profile have it. A plugin with ``only_with_terms = True`` has nothing to do at Guard, Reserve and PostBind for a placement
    without ``clusterAffinities``, and is not called there, nor asked for proposals at intervals.

    Attributes:
        name: The registered name, which metrics and error texts have as well.
    """

    name: str


@runtime_checkable
class ObservePlugin(Plugin, Protocol):
    """Follows the bindings and clusters, so that no call has to read all of ``handle.bindings()``.

    A plugin with ``observe`` also needs an extension point, because profiles enable plugins at extension points.
    """

    def observe(self, old: Binding | Cluster | None, new: Binding | Cluster | None, /) -> None:
        """Take an object before and after a change; None where it does not exist.

        Both are None when the plugin comes into use, when all objects were replaced, and a minute after a failure: forget
        everything; all objects follow, with ``old=None``. Bindings are as ``handle.bindings()`` has them, those of all
        schedulers; decisions that are not written yet are in ``reserve``. It is called on the event loop for each change,
        outside of the plugin's timeout, so it must return within microseconds. Exceptions are logged.
        """


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
