"""The inputs of profiles, and the built profiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from karmada_scheduler.framework.handle import Handle
from karmada_scheduler.framework.plugin import ObservePlugin, Plugin
from karmada_scheduler.framework.profile.factory import Registration, make
from karmada_scheduler.framework.profile.registry import Registry
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.runtime.observing import Observing
from karmada_scheduler.structs import Struct, field


class PluginInstance(Struct, frozen=True):
    """A plugin of a profile, with its registration and args, and with what tells it about changes, if it wants that."""

    registration: Registration
    args: Mapping[str, Any] | None
    plugin: Plugin
    observing: Observing | None = None


class BuiltProfiles(Struct, frozen=True):
    """All profiles of a process.

    Attributes:
        by_name: By scheduler name; ``Profiles.queue_sort`` orders the queue.
        made: The plugins by scheduler name and their own name, for the next build.
        warnings: Parts of the profiles without effect, for the log.
    """

    by_name: Mapping[str, ProfilePlugins]
    made: Mapping[tuple[str, str], PluginInstance] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def start_observing(self) -> None:
        """Tell new plugins with ``observe`` about all objects. Called by the thread that changes the caches."""
        for plugin in self.made.values():
            if plugin.observing is not None:
                plugin.observing.start()


class ProfileInputs(Struct, frozen=True, kw_only=True):
    """The inputs of profiles.

    Attributes:
        registry: All plugins.
        selected: The names of the plugins that ``--plugins`` enables; the others are in no profile.
        offered: The names of plugins that are only in profiles which name them.
        defaults: The names of the plugins that a profile has by default, in running order.
        handle_for: Returns the handle for the plugins of a scheduler name.
        previous: The previous build; a plugin with the same factory and args stays the same object.
        disabled_elsewhere: The names that a profile may disable although there is no such plugin, because a feature
            gate removes it. None: any name, for the files of kube-scheduler.
    """

    registry: Registry
    selected: Collection[str]
    defaults: Sequence[str]
    handle_for: Callable[[str], Handle]
    previous: BuiltProfiles | None = None
    disabled_elsewhere: Collection[str] | None = ()
    offered: Collection[str] = ()

    def make(self, profile: str, name: str, args: Mapping[str, Any] | None) -> PluginInstance:
        """Return a plugin, that of the previous build if possible; raises as ``factory.make`` does."""
        registration = self.registry[name]
        before = self.previous.made.get((profile, name)) if self.previous else None
        if before is not None and before.args == args and before.registration.factory is registration.factory:
            return before
        handle = self.handle_for(profile)
        plugin = make(registration, args, handle)
        observing = Observing(plugin, handle) if isinstance(plugin, ObservePlugin) else None
        return PluginInstance(registration, args, plugin, observing)
