"""From profiles as the file has them to plugins in running order, with Kubernetes' rules of precedence.

A point of its own beats ``multiPoint``, which beats the defaults; the defaults are the in-tree plugins, all
under ``multiPoint``. One rule is added: the default plugins of Select, Assign and Bind always answer, so
they come last at their points, unless the profile names them there.

Without profiles there is one, in which every plugin that is on takes part in all its points.

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
_ANSWERED_ONCE: Final = (Point.SELECT, Point.ASSIGN, Point.BIND)
"""Points at which the first plugin that does not SKIP decides, so that there has to be one."""


def build(
    configs: Sequence[ProfileConfig], available: ProfileInputs, *, scheduler_name: str
) -> BuiltProfiles:
    """Build all profiles, or the implied one if there is none in the file.

    Args:
        configs: As the file has them, each with a name.
        available: What there is to build from.
        scheduler_name: The name of the implied profile.

    Raises:
        ConfigError: All problems of all profiles.
    """
    if not configs:
        return _implied(available, scheduler_name)
    problems = ConfigProblems()
    builders = []
    for position, config in enumerate(configs):
        with problems.below(f"profiles[{position}]"):
            builder = _Builder(config, available)
            builder.build()
            builders.append(builder)
    problems.extend(_different_queues(builders))
    problems.raise_if_any()
    return BuiltProfiles(
        by_name={each.name: each.plugins for each in builders},
        made={(each.name, name): made for each in builders for name, made in each.made.items()},
        warnings=tuple(warning for each in builders for warning in each.warnings),
    )


def _different_queues(builders: Sequence[_Builder]) -> Iterator[ConfigProblem]:
    """There is one queue, so all profiles have to agree on its order."""
    sorters = [each.plugins.queue_sort[0].name for each in builders]
    for builder, sorter in zip(builders[1:], sorters[1:], strict=True):
        if sorter != sorters[0]:
            yield ConfigProblem(
                "profiles",
                f'different queue sort plugins for profile "{builder.name}": "{sorter}", first: "{sorters[0]}"',
            )
        elif builder.args.get(sorter) != builders[0].args.get(sorter):
            yield ConfigProblem("profiles", f'different queue sort plugin args for profile "{builder.name}"')


class _Builder:
    """Builds one profile; problems have paths from the profile on."""

    def __init__(self, config: ProfileConfig, available: ProfileInputs) -> None:
        self.name = config.scheduler_name
        self.sets = dict(config.plugins.by_point)
        self.args = {each.name: each.args for each in config.plugin_config}
        self.config = config
        self.available = available
        self.problems = ConfigProblems()
        self.warnings: list[str] = []
        self.made: dict[str, PluginInstance] = {}
        self.plugins = ProfilePlugins()

    def build(self) -> None:
        """Fill ``made`` and ``plugins``; raise ConfigError if that cannot be done."""
        self._check_names()
        multi_point = self._on(_merged(self.available.defaults, self.sets[MULTI_POINT]))
        specific = {point: self._on(self.sets[point.value].enabled) for point in Point}
        self._make({entry.name for entries in (multi_point, *specific.values()) for entry in entries})
        self._check_points(specific)
        self.problems.raise_if_any()
        names = {
            point: self._order(point, specific[point], self._expanded(point, specific[point], multi_point))
            for point in Point
        }
        self._check_counts(names)
        self.problems.raise_if_any()
        self.plugins = ProfilePlugins.from_points(
            {point: [self.made[name].plugin for name in listed] for point, listed in names.items() if listed},
            _weights(names[Point.SCORE], (*specific[Point.SCORE], *multi_point)),
        )

    def _check_names(self) -> None:
        registry = self.available.registry
        for point, plugins in self.sets.items():
            for index, entry in enumerate(plugins.enabled):
                if entry.name not in registry:
                    self.problems.append(
                        ConfigProblem(
                            f"plugins.{point}.enabled[{index}].name", _unknown(entry.name, registry)
                        )
                    )
            for index, entry in enumerate(plugins.disabled):
                if entry.name != ALL and entry.name not in registry:
                    self._check_disabled(f"plugins.{point}.disabled[{index}]", entry.name)
        for index, each in enumerate(self.config.plugin_config):
            if each.name not in registry:
                self.problems.append(
                    ConfigProblem(f"pluginConfig[{index}].name", _unknown(each.name, registry))
                )

    def _check_disabled(self, path: str, name: str) -> None:
        """Refuse a name that is misspelt, or say that it has no effect where it may be another scheduler's."""
        text, allowed = _unknown(name, self.available.registry), self.available.disabled_elsewhere
        if allowed is None or name in allowed:
            self.warnings.append(f'{path} of profile "{self.name}" has no effect: {text}')
        else:
            self.problems.append(ConfigProblem(f"{path}.name", text))

    def _on(self, entries: Sequence[PluginEntry]) -> list[PluginEntry]:
        return [
            each
            for each in entries
            if each.name in self.available.selected and each.name in self.available.registry
        ]

    def _make(self, names: set[str]) -> None:
        places = {each.name: index for index, each in enumerate(self.config.plugin_config)}
        for name in self.available.registry:
            if name in names:
                with self.problems.below(f"pluginConfig[{places.get(name, name)}]"):
                    self.made[name] = self.available.make(self.name, name, self.args.get(name))
        self.warnings.extend(
            f'pluginConfig[{index}] of profile "{self.name}" has no effect: {name} is not enabled'
            for name, index in places.items()
            if name in self.available.registry and name not in names
        )

    def _check_points(self, specific: Mapping[Point, Sequence[PluginEntry]]) -> None:
        for point, entries in specific.items():
            for entry in entries:
                if entry.name in self.made and not point.is_served_by(self.made[entry.name].plugin):
                    index = self.sets[point.value].enabled.index(entry)
                    has = ", ".join(each.label for each in points_of(self.made[entry.name].plugin))
                    self.problems.append(
                        ConfigProblem(
                            f"plugins.{point.value}.enabled[{index}].name",
                            f'plugin "{entry.name}" does not extend {point.label} plugin; it extends: {has}',
                        )
                    )

    def _expanded(
        self, point: Point, specific: Sequence[PluginEntry], multi_point: Sequence[PluginEntry]
    ) -> list[str]:
        """Add what ``multiPoint`` brings to a point: (a) its plugins that the point names, in the point's
        order, (b) its other plugins, (c) the point's other plugins.
        """
        named = [each.name for each in specific]
        disabled = {each.name for each in self.sets[point.value].disabled}
        if ALL in disabled:
            return named
        brought = [
            each.name
            for each in multi_point
            if point.is_served_by(self.made[each.name].plugin) and each.name not in disabled
        ]
        return [
            *(name for name in named if name in brought),
            *(name for name in brought if name not in named),
            *(name for name in named if name not in brought),
        ]

    def _order(self, point: Point, specific: Sequence[PluginEntry], names: list[str]) -> list[str]:
        if point not in _ANSWERED_ONCE:
            return names
        named = {each.name for each in specific}
        return _defaults_last(
            names, [name for name in names if self.made[name].registration.mandatory and name not in named]
        )

    def _check_counts(self, names: Mapping[Point, Sequence[str]]) -> None:
        for point, text in _wrong_counts(names, self.name):
            self.problems.append(ConfigProblem(f"plugins.{point.value}", text))


