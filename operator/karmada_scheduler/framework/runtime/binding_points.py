"""Runs the plugins around a decision: PreEnqueue before it, Reserve to PostBind after it."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.workload import WorkloadAnswer
from karmada_scheduler.framework.binding_points import (
    MAX_PERMIT_SECONDS,
    BindContext,
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreEnqueueContext,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extender import Extender, ExtenderError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile_plugins import ProfilePlugins
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.validation import unexpected_code, validated
from karmada_scheduler.framework.scheduling_points import Plugin

log = logging.getLogger(__name__)

WaitFor = Callable[[Mapping[str, Result]], Awaitable[Result]]
"""Lets the binding wait; takes what each plugin said, its time limited, by name, and returns how the wait ended."""


class RefusedError(UnschedulableError):
    """Reserve or Permit said no."""


class BindingPoints:
    """The plugins of one profile at the points around a decision."""

    def __init__(self, lineup: ProfilePlugins, caller: PluginCaller, extenders: Sequence[Extender]) -> None:
        """Take the plugins of a profile."""
        self._caller = caller
        self._pre_enqueues = cast("Sequence[PreEnqueuePlugin]", lineup.at(Point.PRE_ENQUEUE))
        self._reserves = cast("Sequence[ReservePlugin]", lineup.at(Point.RESERVE))
        self._permits = cast("Sequence[PermitPlugin]", lineup.at(Point.PERMIT))
        self._pre_binds = cast("Sequence[PreBindPlugin]", lineup.at(Point.PRE_BIND))
        self._binds = cast("Sequence[BindPlugin]", lineup.at(Point.BIND))
        self._post_binds = cast("Sequence[PostBindPlugin]", lineup.at(Point.POST_BIND))
        self._queue_sorts = cast("Sequence[QueueSortPlugin]", lineup.at(Point.QUEUE_SORT))
        self._binders = tuple(extender for extender in extenders if extender.binds)

    @property
    def queue_sort(self) -> QueueSortPlugin | None:
        """The plugin that orders the queue."""
        return self._queue_sorts[0] if self._queue_sorts else None

    def admit(self, binding: Binding, workload: WorkloadAnswer | None = None) -> Result:
        """Ask the PreEnqueue plugins; ``workload`` is None where none of the profile needs it.

        Raises:
            PluginError: One failed.
        """
        context = PreEnqueueContext(binding, workload)
        for plugin in self._pre_enqueues:
            answer = self._caller.call(plugin, Point.PRE_ENQUEUE, plugin.pre_enqueue, context)
            result = validated(plugin, Point.PRE_ENQUEUE, answer)
            if not result.is_success:
                return result
        return SUCCESS

    def reserve(self, context: BindContext) -> None:
        """Let plugins claim what a decision needs.

        Raises:
            SchedulingError: One refused or failed; nothing is claimed any more.
        """
        with self._timed(Point.RESERVE):
            for plugin in self._reserves:
                try:
                    answer = self._caller.call(plugin, Point.RESERVE, plugin.reserve, context)
                    _must(plugin, Point.RESERVE, validated(plugin, Point.RESERVE, answer))
                except SchedulingError:
                    self.unreserve(context)
                    raise

    def unreserve(self, context: BindContext) -> None:
        """Let plugins give back what they claimed, the last one first. Never raises."""
        for plugin in reversed(self._reserves):
            try:
                self._caller.call(plugin, Point.RESERVE, plugin.unreserve, context)
            except PluginError as error:
                log.error("Cannot unreserve %s: %s", context.binding.key.display, error)  # noqa: TRY400

    async def permit(self, context: BindContext, wait: WaitFor) -> None:
        """Ask for permission, and wait for it where plugins say so.

        Raises:
            SchedulingError: It was refused, by a plugin, by time, or because something changed meanwhile.
        """
        if not self._permits:
            return
        waits: dict[str, Result] = {}
        with self._timed(Point.PERMIT):
            for plugin in self._permits:
                answer = await self._caller.call_async(plugin, Point.PERMIT, plugin.permit, context)
                result = validated(plugin, Point.PERMIT, answer)
                if result.code is Code.WAIT:
                    seconds = min(max(result.timeout, 0.0), MAX_PERMIT_SECONDS)
                    waits[plugin.name] = replace(result, timeout=seconds)
                else:
                    _must(plugin, Point.PERMIT, result)
        if waits:
            result = await wait(waits)
            if not result.is_success:
                raise RefusedError(result.message, retry_after=result.retry_after)

    async def bind(self, context: BindContext, *, ensure_leading: Callable[[], None] = lambda: None) -> str:
        """Run PreBind, then the first binder that does not skip; return who that was, for texts.

        Plugins and extenders write elsewhere, where nobody compares versions, so each is preceded by
        ``ensure_leading``, which raises if another process may be at work by now.

        Raises:
            SchedulingError: One refused or failed.
        """
        with self._timed(Point.PRE_BIND, when=bool(self._pre_binds)):
            for plugin in self._pre_binds:
                ensure_leading()
                answer = await self._caller.call_async(plugin, Point.PRE_BIND, plugin.pre_bind, context)
                result = validated(plugin, Point.PRE_BIND, answer)
                if not result.is_skip:
                    _must(plugin, Point.PRE_BIND, result)
        extender = await self._bound_by_extender(context, ensure_leading)
        if extender is not None:
            return f'extender "{extender.name}"'
        with self._timed(Point.BIND):
            for binder in self._binds:
                ensure_leading()
                answer = await self._caller.call_async(binder, Point.BIND, binder.bind, context)
                result = validated(binder, Point.BIND, answer)
                if not result.is_skip:
                    _must(binder, Point.BIND, result)
                    return f'plugin "{binder.name}"'
        raise PluginError("no Bind plugin wrote the decision")

    async def _bound_by_extender(
        self, context: BindContext, ensure_leading: Callable[[], None]
    ) -> Extender | None:
        for extender in self._binders:
            if not extender.is_interested(context.binding):
                continue
            ensure_leading()
            try:
                await extender.bind(context.cycle, context.targets)
            except ExtenderError as error:
                if not extender.ignorable:
                    raise PluginError(str(error)) from error
                continue  # the extender has logged and counted it
            return extender
        return None

    async def post_bind(self, context: BindContext) -> None:
        """Tell plugins what was written. Never raises."""
        for plugin in self._post_binds:
            try:
                await self._caller.call_async(plugin, Point.POST_BIND, plugin.post_bind, context)
            except PluginError as error:
                log.error("After binding %s: %s", context.binding.key.display, error)  # noqa: TRY400

    def _timed(self, point: Point, *, when: bool = True) -> _Timed:
        return _Timed(point, self._caller if when else None)


class _Timed:
    """Observes how long all plugins of a point took together."""

    def __init__(self, point: Point, caller: PluginCaller | None) -> None:
        self._point = point
        self._observer = caller.observer if caller is not None else None

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._observer is None:
            return
        code = Code.SUCCESS if error is None else Code.ERROR
        if isinstance(error, UnschedulableError):
            code = Code.UNSCHEDULABLE
        self._observer.extension_point(self._point.label, code, time.perf_counter() - self._start)


def _must(plugin: Plugin, point: Point, result: Result) -> None:
    """Turn what is not SUCCESS into the error that ends the attempt."""
    if result.is_success:
        return
    if not result.is_refusal:
        raise unexpected_code(plugin, point, result)
    if point is Point.PRE_BIND:  # what is prepared here is no business of the binding's
        raise PluginError(f'running {point.label} plugin "{plugin.name}": {result.message}')
    raise RefusedError(result.message, retry_after=result.retry_after)
