"""``karmada-pyscheduler plugins``: a list of all plugins, their origin, and where they are enabled."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
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
from karmada_scheduler.structs import Struct
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
    sys.stdout.write(_written(_listed(setup), arguments.output))
    warnings = (*configuration.warnings, *setup.built.warnings)
    print_errors(f"Warning: {warning}" for warning in warnings)
    for message in setup.messages:
        if message.warning:
            print_error(f"Warning: {message.text}")
    return GOOD


class ListedPlugin(Struct, frozen=True):
    """A line of the list.

    Attributes:
        plugin: The plugin.
        points: Its extension points; empty if they cannot be determined.
        enabled: The extension points at which it runs, by profile.
    """

    plugin: Registration
    points: Sequence[Point]
    enabled: Mapping[str, Sequence[Point]]

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the JSON output."""
        return {
            "name": self.plugin.name,
            "points": [point.value for point in self.points],
            "origin": self.plugin.origin,
            "enabled": {name: [point.value for point in points] for name, points in self.enabled.items()},
            "doc": self.plugin.doc,
        }

    def as_row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        on = {name: points for name, points in self.enabled.items() if points}
        if not on:
            enabled = "no"
        elif len(self.enabled) == 1:
            [points] = on.values()
            enabled = "yes" if set(points) == set(self.points) else f"at {_labels(points)}"
        else:
            enabled = ", ".join(
                name if set(points) == set(self.points) else f"{name} (at {_labels(points)})"
                for name, points in on.items()
            )
        return (
            self.plugin.name,
            _labels(self.points) or "?",
            self.plugin.origin or "-",
            enabled,
            self.plugin.doc,
        )


def _labels(points: Sequence[Point]) -> str:
    return ",".join(point.label for point in points)


def _listed(setup: PluginSetup) -> list[ListedPlugin]:
    return [
        ListedPlugin(plugin, _points_of(plugin, setup.built), _enabled(plugin.name, setup.built))
        for plugin in setup.registry().values()
    ]


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


def _written(listed: Sequence[ListedPlugin], output: str) -> str:
    if output == "json":
        return as_json([plugin.as_fields() for plugin in listed])
    heading = ("NAME", "POINTS", "ORIGIN", "ENABLED", "DESCRIPTION")
    return table(heading, [plugin.as_row() for plugin in listed]) + "\n"
