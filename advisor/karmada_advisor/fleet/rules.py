"""The rules by which decisions are made: gates, plugins and profiles, as the flags of the scheduler set them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process_rules import ProcessConfiguration
from karmada_advisor.state.schedulers import Schedulers
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.config import features
from karmada_scheduler.config.features import DEFAULT_RULES, FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration, plugin_budget, plugin_tokens
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import OURS, Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.workload import needs_workload
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler.structs import Struct, replace
from karmada_scheduler_plugins.registry import IN_TREE, in_tree

_NOT_RUN: Final = (Point.PRE_BIND, Point.BIND)
"""Neither is PostBind; it decides nothing."""


def print_warning(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)


class Rules(Struct, frozen=True, kw_only=True):
    """By which rules decisions are made: those of flags, or those of a running scheduler.

    Attributes:
        plugins: ``--plugins``; None for the default.
        config: The configuration file; None without one.
        plugin_dirs: Directories of plugin files.
        scheduler_name: None decides about all bindings, unless ``config`` has profiles.
        feature_gates: ``A=true,B=false``, each text one or more.
        decisions_of: The version of karmada-scheduler; None for the default.
        keeps_empty: Whether selected clusters with 0 replicas stay in the result.
        own: The plugins of a main program of the user's own.
        asked: What a running scheduler has said about itself; None if none was asked.
        process: The same if decisions are made by its rules; None if flags name others, or it has not said them.
        scheduler_names: Its profiles, for what an explanation calls its own; empty for those of the flags.
        is_shown: Whether readers of an answer may learn them.
    """

    plugins: Sequence[str] | None = None
    config: Path | None = None
    plugin_dirs: Sequence[Path] = ()
    scheduler_name: str | None = None
    feature_gates: Sequence[str] = ()
    decisions_of: str | None = None
    keeps_empty: bool = False
    own: Sequence[Registration] = ()
    asked: ProcessConfiguration | None = None
    process: ProcessConfiguration | None = None
    scheduler_names: frozenset[str] = frozenset()
    is_shown: bool = True

    def __str__(self) -> str:
        """Return by which rules decisions are made, for people; "" if they are not shown."""
        if not self.is_shown:
            return ""
        if self.process is not None:
            return str(self.process)
        parts = [f"--plugins={','.join(self.plugins)}"] if self.plugins else []
        parts += [f"--config={self.config}"] if self.config else []
        parts += [f"--plugin-dir={folder}" for folder in self.plugin_dirs]
        if changed := self._changed_gates():
            parts.append(f"--feature-gates={','.join(changed)}")
        if self.decisions_of not in (None, DEFAULT_RULES.decisions_of):
            parts.append(f"--decisions-of={self.decisions_of}")
        return f"karmada-scheduler v1.18.2, {' '.join(parts) or 'default plugins and gates'}"

    @property
    def hidden(self) -> Rules:
        """The same without what a reader may not learn: the flags, and what a running scheduler has said."""
        return replace(self, asked=None, process=None, is_shown=False)

    @property
    def running(self) -> Mapping[str, str]:
        """The names of the profiles of a process that has answered, to its name; none without one."""
        return {} if self.asked is None else self.asked.running

    @property
    def gates(self) -> FeatureGates:
        """The feature gates, with the rules of ``decisions_of``.

        Raises:
            NoAnswerError: They cannot be read.
        """
        try:
            return features.parse(self.feature_gates, self.decisions_of or DEFAULT_RULES.decisions_of)
        except ValueError as error:
            raise NoAnswerError(f"--feature-gates: {error}") from error

    def _changed_gates(self) -> list[str]:
        """Return the gates that differ from their defaults."""
        try:
            gates = self.gates
        except NoAnswerError:
            return list(self.feature_gates)  # reported where the gates are used
        defaults = features.FeatureGates(rules=gates.rules)
        changed = (name for name in features.KNOWN if gates.enabled(name) != defaults.enabled(name))
        return [f"{name}={str(gates.enabled(name)).lower()}" for name in changed]

    @property
    def fingerprint(self) -> str:
        """The rules for the fingerprint of a fleet."""
        gates = self.gates
        decided_by = sorted((name, gates.enabled(name)) for name in features.KNOWN)
        config = self.config.read_bytes().decode(errors="replace") if self.config else ""
        return ("" if self.process is None else repr(self.process)) + repr(
            (
                [*decided_by, *(() if gates.rules is DEFAULT_RULES else (gates.rules,))],
                None if self.plugins is None else list(self.plugins),
                config,
                list(map(str, self.plugin_dirs)),
                self.scheduler_name,
                str(self.keeps_empty).lower(),
            )
        )

    def using(self, found: ProcessConfiguration) -> Rules:
        """Return the rules of a process that has answered, unless these name profiles, plugins or a scheduler."""
        asked = replace(self, asked=found)
        if self.config or self.plugins or self.scheduler_name or not found.is_complete:
            return asked
        return replace(asked, process=found, keeps_empty=self.keeps_empty or found.empty_workload_propagation)

    @property
    def stock(self) -> Rules:
        """Those of karmada-scheduler with default plugins and gates, which decide where the scheduler is not asked."""
        return Rules(decisions_of=self.decisions_of, is_shown=self.is_shown)

    def unknown(self, schedulers: Schedulers) -> frozenset[str]:
        """Return the profiles of this project, as Leases name them, whose plugins neither a process nor flags tell."""
        given = (self.plugins, self.config, self.plugin_dirs, self.own, self.feature_gates, self.decisions_of)
        if any(given) or self.scheduler_name:
            return frozenset()
        return schedulers.profiles - frozenset(() if self.asked is None else self.asked.profiles)

    @contextmanager
    def dry_run(
        self,
        objects: ShownObjects,
        schedulers: Schedulers | None = None,
        *,
        say: Callable[[str], None] = print_warning,
    ) -> Iterator[DryRun]:
        """Provide a dry run in which each binding is decided by the rules of its own scheduler, as far as they are known.

        The process that was asked and flags that name a scheduler say which profiles they are about; other flags, and a
        manifest, are about every name but ``unknown``. Of the others, ``default-scheduler`` is a stock karmada-scheduler,
        unless its Lease is one of this project.

        Args:
            objects: What the plugins see.
            schedulers: Which schedulers exist; None to decide by these rules only.
            say: Takes warnings; prints them by default.

        Raises:
            NoAnswerError: The gates, the configuration or a plugin cannot be used.
        """
        is_stock = schedulers is not None and DEFAULT_SCHEDULER_NAME not in schedulers.profiles
        others = {DEFAULT_SCHEDULER_NAME: self.stock} if is_stock else {}
        unknown = frozenset[str]() if schedulers is None else self.unknown(schedulers)
        with ExitStack() as stack:
            running = dry_running(self, self.gates, objects, unknown=unknown, others=others, say=say)
            try:
                dry_run = stack.enter_context(running)
            except ConfigError as unusable:
                raise NoAnswerError(str(unusable)) from unusable
            yield dry_run


def not_known(name: str) -> str:
    """Return that a scheduler decides whose rules are not known."""
    return f"decided by {name}, whose plugins are not known here: --from"


@contextmanager
def dry_running(
    rules: Rules,
    gates: FeatureGates,
    objects: ShownObjects,
    *,
    unknown: Collection[str] = (),
    others: Mapping[str, Rules] = MappingProxyType({}),
    say: Callable[[str], None] = print_warning,
) -> Iterator[DryRun]:
    """Build the plugins, and provide a dry run by them; meanwhile those of the user have the timeout of the scheduler.

    Args:
        rules: All but the gates.
        gates: Feature gates.
        objects: What the plugins see.
        unknown: Schedulers about which ``rules`` say nothing, even if they name none.
        others: The rules of other schedulers, with in-tree plugins only, by name.
        say: Takes warnings; prints them by default.

    Raises:
        ConfigError: The configuration or a plugin cannot be used.
    """
    scheduler_name = rules.scheduler_name or DEFAULT_SCHEDULER_NAME
    tokens, process = plugin_tokens(rules.plugins), rules.process
    missing: Mapping[str, tuple[str, ...]] = {}
    if process is not None:
        available = _available(rules, gates, objects)
        configuration, missing = process.configuration(available), process.missing(available)
        tokens, scheduler_name = process.known_tokens(available), process.scheduler_name
    elif rules.config:
        from karmada_scheduler.config.configuration_file import load  # needed with --config only

        configuration = load(rules.config, scheduler_name=scheduler_name)
    else:
        configuration = SchedulerConfiguration()
    budget = plugin_budget(configuration, None)
    setup = PluginSetup(
        in_tree(gates),
        handle_for=objects.handle_for,
        own=rules.own,
        directories=rules.plugin_dirs,
        tokens=tokens,
        configuration=configuration,
        scheduler_name=scheduler_name,
        disabled_by_gates=IN_TREE,
    )
    every = not configuration.profiles and not rules.scheduler_name and process is None
    built = setup.start()
    with _caller(built, budget) as caller:
        for warning in _warnings(setup, built, configuration):
            say(warning)
        frameworks = replace(_frameworks(built, caller, unknown if every else None), missing=missing)
        stock = {name: _in_tree_only(other, objects) for name, other in others.items() if not every}
        yield DryRun(gates, objects, frameworks, empty_workload_propagation=rules.keeps_empty, others=stock)


def _in_tree_only(rules: Rules, objects: ShownObjects) -> DryRun:
    gates = rules.gates
    setup = PluginSetup(in_tree(gates), handle_for=objects.handle_for, packages=tuple)
    [plugins] = setup.start().by_name.values()
    return DryRun(gates, objects, Frameworks.only(Framework(plugins, caller=PluginCaller())))


@contextmanager
def _caller(built: BuiltProfiles, budget: float) -> Iterator[PluginCaller]:
    """Provide what calls the plugins: with a timeout if one is the user's own, as the timer costs a tenth of a decision."""
    if not _has_own_plugins(built):
        yield PluginCaller()
        return
    with closing(SigalrmTimeout(budget)) as alarm:
        yield PluginCaller(timeout=alarm, coroutine_seconds=budget, interrupts=(KeyboardInterrupt,))


