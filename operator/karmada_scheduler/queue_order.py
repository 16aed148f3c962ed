"""Puts a QueueSort plugin in charge of the queue."""

from __future__ import annotations

import logging
from collections.abc import Callable

from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.binding import QueuedBinding, QueueSortPlugin
from karmada_scheduler.framework.isolation import PluginTimeoutError, Unwatched, Watch

log = logging.getLogger(__name__)


class _Judge:
    """Asks the plugin. One that has hung once is not asked any more, for every comparison would hang."""

    def __init__(self, plugin: QueueSortPlugin, watch: Watch) -> None:
        self._plugin = plugin
        self._watch = watch
        self._hangs = False
        self._told = ""

    def less(self, a: QueuedBinding, b: QueuedBinding) -> bool:
        if self._hangs:
            return a.default_rank < b.default_rank
        try:
            with self._watch:
                return bool(self._plugin.less(a, b))
        except PluginTimeoutError as late:
            self._hangs = True
            log.error(  # noqa: TRY400 (where it hangs says nothing)
                'plugin "%s" %s at QueueSort and is not asked any more; until a restart higher priorities go first',
                self._plugin.name,
                late,
            )
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as problem:
            text = repr(type(problem))
            if text != self._told:
                self._told = text
                log.exception(
                    'plugin "%s" failed at QueueSort; what came first goes first', self._plugin.name
                )
        return False


class _Ranked:
    """A place in the queue that a plugin compares."""

    __slots__ = ("_judge", "_queued")

    def __init__(self, judge: _Judge, queued: QueuedBinding) -> None:
        self._judge = judge
        self._queued = queued

    def __lt__(self, other: _Ranked) -> bool:
        return self._judge.less(self._queued, other._queued)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranked) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]  # compared only


def ranked_by(
    plugin: QueueSortPlugin,
    binding_of: Callable[[BindingKey], Binding | None],
    *,
    watch: Watch | None = None,
) -> Callable[[BindingKey, int, float], object]:
    """Return what ranks keys as a plugin says."""
    judge = _Judge(plugin, watch or Unwatched())

    def rank(key: BindingKey, priority: int, since: float) -> object:
        return _Ranked(judge, QueuedBinding(key, priority, since, binding_of(key)))

    return rank