def _wrong_counts(names: Mapping[Point, Sequence[str]], profile: str) -> Iterator[tuple[Point, str]]:
    sorters = names[Point.QUEUE_SORT]
    if len(sorters) != 1:
        found = f"{len(sorters)}: {', '.join(sorters)}" if sorters else "0"
        yield (
            Point.QUEUE_SORT,
            f'only one queue sort plugin required for profile with scheduler name "{profile}", but got {found}',
        )
    for point in _ANSWERED_ONCE:
        if not names[point]:
            yield (
                point,
                f'at least one {point.value} plugin is needed for profile with scheduler name "{profile}"',
            )


def _merged(defaults: Sequence[str], user: PluginSet) -> list[PluginEntry]:
    """Merge ``multiPoint`` with the defaults: one that is enabled again keeps its place, unless it is
    disabled as well, which moves it to the end.
    """
    disabled = {each.name for each in user.disabled}
    again = {each.name: each for each in user.enabled}
    kept = (
        []
        if ALL in disabled
        else [again.get(name, PluginEntry(name=name)) for name in defaults if name not in disabled]
    )
    replaced = {each.name for each in kept}
    return [*kept, *(each for each in user.enabled if each.name not in replaced)]


def _weights(scorers: Sequence[str], entries: Sequence[PluginEntry]) -> dict[str, int]:
    """Take the first weight that is said, the point's own before that of ``multiPoint``; 0 is 1."""
    said: dict[str, int] = {}
    for entry in entries:
        said.setdefault(entry.name, entry.weight or 1)
    return {name: said[name] for name in scorers}


def _defaults_last(names: Sequence[str], defaults: Collection[str]) -> list[str]:
    return [*(name for name in names if name not in defaults), *(name for name in names if name in defaults)]


def _unknown(name: str, registry: Registry) -> str:
    return f'no plugin named "{name}"; {nearest(name, registry)}{known(registry)}'


def _implied(available: ProfileInputs, profile: str) -> BuiltProfiles:
    problems = ConfigProblems()
    made: dict[str, PluginInstance] = {}
    for name in available.registry:
        if name in available.selected:
            try:
                made[name] = available.make(profile, name, None)
            except ConfigError as error:
                problems.extend(
                    ConfigProblem(
                        f"{name}.{each.path}", f"{each.text} (a --config file can give it)", each.cause
                    )
                    if each.path
                    else each
                    for each in error.problems
                )
    mandatory = [name for name, each in made.items() if each.registration.mandatory]
    names = {
        point: _defaults_last([name for name in made if point.is_served_by(made[name].plugin)], mandatory)
        for point in Point
    }
    if len(names[Point.QUEUE_SORT]) > 1:
        names[Point.QUEUE_SORT] = [name for name in names[Point.QUEUE_SORT] if name not in mandatory]
    if not problems:
        problems.extend(ConfigProblem("", text) for _, text in _wrong_counts(names, profile))
    problems.raise_if_any()
    points = {point: [made[name].plugin for name in listed] for point, listed in names.items() if listed}
    return BuiltProfiles(
        {profile: ProfilePlugins.from_points(points)}, {(profile, name): each for name, each in made.items()}
    )
