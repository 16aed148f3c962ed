"""The plugins that a dry run calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.runtime.framework import Framework


@dataclass(frozen=True, slots=True)
class Frameworks:
    """The plugins of each profile.

    Attributes:
        of: Returns the plugins of a binding's profile; None if another scheduler is responsible.
        names: The names of the profiles; None if every binding is decided.
        declaring: Whether a profile declares that it needs workloads, by name.
        any: The plugins of the first profile.
    """

    of: Callable[[Binding], Framework | None]
    names: frozenset[str] | None
    declaring: Mapping[str, bool]
    any: Framework
    has_own_plugins: bool = False
    """Whether a profile has plugins of the user's own, which may read other bindings."""
    has_guards: bool = False
    """Whether a profile has Guard plugins, which may count the moves of other bindings."""
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By profile, the plugins of the process that decides whose code is not here."""

    @classmethod
    def only(cls, framework: Framework) -> Frameworks:
        """Return one profile that decides about every binding."""
        return cls(lambda _: framework, None, {}, framework)

    @property
    def all_missing(self) -> tuple[str, ...]:
        """The missing plugins of all profiles."""
        return tuple(sorted({name for names in self.missing.values() for name in names}))
