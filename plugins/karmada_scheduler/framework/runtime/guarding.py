"""Runs the Guard and Reconsider plugins of a profile and validates their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import GUARD_OBSERVATION, START_TERM, Point
from karmada_scheduler.framework.guard_point import (
    DIRECTLY,
    GRACEFULLY,
    RECONSIDER_SECONDS,
    EvictionTask,
    GuardAnswer,
    GuardContext,
    GuardPlugin,
    Proposal,
    ReconsiderContext,
    ReconsiderPlugin,
    Terms,
)
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile_plugins import Concerned
from karmada_scheduler.framework.result import SUCCESS, Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.validation import accepted, invalid_answer, shown

__plugin_runner__ = True


_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]{0,30}[A-Za-z0-9_])?")
"""Source: karmada v1.18.2 pkg/apis/work/v1alpha2/binding_types.go (GracefulEvictionTask.Reason)."""
_MAX_MESSAGE: Final = 1024
_MAX_ANNOTATION: Final = 16_384
"""Characters of an annotation of a plugin; the API server allows 262,144 bytes for all annotations of an object."""


class GuardRunner:
    """The Guard plugins of a profile.

    Attributes:
        observes: Whether a plugin has ``guard_observation``.
    """

    def __init__(self, plugins: Sequence[GuardPlugin], caller: PluginCaller) -> None:
        """Take the plugins in running order."""
        self._plugins = Concerned(plugins)
        self._caller = caller
        self._observers: list[tuple[Plugin, Callable[[Binding], Result]]] = [
            (plugin, method)
            for plugin in plugins
            if callable(method := getattr(plugin, GUARD_OBSERVATION, None))
        ]
        self.observes: Final = bool(self._observers)

    def run(self, context: GuardContext) -> GuardAnswer:
        """Return the first refusal, with all annotations so far, or SUCCESS with the tasks and annotations of all plugins.

        Raises:
            PluginError: A plugin failed, or its answer is invalid.
        """
        tasks: dict[str, EvictionTask] = {}
        annotations: dict[str, str | None] = {}
        cancel: set[str] = set()
        warnings: list[str] = []
        for plugin in self._plugins.by(context.binding):
            answer = self._caller.call(plugin, Point.GUARD, plugin.guard, context)
            if answer is SUCCESS:
                continue
            given = answer if isinstance(answer, GuardAnswer) else GuardAnswer(answer)
            result = accepted(plugin, Point.GUARD, given.result)
            annotations = {**_annotations(plugin, given), **annotations}
            line, warning = (_text(plugin, text) for text in (given.line, given.warning))
            if not result.is_success:
                stays = given.stays is True
                return GuardAnswer(result, annotations=annotations, line=line, stays=stays)
            for task in _tasks(plugin, given, context):
                tasks.setdefault(task.from_cluster, task)
            cancel |= _cancelled(plugin, given, context)
            warnings += [warning] if warning else []
        return GuardAnswer(
            SUCCESS, tuple(tasks.values()), annotations, frozenset(cancel), warning="; ".join(warnings)
        )

    def may_observe(self, binding: Binding) -> Result:
        """Return the first refusal of a plugin to observe the generation of a binding, or SUCCESS.

        Raises:
            PluginError: A plugin failed.
        """
        for plugin, method in self._observers:
            result = accepted(plugin, Point.GUARD, self._caller.call(plugin, Point.GUARD, method, binding))
            if not result.is_success:
                return result
        return SUCCESS


def _text(plugin: Plugin, found: object) -> str:
    if not isinstance(found, str) or len(found) > _MAX_MESSAGE:
        raise invalid_answer(plugin, Point.GUARD, found, f"a text of at most {_MAX_MESSAGE} characters")
    return found


def _annotations(plugin: Plugin, answer: GuardAnswer) -> Mapping[str, str | None]:
    found = answer.annotations
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and (text is None or (isinstance(text, str) and len(text) <= _MAX_ANNOTATION))
        for name, text in found.items()
    ):
        raise invalid_answer(plugin, Point.GUARD, found, "texts of annotations by name")
    return found


def _cancelled(plugin: Plugin, answer: GuardAnswer, context: GuardContext) -> frozenset[str]:
    """Return the clusters of an answer that have an eviction task of this scheduler; none if a cluster fits."""
    if not answer.cancel or context.error is None:
        return frozenset()
    spec = context.binding.spec
    own = {
        task.from_cluster
        for task in spec.graceful_eviction_tasks
        if task.producer == spec.responsible_scheduler
    }
    if isinstance(answer.cancel, str) or not own.issuperset(answer.cancel):
        raise invalid_answer(
            plugin, Point.GUARD, answer.cancel, "clusters with an eviction task of this scheduler as cancel"
        )
    return frozenset(answer.cancel)


def _tasks(plugin: Plugin, answer: GuardAnswer, context: GuardContext) -> Sequence[EvictionTask]:
    if not isinstance(answer.tasks, (tuple, list)):
        raise invalid_answer(plugin, Point.GUARD, answer.tasks, "EvictionTasks in a tuple")
    for task in answer.tasks:
        problem = _problem_of(task, context)
        if problem:
            raise PluginError(f'plugin "{plugin.name}" returned {shown(task)} at Guard: {problem}')
    return answer.tasks


def _problem_of(task: object, context: GuardContext) -> str:
    """Return what the API server, or Karmada's controller, would not accept in a task; "" if nothing."""
    if not isinstance(task, EvictionTask):
        return "expected an EvictionTask"
    if task.from_cluster not in context.leaving:
        return f"the decision does not take the binding off cluster {task.from_cluster!r}"
    if not isinstance(task.reason, str) or not _REASON.fullmatch(task.reason):
        return "the reason must be 1 to 32 letters, digits, _, comma or colon, beginning with a letter"
    if not isinstance(task.message, str) or len(task.message) > _MAX_MESSAGE:
        return f"the message must be a text of at most {_MAX_MESSAGE} characters"
    if not _is_count(task.grace_period_seconds) or task.grace_period_seconds < 1:
        return f"grace_period_seconds must be 1 to {MAX_INT32}"
    if not _is_count(task.replicas):
        return f"replicas must be 0 to {MAX_INT32}"
    return (
        "" if task.purge_mode in (GRACEFULLY, DIRECTLY) else f"purge_mode must be {GRACEFULLY} or {DIRECTLY}"
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT32


_PROPOSAL_REASON: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}")


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
        self._concerned = Concerned(plugins)
        self._caller = caller
        self._terms: list[tuple[Plugin, Callable[[Binding], str]]] = [
            (plugin, method) for plugin in plugins if callable(method := getattr(plugin, START_TERM, None))
        ]
        self.is_used: Final = bool(plugins)
        self.seconds: Final = min(map(_seconds_of, plugins), default=RECONSIDER_SECONDS)

    def may_propose(self, binding: Binding) -> bool:
        """Return whether a plugin may have a proposal about a binding."""
        return bool(self._concerned.by(binding))

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
        return accepted(plugin, Point.RECONSIDER, answer)

    def start_term(self, binding: Binding) -> str:
        """Return the affinity term with which the next decision begins, "" for the one in the status.

        Raises:
            PluginError: A plugin failed, or its answer is invalid.
        """
        placement = binding.spec.placement
        if placement is None or not placement.cluster_affinities:
            return ""
        for plugin, method in self._terms:
            name = self._caller.call(plugin, Point.RECONSIDER, method, binding)
            if not isinstance(name, str):
                raise invalid_answer(plugin, Point.RECONSIDER, name, "the name of an affinity term")
            if (
                placement.affinity_term(name) is not None
                and name != binding.status.scheduler_observing_affinity_name
            ):
                return name
        return ""


def _is_valid(proposal: object) -> bool:
    return (
        isinstance(proposal, Proposal)
        and isinstance(proposal.reason, str)
        and _PROPOSAL_REASON.fullmatch(proposal.reason) is not None
        and isinstance(proposal.terms, Terms)
        and isinstance(kept := {} if proposal.kept is None else proposal.kept, Mapping)
        and all(map(_is_count, kept.values()))
    )


def _seconds_of(plugin: Plugin) -> float:
    seconds = getattr(plugin, "reconsider_seconds", RECONSIDER_SECONDS)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return max(1.0, float(seconds)) if is_number else RECONSIDER_SECONDS
