"""The rules by which a command decides: gates, plugins and profiles, as the flags of the scheduler set them.

Why-not also decides with other rules, of which one gate or plugin is changed (``alternatives``).
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.process_rules import ProcessConfiguration
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config import features
from karmada_scheduler.config.decision_rules import DEFAULT_RULES
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration, plugin_budget, plugin_tokens
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import Frameworks, ShownObjects
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.workload import needs_workload
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler.structs import Struct, replace
from karmada_scheduler_plugins.registry import IN_TREE, ORIGIN, in_tree

_NOT_RUN: Final = (Point.PRE_BIND, Point.BIND)
"""Neither is PostBind; it decides nothing."""


def described(arguments: argparse.Namespace) -> str:
    """Return by which rules a command decides, for people."""
    process: ProcessConfiguration | None = arguments.process_rules
    if process is not None:
        return str(process)
    parts = [f"--plugins={','.join(arguments.plugins)}"] if arguments.plugins else []
    parts += [f"--config={arguments.config}"] if arguments.config else []
    parts += [f"--plugin-dir={each}" for each in arguments.plugin_dir]
    if changed := _changed_gates(arguments.feature_gates):
        parts.append(f"--feature-gates={','.join(changed)}")
    if arguments.decisions_of not in (None, DEFAULT_RULES.decisions_of):
        parts.append(f"--decisions-of={arguments.decisions_of}")
    return f"karmada-scheduler v1.18.2, {' '.join(parts) or 'default plugins and gates'}"


def _changed_gates(given: Sequence[str]) -> list[str]:
    """Return the gates that differ from their defaults."""
    try:
        gates, defaults = features.parse(given), features.parse([])
    except ValueError:
        return list(given)  # reported where the gates are used
    return [
        f"{name}={str(gates.enabled(name)).lower()}"
        for name in features.KNOWN
        if gates.enabled(name) != defaults.enabled(name)
    ]


def print_warning(text: str) -> None:
    """Print a line to standard error."""
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)


def parsed_gates(arguments: argparse.Namespace) -> FeatureGates:
    """Return the feature gates of ``--feature-gates``, with the rules of ``--decisions-of``.

    Raises:
        NoAnswerError: They cannot be read.
    """
    try:
        return features.parse(arguments.feature_gates, arguments.decisions_of or DEFAULT_RULES.decisions_of)
    except ValueError as error:
        raise NoAnswerError(f"--feature-gates: {error}") from error


@contextmanager
def dry_running(
    arguments: argparse.Namespace,
    gates: FeatureGates,
    own: Sequence[Registration],
    objects: ShownObjects,
    *,
    say: Callable[[str], None] = print_warning,
) -> Iterator[DryRun]:
    """Build the plugins, and provide a dry run by them; meanwhile those of the user have the timeout of the scheduler.

    Args:
        arguments: As parsed.
        gates: Feature gates.
        own: The plugins of a main program of the user's own.
        objects: What the plugins see.
        say: Takes warnings; prints them by default.

    Raises:
        ConfigError: The configuration or a plugin cannot be used.
    """
    scheduler_name = arguments.scheduler_name or DEFAULT_SCHEDULER_NAME
    tokens = plugin_tokens(arguments.plugins)
    process: ProcessConfiguration | None = arguments.process_rules
    missing: Mapping[str, tuple[str, ...]] = {}
    if process is not None:
        available = _available(arguments.plugin_dir, gates, own, objects)
        configuration, missing = process.configuration(available), process.missing(available)
        tokens, scheduler_name = process.known_tokens(available), process.scheduler_name
    elif arguments.config:
        from karmada_scheduler.config.configuration_file import load  # needed with --config only

        configuration = load(arguments.config, scheduler_name=scheduler_name)
    else:
        configuration = SchedulerConfiguration()
    budget = plugin_budget(configuration, None)
    setup = PluginSetup(
        in_tree(gates),
        handle_for=objects.handle_for,
        own=own,
        directories=arguments.plugin_dir,
        tokens=tokens,
        configuration=configuration,
        scheduler_name=scheduler_name,
        disabled_by_gates=IN_TREE,
    )
    every = not configuration.profiles and not arguments.scheduler_name and process is None
    built = setup.start()
    with _caller(built, budget) as caller:
        made = _frameworks(setup, built, configuration, caller, every=every, say=say)
        empty = arguments.enable_empty_workload_propagation == "true"
        yield DryRun(gates, objects, replace(made, missing=missing), empty_workload_propagation=empty)


@contextmanager
def usable_dry_run(
    arguments: argparse.Namespace,
    own: Sequence[Registration],
    objects: ShownObjects,
    *,
    say: Callable[[str], None] = print_warning,
) -> Iterator[DryRun]:
    """Provide a dry run as ``dry_running`` does, by the feature gates of the command line.

    Raises:
        NoAnswerError: The gates, the configuration or a plugin cannot be used.
    """
    with ExitStack() as stack:
        gates = parsed_gates(arguments)
        try:
            dry_run = stack.enter_context(dry_running(arguments, gates, own, objects, say=say))
        except ConfigError as unusable:
            raise NoAnswerError(str(unusable)) from unusable
        yield dry_run


@contextmanager
def _caller(built: BuiltProfiles, budget: float) -> Iterator[PluginCaller]:
    """Provide what calls the plugins: with a timeout if one is the user's own, as the timer costs a tenth of a decision."""
    if not _has_own_plugins(built):
        yield PluginCaller()
        return
    with closing(SigalrmTimeout(budget)) as alarm:
        yield PluginCaller(timeout=alarm, coroutine_seconds=budget, interrupts=(KeyboardInterrupt,))


