"""The registry of all plugins, and the profiles that are built from it, again when files change.

A scheduler without one of its plugins would place bindings where that plugin would not. So every problem at the start
ends the process. Later a change with a problem is refused and logged, and the previous version stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from karmada_scheduler import logs
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config.problems import ConfigError, ConfigProblem, known, nearest
from karmada_scheduler.config.profiles import SchedulerConfiguration
from karmada_scheduler.config.structure import ConfigProblems
from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles, ProfileInputs
from karmada_scheduler.framework.profile.profile import build
from karmada_scheduler.framework.profile.registry import Registry, SelectionMessage
from karmada_scheduler.plugin_loader.entry_points import installed
from karmada_scheduler.structs import IdentityStruct, field, replace

if TYPE_CHECKING:
    from karmada_scheduler.plugin_loader.directory import FileChange, PluginDirectories

log = logging.getLogger(__name__)


class PluginSetup(IdentityStruct):
    """The plugins and profiles of a process.

    Attributes:
        in_tree: The in-tree plugins, the defaults of profiles.
        handle_for: Returns the handle for the plugins of a scheduler name; the same for the same name.
        own: The plugins of a main of one's own.
        packages: Returns the plugins of installed packages.
        directories: The values of ``--plugin-dir``.
        tokens: The entries of ``--plugins``.
        configuration: The content of ``--config``.
        scheduler_name: The value of ``--scheduler-name``.
        disabled_by_gates: Names of in-tree plugins that ``--plugins`` may have although a feature gate disables them.
        built: The profiles of the last build; empty before ``start``.
        messages: The log messages about ``--plugins`` at the start, with upstream's texts.
    """

    in_tree: Registry
    handle_for: Callable[[str], Handle]
    own: Iterable[Registration] = ()
    packages: Callable[[], Iterable[Registration]] = installed
    directories: Sequence[Path] = ()
    tokens: Sequence[str] = ("*",)
    configuration: SchedulerConfiguration = field(default_factory=SchedulerConfiguration)
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    disabled_by_gates: Collection[str] = ()
    built: BuiltProfiles = field(default_factory=lambda: BuiltProfiles({}))
    messages: tuple[SelectionMessage, ...] = ()
    _unreadable: str = ""

    def __post_init__(self) -> None:
        """Let the plugins of a main of one's own log as this package does."""
        self._plugins = list(self.own)
        for plugin in self._plugins:
            logs.follow(getattr(plugin.factory, "__module__", "") or "__main__")
        self._files: PluginDirectories | None = None
        if self.directories:
            from karmada_scheduler.plugin_loader.directory import (
                PluginDirectories,
            )  # commands start faster without it

            self._files = PluginDirectories(self.directories)

    def start(self) -> BuiltProfiles:
        """Load all plugins, and return the profiles.

        Raises:
            ConfigError: All problems. ``registry`` then has the plugins without problems.
        """
        problems = ConfigProblems()
        with problems.below(""):
            self.load()
        with problems.below(""):
            registry = self._registry()
            problems.extend(self._unknown_names(registry))
            self.messages = registry.select(self.tokens).messages
            self.built = self._build(registry)
        problems.raise_if_any()
        self.built.start_observing()
        return self.built

    def load(self) -> None:
        """Load all plugins without building profiles, instead of ``start``; for the list of plugins.

        Raises:
            ConfigError: All problems. ``registry`` then has the plugins without problems.
        """
        problems = ConfigProblems()
        with problems.below(""):
            self._plugins.extend(self.packages())
        if self._files is not None:
            with problems.below(""):
                for change in self._files.scan():
                    if change.error is not None:
                        problems.extend(change.error.problems)
                    else:
                        self._files.accept(change)
        problems.raise_if_any()

    def _unknown_names(self, registry: Registry) -> Iterator[ConfigProblem]:
        """Yield the unknown names of ``--plugins``, which karmada-scheduler ignores."""
        for token in self.tokens:
            name = token.removeprefix("-")
            if name not in ("*", *registry, *self.disabled_by_gates):
                text = f'no plugin named "{name}"; {nearest(name, registry)}{known(registry)}'
                yield ConfigProblem("--plugins", text)

    def reload(self) -> BuiltProfiles | None:
        """Load changed files, and return the new profiles; None without a usable change.

        May run in a thread, one call at a time, because the code of a file may block. It raises nothing and changes only
        this object; the caller replaces the profiles.
        """
        if self._files is None:
            return None
        try:
            changes = self._files.scan()
            self._unreadable = ""
        except ConfigError as error:
            if str(error) != self._unreadable:
                self._unreadable = str(error)
                log.error("%s; the plugins stay as they are", error)  # noqa: TRY400 (no traceback: the text is sufficient)
            return None
        return self._apply(changes, self._files) if changes else None

    def _apply(self, changes: Sequence[FileChange], directory: PluginDirectories) -> BuiltProfiles | None:
        """Accept all changes together, or else each one that works with those before it; return the new profiles."""
        usable = [change for change in changes if change.error is None]
        refused = [(change, change.error) for change in changes if change.error is not None]
        accepted: list[FileChange] = []
        built = None
        attempts = [usable, *([change] for change in usable if len(usable) > 1)]
        for attempt in attempts:
            try:
                if attempt:
                    built = self._build(self._registry([*accepted, *attempt]))
                    accepted.extend(attempt)
            except ConfigError as error:
                if len(attempt) == 1:
                    refused.append((attempt[0], error))
            if len(accepted) == len(usable):
                break
        for change in accepted:
            directory.accept(change)
        for change, reason in refused:
            _log_refusal(change, reason)
            directory.refuse(change)
        if built is None:
            return None
        self.built = built
        for change in accepted:
            self._log_change(change)
        return built

    def registry(self) -> Registry:
        """Return all plugins without problems, as of the last start or reload."""
        return self._registry(strict=False)

    def _registry(self, changes: Iterable[FileChange] = (), *, strict: bool = True) -> Registry:
        registry = Registry(self.in_tree.values())
        problems = []
        files = self._files.plugins(changes) if self._files else ()
        for plugin in (*self._plugins, *files):
            try:
                registry.add(plugin)
            except ValueError as error:
                problems.append(ConfigProblem("", str(error)))
        if problems and strict:
            raise ConfigError(problems)
        return registry

    def _build(self, registry: Registry) -> BuiltProfiles:
        configuration = self.configuration
        inputs = ProfileInputs(
            registry=registry,
            selected=frozenset(registry.select(self.tokens).registry),
            offered=[
                name for name, plugin in registry.items() if plugin.opt_in and f"-{name}" not in self.tokens
            ],
            defaults=[name for name, plugin in self.in_tree.items() if not plugin.opt_in],
            handle_for=self.handle_for,
            previous=self.built,
            disabled_elsewhere=None if configuration.is_kubernetes else self.disabled_by_gates,
        )
        try:
            return build(configuration.profiles, inputs, scheduler_name=self.scheduler_name)
        except ConfigError as error:
            if configuration.profiles and configuration.source:
                raise error.within(configuration.source) from error
            raise

    def _log_change(self, change: FileChange) -> None:
        if change.is_removal:
            log.info("Removed the plugins of a deleted file", extra={"path": change.path})
            return
        enabled = {name for _, name in self.built.made}
        for plugin in change.plugins:
            extra = {"plugin": plugin.name, "path": change.path}
            if plugin.name in enabled:
                log.info("Loaded plugin", extra=extra)
            else:
                log.warning("Loaded plugin, but no profile enables it", extra=extra)


def _log_refusal(change: FileChange, error: ConfigError) -> None:
    what = (
        "Refused to remove the plugins of a file" if change.is_removal else "Refused a new version of a file"
    )
    for problem in error.problems:
        log.error(
            "%s, the previous version stays: %s",
            what,
            replace(problem, path="") if problem.path == str(change.path) else problem,
            exc_info=problem.cause,
            extra={"path": change.path},
        )
