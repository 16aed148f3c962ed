"""Calls plugins: timed, watched, and with the plugin's name on what goes wrong."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from typing import Final, NoReturn, Protocol, TypeVar

from karmada_scheduler.framework.diagnosis import PluginError, SchedulingError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.result import Code, Result
from karmada_scheduler.framework.runtime import timeouts
from karmada_scheduler.framework.runtime.circuit_breaker import CircuitBreakers
from karmada_scheduler.framework.runtime.failure_log import FailureLog, place_in
from karmada_scheduler.framework.scheduling_points import Plugin

__plugin_runner__ = True

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
        watch: timeouts.CallTimeout | None = None,
        budget: float = timeouts.DEFAULT_SECONDS,
        breakers: CircuitBreakers | None = None,
        clock: Callable[[], float] = time.monotonic,
        interrupts: tuple[type[BaseException], ...] | None = None,
    ) -> None:
        """Watch plugins with ``watch``, and end their coroutines after ``budget`` seconds.

        Args:
            observer: Receives how long calls took.
            watch: Ends plain functions that take too long; by default nothing does.
            budget: Seconds that a coroutine may take.
            breakers: Without them a plugin that was cut off is called again at once.
            clock: Says which tracebacks were logged lately.
            interrupts: What is raised because somebody wants the process to stop, and is no plugin's; by default
                KeyboardInterrupt where nothing watches: an event loop that is watched takes SIGINT itself.
        """
        self.observer: Final = observer
        self.watch: Final = watch or timeouts.NoTimeout()
        self.budget: Final = budget
        self._breakers: Final = breakers
        self._open: Final = breakers.open if breakers is not None else {}
        self._failures: Final = FailureLog(clock=clock)
        if interrupts is None:
            interrupts = (KeyboardInterrupt,) if isinstance(self.watch, timeouts.NoTimeout) else ()
        self.interrupts: Final = interrupts

    def call(
        self, plugin: Plugin, point: Point, function: Callable[[Context], Answer], context: Context
    ) -> Answer:
        """Call a plain function.

        Raises:
            PluginError: It raised or took too long, or is not called because it took too long before.
        """
        since = self.admit(plugin, point)
        begin = time.perf_counter()
        code = Code.ERROR
        try:
            with self.watch:
                answer = function(context)
            code = _code_of(answer)
        except BaseException as problem:  # noqa: BLE001 (a plugin can raise anything)
            self.blame(plugin, point, problem, since=since)
        finally:
            self._observe(plugin, point, code, begin)
        self.answered(plugin, point, since=since)
        return answer

    async def ask(
        self,
        plugin: Plugin,
        point: Point,
        function: Callable[[Context], object],
        context: Context,
    ) -> object:
        """Call a function that may be a coroutine, and wait for it; PluginError as from ``call``."""
        since = self.admit(plugin, point)
        begin = time.perf_counter()
        code, waits = Code.ERROR, False
        try:
            with self.watch:
                answer = function(context)
            if inspect.isawaitable(answer):
                waits, seconds = True, getattr(plugin, "timeout", self.budget)
                answer = await timeouts.wait_for_plugin(answer, timeout=self.watch, seconds=seconds)
            code = _code_of(answer)
        except BaseException as problem:
            if waits and isinstance(problem, timeouts.CANCELLATIONS):
                raise
            self.blame(plugin, point, problem, since=since)
        finally:
            self._observe(plugin, point, code, begin)
        self.answered(plugin, point, since=since)
        return answer

    def admit(self, plugin: Plugin, point: Point, *, probes: bool = True) -> int:
        """Return what ``blame`` and ``answered`` take as ``since``.

        Args:
            plugin: What is to be called.
            point: Where.
            probes: Whether the call may find out whether a plugin that was cut off is well again.

        Raises:
            PluginError: The plugin took too long before and is not called now.
        """
        if self._open and self._breakers is not None:
            self._breakers.admit(plugin, point, probes=probes)
        return self.openings

    @property
    def openings(self) -> int:
        """How often a plugin was cut off."""
        return 0 if self._breakers is None else self._breakers.openings

    @property
    def has_cut_off(self) -> bool:
        """Whether there is a plugin that is not called, or not with every binding, because it took too long."""
        return bool(self._open)

    def answered(self, plugin: Plugin, point: Point, *, since: int) -> None:
        """Note that a call ended in time."""
        if self._open and self._breakers is not None:
            self._breakers.answered(plugin, point, since=since)

    def blame(
        self, plugin: Plugin, point: Point, problem: BaseException, *, since: int, cluster: str = ""
    ) -> NoReturn:
        """Raise the error of a plugin that raised or was cut off, and see to what follows from it.

        Args:
            plugin: The plugin.
            point: Where it was called.
            problem: What came out of it.
            since: What ``admit`` returned.
            cluster: The cluster that it was asked about, "" for none.

        Raises:
            PluginError: Always, unless somebody wants this process to stop.
        """
        if isinstance(problem, self.interrupts):
            raise problem
        where = f" for cluster {cluster}" if cluster else ""
        if isinstance(problem, timeouts.PluginTimeoutError):
            if self._breakers is None:
                raise PluginError(f'plugin "{plugin.name}" {problem} at {point.label}{where}') from None
            place = place_in(plugin, problem)
            raise self._breakers.cut_off(
                plugin, point, problem, since=since, cluster=where, place=place
            ) from None
        self.answered(plugin, point, since=since)
        self.tell(plugin, point, problem)
        text = f'plugin "{plugin.name}" failed at {point.label}{where}: {said(problem)}'
        raise PluginError(text) from problem

    def tell(self, plugin: Plugin, point: Point, problem: BaseException) -> None:
        """Log the traceback of what a plugin raised, if that was not done lately."""
        if not (isinstance(problem, SchedulingError) and point in _SAY_WHY):
            self._failures.tell(plugin, point, problem)

    def _observe(self, plugin: Plugin, point: Point, code: Code, begin: float) -> None:
        if self.observer is not None:
            self.observer.plugin(plugin.name, point.label, code, time.perf_counter() - begin)


def said(problem: BaseException) -> str:
    """Return what a plugin raised as ``KeyError: 'x'``, whatever kind of exception it made."""
    kind = type(problem).__name__
    try:
        text = str(problem)
    except Exception:  # noqa: BLE001 (a plugin's __str__)
        return kind
    return f"{kind}: {text}" if text else kind


def nonsense(plugin: Plugin, point: Point, got: object, expected: str) -> PluginError:
    """Return the error of a plugin that answered what its point does not allow."""
    try:
        shown = f"{got!r:.200}"
    except Exception:  # noqa: BLE001 (a plugin's __repr__)
        shown = f"a {type(got).__name__}"
    return PluginError(f'plugin "{plugin.name}" returned {shown} at {point.label}, expected {expected}')


def checked(plugin: Plugin, point: Point, answer: object) -> Result:
    """Put the plugin's name on its result.

    Raises:
        PluginError: It is no Result, or one that holds what it must not.
    """
    if not isinstance(answer, Result):
        raise nonsense(plugin, point, answer, _EXPECTED.get(point, "a Result"))
    if answer.is_success:
        return answer
    if not isinstance(answer.code, Code):
        raise nonsense(plugin, point, answer, "a Code in the Result")
    if not isinstance(answer.reasons, (tuple, list)) or not all(
        isinstance(reason, str) for reason in answer.reasons
    ):
        raise nonsense(plugin, point, answer, "texts as reasons, in a tuple")
    if not (_is_time(answer.timeout) and _is_time(answer.retry_after)):
        raise nonsense(plugin, point, answer, "seconds as timeout and retry_after")
    return Result(answer.code, tuple(answer.reasons), plugin.name, answer.timeout, answer.retry_after)


def not_allowed(plugin: Plugin, point: Point, result: Result) -> PluginError:
    """Return the error of a plugin that says Error, or something that means nothing at this point."""
    if result.code is Code.ERROR:
        return PluginError(f'running {point.label} plugin "{plugin.name}": {result.message}')
    return nonsense(plugin, point, result.code.value, _ALLOWED.get(point, "Success, Unschedulable or Error"))


_SAY_WHY: Final = frozenset({Point.SELECT, Point.ASSIGN})
"""Where a SchedulingError is an answer."""

_ALLOWED: Final = {
    Point.FILTER: "Success, Unschedulable, UnschedulableAndUnresolvable or Pending",
    Point.PRE_FILTER: "cluster names, Success, Skip, Unschedulable or Error",
    Point.PRE_SCORE: "Success, Skip or Error",
    Point.SELECT: "some of the candidates, Skip, Unschedulable or Error",
    Point.ASSIGN: "replicas by cluster name, Skip, Unschedulable or Error",
    Point.PERMIT: "Success, Wait, Unschedulable or Error",
    Point.PRE_BIND: "Success, Skip or Error",
    Point.BIND: "Success, Skip, Unschedulable or Error",
}
_EXPECTED: Final = {Point.PRE_FILTER: "a Result or a set of cluster names"}


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < math.inf


def _code_of(answer: object) -> Code:
    return answer.code if isinstance(answer, Result) and isinstance(answer.code, Code) else Code.SUCCESS
