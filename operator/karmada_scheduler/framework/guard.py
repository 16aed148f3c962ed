"""Calls plugins: timed, watched, and with the plugin's name on what goes wrong."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from karmada_scheduler.framework import isolation
from karmada_scheduler.framework.deciding import Plugin
from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.points import Point
from karmada_scheduler.framework.result import Code, Result

Context = TypeVar("Context")
Answer = TypeVar("Answer")


class Observer(Protocol):
    """Receives how long things took; upstream's histograms are fed from it."""

    def extension_point(self, point: str, code: Code, seconds: float, /) -> None:
        """All plugins of a point ran: Filter once per cluster, Score once per attempt."""
        ...

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, /) -> None:
        """One plugin ran: Filter and Score once per cluster."""
        ...

    def step(self, step: str, seconds: float, /) -> None:
        """One step of the algorithm (Filter, Score, Select, AssignReplicas) ended, well or not."""
        ...


class Guard:
    """Stands between the runtime and plugins."""

    def __init__(
        self,
        *,
        observer: Observer | None = None,
        watch: isolation.Watch | None = None,
        budget: float = isolation.DEFAULT_BUDGET,
    ) -> None:
        """Watch plugins with ``watch``, and end their coroutines after ``budget`` seconds."""
        self.observer: Final = observer
        self.watch: Final = watch or isolation.Unwatched()
        self.budget: Final = budget

    def call(
        self, plugin: Plugin, point: Point, function: Callable[[Context], Answer], context: Context
    ) -> Answer:
        """Call a plain function.

        Raises:
            PluginError: It raised or took too long.
        """
        begin = time.perf_counter()
        code = Code.ERROR
        try:
            with self.watch:
                answer = function(context)
            code = _code_of(answer)
        except isolation.PluginTimeoutError:
            raise self.too_slow(plugin, point) from None
        except Exception as problem:
            raise failed(plugin, point, problem) from problem
        finally:
            self._observe(plugin, point, code, begin)
        return answer

    async def ask(
        self,
        plugin: Plugin,
        point: Point,
        function: Callable[[Context], object],
        context: Context,
    ) -> object:
        """Call a function that may be a coroutine, and wait for it; PluginError as from ``call``."""
        begin = time.perf_counter()
        code = Code.ERROR
        try:
            with self.watch:
                answer = function(context)
            if inspect.isawaitable(answer):
                seconds = getattr(plugin, "timeout", self.budget)
                answer = await isolation.in_time(answer, watch=self.watch, seconds=seconds)
            code = _code_of(answer)
        except isolation.PluginTimeoutError:
            raise self.too_slow(plugin, point) from None
        except Exception as problem:
            raise failed(plugin, point, problem) from problem
        finally:
            self._observe(plugin, point, code, begin)
        return answer

    def too_slow(self, plugin: Plugin, point: Point) -> PluginError:
        """Return the error of a plugin that was stopped."""
        seconds = getattr(plugin, "timeout", None) or self.budget
        return PluginError(f'plugin "{plugin.name}" took longer than {seconds:g}s at {point.label}')

    def _observe(self, plugin: Plugin, point: Point, code: Code, begin: float) -> None:
        if self.observer is not None:
            self.observer.plugin(plugin.name, point.label, code, time.perf_counter() - begin)


def failed(plugin: Plugin, point: Point, problem: Exception, *, where: str = "") -> PluginError:
    """Return the error of a plugin that raised; ``where`` tells of what, with a space before it."""
    what = str(problem) or type(problem).__name__
    return PluginError(f'plugin "{plugin.name}" failed at {point.label}{where}: {what}')


def nonsense(plugin: Plugin, point: Point, got: object, expected: str) -> PluginError:
    """Return the error of a plugin that answered what its point does not allow."""
    return PluginError(f'plugin "{plugin.name}" returned {got!r:.200} at {point.label}, expected {expected}')


def checked(plugin: Plugin, point: Point, answer: object) -> Result:
    """Put the plugin's name on its result.

    Raises:
        PluginError: It is no Result.
    """
    if not isinstance(answer, Result):
        raise nonsense(plugin, point, answer, "a Result")
    if answer.is_success:
        return answer
    return Result(answer.code, answer.reasons, plugin.name, answer.timeout, answer.retry_after)


def _code_of(answer: object) -> Code:
    return answer.code if isinstance(answer, Result) else Code.SUCCESS
