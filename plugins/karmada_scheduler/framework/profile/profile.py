"""Builds the plugins of each profile in running order, with Kubernetes' rules of precedence.

The list of an extension point takes precedence over ``multiPoint``, which takes precedence over the defaults: the in-tree
plugins at ``multiPoint``. One rule is added: the mandatory plugins of Select, Assign and Bind never return SKIP, so they
run last at their extension points, unless the profile names them there.

Without profiles in the file there is one, in which all enabled plugins are at all their extension points.

Source: kubernetes v1.35 pkg/scheduler/framework/runtime/framework.go NewFramework, expandMultiPointPlugins;
pkg/scheduler/apis/config/v1/default_plugins.go mergePlugins; pkg/scheduler/profile/profile.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from karmada_scheduler.config.problems import ConfigError, ConfigProblem, known, nearest
from karmada_scheduler.config.profiles import ALL, PluginEntry, PluginSet, ProfileConfig
from karmada_scheduler.config.structure import ConfigProblems
from karmada_scheduler.framework.extension_points import Point, points_of
from karmada_scheduler.framework.profile.inputs import BuiltProfiles, PluginInstance, ProfileInputs
from karmada_scheduler.framework.profile.registry import Registry
from karmada_scheduler.framework.profile_plugins import ProfilePlugins

MULTI_POINT: Final = "multiPoint"
_FIRST_ANSWER: Final = (Point.SELECT, Point.ASSIGN, Point.BIND)
"""Extension points at which the first answer other than SKIP counts, so that a plugin is required."""


def build(configs: Sequence[ProfileConfig], inputs: ProfileInputs, *, scheduler_name: str) -> BuiltProfiles:
    """Return all profiles, or the default one if the file has none.

    Args:
        configs: The profiles of the file, each with a name.
        inputs: The plugins.
        scheduler_name: The name of the default profile.

    Raises:
        ConfigError: All problems of all profiles.
    """
    if not configs:
        return _build_default(inputs, scheduler_name)
    problems = ConfigProblems()
    builders = []
    for position, config in enumerate(configs):
        with problems.below(f"profiles[{position}]"):
            builder = _ProfileBuilder(config, inputs)
            builder.build()
            builders.append(builder)
    problems.extend(_different_queues(builders))
    problems.raise_if_any()
    return BuiltProfiles(
        by_name={profile.name: profile.plugins for profile in builders},
        made={(profile.name, name): made for profile in builders for name, made in profile.made.items()},
        warnings=tuple(warning for profile in builders for warning in profile.warnings),
    )


def _different_queues(builders: Sequence[_ProfileBuilder]) -> Iterator[ConfigProblem]:
    """Yield problems of profiles with different QueueSort plugins, because there is one queue."""
    sorters = [profile.plugins.queue_sort[0].name for profile in builders]
    for builder, sorter in zip(builders[1:], sorters[1:], strict=True):
        if sorter != sorters[0]:
            yield ConfigProblem(
                "profiles",
                f'different queue sort plugins for profile "{builder.name}": "{sorter}", first: "{sorters[0]}"',
            )
        elif builder.args.get(sorter) != builders[0].args.get(sorter):
            yield ConfigProblem("profiles", f'different queue sort plugin args for profile "{builder.name}"')


class _ProfileBuilder:
    """Builds one profile. The paths of problems begin below the profile."""

    def __init__(self, config: ProfileConfig, inputs: ProfileInputs) -> None:
        self.name = config.scheduler_name
        self._sets = dict(config.plugins.by_point)
        self.args = {entry.name: entry.args for entry in config.plugin_config}
        self._config = config
        self._inputs = inputs
        self._problems = ConfigProblems()
        self.warnings: list[str] = []
        self.made: dict[str, PluginInstance] = {}
        self.plugins = ProfilePlugins()

    def build(self) -> None:
        """Set ``made`` and ``plugins``; raise ConfigError if the profile has problems."""
        self._check_names()
        multi_point = self._enabled(_merged(self._inputs.defaults, self._sets[MULTI_POINT]))
        specific = {point: self._enabled(self._sets[point.value].enabled) for point in Point}
        self._make({entry.name for entries in (multi_point, *specific.values()) for entry in entries})
        self._check_points(specific)
        self._problems.raise_if_any()
        names = {
            point: self._ordered(point, specific[point], self._expanded(point, specific[point], multi_point))
            for point in Point
        }
        for point, text in _count_problems(names, self.name):
            self._problems.append(ConfigProblem(f"plugins.{point.value}", text))
        self._problems.raise_if_any()
        self.plugins = ProfilePlugins.from_points(
            {point: [self.made[name].plugin for name in listed] for point, listed in names.items() if listed},
            _weights(names[Point.SCORE], (*specific[Point.SCORE], *multi_point)),
        )

    def _check_names(self) -> None:
        registry = self._inputs.registry
        for point, plugins in self._sets.items():
            for index, entry in enumerate(plugins.enabled):
                self._require_known(f"plugins.{point}.enabled[{index}]", entry.name)
            for index, entry in enumerate(plugins.disabled):
                if entry.name != ALL and entry.name not in registry:
                    self._check_disabled(f"plugins.{point}.disabled[{index}]", entry.name)
        for index, args in enumerate(self._config.plugin_config):
            self._require_known(f"pluginConfig[{index}]", args.name)

    def _require_known(self, path: str, name: str) -> None:
        registry = self._inputs.registry
        if name not in registry:
            self._problems.append(ConfigProblem(f"{path}.name", _unknown_name(name, registry)))

    def _check_disabled(self, path: str, name: str) -> None:
        """Add a problem for an unknown name, or a warning if it may be a plugin of another scheduler."""
        allowed = self._inputs.disabled_elsewhere
        if allowed is None or name in allowed:
            text = _unknown_name(name, self._inputs.registry)
            self.warnings.append(f'{path} of profile "{self.name}" has no effect: {text}')
        else:
            self._require_known(path, name)

    def _enabled(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        return [
            entry
            for entry in entries
            if entry.name in self._inputs.registry
            and (entry.name in self._inputs.selected or entry.name in self._inputs.offered)
        ]

    def _make(self, names: set[str]) -> None:
        indices = {entry.name: index for index, entry in enumerate(self._config.plugin_config)}
        for name in self._inputs.registry:
            if name in names:
                with self._problems.below(f"pluginConfig[{indices.get(name, name)}]"):
                    self.made[name] = self._inputs.make(self.name, name, self.args.get(name))
        self.warnings.extend(
            f'pluginConfig[{index}] of profile "{self.name}" has no effect: {name} is not enabled'
            for name, index in indices.items()
            if name in self._inputs.registry and name not in names
        )

    def _check_points(self, specific: Mapping[Point, Sequence[PluginEntry]]) -> None:
        for point, entries in specific.items():
            for entry in entries:
                if entry.name in self.made and not point.is_served_by(self.made[entry.name].plugin):
                    index = self._sets[point.value].enabled.index(entry)
                    has = ", ".join(extension.label for extension in points_of(self.made[entry.name].plugin))
                    self._problems.append(
                        ConfigProblem(
                            f"plugins.{point.value}.enabled[{index}].name",
                            f'plugin "{entry.name}" does not extend {point.label} plugin; it extends: {has}',
                        )
                    )

    def _expanded(
        self, point: Point, specific: Sequence[PluginEntry], multi_point: Sequence[PluginEntry]
    ) -> list[str]:
        """Return the plugins of an extension point: (a) those of ``multiPoint`` that the point lists, in the point's
        order, (b) the others of ``multiPoint``, (c) the others of the point.
        """
        named = [entry.name for entry in specific]
        disabled = {entry.name for entry in self._sets[point.value].disabled}
        if ALL in disabled:
            return named
        brought = [
            entry.name
            for entry in multi_point
            if point.is_served_by(self.made[entry.name].plugin) and entry.name not in disabled
        ]
        return [
            *(name for name in named if name in brought),
            *(name for name in brought if name not in named),
            *(name for name in named if name not in brought),
        ]

    def _ordered(self, point: Point, specific: Sequence[PluginEntry], names: list[str]) -> list[str]:
        if point not in _FIRST_ANSWER:
            return names
        named = {entry.name for entry in specific}
        return _mandatory_last(
            names, [name for name in names if self.made[name].registration.mandatory and name not in named]
        )


def _count_problems(names: Mapping[Point, Sequence[str]], profile: str) -> Iterator[tuple[Point, str]]:
    sorters = names[Point.QUEUE_SORT]
    if len(sorters) != 1:
        found = f"{len(sorters)}: {', '.join(sorters)}" if sorters else "0"
        yield (
            Point.QUEUE_SORT,
            f'only one queue sort plugin required for profile with scheduler name "{profile}", but got {found}',
        )
    for point in _FIRST_ANSWER:
        if not names[point]:
            yield (
                point,
                f'at least one {point.value} plugin is needed for profile with scheduler name "{profile}"',
            )


def _merged(defaults: Sequence[str], user: PluginSet) -> list[PluginEntry]:
    """Return the defaults merged with ``multiPoint``. A default that is listed keeps its place; one that is also
    disabled moves to the end.
    """
    disabled = {entry.name for entry in user.disabled}
    again = {entry.name: entry for entry in user.enabled}
    kept = [again.get(name, PluginEntry(name=name)) for name in defaults if disabled.isdisjoint((name, ALL))]
    replaced = {entry.name for entry in kept}
    return [*kept, *(entry for entry in user.enabled if entry.name not in replaced)]


def _weights(scorers: Sequence[str], entries: Sequence[PluginEntry]) -> dict[str, int]:
    """Take the first weight that is found, the point's own before that of ``multiPoint``; 0 is 1."""
    found: dict[str, int] = {}
    for entry in entries:
        found.setdefault(entry.name, entry.weight or 1)
    return {name: found[name] for name in scorers}


