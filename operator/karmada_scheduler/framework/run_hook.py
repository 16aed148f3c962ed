"""What a plugin does beside decisions."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from karmada_scheduler.framework.scheduling_points import Plugin


@runtime_checkable
class RunPlugin(Plugin, Protocol):
    """Does something by itself, usually every n seconds: read prices, close connections.

    A plugin with ``run`` needs an extension point as well: profiles enable plugins at their points.
    """

    async def run(self) -> None:
        """Go on until cancelled; one that returns is done.

        Started when the plugin is put to use, once the caches are filled, on standbys as well: a new leader then has
        what it needs. Cancelled when a new version of the plugin's file takes its place and when the scheduler stops;
        it has a second to clean up. A plugin that stays the same object keeps its task.

        One that raises is started again, after pauses that grow from a second to a minute. The log names the plugin
        each time, with a traceback the first time. It runs in the event loop in which decisions are taken, so what it
        does between two waits counts as a plain function's time: ``pluginTimeoutSeconds`` at most, else
        it is stopped as if it had raised. ``simulate`` and ``karmada_scheduler.testing`` do not start it.
        """
        ...
