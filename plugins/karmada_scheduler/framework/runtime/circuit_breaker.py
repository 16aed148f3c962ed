"""Circuit breakers: after a timeout, a plugin is not called for a while, so that it does not delay other bindings.

The breaker of a plugin *opens* when a call exceeds its timeout. While it is open, every call of the plugin fails at once.
After a pause it is *half-open*: one call at the extension point of the timeout is admitted as a probe, and so are calls at
the plugin's other points. A probe that ends in time *closes* the breaker. A probe that exceeds its timeout opens it again,
for twice as long. Exceptions do not open it, because they are cheap (docs/decisions/0017-circuit-breakers.md).

The calls after a timeout, probes included, get a part of the timeout only: a sixtieth for each second of the pause. So
what hangs once costs its timeout, and what hangs again and again takes one sixtieth of the time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from karmada_scheduler.framework.diagnosis import PluginError
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.plugin import Plugin
from karmada_scheduler.framework.runtime.timeouts import BlockTimeout
from karmada_scheduler.structs import Struct, field

log = logging.getLogger(__name__)

__timeout_shield__ = True

FIRST_PAUSE: Final = 2.0
"""The first pause: long enough to process all other bindings before the probe."""

LONGEST_PAUSE: Final = 60.0
"""The pause doubles with each probe that exceeds its timeout, up to this value."""

RESET_SECONDS: Final = 300.0
"""After this time without a timeout the next pause is the first one again."""


class CircuitBreakerObserver(Protocol):
    """Receives every breaker that opens or closes."""

    def opened(self, plugin: str, now_open: int, /) -> None:
        """A breaker opened; ``now_open`` is the number of the plugin's open breakers, one per profile that has it."""

    def closed(self, plugin: str, now_open: int, /) -> None:
        """A breaker closed, or its plugin is no longer in use."""


class _CircuitBreaker(Struct):
    """A breaker that is open or half-open.

    Attributes:
        point: The extension point of the timeout.
        error: The error of calls while it is open.
        pause: Seconds.
        until: When the next probe may begin.
        half_open_at: When it became, or becomes, half-open.
        number: The number of this opening, counted over all breakers.
        under_way: The timeout that calls under way at the opening have together, None before it is needed.
    """

    plugin: Plugin
    point: Point
    error: str
    pause: float
    until: float
    half_open_at: float
    number: int
    under_way: BlockTimeout | None = None


