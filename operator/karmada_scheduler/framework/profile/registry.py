"""Which plugins there are, where they come from, and which of them ``--plugins`` switches on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.handle import DetachedHandle, Handle
from karmada_scheduler.framework.profile.factory import Factory, Registration, first_line, make
from karmada_scheduler.framework.scheduling_points import Plugin


class SelectionMessage(NamedTuple):
    """What to log about a selection, in upstream's words."""

    warning: bool
    text: str


class Selection(NamedTuple):
    """The plugins that are on."""

    registry: Registry
    messages: tuple[SelectionMessage, ...]


class Registry(Mapping[str, Registration]):
    """Plugins by name, in running order."""

    def __init__(self, plugins: Mapping[str, Registration | Factory] | None = None) -> None:
        self._plugins: dict[str, Registration] = {}
        for name, plugin in (plugins or {}).items():
            if isinstance(plugin, Registration):
                self.add(plugin)
            else:
                self.register(name, plugin)

    def __getitem__(self, name: str) -> Registration:
        return self._plugins[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)

    def register(self, name: str, factory: Factory, *, origin: str = "", essential: bool = False) -> None:
        """Add a plugin.

        Raises:
            ValueError: The name is taken; the registered plugin stays.
        """
        self.add(Registration(name, factory, origin, first_line(factory), essential))

    def add(self, plugin: Registration) -> None:
        """Add a plugin that was registered elsewhere; raises as ``register`` does."""
        taken = self._plugins.get(plugin.name)
        if taken is not None:
            whence = f": {taken.origin} and {plugin.origin}" if taken.origin or plugin.origin else ""
            raise ValueError(f"a plugin named {plugin.name} already exists{whence}")
        self._plugins[plugin.name] = plugin

    def unregister(self, name: str) -> None:
        """Remove a plugin.

        Raises:
            ValueError: There is none of that name.
        """
        if name not in self._plugins:
            raise ValueError(f"no plugin named {name} exists")
        del self._plugins[name]

    def merge(self, other: Mapping[str, Registration]) -> None:
        """Add all plugins of another registry, up to the first whose name is taken.

        Raises:
            ValueError: A name is taken.
        """
        for plugin in other.values():
            self.add(plugin)

    def select(self, tokens: Iterable[str]) -> Selection:
        """Switch plugins on and off as ``--plugins`` says.

        A ``*`` anywhere stands for all and counts first; then tokens apply from left to right: a name
        switches on, a leading dash switches off once anything is on. So ``-Foo`` alone enables nothing,
        and unknown names are ignored: both as upstream (``sources.PluginSetup`` refuses them before). Essential plugins stay on and count for nothing.
        """
        tokens = list(tokens)
        chosen: set[str] = set()
        messages: list[SelectionMessage] = []
        choosable = {name: plugin for name, plugin in self.items() if not plugin.essential}

        def enable(name: str) -> None:
            chosen.add(name)
            messages.append(SelectionMessage(warning=False, text=f'Enable Scheduler plugin "{name}"'))

        if "*" in tokens:
            for name in choosable:
                enable(name)
        for token in tokens:
            if token in choosable:
                enable(token)
            elif token.startswith("-") and chosen:
                name = token.lstrip("-")
                if name in self and name not in choosable:
                    continue
                chosen.discard(name)
                messages.append(SelectionMessage(warning=True, text=f'"{name}" is disabled'))
        if choosable and not chosen:
            text = "No plugin of Filter and Score is enabled: every cluster fits"
            messages.append(SelectionMessage(warning=True, text=text))
        selected = Registry(
            {name: plugin for name, plugin in self.items() if plugin.essential or name in chosen}
        )
        return Selection(selected, tuple(messages))

    def make_all(self, handle: Handle | None = None) -> dict[str, Plugin]:
        """Make every plugin without args, as for a run without a configuration file.

        Raises:
            PluginError: A factory failed, or made what is no plugin; the text begins as upstream's.
        """
        made = {}
        for name, plugin in self.items():
            try:
                made[name] = make(plugin, None, handle or DetachedHandle())
            except ConfigError as error:
                text = "; ".join(str(problem) for problem in error.problems)
                prefix = f'failed to initialize plugin "{name}": '
                raise PluginError(prefix + text.removeprefix(prefix)) from (error.__cause__ or error)
        return made


__all__ = ["Factory", "Registration", "Registry", "Selection", "SelectionMessage"]