def _mandatory_last(names: Sequence[str], defaults: Collection[str]) -> list[str]:
    return [*(name for name in names if name not in defaults), *(name for name in names if name in defaults)]


def _unknown_name(name: str, registry: Registry) -> str:
    return f'no plugin named "{name}"; {nearest(name, registry)}{known(registry)}'


def _build_default(inputs: ProfileInputs, profile: str) -> BuiltProfiles:
    problems = ConfigProblems()
    made: dict[str, PluginInstance] = {}
    for name in inputs.registry:
        if name in inputs.selected:
            try:
                made[name] = inputs.make(profile, name, None)
            except ConfigError as error:
                for problem in error.problems:
                    path, text = f"{name}.{problem.path}", f"{problem.text} (a --config file can give it)"
                    problems.append(ConfigProblem(path, text, problem.cause) if problem.path else problem)
    mandatory = [name for name, plugin in made.items() if plugin.registration.mandatory]
    names = {
        point: _mandatory_last([name for name in made if point.is_served_by(made[name].plugin)], mandatory)
        for point in Point
    }
    if len(names[Point.QUEUE_SORT]) > 1:
        names[Point.QUEUE_SORT] = [name for name in names[Point.QUEUE_SORT] if name not in mandatory]
    if not problems:
        problems.extend(ConfigProblem("", text) for _, text in _count_problems(names, profile))
    problems.raise_if_any()
    points = {point: [made[name].plugin for name in listed] for point, listed in names.items() if listed}
    return BuiltProfiles(
        {profile: ProfilePlugins.from_points(points)}, {(profile, name): each for name, each in made.items()}
    )
