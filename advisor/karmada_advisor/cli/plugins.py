"""``karmada-pyscheduler plugins``: a list of all plugins, their origin, and where they are enabled."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from karmada_advisor.cli.output import GOOD, NOT_GOOD, print_error, print_errors
from karmada_advisor.views.fields import as_json
from karmada_advisor.views.text import table
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config import features
from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration, plugin_tokens
from karmada_scheduler.framework.extension_points import Point, points_of
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.profile.factory import Registration, make
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler_plugins.registry import IN_TREE, in_tree


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    name = DEFAULT_SCHEDULER_NAME if arguments.scheduler_name is None else arguments.scheduler_name
    problems: list[object] = []
    configuration, has_configuration = SchedulerConfiguration(), True
    try:
        gates = features.parse(arguments.feature_gates)
    except ValueError as error:
        problems.append(f"--feature-gates: {error}")
        gates = features.FeatureGates()
    try:
        if arguments.config is not None:
            configuration = load(arguments.config, scheduler_name=name)
    except ConfigError as error:
        problems.extend(error.problems)
        has_configuration = False
    setup = PluginSetup(
        in_tree(gates),
        handle_for=PluginHandle,
        own=own,
        directories=arguments.plugin_dir,
        tokens=plugin_tokens(arguments.plugins),
        configuration=configuration,
        scheduler_name=name,
        disabled_by_gates=IN_TREE,
    )
    try:
        if has_configuration:
            setup.start()
        else:  # which plugins it enables, and with which args, is not known
            setup.load()
    except ConfigError as error:
        problems.extend(error.problems)
    print_errors(f"Error: {problem}" for problem in problems)
    if problems:
        return NOT_GOOD
    sys.stdout.write(_written(setup, arguments.output))
    warnings = (*configuration.warnings, *setup.built.warnings)
    print_errors(f"Warning: {warning}" for warning in warnings)
    for message in setup.messages:
        if message.warning:
            print_error(f"Warning: {message.text}")
    return GOOD


def _fields(plugin: Registration, built: BuiltProfiles) -> dict[str, Any]:
    """Return the fields of the JSON output."""
    enabled = _enabled(plugin.name, built).items()
    return {
        "name": plugin.name,
        "points": [point.value for point in _points_of(plugin, built)],
        "origin": plugin.origin,
        "enabled": {name: [point.value for point in points] for name, points in enabled},
        "doc": plugin.doc,
    }


def _row(plugin: Registration, built: BuiltProfiles) -> tuple[str, ...]:
    """Return the cells of the table."""
    points, profiles = _points_of(plugin, built), _enabled(plugin.name, built)
    some = {
        name: "" if set(on) == set(points) else f"at {_labels(on)}" for name, on in profiles.items() if on
    }
    enabled = ", ".join(f"{name} ({where})" if where else name for name, where in some.items()) or "no"
    if some and len(profiles) == 1:
        enabled = next(iter(some.values())) or "yes"
    return plugin.name, _labels(points) or "?", plugin.origin or "-", enabled, plugin.doc


def _labels(points: Sequence[Point]) -> str:
    return ",".join(point.label for point in points)


def _points_of(plugin: Registration, built: BuiltProfiles) -> Sequence[Point]:
    if isinstance(plugin.factory, type):
        return points_of(plugin.factory)
    made = [found.plugin for (_, name), found in built.made.items() if name == plugin.name]
    try:
        return points_of(made[0] if made else make(plugin, None, PluginHandle()))
    except ConfigError:
        return ()


def _enabled(name: str, built: BuiltProfiles) -> dict[str, list[Point]]:
    return {
        profile: [point for point in Point if any(found.name == name for found in plugins.at(point))]
        for profile, plugins in built.by_name.items()
    }


def _written(setup: PluginSetup, output: str) -> str:
    plugins = setup.registry().values()
    if output == "json":
        return as_json([_fields(plugin, setup.built) for plugin in plugins])
    heading = ("NAME", "POINTS", "ORIGIN", "ENABLED", "DESCRIPTION")
    return table(heading, [_row(plugin, setup.built) for plugin in plugins]) + "\n"
