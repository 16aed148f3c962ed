"""The common part of all plugins, at whatever extension point."""

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
