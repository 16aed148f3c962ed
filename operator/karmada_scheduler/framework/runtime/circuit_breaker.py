"""Circuit breakers: a plugin that was cut off is not called for a while, so that it does not hold up everybody else.

The breaker of a plugin *opens* when a call of it took too long. While it is open, every call of the plugin fails at
once. After a pause it is *half-open*: one call at the point where the plugin was cut off is let through as a probe,
and so are calls at its other points. A probe that ends in time *closes* the breaker; one that is cut off opens it
again, for twice as long. Exceptions open nothing: they are cheap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.scheduling_points import Plugin

log = logging.getLogger(__name__)

__timeout_shield__ = True

FIRST_PAUSE: Final = 2.0
"""Seconds for which a breaker opens: long enough for everybody else to have a turn before the next probe."""

LONGEST_PAUSE: Final = 60.0
"""Seconds that a pause, which doubles with every probe that is cut off, has at most."""

FORGIVEN_SECONDS: Final = 300.0
"""How long a plugin must have answered in time before its next pause is the first one again."""


class CircuitBreakerObserver(Protocol):
    """Told of every breaker that opens or closes."""

    def opened(self, plugin: str, now_open: int, /) -> None:
        """A plugin was cut off; ``now_open`` counts its open breakers, one per profile that has the plugin."""
        ...

    def closed(self, plugin: str, now_open: int, /) -> None:
        """A plugin answers again, or is not in use any more."""
        ...


@dataclass(slots=True)
class _CircuitBreaker:
    """One that is open or half-open.

    Attributes:
        point: Where the plugin was cut off.
        error: What a call is told.
        pause: In seconds.
        until: When the next probe may begin.
        ready: When it became, or becomes, half-open.
        number: Which of all openings this was.
    """

    plugin: Plugin
    point: Point
    error: str
    pause: float
    until: float
    ready: float
    number: int


class CircuitBreakers:
    """The circuit breakers of all plugins, one per object: a file that is loaded anew makes a new plugin.

    Attributes:
        open: Those that are not closed, by the id of the plugin. Nothing need be asked while it is empty.
        openings: How often any of them has opened. A call that began before a breaker opened says nothing about
            the plugin since then.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        exempt: Collection[str] = (),
        observer: CircuitBreakerObserver | None = None,
    ) -> None:
        """Start with all closed.

        Args:
            clock: Seconds that only grow.
            exempt: Names of plugins that are always called. In-tree plugins decide for everybody; a binding that is
                too much for one of them must not stop the others.
            observer: Told of every change.
        """
        self.open: Final[dict[int, _CircuitBreaker]] = {}
        self.openings = 0
        self._clock = clock
        self._exempt = frozenset(exempt)
        self._observer = observer
        self._closed: dict[int, _CircuitBreaker] = {}

    def admit(self, plugin: Plugin, point: Point, *, probes: bool = True) -> None:
        """Let a call through, or not; ``probes`` tells whether it may be the probe.

        Raises:
            PluginError: The breaker is open. ``retry_after`` is the time to the next probe.
        """
        breaker = self.open.get(id(plugin))
        if breaker is None:
            return
        now = self._clock()
        if now < breaker.until:
            raise PluginError(breaker.error, retry_after=breaker.until - now)
        if probes and point is breaker.point:
            breaker.until = now + breaker.pause

    def answered(self, plugin: Plugin, point: Point, *, since: int) -> None:
        """Note that a call ended in time; ``since`` is what ``openings`` was when it began."""
        breaker = self.open.get(id(plugin))
        if breaker is None or breaker.number > since:
            return
        # Calls at other points say little, unless there are no calls at the one where it was cut off.
        if point is not breaker.point and self._clock() < breaker.ready + LONGEST_PAUSE:
            return
        self._closed[id(plugin)] = self.open.pop(id(plugin))
        log.info(
            "A plugin that was cut off answers in time and is called again",
            extra={"plugin": plugin.name, "point": point.label},
        )
        if self._observer is not None:
            self._observer.closed(plugin.name, self._count(plugin.name))

    def cut_off(
        self, plugin: Plugin, point: Point, late: BaseException, *, since: int, cluster: str, place: str
    ) -> PluginError:
        """Open the breaker of a plugin that took too long, and return the error of the call.

        Args:
            plugin: The plugin.
            point: Where it was called.
            late: Says how long it took.
            since: What ``openings`` was when the call began.
            cluster: " for cluster NAME", or "".
            place: The line at which it was, for the log.
        """
        said = f'plugin "{plugin.name}" {late} at {point.label}'
        if plugin.name in self._exempt:
            return PluginError(f"{said}{cluster}")
        now, breaker = self._clock(), self.open.get(id(plugin))
        if breaker is None or breaker.number <= since:
            breaker = self._opened(plugin, point, said, now)
            log.warning(
                "A plugin was cut off and is not called for a while",
                extra={
                    "plugin": plugin.name,
                    "point": point.label,
                    "error": late,
                    "path": place,
                    "seconds": f"{breaker.pause:g}",
                },
            )
            if self._observer is not None:
                self._observer.opened(plugin.name, self._count(plugin.name))
        # What was cut off goes to the end of those that wait, so that the next probe is another binding's.
        again = max(0.0, breaker.until - now) + breaker.pause
        return PluginError(f"{said}{cluster}{_not_called(breaker.pause)}", retry_after=again)

    def keep(self, plugins: Iterable[Plugin]) -> None:
        """Forget all plugins but some: the others are not in use any more."""
        kept = {id(plugin) for plugin in plugins}
        for each in self._closed.keys() - kept:
            del self._closed[each]
        for each in self.open.keys() - kept:
            name = self.open.pop(each).plugin.name
            if self._observer is not None:
                self._observer.closed(name, self._count(name))

    def _opened(self, plugin: Plugin, point: Point, said: str, now: float) -> _CircuitBreaker:
        for each, breaker in list(self._closed.items()):
            if now - breaker.ready > FORGIVEN_SECONDS:
                del self._closed[each]
        before = self.open.get(id(plugin)) or self._closed.pop(id(plugin), None)
        pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
        self.openings += 1
        error = f"{said}{_not_called(pause)}"
        opened = _CircuitBreaker(plugin, point, error, pause, now + pause, now + pause, self.openings)
        self.open[id(plugin)] = opened
        return opened

    def _count(self, name: str) -> int:
        return sum(1 for breaker in self.open.values() if breaker.plugin.name == name)


def _not_called(pause: float) -> str:
    return f" and is not called for {pause:g}s"
