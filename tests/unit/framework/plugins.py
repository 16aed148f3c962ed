"""Plugins whose methods a test chooses, and a framework of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.testing import framework


def plugin(name: str, **methods: Callable[..., Any]) -> Any:
    """Make a plugin with these methods; each takes what its point hands it, and no self."""
    made = type(name, (), {"name": name, **{key: staticmethod(each) for key, each in methods.items()}})
    return made()


def answering(answer: Any) -> Callable[..., Any]:
    """Make a plain method that always says the same."""
    return lambda *_: answer


def coroutine(answer: Any) -> Callable[..., Any]:
    """Make a coroutine that always says the same."""

    async def answers(*_: Any) -> Any:
        return answer

    return answers


def raising(error: BaseException | None = None) -> Callable[..., Any]:
    """Make a plain method that always raises."""

    def raises(*_: Any) -> Any:
        raise error or RuntimeError("boom")

    return raises


def with_in_tree(*plugins: Any, first: bool = False, caller: PluginCaller | None = None) -> Framework:
    """Put plugins behind the in-tree ones, or before them, at all their points.

    Select, Assign and Bind plugins come before the defaults, which always answer.
    """
    defaults = {each.name: each for each in framework().plugins.unique}
    given = {each.name: each for each in plugins}
    answered_once = {name: each for name, each in defaults.items() if name.startswith("Default")}
    others = {name: each for name, each in defaults.items() if name not in answered_once}
    ordered = {**given, **others, **answered_once} if first else {**others, **given, **answered_once}
    return Framework(ProfilePlugins.from_plugins(ordered), caller=caller)
