"""Runs the Reconsider plugins of a profile and validates their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.extension_points import START_TERM, Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.reconsider_point import (
    RECONSIDER_SECONDS,
    Proposal,
    ReconsiderContext,
    ReconsiderPlugin,
    Terms,
)
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.validation import invalid_answer, unexpected_code, validated

__plugin_runner__ = True

_REASON: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}")


class Proposed(NamedTuple):
    """A proposal and the plugin that made it."""

    plugin: ReconsiderPlugin
    proposal: Proposal


class ReconsiderRunner:
    """The Reconsider plugins of a profile.

    Attributes:
        is_used: Whether there is one.
        seconds: The interval of proposals: the shortest of all plugins, at least 1.
    """

    def __init__(self, plugins: Sequence[ReconsiderPlugin], caller: PluginCaller) -> None:
        """Take the plugins in running order."""
        self._plugins = plugins
        self._caller = caller
        self._terms: list[tuple[Plugin, Callable[[Binding], str]]] = [
            (plugin, method) for plugin in plugins if callable(method := getattr(plugin, START_TERM, None))
        ]
        self.is_used: Final = bool(plugins)
        self.seconds: Final = min(map(_seconds_of, plugins), default=RECONSIDER_SECONDS)

    def propose(self, binding: Binding) -> Proposed | None:
        """Return the first proposal of a plugin, None without any.

        Raises:
            PluginError: A plugin failed, or its answer is invalid.
        """
        for plugin in self._plugins:
            proposal = self._caller.call(plugin, Point.RECONSIDER, plugin.propose, binding)
            if proposal is None:
                continue
            if not _is_valid(proposal):
                raise invalid_answer(plugin, Point.RECONSIDER, proposal, "a Proposal with a reason, or None")
            return Proposed(plugin, proposal)
        return None

    def run(self, plugin: ReconsiderPlugin, context: ReconsiderContext) -> Result:
        """Return the answer of the plugin whose proposal was tried.

        Raises:
            PluginError: The plugin failed, or its answer is invalid.
        """
        answer = self._caller.call(plugin, Point.RECONSIDER, plugin.reconsider, context)
        result = validated(plugin, Point.RECONSIDER, answer)
        if not result.is_success and not result.is_refusal:
            raise unexpected_code(plugin, Point.RECONSIDER, result)
        return result

    def start_term(self, binding: Binding) -> str:
        """Return the affinity term with which the next decision begins, "" for the one in the status.

        Raises:
            PluginError: A plugin failed, or its answer is invalid.
        """
        for plugin, method in self._terms:
            name = self._caller.call(plugin, Point.RECONSIDER, method, binding)
            if not isinstance(name, str):
                raise invalid_answer(plugin, Point.RECONSIDER, name, "the name of an affinity term")
            placement = binding.spec.placement
            is_term = placement is not None and placement.affinity_term(name) is not None
            if is_term and name != binding.status.scheduler_observing_affinity_name:
                return name
        return ""


def _is_valid(proposal: object) -> bool:
    return (
        isinstance(proposal, Proposal)
        and isinstance(proposal.reason, str)
        and _REASON.fullmatch(proposal.reason) is not None
        and isinstance(proposal.terms, Terms)
    )


def _seconds_of(plugin: Plugin) -> float:
    seconds = getattr(plugin, "reconsider_seconds", RECONSIDER_SECONDS)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return max(1.0, float(seconds)) if is_number else RECONSIDER_SECONDS
