"""Makes and orders plugins as the scheduler does, and calls them with its timeout."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.profiles import (
    DEFAULT_PLUGIN_SECONDS,
    SchedulerConfiguration,
    plugin_budget,
)
from karmada_scheduler.framework import Handle, ObservePlugin, Plugin, QueueSortPlugin
from karmada_scheduler.framework.profile import factory
from karmada_scheduler.framework.profile.factory import Factory, Registration
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.observing import Observing
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import CallTimeout, NoTimeout, SigalrmTimeout
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler.testing.handles import FakeHandle
from karmada_scheduler_plugins.registry import in_tree

__timeout_shield__ = True


class PerCallTimeout:
    """A SigalrmTimeout that takes SIGALRM and the timer of the process for each call only: test runners use them, too.

    In threads other than the main one there is no limit.
    """

    def __init__(self, seconds: float) -> None:
        """Set the timeout of each outermost block."""
        self._seconds: Final = seconds
        self._depth = 0
        self._alarm: SigalrmTimeout | None = None
        self._found = (0.0, 0.0)
        self._begin = 0.0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._depth += 1
            if self._depth == 1:
                self._found, self._begin = signal.getitimer(signal.ITIMER_REAL), time.monotonic()
                self._alarm = SigalrmTimeout(self._seconds)
                self._alarm.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth or self._alarm is None:
            return
        try:
            self._alarm.__exit__(kind, error, trace)
        finally:
            self._alarm.close()
            self._alarm = None
            left, interval = self._found
            if left:
                passed = time.monotonic() - self._begin
                signal.setitimer(signal.ITIMER_REAL, max(left - passed, _SOON), interval)

    def part(self, share: float, *, adds_up: bool = False) -> Self:  # noqa: ARG002 (as CallTimeout.part)
        """Return this one: without circuit breakers every call has the whole timeout."""
        return self


_SOON: Final = 0.001
"""Seconds until a timer of the test runner that ran out during the call."""


def caller_with(seconds: float | None) -> PluginCaller:
    """Return a caller of plugins with this timeout; None for no limit."""
    timeout: CallTimeout = NoTimeout() if seconds is None else PerCallTimeout(seconds)
    return PluginCaller(timeout=timeout, coroutine_seconds=seconds, interrupts=(KeyboardInterrupt,))


P = TypeVar("P", bound=Plugin)


def gates(**settings: bool) -> FeatureGates:
    """Switch feature gates on or off."""
    return FeatureGates(settings)


def make(plugin: type[P], args: Mapping[str, Any] | None = None, *, handle: Handle | None = None) -> P:
    """Make a plugin as a profile would, with args as a configuration file has them.

    Raises:
        ConfigError: The scheduler would not start with these args.
    """
    registration = Registration(plugin.name, plugin)
    handle = handle or FakeHandle()
    made = factory.make(registration, args, handle)
    if isinstance(made, ObservePlugin):
        Observing(made, handle).start()
    return cast("P", made)


def framework(
    *plugins: Plugin | type[Plugin],
    gates: FeatureGates | None = None,
    select: Iterable[str] = ("*",),
    handle: Handle | None = None,
    timeout: float | None = DEFAULT_PLUGIN_SECONDS,
) -> Framework:
    """Build the in-tree plugins that ``--plugins`` would select, followed by these.

    Args:
        plugins: Objects or classes.
        gates: Feature gates.
        select: The items of ``--plugins``.
        handle: The handle of classes among the plugins.
        timeout: That of their calls in seconds, as ``pluginTimeoutSeconds``; None for no limit, for a debugger.

    Raises:
        ConfigError: One of them cannot be made, or is no plugin.
    """
    own = [Registration(plugin.name, _factory(plugin)) for plugin in plugins]
    registry = in_tree(gates or FeatureGates()).select(select).registry
    setup = PluginSetup(registry, handle_for=lambda _: handle or FakeHandle(), own=own, packages=list)
    return Framework(setup.start().by_name[DEFAULT_SCHEDULER_NAME], caller=caller_with(timeout))


def profiles(
    config: Path | None = None,
    *,
    plugin_dir: Path | None = None,
    plugins: Sequence[type[Plugin]] = (),
    handle: Handle | None = None,
    gates: FeatureGates | None = None,
) -> dict[str, Framework]:
    """Build the profiles of ``--config`` and ``--plugin-dir``, by scheduler name; ``plugins`` are registered as well.

    The timeout of plugins is that of the file.

    Raises:
        ConfigError: All problems with which the scheduler would not start.
    """
    configuration = load(config) if config else SchedulerConfiguration()
    setup = PluginSetup(
        in_tree(gates or FeatureGates()),
        handle_for=lambda name: handle or FakeHandle(profile=name),
        own=[Registration(plugin.name, plugin) for plugin in plugins],
        packages=list,
        directories=[plugin_dir] if plugin_dir else (),
        configuration=configuration,
    )
    caller = caller_with(plugin_budget(configuration, None))
    return {name: Framework(plugins, caller=caller) for name, plugins in setup.start().by_name.items()}


def queue_sort(profiles: Mapping[str, Framework]) -> QueueSortPlugin | None:
    """Return the object that orders the queue for all of these profiles."""
    return Profiles(profiles).queue_sort


def _factory(plugin: Plugin | type[Plugin]) -> Factory:
    return plugin if isinstance(plugin, type) else lambda: plugin
