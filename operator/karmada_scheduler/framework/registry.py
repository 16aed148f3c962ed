"""Which plugins there are, and which of them ``--plugins`` switches on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from karmada_scheduler.framework.interface import Plugin

Factory = Callable[[], Plugin]
"""Makes a plugin; a class without arguments is one."""


class SelectionMessage(NamedTuple):
    """What to log about a selection, in upstream's words."""

    warning: bool
    text: str


class Selection(NamedTuple):
    """The plugins that are on."""

    registry: Registry
    messages: tuple[SelectionMessage, ...]


class Registry(Mapping[str, Factory]):
    """Plugin factories by name, in running order."""

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._factories: dict[str, Factory] = dict(factories or {})

    def __getitem__(self, name: str) -> Factory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def register(self, name: str, factory: Factory) -> None:
        """Add a plugin.

        Raises:
            ValueError: The name is taken; the registered plugin stays.
        """
        if name in self._factories:
            raise ValueError(f"a plugin named {name} already exists")
        self._factories[name] = factory

    def unregister(self, name: str) -> None:
        """Remove a plugin.

        Raises:
            ValueError: There is none of that name.
        """
        if name not in self._factories:
            raise ValueError(f"no plugin named {name} exists")
        del self._factories[name]

    def merge(self, other: Mapping[str, Factory]) -> None:
        """Add all plugins of another registry, up to the first whose name is taken.

        Raises:
            ValueError: A name is taken.
        """
        for name, factory in other.items():
            self.register(name, factory)

    def select(self, tokens: Iterable[str]) -> Selection:
        """Switch plugins on and off as ``--plugins`` says.

        A ``*`` anywhere stands for all and counts first; then tokens apply from left to right: a name
        switches on, a leading dash switches off once anything is on. So ``-Foo`` alone enables nothing,
        and unknown names are ignored: both as upstream.
        """
        tokens = list(tokens)
        chosen: set[str] = set()
        messages: list[SelectionMessage] = []

        def enable(name: str) -> None:
            chosen.add(name)
            messages.append(SelectionMessage(warning=False, text=f'Enable Scheduler plugin "{name}"'))

        if "*" in tokens:
            for name in self:
                enable(name)
        for token in tokens:
            if token in self:
                enable(token)
            elif token.startswith("-") and chosen:
                name = token.lstrip("-")
                chosen.discard(name)
                messages.append(SelectionMessage(warning=True, text=f'"{name}" is disabled'))
        selected = Registry({name: self[name] for name in self if name in chosen})
        return Selection(selected, tuple(messages))