class CircuitBreakers(Struct, kw_only=True):
    """The circuit breakers of all plugins, one per plugin object. A reloaded file makes new objects.

    Attributes:
        open: The breakers that are open or half-open, by the id of the plugin.
        closed: The breakers that were open in the last minutes, by the id of the plugin.
        openings: How often any breaker has opened. The result of a call that began before an opening does not change
            that breaker.
        clock: Returns seconds of a monotonic clock.
        exempt: Names of plugins that are always called: the in-tree plugins, which all bindings need. None: all.
        observer: Receives every change.
    """

    clock: Callable[[], float]
    exempt: Collection[str] | None = ()
    observer: CircuitBreakerObserver | None = None
    open: dict[int, _CircuitBreaker] = field(default_factory=dict)
    openings: int = 0
    closed: dict[int, _CircuitBreaker] = field(default_factory=dict)

    def share_of(self, plugin: Plugin) -> float:
        """Return which part of its timeout a plugin has, from 0 to 1; less than 1 for some minutes after a timeout."""
        breaker = self.open.get(id(plugin)) or self.closed.get(id(plugin))
        if breaker is None:
            return 1.0
        if id(plugin) not in self.open and self.clock() - breaker.half_open_at > RESET_SECONDS:
            del self.closed[id(plugin)]
            return 1.0
        return min(1.0, breaker.pause / LONGEST_PAUSE)

    def admit(self, plugin: Plugin, point: Point, *, probes: bool = True) -> None:
        """Return if a call is admitted; ``probes`` is whether it may be the probe.

        Raises:
            PluginError: The breaker is open. ``retry_after`` is the time until the next probe.
        """
        breaker = self.open.get(id(plugin))
        if breaker is None:
            return
        now = self.clock()
        if now < breaker.until:
            raise PluginError(breaker.error, retry_after=breaker.until - now)
        if probes and point is breaker.point:
            breaker.until = now + breaker.pause

    def record_success(self, plugin: Plugin, point: Point, *, since: int) -> None:
        """Record that a call ended before its timeout; ``since`` is the value of ``openings`` when it began."""
        breaker = self.open.get(id(plugin))
        if breaker is None or breaker.number > since:
            return
        # A call at another extension point closes the breaker only if there was no probe for a long time.
        if point is not breaker.point and self.clock() < breaker.half_open_at + LONGEST_PAUSE:
            return
        self.closed[id(plugin)] = self.open.pop(id(plugin))
        log.info(
            "A plugin responds in time again, its circuit breaker is closed",
            extra={"plugin": plugin.name, "point": point.label},
        )
        if self.observer is not None:
            self.observer.closed(plugin.name, self._count(plugin.name))

    def record_timeout(
        self,
        plugin: Plugin,
        point: Point,
        late: BaseException,
        *,
        since: int,
        binding: str,
        cluster: str,
        place: str,
    ) -> PluginError:
        """Open the breaker of a plugin that exceeded its timeout, and return the error of the call.

        Args:
            plugin: The plugin.
            point: The extension point of the call.
            late: The timeout error.
            since: The value of ``openings`` when the call began.
            binding: The binding of the call, "" if it is about none. The error of other bindings names it.
            cluster: " for cluster NAME", or "".
            place: ``file:line`` of the plugin at the timeout, for the log.
        """
        text = f'plugin "{plugin.name}" {late} at {point.label}'
        if self.exempt is None or plugin.name in self.exempt:
            return PluginError(f"{text}{cluster}")
        now, breaker = self.clock(), self.open.get(id(plugin))
        if breaker is None or breaker.number <= since:
            about = f" for {binding}" if binding else ""
            breaker = self._opened(plugin, point, f"{text}{about}", now)
            log.warning(
                "A plugin exceeded its timeout and is not called for a while",
                extra={
                    "plugin": plugin.name,
                    "point": point.label,
                    "binding": binding,
                    "error": late,
                    "path": place,
                    "seconds": f"{breaker.pause:g}",
                },
            )
            if self.observer is not None:
                self.observer.opened(plugin.name, self._count(plugin.name))
        # This binding waits for a second pause, so that the next probe is another binding's.
        retry_after = max(0.0, breaker.until - now) + breaker.pause
        return PluginError(f"{text}{cluster}{_not_called(breaker.pause)}", retry_after=retry_after)

    def keep(self, plugins: Iterable[Plugin]) -> None:
        """Drop the breakers of all other plugins, which are no longer in use."""
        kept = {id(plugin) for plugin in plugins}
        for key in self.closed.keys() - kept:
            del self.closed[key]
        for key in self.open.keys() - kept:
            name = self.open.pop(key).plugin.name
            if self.observer is not None:
                self.observer.closed(name, self._count(name))

    def _opened(self, plugin: Plugin, point: Point, text: str, now: float) -> _CircuitBreaker:
        for key, breaker in list(self.closed.items()):
            if now - breaker.half_open_at > RESET_SECONDS:
                del self.closed[key]
        before = self.open.get(id(plugin)) or self.closed.pop(id(plugin), None)
        pause = FIRST_PAUSE if before is None else min(2 * before.pause, LONGEST_PAUSE)
        self.openings += 1
        error = f"{text}{_not_called(pause)}"
        opened = _CircuitBreaker(plugin, point, error, pause, now + pause, now + pause, self.openings)
        self.open[id(plugin)] = opened
        return opened

    def _count(self, name: str) -> int:
        return sum(1 for breaker in self.open.values() if breaker.plugin.name == name)


def _not_called(pause: float) -> str:
    return f" and is not called for {pause:g}s"
