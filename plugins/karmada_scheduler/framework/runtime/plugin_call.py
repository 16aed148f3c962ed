"""Calls plugins with timeouts, circuit breakers and metrics; errors name the plugin."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Final, NoReturn, Protocol, TypeVar

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.config.profiles import DEFAULT_PLUGIN_SECONDS
from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError, UnschedulableError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.result import Code, Result
from karmada_scheduler.framework.runtime import timeouts
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.failure_log import FailureLog, plugin_location

__plugin_runner__ = True

Context = TypeVar("Context")
Answer = TypeVar("Answer")


class Observer(Protocol):
    """Receives durations for upstream's histograms."""

    def extension_point(self, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        """All plugins of a point ran so many times with a mean duration: Filter once per cluster, Score once per attempt."""

    def plugin(self, plugin: str, point: str, code: Code, seconds: float, count: int = 1, /) -> None:
        """One plugin ran so many times with a mean duration: Filter and Score once per cluster."""

    def step(self, step: str, seconds: float, /) -> None:
        """One step of the algorithm (Filter, Score, Select, AssignReplicas) ended, well or not."""


class PointTimer:
    """Observes the duration of all plugins of an extension point."""

    def __init__(self, point: Point, observer: Observer | None) -> None:
        self._point = point
        self._observer = observer

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._observer is None:
            return
        code = Code.SUCCESS if error is None else Code.ERROR
        if isinstance(error, UnschedulableError):
            code = Code.UNSCHEDULABLE
        self._observer.extension_point(self._point.label, code, time.perf_counter() - self._start)


class PluginCaller:
    """Calls plugins with a timeout, a circuit breaker and metrics, and turns their exceptions into PluginError."""

    def __init__(
        self,
        *,
        observer: Observer | None = None,
        timeout: timeouts.CallTimeout | None = None,
        coroutine_seconds: float | None = DEFAULT_PLUGIN_SECONDS,
        breakers: CircuitBreakers | None = None,
        clock: Callable[[], float] = time.monotonic,
        interrupts: tuple[type[BaseException], ...] | None = None,
    ) -> None:
        """Set how plugins are called.

        Args:
            observer: Receives the durations of calls.
            timeout: Interrupts plain functions; by default none is interrupted.
            coroutine_seconds: The timeout of a coroutine whose plugin has no ``timeout`` of its own; None for no limit.
            breakers: Without them a plugin is called again at once after a timeout.
            clock: Seconds, for the rate limit of logged tracebacks.
            interrupts: Exceptions that stop the process and do not come from plugins. By default KeyboardInterrupt if there is
                no ``timeout``: the event loop of the scheduler, which has one, handles SIGINT itself.
        """
        self.observer: Final = observer
        self.timeout: Final = timeout or timeouts.NoTimeout()
        self.coroutine_seconds: Final = coroutine_seconds
        self._breakers: Final = breakers or CircuitBreakers(clock=clock, exempt=None)
        self._open: Final = self._breakers.open
        self._closed: Final = self._breakers.closed
        self._failures: Final = FailureLog(clock=clock)
        if interrupts is None:
            interrupts = (KeyboardInterrupt,) if isinstance(self.timeout, timeouts.NoTimeout) else ()
        self.interrupts: Final = interrupts

    def call(
        self, plugin: Plugin, point: Point, function: Callable[[Context], Answer], context: Context
    ) -> Answer:
        """Return the result of a plain function of a plugin.

        Raises:
            PluginError: The function raised or exceeded its timeout, or the plugin's circuit breaker is open.
        """
        since = self.admit(plugin, point)
        begin = time.perf_counter()
        code = Code.ERROR
        try:
            with self.timeout_of(plugin):
                answer = function(context)
            code = _code_of(answer)
        except BaseException as problem:  # noqa: BLE001 (a plugin can raise anything)
            self.raise_plugin_error(plugin, point, problem, since=since, context=context)
        finally:
            self._observe(plugin, point, code, begin)
        if self._open:
            self.record_success(plugin, point, since=since)
        return answer

    async def call_async(
        self,
        plugin: Plugin,
        point: Point,
        function: Callable[[Context], object],
        context: Context,
    ) -> object:
        """Return the result of a plain or a coroutine function; raises as ``call`` does."""
        since = self.admit(plugin, point)
        begin = time.perf_counter()
        code, is_coroutine = Code.ERROR, False
        timeout = self.timeout_of(plugin)
        try:
            with timeout:
                answer = function(context)
            if type(answer) not in _NOT_AWAITABLE and inspect.isawaitable(answer):
                is_coroutine, seconds = True, getattr(plugin, "timeout", self.coroutine_seconds)
                step = partial(self._step_timeout, plugin, timeout, since)
                answer = await _waiting().wait_for_plugin(answer, timeout=step, seconds=seconds)
            code = _code_of(answer)
        except BaseException as problem:
            if is_coroutine and isinstance(problem, _waiting().CANCELLATIONS):
                raise
            self.raise_plugin_error(plugin, point, problem, since=since, context=context)
        finally:
            self._observe(plugin, point, code, begin)
        if self._open:
            self.record_success(plugin, point, since=since)
        return answer

    def admit(self, plugin: Plugin, point: Point, *, probes: bool = True) -> int:
        """Return the ``since`` of ``raise_plugin_error`` and ``record_success``.

        Args:
            plugin: The plugin.
            point: The extension point of the call.
            probes: Whether the call may be the probe of a half-open circuit breaker.

        Raises:
            PluginError: The plugin's circuit breaker is open.
        """
        if self._open:
            self._breakers.admit(plugin, point, probes=probes)
        return self._breakers.openings

    @property
    def has_shorter_timeouts(self) -> bool:
        """Whether a plugin has a shorter timeout at present, because it exceeded its timeout before."""
        return bool(self._open or self._closed)

    def timeout_of(self, plugin: Plugin, *, adds_up: bool = False) -> timeouts.BlockTimeout:
        """Return the timeout of a plugin; ``adds_up`` is whether all blocks have it together if it is shorter than usual."""
        if not (self._open or self._closed):
            return self.timeout
        share = self._breakers.share_of(plugin)
        return self.timeout if share >= 1 else self.timeout.part(share, adds_up=adds_up)

    def _step_timeout(
        self, plugin: Plugin, usual: timeouts.BlockTimeout, since: int
    ) -> timeouts.BlockTimeout:
        """Return the timeout of the next step of a coroutine; ``since`` is the result of ``admit``.

        Coroutines that were under way when another call of the plugin exceeded its timeout have the shortest timeout,
        all together. Otherwise each of them could block the event loop for as long as that call.
        """
        if not (self._open or self._closed):
            return usual
        breaker = self._open.get(id(plugin)) or self._closed.get(id(plugin))
        if breaker is None or breaker.number <= since:
            return usual
        if breaker.under_way is None:
            breaker.under_way = self.timeout.part(0, adds_up=True)
        return breaker.under_way

    @property
    def openings(self) -> int:
        """How often a circuit breaker has opened."""
        return self._breakers.openings

    @property
    def has_open_breakers(self) -> bool:
        """Whether the circuit breaker of any plugin is open or half-open."""
        return bool(self._open)

    def record_success(self, plugin: Plugin, point: Point, *, since: int) -> None:
        """Record that a call ended before its timeout."""
        if self._open:
            self._breakers.record_success(plugin, point, since=since)

    def raise_plugin_error(
        self,
        plugin: Plugin | None,
        point: Point,
        problem: BaseException,
        *,
        since: int,
        cluster: str = "",
        context: object = None,
    ) -> NoReturn:
        """Raise PluginError for an exception of a plugin; log its traceback, or open the circuit breaker at a timeout.

        Args:
            plugin: The plugin; None if none was called yet, as the process was stopped or had no CPU time.
            point: The extension point of the call.
            problem: The exception of the call.
            since: The result of ``admit``.
            cluster: The cluster of the call, "" for none.
            context: What the plugin got: a binding, or what has one.

        Raises:
            PluginError: Always, unless ``problem`` is one of ``interrupts``, or was raised without a plugin and is no
                timeout.
        """
        if isinstance(problem, self.interrupts):
            raise problem
        if plugin is None:
            if not isinstance(problem, timeouts.PluginTimeoutError):
                raise problem
            raise PluginError(
                f"the process {problem} to reach the first plugin at {point.label}: it was stopped, or had no CPU time"
            ) from None
        where = f" for cluster {cluster}" if cluster else ""
        if isinstance(problem, timeouts.PluginTimeoutError):
            raise self._breakers.record_timeout(
                plugin,
                point,
                problem,
                since=since,
                binding=_binding_of(context),
                cluster=where,
                place=plugin_location(plugin, problem),
            ) from None
        self.record_success(plugin, point, since=since)
        self.log_failure(plugin, point, problem)
        text = f'plugin "{plugin.name}" failed at {point.label}{where}: {exception_text(problem)}'
        raise PluginError(text) from problem

    def log_failure(self, plugin: Plugin, point: Point, problem: BaseException) -> None:
        """Log the traceback of an exception of a plugin, at most once a minute per place."""
        if not (isinstance(problem, SchedulingError) and point in _MAY_RAISE_SCHEDULING_ERROR):
            self._failures.log(plugin, point, problem)

    def _observe(self, plugin: Plugin, point: Point, code: Code, begin: float) -> None:
        if self.observer is not None:
            self.observer.plugin(plugin.name, point.label, code, time.perf_counter() - begin)


def _binding_of(context: object) -> str:
    """Return the binding of the context of an extension point for messages, "" if it has none."""
    cycle = getattr(context, "cycle", None)
    for found in (context, getattr(context, "binding", None), getattr(cycle, "binding", None)):
        if isinstance(found, Binding):
            return found.key.display
    return ""


def exception_text(problem: BaseException) -> str:
    """Return an exception as ``KeyError: 'x'``; only the type if its ``__str__`` fails."""
    kind = type(problem).__name__
    try:
        text = str(problem)
    except Exception:  # noqa: BLE001 (a plugin's __str__)
        return kind
    return f"{kind}: {text[:_MAX_TEXT]}" if text else kind


_NOT_AWAITABLE: Final = frozenset((Result, list, tuple, dict))
"""Types of most answers; ``isawaitable`` is slow for what is not awaitable."""

_MAX_TEXT: Final = 4096
"""Characters of an exception in a message."""

_MAY_RAISE_SCHEDULING_ERROR: Final = frozenset({Point.SELECT, Point.ASSIGN})
"""The extension points at which a SchedulingError is an answer and no failure."""


def _code_of(answer: object) -> Code:
    return answer.code if isinstance(answer, Result) and isinstance(answer.code, Code) else Code.SUCCESS


@cache
def _waiting() -> ModuleType:
    """Return the module for coroutines of plugins, which imports asyncio: answers from files start without it."""
    from karmada_scheduler.framework.runtime import coroutine_timeouts

    return coroutine_timeouts
