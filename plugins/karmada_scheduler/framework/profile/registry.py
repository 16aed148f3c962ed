"""All plugins by name, and the selection by ``--plugins``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import Struct


class SelectionMessage(NamedTuple):
    """A log message about a selection, with upstream's text."""

    warning: bool
    text: str


class Selection(Struct, frozen=True):
    """The enabled plugins."""

    registry: Registry
    messages: tuple[SelectionMessage, ...]


class Registry(dict[str, Registration]):
    """Plugins by name, in running order."""

    def __init__(self, plugins: Iterable[Registration] = ()) -> None:
        super().__init__({plugin.name: plugin for plugin in plugins})

    def add(self, plugin: Registration) -> None:
        """Add a plugin.

        Raises:
            ValueError: The name is taken; the registered plugin stays.
        """
        taken = self.get(plugin.name)
        if taken is not None:
            origins = f": {taken.origin} and {plugin.origin}" if taken.origin or plugin.origin else ""
            raise ValueError(f"a plugin named {plugin.name} already exists{origins}")
        self[plugin.name] = plugin

    def select(self, tokens: Iterable[str]) -> Selection:
        """Return the plugins that the entries of ``--plugins`` enable.

        A ``*`` enables all plugins and counts first, wherever it is. Then the entries apply from left to right: a name
        enables, a leading dash disables once any plugin is enabled. So ``-Foo`` alone enables nothing, and unknown names
        are ignored, both as upstream (``plugin_loader.setup`` refuses them before). Mandatory plugins are always enabled,
        those with ``opt_in`` only by their name.
        """
        tokens = list(tokens)
        chosen: set[str] = set()
        messages: list[SelectionMessage] = []
        choosable = {name: plugin for name, plugin in self.items() if not plugin.mandatory}

        def enable(name: str) -> None:
            chosen.add(name)
            messages.append(SelectionMessage(warning=False, text=f'Enable Scheduler plugin "{name}"'))

        if "*" in tokens:
            for name, plugin in choosable.items():
                if not plugin.opt_in:
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
        selected = Registry(plugin for plugin in self.values() if plugin.mandatory or plugin.name in chosen)
        return Selection(selected, tuple(messages))
