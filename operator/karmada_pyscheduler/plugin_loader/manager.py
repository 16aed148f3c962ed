"""The plugins and extenders of the running scheduler, by ``--config``, ``--plugins`` and ``--plugin-dir``.

Profiles are built at the start, and again when a file of a plugin directory changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from karmada_pyscheduler.cache.manifests import ManifestCache
from karmada_pyscheduler.extenders.http_extender import HttpExtender, needs_binding, needs_clusters
from karmada_pyscheduler.extenders.transport import (
    ExtenderTLSError,
    HttpExtenderTransport,
    NewExtenderTransport,
)
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.config.profiles import SchedulerConfiguration, plugin_budget
from karmada_scheduler.core import requeue_rules
from karmada_scheduler.framework.binding_points import QueueSortPlugin
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import CallTimeout, SigalrmTimeout
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler.plugin_loader.run_tasks import PluginTasks
from karmada_scheduler.process.daemon_thread import InThread, in_daemon_thread
from karmada_scheduler.structs import IdentityStruct
from karmada_scheduler_plugins.default_plugins import PrioritySort
from karmada_scheduler_plugins.registry import IN_TREE, in_tree, warnings_about

log = logging.getLogger(__name__)

_SCAN_SECONDS: Final = 1.0
"""The interval of scans of the plugin directories; a saved file is used within two seconds."""


class PluginManager(IdentityStruct):
    """Loads plugins, and builds profiles at the start and after changes.

    Attributes:
        options: The validated command line.
        backend: What plugins get through their handles.
        metrics: Counts calls and failures.
        own_plugins: The plugins that a program of one's own registers.
        clock: In seconds, never running backwards.
        call_timeout: Makes the limit for each call of a plugin, in seconds.
        in_thread: Runs the scans of plugin directories.
        extender_transport: Makes the connections to an extender.
        caller: Calls the plugins.
        manifests: The objects for requests to extenders; None without extenders.
        extenders: The extenders of the configuration.
        profiles: The current profiles.

    Raises:
        ConfigError: All problems of the configuration and the plugins.
    """

    options: Options
    backend: HandleBackend
    metrics: Metrics
    own_plugins: Sequence[Registration]
    clock: Callable[[], float]
    call_timeout: Callable[[float], CallTimeout] = SigalrmTimeout
    in_thread: InThread = in_daemon_thread
    extender_transport: NewExtenderTransport = HttpExtenderTransport

    def __post_init__(self) -> None:
        configuration = SchedulerConfiguration()
        if self.options.config is not None:
            configuration = load(self.options.config, scheduler_name=self.options.scheduler_name)
        registry = in_tree(self.options.feature_gates)
        election = self.options.leader_election
        budget = plugin_budget(configuration, election.renew_deadline if election.enabled else None)
        self._breakers = CircuitBreakers(
            clock=self.clock, exempt=frozenset(registry), observer=self.metrics.plugins
        )
        self.caller = PluginCaller(
            observer=self.metrics.plugins,
            timeout=self.call_timeout(budget),
            coroutine_seconds=budget,
            breakers=self._breakers,
            clock=self.clock,
        )
        self.manifests = self._manifest_cache(configuration)
        self.extenders = self._extenders(configuration, self.clock, self.extender_transport)
        self._setup = PluginSetup(
            registry,
            handle_for=self.backend.handle_for,
            own=self.own_plugins,
            directories=self.options.plugin_dirs,
            tokens=self.options.plugins,
            configuration=configuration,
            scheduler_name=self.options.scheduler_name,
            disabled_by_gates=IN_TREE,
        )
        built = self._setup.start()
        for message in self._setup.messages:
            log.log(logging.WARNING if message.warning else logging.INFO, "%s", message.text)
        for warning in (*configuration.warnings, *built.warnings, *warnings_about(built.by_name)):
            log.warning("%s", warning)
        self.profiles = Profiles(self._frameworks(built))
        self._first_queue_sort = self.queue_sort
        self._tasks = PluginTasks(self.caller.timeout, on_failure=self._count_run_failure)

    @property
    def queue_sort(self) -> QueueSortPlugin | None:
        """The QueueSort plugin of all profiles, None for the default order. A new version of it needs a restart."""
        plugin = self.profiles.queue_sort
        return None if isinstance(plugin, PrioritySort) else plugin

    async def follow_files(self, *, follows: bool, on_change: Callable[[], None]) -> None:
        """Replace profiles when plugin files change, until cancelled. Decisions under way continue with the previous ones."""
        while follows:
            await asyncio.sleep(_SCAN_SECONDS)
            try:
                built = await self.in_thread(self._setup.reload, name="plugin files")
            except Exception:
                log.exception("Cannot scan the plugin directories")
                continue
            if built is not None:
                built.start_observing()
                self.profiles.replace(self._frameworks(built))
                self._update_tasks()
                on_change()

    async def run_plugins(self) -> None:
        """Run ``run`` of all plugins in use, those of new files included, until cancelled."""
        self._update_tasks()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._tasks.close()

    def _update_tasks(self) -> None:
        plugins = [plugin for _, framework in self.profiles.items() for plugin in framework.plugins.unique]
        if self._first_queue_sort is not None:  # the queue keeps it until a restart
            plugins.append(self._first_queue_sort)
        self._tasks.keep(plugins)

    async def close(self) -> None:
        """Close the connections of the extenders."""
        await asyncio.gather(*(extender.close() for extender in self.extenders))

    def _frameworks(self, built: BuiltProfiles) -> dict[str, Framework]:
        self._breakers.keep(plugin for each in built.by_name.values() for plugin in each.unique)
        return {
            name: Framework(plugins, extenders=self.extenders, caller=self.caller)
            for name, plugins in built.by_name.items()
        }

    def _manifest_cache(self, configuration: SchedulerConfiguration) -> ManifestCache | None:
        configs = configuration.extenders
        if not configs:
            return None

        def is_needed(binding: Binding) -> bool:
            is_assigned = requeue_rules.is_assigned_to(binding, self.profiles.names)
            return is_assigned and binding.spec.placement is not None and needs_binding(configs, binding)

        return ManifestCache(is_needed=is_needed, clusters=needs_clusters(configs))

    def _extenders(
        self,
        configuration: SchedulerConfiguration,
        clock: Callable[[], float],
        transport: NewExtenderTransport,
    ) -> tuple[HttpExtender, ...]:
        manifests = self.manifests
        if manifests is None:  # an empty cache is false
            return ()
        extenders, problems = [], []
        for index, config in enumerate(configuration.extenders):
            try:
                extenders.append(
                    HttpExtender(config, manifests, clock=clock, observe=self._observe, transport=transport)
                )
            except ExtenderTLSError as error:
                path = f"{configuration.source}: extenders[{index}].tlsConfig"
                problems.append(ConfigProblem(path, str(error), error))
        if problems:
            raise ConfigError(problems)
        return tuple(extenders)

    def _count_run_failure(self, plugin: str) -> None:
        self.metrics.plugins.run_failures.labels(plugin).inc()

    def _observe(self, extender: str, verb: str, result: str, seconds: float) -> None:
        self.metrics.plugins.extender_requests.labels(extender, verb, result).inc()
        self.metrics.plugins.extender_duration.labels(extender, verb).observe(seconds)
