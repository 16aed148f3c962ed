"""Plugins with the methods that a test chooses, and a framework with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from karmada_scheduler.framework import Code, Plugin
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import framework


def at_their_points(plugins: Mapping[str, Plugin]) -> ProfilePlugins:
    """Return the plugins at all extension points that each of them has, in the given order."""
    listed = {point: [each for each in plugins.values() if point.is_served_by(each)] for point in Point}
    return ProfilePlugins.from_points(listed)


def plugin(name: str, **methods: Callable[..., Any]) -> Any:
    """Return a plugin with these methods; each gets the context of its extension point, and no self."""
    made = type(name, (), {"name": name, **{key: staticmethod(each) for key, each in methods.items()}})
    return made()


def answering(answer: Any) -> Callable[..., Any]:
    """Return a plain method that always returns the same."""
    return lambda *_: answer


def coroutine(answer: Any) -> Callable[..., Any]:
    """Return a coroutine function that always returns the same."""

    async def answers(*_: Any) -> Any:
        return answer

    return answers


def raising(error: BaseException | None = None) -> Callable[..., Any]:
    """Return a plain method that always raises."""

    def raises(*_: Any) -> Any:
        raise error or RuntimeError("boom")

    return raises


class IgnoringObserver:
    """Observes calls of plugins and records nothing."""

    def extension_point(self, point: str, code: Code, seconds: float, count: int = 1, /) -> None: ...

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, count: int = 1, /) -> None: ...

    def step(self, step: str, seconds: float, /) -> None: ...


def with_in_tree(*plugins: Any, first: bool = False, caller: PluginCaller | None = None) -> Framework:
    """Return a framework with plugins after the in-tree ones, or before them, at all their points.

    Select, Assign and Bind plugins come before the default ones, which never skip.
    """
    defaults = {each.name: each for each in framework().plugins.unique}
    given = {each.name: each for each in plugins}
    answered_once = {name: each for name, each in defaults.items() if name.startswith("Default")}
    others = {name: each for name, each in defaults.items() if name not in answered_once}
    ordered = {**given, **others, **answered_once} if first else {**others, **given, **answered_once}
    return Framework(at_their_points(ordered), caller=caller)