def _has_own_plugins(built: BuiltProfiles) -> bool:
    return any(each.registration.origin != ORIGIN for each in built.made.values())


def _available(
    directories: Sequence[Path],
    gates: FeatureGates,
    own: Sequence[Registration],
    objects: ShownObjects,
) -> frozenset[str]:
    """Return the names of the plugins whose code is here.

    Raises:
        ConfigError: A plugin file cannot be used.
    """
    setup = PluginSetup(in_tree(gates), handle_for=objects.handle_for, own=own, directories=directories)
    setup.load()
    return frozenset({*setup.registry(), *IN_TREE})


def _frameworks(
    setup: PluginSetup,
    built: BuiltProfiles,
    configuration: SchedulerConfiguration,
    caller: PluginCaller,
    *,
    every: bool,
    say: Callable[[str], None],
) -> Frameworks:
    """Return the plugins of each profile; with ``every``, the only ones for all bindings."""
    if configuration.extenders:
        say("extenders are not called, as if there were none")
    by_name = {name: Framework(plugins, caller=caller) for name, plugins in built.by_name.items()}
    for warning in (*configuration.warnings, *built.warnings):
        say(warning)
    for message in setup.messages:
        if message.warning:
            say(message.text)
    for text in _not_called(built):
        say(text)
    declaring = {name: any(map(needs_workload, plugins.unique)) for name, plugins in built.by_name.items()}
    has_guards = any(plugins.guard for plugins in built.by_name.values())
    if every:
        [only] = by_name.values()
        return Frameworks(lambda _: only, None, declaring, only, _has_own_plugins(built), has_guards)
    return Frameworks(
        lambda binding: by_name.get(binding.spec.responsible_scheduler),
        frozenset(by_name),
        declaring,
        next(iter(by_name.values())),
        _has_own_plugins(built),
        has_guards,
    )


def _not_called(built: BuiltProfiles) -> Iterator[str]:
    """Yield a line with the user's own plugins that may refuse a decision when it is written, because they do not run."""
    found = {
        f"{plugin.name} ({point.label})": None
        for profile, plugins in built.by_name.items()
        for point in _NOT_RUN
        for plugin in plugins.at(point)
        if built.made[profile, plugin.name].registration.origin != ORIGIN
    }
    if found:
        yield f"not called, because nothing is written: {', '.join(found)}"


_GATES: Final = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
)


class Configuration(Struct, frozen=True):
    """A change of the configuration.

    Attributes:
        op: ``setGate`` or ``disablePlugin``.
        text: For people.
        flag: What to append to the command line of the scheduler, and of ``simulate``.
    """

    op: str
    text: str
    flag: str

    def applied(self, arguments: argparse.Namespace) -> argparse.Namespace:
        """Return arguments with the change."""
        changed = copy.copy(arguments)
        name, _, value = self.flag.removeprefix("--").partition("=")
        attribute = name.replace("-", "_")
        setattr(changed, attribute, [*(getattr(arguments, attribute) or ()), value])
        return changed


def alternatives(
    arguments: argparse.Namespace, gates: FeatureGates, refusing: str
) -> Iterator[Configuration]:
    """Yield changes of one gate or plugin.

    Args:
        arguments: The command line.
        gates: Its feature gates.
        refusing: The plugin that refuses the cluster, "" if none does.
    """
    if refusing:
        enabled = "" if arguments.plugins else "*,"
        flag = f"--plugins={enabled}-{refusing}"
        yield Configuration("disablePlugin", f"without the plugin {refusing} ({flag})", flag)
    for name in _GATES:
        value = not gates.enabled(name)
        flag = f"--feature-gates={name}={str(value).lower()}"
        yield Configuration("setGate", f"feature gate {name}={str(value).lower()}", flag)
