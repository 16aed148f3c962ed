"""All plugins in one registry, the profiles that are built from it, and both again when a file changes.

A scheduler that starts without a plugin it was given would place bindings where that plugin would not, so
at the start every problem ends it. Later nothing does: what cannot be used is refused, with a line in the
log and a traceback where there is one, and everything stays as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from karmada_scheduler import logs
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError, ConfigProblem, known, nearest
from karmada_scheduler.config.profiles import SchedulerConfiguration
from karmada_scheduler.config.structure import ConfigProblems
from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles, ProfileInputs
from karmada_scheduler.framework.profile.profile import build
from karmada_scheduler.framework.profile.registry import Registry, SelectionMessage
from karmada_scheduler.plugin_loader.directory import Change, PluginDirectories
from karmada_scheduler.plugin_loader.entry_points import installed

log = logging.getLogger(__name__)


class PluginSetup:
    """Plugins and profiles of a process.

    Attributes:
        built: The profiles as built last; none before ``start``.
        messages: What to log about ``--plugins``, in upstream's words; of the start.
    """

    def __init__(
        self,
        in_tree: Registry,
        *,
        handle_for: Callable[[str], Handle],
        own: Iterable[Registration] = (),
        packages: Callable[[], Iterable[Registration]] = installed,
        directories: Sequence[Path] = (),
        tokens: Sequence[str] = ("*",),
        configuration: SchedulerConfiguration | None = None,
        scheduler_name: str = DEFAULT_SCHEDULER_NAME,
        switched_off: Collection[str] = (),
    ) -> None:
        """Say where plugins come from and what is to be made of them.

        Args:
            in_tree: The plugins that come with the scheduler; what a profile has by default.
            handle_for: Gives the handle for the plugins of a scheduler name; the same for the same name.
            own: The plugins of one's own main.
            packages: Imports those of installed packages.
            directories: Those of files.
            tokens: ``--plugins``.
            configuration: The file, if there is one.
            scheduler_name: ``--scheduler-name``.
            switched_off: Names of plugins that a feature gate keeps out; ``--plugins`` may name them.
        """
        self.built = BuiltProfiles({})
        self.messages: tuple[SelectionMessage, ...] = ()
        self._in_tree: Final = in_tree
        self._handle_for: Final = handle_for
        self._plugins = list(own)
        for plugin in self._plugins:
            logs.follow(getattr(plugin.factory, "__module__", "") or "__main__")
        self._packages: Final = packages
        self._files: Final = PluginDirectories(directories) if directories else None
        self._tokens: Final = tuple(tokens)
        self._configuration: Final = configuration or SchedulerConfiguration()
        self._scheduler_name: Final = scheduler_name
        self._switched_off: Final = frozenset(switched_off)
        self._unreadable = ""

    @classmethod
    def of(
        cls,
        options: Options,
        in_tree: Registry,
        *,
        handle_for: Callable[[str], Handle],
        own: Iterable[Registration] = (),
        configuration: SchedulerConfiguration | None = None,
        switched_off: Collection[str] = (),
    ) -> PluginSetup:
        """Set up what the command line says."""
        return cls(
            in_tree,
            handle_for=handle_for,
            own=own,
            directories=options.plugin_dirs,
            tokens=options.plugins,
            configuration=configuration,
            scheduler_name=options.scheduler_name,
            switched_off=switched_off,
        )

    def start(self) -> BuiltProfiles:
        """Load everything and build the profiles.

        Raises:
            ConfigError: Everything that cannot be used. ``registry`` works nevertheless, with what can.
        """
        problems = ConfigProblems()
        with problems.below(""):
            self.load()
        with problems.below(""):
            registry = self._registry()
            problems.extend(self._unknown_names(registry))
            self.messages = registry.select(self._tokens).messages
            self.built = self._build(registry)
        problems.raise_if_any()
        return self.built

    def load(self) -> None:
        """Load everything and build nothing, for a list of what there is; once, and not together with ``start``.

        Raises:
            ConfigError: Everything that cannot be loaded. ``registry`` works nevertheless, with what can.
        """
        problems = ConfigProblems()
        with problems.below(""):
            self._plugins.extend(self._packages())
        if self._files is not None:
            with problems.below(""):
                for change in self._files.look():
                    if change.error is not None:
                        problems.extend(change.error.problems)
                    else:
                        self._files.accept(change)
        problems.raise_if_any()

    def _unknown_names(self, registry: Registry) -> Iterator[ConfigProblem]:
        """Say which names of ``--plugins`` there are not; karmada-scheduler ignores them, with all that was meant."""
        for token in self._tokens:
            name = token.removeprefix("-")
            if name not in ("*", *registry, *self._switched_off):
                text = f'no plugin named "{name}"; {nearest(name, registry)}{known(registry)}'
                yield ConfigProblem("--plugins", text)

    def reload(self) -> BuiltProfiles | None:
        """Look for changed files and build the profiles anew if there are any.

        May run in a thread, one call at a time: a file can do anything while it is being executed. It
        raises nothing and changes nothing but this object; the caller puts the profiles to use.

        Returns:
            The new profiles; None if nothing changed, or nothing that can be used.
        """
        if self._files is None:
            return None
        try:
            changes = self._files.look()
            self._unreadable = ""
        except ConfigError as error:
            if str(error) != self._unreadable:
                self._unreadable = str(error)
                log.error("%s; the plugins stay as they are", error)  # noqa: TRY400 (the text says it all)
            return None
        return self._apply(changes, self._files) if changes else None

    def _apply(self, changes: Sequence[Change], directory: PluginDirectories) -> BuiltProfiles | None:
        """Take all changes at once; if that cannot be, each that goes with those before it."""
        usable = [each for each in changes if each.error is None]
        refused = [(each, each.error) for each in changes if each.error is not None]
        accepted: list[Change] = []
        built = None
        attempts = [usable, *([each] for each in usable if len(usable) > 1)]
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
            _tell_refusal(change, reason)
            directory.refuse(change)
        if built is None:
            return None
        self.built = built
        for change in accepted:
            self._tell_change(change)
        return built

    def registry(self) -> Registry:
        """Return all plugins that can be used, as of the last start or reload."""
        return self._registry(strict=False)

    def _registry(self, changes: Iterable[Change] = (), *, strict: bool = True) -> Registry:
        registry = Registry(self._in_tree)
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
        configuration = self._configuration
        available = ProfileInputs(
            registry=registry,
            selected=frozenset(registry.select(self._tokens).registry),
            defaults=tuple(self._in_tree),
            handle_for=self._handle_for,
            previous=self.built,
            disabled_elsewhere=None if configuration.is_kubernetes else self._switched_off,
        )
        try:
            return build(configuration.profiles, available, scheduler_name=self._scheduler_name)
        except ConfigError as error:
            if configuration.profiles and configuration.source:
                raise error.within(configuration.source) from error
            raise

    def _tell_change(self, change: Change) -> None:
        if change.is_removal:
            log.info("Removed the plugins of a file that is gone", extra={"path": change.path})
            return
        enabled = {name for _, name in self.built.made}
        for plugin in change.plugins:
            extra = {"plugin": plugin.name, "path": change.path}
            if plugin.name in enabled:
                log.info("Loaded plugin", extra=extra)
            else:
                log.warning("Loaded plugin, which no profile enables", extra=extra)


def _tell_refusal(change: Change, error: ConfigError) -> None:
    what = (
        "Refused to remove the plugins of a file" if change.is_removal else "Refused a new version of a file"
    )
    for problem in error.problems:
        log.error(
            "%s, the version before stays: %s",
            what,
            replace(problem, path="") if problem.path == str(change.path) else problem,
            exc_info=problem.cause,
            extra={"path": change.path},
        )