def _has_own_plugins(built: BuiltProfiles) -> bool:
    return any(plugin.registration.origin != OURS for plugin in built.made.values())


def _available(rules: Rules, gates: FeatureGates, objects: ShownObjects) -> frozenset[str]:
    """Return the names of the plugins whose code is here.

    Raises:
        ConfigError: A plugin file cannot be used.
    """
    setup = PluginSetup(
        in_tree(gates), handle_for=objects.handle_for, own=rules.own, directories=rules.plugin_dirs
    )
    setup.load()
    return frozenset({*setup.registry(), *IN_TREE})


def _frameworks(built: BuiltProfiles, caller: PluginCaller, unknown: Collection[str] | None) -> Frameworks:
    """Return the plugins of each profile; the only ones for all bindings but those of ``unknown``, unless that is None."""
    by_name = {name: Framework(plugins, caller=caller) for name, plugins in built.by_name.items()}
    declaring = {name: any(map(needs_workload, plugins.unique)) for name, plugins in built.by_name.items()}
    has_guards = any(plugins.guard for plugins in built.by_name.values())
    first = next(iter(by_name.values()))

    def framework_of(binding: Binding) -> Framework | None:
        name = binding.spec.responsible_scheduler
        return by_name.get(name) if unknown is None else None if name in unknown else first

    names, has_own_plugins = frozenset(by_name) if unknown is None else None, _has_own_plugins(built)
    return Frameworks(framework_of, names, declaring, first, has_own_plugins, has_guards)


def _warnings(
    setup: PluginSetup, built: BuiltProfiles, configuration: SchedulerConfiguration
) -> Iterator[str]:
    """Yield what a person has to know, such as the user's own plugins that may refuse a decision and do not run."""
    if configuration.extenders:
        yield "extenders are not called, as if there were none"
    yield from (*configuration.warnings, *built.warnings)
    yield from (message.text for message in setup.messages if message.warning)
    found = {
        f"{plugin.name} ({point.label})": None
        for profile, plugins in built.by_name.items()
        for point in _NOT_RUN
        for plugin in plugins.at(point)
        if built.made[profile, plugin.name].registration.origin != OURS
    }
    if found:
        yield f"not called, because nothing is written: {', '.join(found)}"
