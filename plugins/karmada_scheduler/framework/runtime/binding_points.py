"""Runs the plugins of a profile before a decision (PreEnqueue) and after it (Reserve to PostBind)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.framework.binding_points import (
    MAX_PERMIT_SECONDS,
    BindContext,
    PreEnqueueContext,
    QueueSortPlugin,
)
from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.profile_plugins import Concerned, ProfilePlugins
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.extenders import Extender, ExtenderError
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller, PointTimer
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)

WaitFor = Callable[[Mapping[str, Result]], Awaitable[Result]]
"""Waits at Permit: takes the WAIT results by plugin name, with limited timeouts, and returns the final result."""


class RefusedError(UnschedulableError):
    """A plugin refused the binding at Select, Assign, Reserve, Permit or Bind; the text names both.

    Attributes:
        plugin: The name of the plugin; "" if it refused while the decision waited at Permit.
        point: The extension point.
        why: Its reason.
    """

    def __init__(self, plugin: str, point: Point, why: str, *, retry_after: float = 0.0) -> None:
        by = f" by {plugin}" if plugin else ""
        super().__init__(f"refused at {point.label}{by}: {why}", retry_after=retry_after)
        self.plugin, self.point, self.why = plugin, point, why

    def within(self, step: str) -> Self:
        """Return the same error with the name of the failed step in its text."""
        error = type(self)(self.plugin, self.point, self.why, retry_after=self.retry_after)
        error.args = (f"{step}: {self}",)
        return error


class BindingPoints:
    """The extension points of a profile before and after a decision."""

    def __init__(self, plugins: ProfilePlugins, caller: PluginCaller, extenders: Sequence[Extender]) -> None:
        """Take the plugins and extenders of a profile."""
        self._plugins = plugins
        self._reserve, self._post_bind = Concerned(plugins.reserve), Concerned(plugins.post_bind)
        self._caller = caller
        self._binders = tuple(extender for extender in extenders if extender.binds)

    @property
    def queue_sort(self) -> QueueSortPlugin | None:
        """The plugin that orders the queue."""
        return self._plugins.queue_sort[0] if self._plugins.queue_sort else None

    def run_pre_enqueue(self, binding: Binding, workload: WorkloadAnswer | None = None) -> Result:
        """Return the first result of a PreEnqueue plugin that is not SUCCESS, or SUCCESS.

        ``workload`` is None if no plugin of the profile needs it.

        Raises:
            PluginError: A plugin failed.
        """
        context = PreEnqueueContext(binding, workload)
        for plugin in self._plugins.pre_enqueue:
            answer = self._caller.call(plugin, Point.PRE_ENQUEUE, plugin.pre_enqueue, context)
            result = validated(plugin, Point.PRE_ENQUEUE, answer)
            if not result.is_success:
                return result
        return SUCCESS

    def reserve(self, context: BindContext) -> None:
        """Run Reserve; if a plugin refuses or fails, run Unreserve.

        Raises:
            SchedulingError: A plugin refused or failed.
        """
        with self._timed(Point.RESERVE):
            for plugin in self._reserve.by(context.binding):
                try:
                    answer = self._caller.call(plugin, Point.RESERVE, plugin.reserve, context)
                    _require_success(plugin, Point.RESERVE, validated(plugin, Point.RESERVE, answer))
                except SchedulingError:
                    self.unreserve(context)
                    raise

    def unreserve(self, context: BindContext) -> None:
        """Run Unreserve in reverse order; errors are logged."""
        for plugin in reversed(self._reserve.by(context.binding)):
            try:
                self._caller.call(plugin, Point.RESERVE, plugin.unreserve, context)
            except PluginError as error:
                log.error("Cannot unreserve %s: %s", context.binding.key.display, error)  # noqa: TRY400

    async def permit(self, context: BindContext, wait: WaitFor) -> None:
        """Run Permit, and call ``wait`` if plugins return WAIT.

        Raises:
            SchedulingError: A plugin refused or failed, its time was up, or the binding or a cluster changed meanwhile.
        """
        if not self._plugins.permit:
            return
        waits: dict[str, Result] = {}
        with self._timed(Point.PERMIT):
            for plugin in self._plugins.permit:
                answer = await self._caller.call_async(plugin, Point.PERMIT, plugin.permit, context)
                result = validated(plugin, Point.PERMIT, answer)
                if result.code is Code.WAIT:
                    seconds = min(max(result.timeout, 0.0), MAX_PERMIT_SECONDS)
                    waits[plugin.name] = replace(result, timeout=seconds)
                else:
                    _require_success(plugin, Point.PERMIT, result)
        if waits:
            result = await wait(waits)
            if not result.is_success:
                name = result.plugin
                raise RefusedError(name, Point.PERMIT, result.message, retry_after=result.retry_after)

    async def pre_bind(
        self, context: BindContext, *, ensure_leading: Callable[[], None] = lambda: None
    ) -> None:
        """Run PreBind; ``ensure_leading`` is as for ``bind``.

        Raises:
            SchedulingError: A plugin refused or failed.
        """
        if not self._plugins.pre_bind:
            return
        with self._timed(Point.PRE_BIND):
            for plugin in self._plugins.pre_bind:
                ensure_leading()
                answer = await self._caller.call_async(plugin, Point.PRE_BIND, plugin.pre_bind, context)
                result = validated(plugin, Point.PRE_BIND, answer)
                if not result.is_skip:
                    _require_success(plugin, Point.PRE_BIND, result)

    async def bind(self, context: BindContext, *, ensure_leading: Callable[[], None] = lambda: None) -> str:
        """Run Bind until a plugin or an extender writes; return its name for texts.

        ``ensure_leading`` is called before each of them and raises if this process may no longer lead: plugins and
        extenders may write without a check of the resourceVersion.

        Raises:
            SchedulingError: A plugin or an extender refused or failed.
        """
        for extender in self._binders:
            if not extender.is_interested(context.binding):
                continue
            ensure_leading()
            try:
                await extender.bind(context.cycle, context.targets)
            except ExtenderError as error:
                if not extender.ignorable:
                    raise PluginError(str(error)) from error
            else:
                return f'extender "{extender.name}"'
        with self._timed(Point.BIND):
            for binder in self._plugins.bind:
                ensure_leading()
                answer = await self._caller.call_async(binder, Point.BIND, binder.bind, context)
                result = validated(binder, Point.BIND, answer)
                if not result.is_skip:
                    _require_success(binder, Point.BIND, result)
                    return f'plugin "{binder.name}"'
        raise PluginError("no Bind plugin wrote the decision")

    async def post_bind(self, context: BindContext) -> None:
        """Run PostBind; errors are logged."""
        for plugin in self._post_bind.by(context.binding):
            try:
                await self._caller.call_async(plugin, Point.POST_BIND, plugin.post_bind, context)
            except PluginError as error:
                log.error("After binding %s: %s", context.binding.key.display, error)  # noqa: TRY400

    def _timed(self, point: Point) -> PointTimer:
        return PointTimer(point, self._caller.observer)


def _require_success(plugin: Plugin, point: Point, result: Result) -> None:
    """Raise the error of a result that is not SUCCESS."""
    if result.is_success:
        return
    if not result.is_refusal:
        raise unexpected_code(plugin, point, result)
    if point is Point.PRE_BIND:  # implies nothing about the binding
        raise PluginError(f'running {point.label} plugin "{plugin.name}": {result.message}')
    raise RefusedError(plugin.name, point, result.message, retry_after=result.retry_after)
