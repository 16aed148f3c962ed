"""Profiles, and what a configuration file says about them; ``config.configuration_file`` reads it.

Source: kubernetes v1.35 staging/src/k8s.io/kube-scheduler/config/v1/types.go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.structs import Struct, field

if TYPE_CHECKING:
    from karmada_scheduler.config.extenders import ExtenderConfig

DEFAULT_PLUGIN_SECONDS: Final = 2.0
"""Timeout of the plain functions of an extension point for one binding, and of one coroutine of a plugin."""
LONGEST_PLAIN_SECONDS: Final = 2.0
"""The longest timeout of plain functions, and of each step of a coroutine: all other bindings wait meanwhile."""
ALL: Final = "*"
"""In a list of disabled plugins: all that were not named as enabled."""


class PluginEntry(Struct, frozen=True, kw_only=True):
    """A plugin in a list.

    Attributes:
        weight: Of its scores; 0 is read as 1.
    """

    name: str
    weight: int = 0


class PluginSet(Struct, frozen=True, kw_only=True):
    """The changes of a profile at one extension point."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(Struct, frozen=True, kw_only=True):
    """The changes of a profile, by extension point."""

    pre_enqueue: PluginSet = field(default_factory=PluginSet)
    queue_sort: PluginSet = field(default_factory=PluginSet)
    pre_filter: PluginSet = field(default_factory=PluginSet)
    filter: PluginSet = field(default_factory=PluginSet)
    post_filter: PluginSet = field(default_factory=PluginSet)
    pre_score: PluginSet = field(default_factory=PluginSet)
    score: PluginSet = field(default_factory=PluginSet)
    estimate_replicas: PluginSet = field(default_factory=PluginSet)
    select: PluginSet = field(default_factory=PluginSet)
    assign: PluginSet = field(default_factory=PluginSet)
    guard: PluginSet = field(default_factory=PluginSet)
    reconsider: PluginSet = field(default_factory=PluginSet)
    reserve: PluginSet = field(default_factory=PluginSet)
    permit: PluginSet = field(default_factory=PluginSet)
    pre_bind: PluginSet = field(default_factory=PluginSet)
    bind: PluginSet = field(default_factory=PluginSet)
    post_bind: PluginSet = field(default_factory=PluginSet)
    multi_point: PluginSet = field(default_factory=PluginSet)

    @property
    def by_point(self) -> Mapping[str, PluginSet]:
        """The sets by the name of the point in the file, ``multiPoint`` last."""
        return {camel(name): getattr(self, name) for name in self.__struct_fields__}


class PluginArgs(Struct, frozen=True, kw_only=True):
    """The args of a plugin; the plugin declares their type."""

    name: str
    args: Mapping[str, Any] | None = None


class ProfileConfig(Struct, frozen=True, kw_only=True):
    """One entry of ``profiles``: a scheduler name and the plugins that decide for its bindings."""

    scheduler_name: str = ""
    plugins: Plugins = field(default_factory=Plugins)
    plugin_config: tuple[PluginArgs, ...] = ()


class SchedulerConfiguration(Struct, frozen=True, kw_only=True):
    """The content of a configuration file.

    Attributes:
        profiles: Profiles with distinct names; empty for one profile with all plugins, for ``--scheduler-name``.
        extenders: Extenders of all profiles, in the order in which they are called.
        plugin_timeout_seconds: Timeout of one plugin call; None if the file does not set it.
        warnings: Log messages about fields without effect.
        source: The file's name, for error texts.
        is_kubernetes: Whether it is a KubeSchedulerConfiguration, which may disable plugins that only kube-scheduler has.
    """

    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    plugin_timeout_seconds: float | None = None
    warnings: tuple[str, ...] = ()
    source: str = ""
    is_kubernetes: bool = False


def plugin_tokens(lists: Sequence[str] | None) -> tuple[str, ...]:
    """Return the entries of all occurrences of ``--plugins``, or the default."""
    if lists is None:
        return (ALL,)
    return tuple(token for text in lists for token in text.split(",") if token)


def plugin_budget(configuration: SchedulerConfiguration, renew_deadline: float | None) -> float:
    """Return the timeout of plugin calls in seconds.

    A plugin call blocks the scheduler. A leader must be able to stop in time, so the timeout is at most half of the
    renew deadline.

    Args:
        configuration: The content of the file.
        renew_deadline: In seconds; None without leader election.

    Raises:
        ConfigError: The file allows more than that.
    """
    most = math.inf if renew_deadline is None else renew_deadline / 2
    given = configuration.plugin_timeout_seconds
    if given is None:
        return min(DEFAULT_PLUGIN_SECONDS, most)
    if given > most:
        text = (
            f"must be at most {most:g}, half of --leader-elect-renew-deadline ({renew_deadline:g}s), "
            f"got {given:g}"
        )
        raise ConfigError([ConfigProblem("pluginTimeoutSeconds", text)]).within(configuration.source)
    return given
